"""The largest of many independent Beta samples, without drawing most of them.

Thompson sampling only needs to know who wins. Let x be a level that the winning sample hardly ever
falls below. An arm whose posterior Beta(1 + s, 1 + f) has little mass above x need not be drawn in
a step in which its sample lies below x:

1. The log-density h(y) = s·log y + f·log(1 − y) − log B(1 + s, 1 + f) is concave, so it lies below
   its tangent at x, g(y) = h(x) + h′(x)·(y − x), and P(X > x) ≤ p = ∫ₓ¹ exp g(y) dy.
2. An arm with p < 1/2 is made a candidate with probability p, independently of all others. This is
   the chance that a Poisson process of rate −log(1 − p) hits the arm, and the time to the next hit
   is exponential: going along sums of rates over blocks of arms, one finds the next candidate
   without looking at the arms before it.
3. A candidate gets a y on (x, 1) with density exp(g(y))/p, which is accepted with probability
   exp(h(y) − g(y)). Altogether y comes out with density p · exp(g(y))/p · exp(h(y) − g(y))
   = exp h(y), the posterior's above x. Any other outcome means X ≤ x.
4. Arms with p ≥ 1/2 are simply drawn. If in the end nobody is above x, the remaining arms are drawn
   under the condition X ≤ x, by drawing again until it holds.

The winner so has its exact law, whatever x is, as long as x doesn't depend on the current draws.
Here x is the smallest winning sample of the last window of steps. Windows double in length, so that
setting levels soon costs little, and a longer window makes for a level that is passed more rarely.
The level x = 1 is the literal way: every arm is drawn, in order.

The functions take a policy's state with these fields, where k is an arm's number:

- `successes[k]`, `failures[k]`, `log_beta[k]`: s, f and log B(1 + s, 1 + f);
- `arms`: the arm in each slot, in the order of drawing, or −1 where a slot is empty;
- `rates`: −log(1 − p) of each slot, infinite for arms that are simply drawn, in blocks of slots
  (blocks × slots in a block), and `block_rates`, the sums over blocks;
- `level` and `window`, see below.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit

__all__ = ["count", "largest", "refresh", "restart", "start_betas"]

# What the entries of `level` are.
X = 0  # the level x
LOG_X = 1  # log x
LOG_REST = 2  # log(1 − x)
LOWEST = 3  # the smallest winning sample of the current window so far

# What the entries of `window` are.
LEFT = 0  # steps to the end of the current window
LENGTH = 1  # its length
FIRST = 2  # the length of the first one


def start_betas(arms: int, slots: int) -> dict[str, NDArray[Any]]:
    """The fields of a state with so many arms, of which at most `slots` compete at a time."""
    size = max(1, math.isqrt(slots))  # blocks are about as many as the slots in one
    blocks = -(-slots // size)
    return {
        "successes": np.zeros(arms, np.int64),
        "failures": np.zeros(arms, np.int64),
        "log_beta": np.zeros(arms),
        "arms": np.full(blocks * size, -1, np.int64),
        "rates": np.zeros((blocks, size)),
        "block_rates": np.zeros(blocks),
        "level": np.array([1.0, 0.0, -math.inf, 1.0]),
        # Eight steps give a fair level; when the arms change more often, it isn't worth its while.
        "window": np.full(3, 8),
    }


@inlined
def count(state: Any, k: int, success: bool) -> None:
    """One more observation of arm k. B(a + 1, b) = B(a, b)·a/(a + b)."""
    total = 2.0 + state.successes[k] + state.failures[k]
    if success:
        state.log_beta[k] += math.log((1.0 + state.successes[k]) / total)
        state.successes[k] += 1
    else:
        state.log_beta[k] += math.log((1.0 + state.failures[k]) / total)
        state.failures[k] += 1


@jit
def rate(s: int, f: int, log_beta: float, x: float, log_x: float, log_rest: float) -> float:
    """−log(1 − p); infinite where the arm is to be drawn."""
    z = s * (1.0 - x) / x - f  # h′(x)·(1 − x)
    p = math.exp(s * log_x + f * log_rest - log_beta) * (1.0 - x)
    if z != 0.0:
        p *= math.expm1(z) / z
    return -math.log1p(-p) if p < 0.5 else math.inf  # infinite also where p is not a number


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
    """The posterior of the arm in this slot has changed."""
    level, rates = state.level, state.rates
    if level[X] == 1.0:
        return
    size = rates.shape[1]
    block, k = slot // size, state.arms[slot]
    rates[block, slot - block * size] = rate(
        state.successes[k], state.failures[k], state.log_beta[k],
        level[X], level[LOG_X], level[LOG_REST],
    )  # fmt: skip
    total = 0.0
    for c in range(size):
        total += rates[block, c]
    state.block_rates[block] = total


@jit
def set_level(state: Any, x: float) -> None:
    """Make x the level."""
    level = state.level
    level[X], level[LOG_X], level[LOG_REST] = x, np.log(x), np.log1p(-x)
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
                    x, level[LOG_X], level[LOG_REST],
                )  # fmt: skip
            state.rates[block, c] = r
            total += r
        state.block_rates[block] = total


@inlined
def restart(state: Any) -> None:
    """Other arms are in the slots now: draw every one until a new level is found."""
    state.level[X] = state.level[LOWEST] = 1.0
    state.window[LEFT] = state.window[LENGTH] = state.window[FIRST]


@inlined
def largest(state: Any, rng: np.random.Generator) -> int:
    """The arm whose sample is the largest."""
    level, window = state.level, state.window
    x = level[X]
    best, winner = -1.0, -1
    if x < 1.0:
        best, winner = largest_above(state, x, rng)
    nobody = best < x
    if nobody:
        best, winner = largest_below(state, x, best, winner, rng)
    level[LOWEST] = min(level[LOWEST], best)
    window[LEFT] -= 1
    if window[LEFT] == 0 or (nobody and x < 1.0):
        set_level(state, level[LOWEST])
    if window[LEFT] == 0:
        level[LOWEST] = 1.0
        window[LENGTH] *= 2
        window[LEFT] = window[LENGTH]
    return winner


@inlined
def largest_above(state: Any, x: float, rng: np.random.Generator) -> tuple[float, int]:
    """The largest sample and its arm among candidates and arms that are simply drawn."""
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
    """The same once the other arms, none of which is above x, are drawn too."""
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
