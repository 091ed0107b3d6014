"""The largest of many independent Beta samples, without drawing most of them.

Thompson sampling only needs to know the winner. Let x be a level that the winning sample hardly
ever falls below. An arm whose posterior Beta(1 + s, 1 + f) has little mass above x need not be
drawn in a step in which its sample lies below x:

1. The log-density h(y) = s·log y + f·log(1 − y) − log B(1 + s, 1 + f) is concave, so it lies below
   its tangent at x, g(y) = h(x) + h′(x)·(y − x), and P(X > x) ≤ p = ∫ₓ¹ exp g(y) dy.
2. An arm with p < 1/2 becomes a candidate with probability p, independently of all others. This is
   the probability that a Poisson process of rate −log(1 − p) hits the arm, and the time to the next
   hit is exponential: sums of rates over blocks of arms lead to the next candidate without a look
   at the arms before it.
3. A candidate gets a y on (x, 1) with density exp(g(y))/p, which is accepted with probability
   exp(h(y) − g(y)). So the accepted y has density p · exp(g(y))/p · exp(h(y) − g(y)) = exp h(y),
   the posterior's above x. Any other outcome means X ≤ x.
4. Arms with p ≥ 1/2 are simply drawn. If no sample is above x, the remaining arms are drawn
   conditionally on X ≤ x, by redrawing until it holds.

So the winner has its exact law for any x, as long as x doesn't depend on the current draws. Here x
is the smallest winning sample of the last window of steps. Windows double in length: setting a new
level takes time, and the longer the window, the more rarely a winning sample lies below its
smallest. At the level x = 1 every arm is drawn, in order, as in the literal algorithm.

The functions take a policy's state with these fields, where k is the number of an arm:

- `successes[k]`, `failures[k]`, `log_beta[k]`: s, f and log B(1 + s, 1 + f);
- `arms`: the arm in each slot, in the order of drawing, or −1 if the slot is empty;
- `rates`: −log(1 − p) of each slot, infinite for arms that are simply drawn, in blocks of slots
  (blocks × slots in a block), and `block_rates`, the sums over blocks;
- `level`: the level and its window, see `LEVEL`.

A pull's tag carries a uniform number, which turns a reward between 0 and 1 into a success or a
failure (the Bernoulli trick) whenever it arrives: `uniform_tag`, `is_success`. Rewards loaded many
at a time have no such numbers: their total is rounded, and `rest[k]` carries the remainder over to
the next time.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit, record

__all__ = [
    "CACHES",
    "count",
    "is_success",
    "largest",
    "load_counts",
    "refresh",
    "restart",
    "start_betas",
    "uniform_tag",
]

#: The exponential of anything larger overflows, which is an error in code that isn't compiled.
OVERFLOWS = math.log(sys.float_info.max)

#: The record `level` of a state.
LEVEL = record(
    "left",  # steps to the end of the current window
    "length",  # its length
    "first",  # the length of the first window
    x=float,
    log_x=float,
    log_rest=float,  # log(1 − x)
    lowest=float,  # the smallest winning sample of the current window so far
)

#: The fields that depend on earlier samples; the law of the next winner doesn't.
CACHES: tuple[str, ...] = ("rates", "block_rates", "level")

#: Bits of a uniform number in a tag; UTS needs the other bits.
UNIFORM_BITS = 40
_TAGS = 2.0**UNIFORM_BITS


def start_betas(arms: int, slots: int) -> dict[str, NDArray[Any]]:
    """The fields of a state with this number of arms, of which `slots` compete at a time."""
    size = max(1, math.isqrt(slots))  # about as many blocks as slots per block
    blocks = -(-slots // size)
    return {
        "successes": np.zeros(arms, np.int64),
        "failures": np.zeros(arms, np.int64),
        "log_beta": np.zeros(arms),
        "rest": np.zeros(arms),
        "arms": np.full(blocks * size, -1, np.int64),
        "rates": np.zeros((blocks, size)),
        "block_rates": np.zeros(blocks),
        # Eight steps give a fair level. If the arms change sooner, a level isn't worth computing.
        "level": np.array([(8, 8, 8, 1.0, 0.0, -math.inf, 1.0)], LEVEL),
    }


@inlined
def uniform_tag(rng: np.random.Generator) -> int:
    """A uniform number, as an integer."""
    return int(rng.random() * _TAGS)


@inlined
def is_success(tag: int, reward: float) -> bool:
    """Whether the reward counts as a success, which it does with probability `reward`."""
    return tag < reward * _TAGS


@inlined
def count(state: Any, k: int, success: bool) -> None:
    """Count one more observation of arm k. B(a + 1, b) = B(a, b)·a/(a + b)."""
    total = 2.0 + state.successes[k] + state.failures[k]
    if success:
        state.log_beta[k] += math.log((1.0 + state.successes[k]) / total)
        state.successes[k] += 1
    else:
        state.log_beta[k] += math.log((1.0 + state.failures[k]) / total)
        state.failures[k] += 1


@inlined
def load_counts(state: Any, k: int, trials: int, total: float) -> None:
    """Add `trials` observations of arm k, whose rewards have this sum."""
    total += state.rest[k]
    won = min(max(math.floor(total + 0.5), 0), trials)
    state.rest[k] = total - won
    state.successes[k] += won
    state.failures[k] += trials - won
    s, f = float(state.successes[k]), float(state.failures[k])
    state.log_beta[k] = math.lgamma(1.0 + s) + math.lgamma(1.0 + f) - math.lgamma(2.0 + s + f)


@jit
def rate(s: int, f: int, log_beta: float, x: float, log_x: float, log_rest: float) -> float:
    """−log(1 − p); infinite if the arm is simply drawn."""
    z = s * (1.0 - x) / x - f  # h′(x)·(1 − x)
    if z > OVERFLOWS:
        return math.inf
    p = math.exp(s * log_x + f * log_rest - log_beta) * (1.0 - x)
    if z != 0.0:
        p *= math.expm1(z) / z
    return -math.log1p(-p) if p < 0.5 else math.inf  # NaN gives infinity, too


@jit
def sample_above(s: int, f: int, x: float, least: float, rng: np.random.Generator) -> float:
    """A candidate's y; −1 if it isn't accepted, or isn't larger than `least` anyway."""
    z = s * (1.0 - x) / x - f
    u = rng.random()
    share = math.log1p(u * math.expm1(z)) / z if z != 0.0 else u  # (y − x)/(1 − x)
    y = x + (1.0 - x) * share
    if not least < y < 1.0:
        return -1.0
    below = z * share - s * math.log1p((y - x) / x) - f * math.log1p(-share)  # g(y) − h(y)
    return y if rng.standard_exponential() >= below else -1.0


@inlined
def refresh(state: Any, slot: int) -> None:
    """Update the rates after the posterior of the arm in this slot has changed."""
    level, rates = state.level[0], state.rates
    if level.x == 1.0:
        return
    size = rates.shape[1]
    block, k = slot // size, state.arms[slot]
    rates[block, slot - block * size] = rate(
        state.successes[k], state.failures[k], state.log_beta[k],
        level.x, level.log_x, level.log_rest,
    )  # fmt: skip
    total = 0.0
    for c in range(size):
        total += rates[block, c]
    state.block_rates[block] = total


@jit
def set_level(state: Any, x: float) -> None:
    """Make x the level."""
    level = state.level[0]
    level.x, level.log_x, level.log_rest = x, np.log(x), np.log1p(-x)
    slot = 0
    for block in range(state.rates.shape[0]):
        total = 0.0
        for c in range(state.rates.shape[1]):
            k = state.arms[slot]
            slot += 1
            r = 0.0
            if k >= 0 and x < 1.0:
                r = rate(
                    state.successes[k], state.failures[k], state.log_beta[k],
                    x, level.log_x, level.log_rest,
                )  # fmt: skip
            state.rates[block, c] = r
            total += r
        state.block_rates[block] = total


@inlined
def restart(state: Any) -> None:
    """After other arms were put into the slots: draw every arm until a new level is found."""
    level = state.level[0]
    level.x = level.lowest = 1.0
    level.left = level.length = level.first


@inlined
def largest(state: Any, rng: np.random.Generator) -> int:
    """The arm with the largest sample."""
    level = state.level[0]
    x = level.x
    best, winner = -1.0, -1
    if x < 1.0:
        best, winner = largest_above(state, x, rng)
    nobody = best < x
    if nobody:
        best, winner = largest_below(state, x, best, winner, rng)
    level.lowest = min(level.lowest, best)
    level.left -= 1
    if level.left == 0 or (nobody and x < 1.0):
        set_level(state, level.lowest)
    if level.left == 0:
        level.lowest = 1.0
        level.length *= 2
        level.left = level.length
    return winner


@inlined
def largest_above(state: Any, x: float, rng: np.random.Generator) -> tuple[float, int]:
    """The largest sample and its arm, among candidates and arms that are simply drawn."""
    rates, block_rates = state.rates, state.block_rates
    best, winner = -1.0, -1
    size = rates.shape[1]
    wait = rng.standard_exponential()
    for block in range(rates.shape[0]):
        if wait >= block_rates[block]:
            wait -= block_rates[block]
            continue
        for c in range(size):
            r = rates[block, c]
            if wait >= r:
                wait -= r
                continue
            k = state.arms[block * size + c]
            if r == math.inf:
                y = rng.beta(1.0 + state.successes[k], 1.0 + state.failures[k])
            else:
                y = sample_above(state.successes[k], state.failures[k], x, best, rng)
                wait = rng.standard_exponential()
            if y > best:
                best, winner = y, k
    return best, winner


@jit
def largest_below(
    state: Any, x: float, best: float, winner: int, rng: np.random.Generator
) -> tuple[float, int]:
    """The largest sample and its arm, after also drawing the other arms, all of them below x."""
    slot = 0
    for block in range(state.rates.shape[0]):
        for c in range(state.rates.shape[1]):
            k = state.arms[slot]
            slot += 1
            if k >= 0 and (x == 1.0 or state.rates[block, c] < math.inf):
                y = rng.beta(1.0 + state.successes[k], 1.0 + state.failures[k])
                while y > x:
                    y = rng.beta(1.0 + state.successes[k], 1.0 + state.failures[k])
                if y > best:
                    best, winner = y, k
    return best, winner
