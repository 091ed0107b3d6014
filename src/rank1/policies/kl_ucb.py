"""KL-UCB on all arms, solving only one or two equations per step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import inlined, record
from rank1.divergences import kl_level, kl_upper
from rank1.policies.averages import Averages
from rank1.policies.base import Known, Records, require_unit_rewards
from rank1.policies.every_arm_once import (
    SHARED,
    BeginsWithAll,
    EveryArmOnce,
    first_pull,
    mark_begun,
    note_first,
)
from rank1.policies.kinetic import next_above, put, refresh, root_of, start_kinetic

__all__ = ["KLUCB"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT = record(
    *SHARED,
    "winner",  # the arm to play once every arm has been issued
    "settled",  # t when it was found
    c=float,  # the setting
    level=float,  # f
)

# `kl_upper` and the tangents made from it are accurate to about 1e-15: an arm whose tangent lies
# this far below an index has a smaller computed index.
MARGIN = 1e-12


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    begun: NDArray[np.bool_]  # arms whose first pull was issued
    counts: Ints  # T
    sums: Floats
    intercept: Floats
    slope: Floats
    until: Floats
    winner: Ints
    close: NDArray[np.bool_]
    offset: NDArray[np.uint64]


class KLUCBState(_Arrays, BeginsWithAll, Averages):
    """Counts and sums of each arm, and the tournament of bounds on their indices.

    The index U(f) = max{q : T·kl(mean, q) ≤ f} is concave in the level f = log t + c·log log t,
    so it lies below each of its tangents. An arm's score in the tournament is the tangent at the
    level at which its index was last computed: an upper bound for all levels, and hardly above
    the index after few steps.
    """

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """Every arm once, then the arm with the largest index."""
        arm, tag = first_pull(self.at, self.begun)
        return settled(self) if arm < 0 else arm, tag

    def issued(self, arm: int, tag: int) -> None:
        """Record a first pull, or that the largest index was looked for."""
        if not note_first(self.at, self.begun, arm, tag):
            settled(self)

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Give the arm a new tangent."""
        learn(self, arm, 1, reward)

    def load(self, arm: int, count: int, total: float) -> None:
        """Count the rewards."""
        if count > 0:
            mark_begun(self.at, self.begun, arm)
            learn(self, arm, count, total)


@inlined
def settled(state: KLUCBState) -> int:
    """The arm with the largest index; computed once after each report."""
    at = state.at[0]
    if at.settled != at.reported:
        at.settled = at.reported
        at.winner = largest_index(
            state.counts, state.sums, at.level,
            state.intercept, state.slope, state.until, state.winner, state.close, state.offset,
        )  # fmt: skip
    return at.winner


@inlined
def learn(state: KLUCBState, arm: int, count: int, total: float) -> None:
    """Give the arm a new tangent."""
    at = state.at[0]
    at.reported += count
    state.counts[arm] += count
    state.sums[arm] += total
    f = kl_level(at.reported, at.c)
    at.level = f
    T, mean, q = index_of(state.counts, state.sums, arm, f)
    a, b = tangent(T, mean, q, f)
    scores = state.intercept, state.slope, state.until, state.winner, state.close, state.offset
    put(*scores, arm, a, b, f, 0.0)


@inlined
def index_of(counts: Ints, sums: Floats, arm: int, f: float) -> tuple[int, float, float]:
    """T, mean and index of an arm at level f."""
    T = counts[arm]
    mean = min(sums[arm] / T, 1.0)
    return T, mean, kl_upper(mean, f / T)


@inlined
def tangent(T: int, mean: float, q: float, f: float) -> tuple[float, float]:
    """Intercept and slope of the tangent to the index, which is q at level f."""
    if not mean < q < 1.0:
        return 1.0, 0.0  # no index is larger than 1
    b = q * (1.0 - q) / (T * (q - mean))  # dU/df, from T·kl(mean, U) = f
    return q - b * f, b


@inlined
def largest_index(
    counts: Ints,
    sums: Floats,
    f: float,
    intercept: Floats,
    slope: Floats,
    until: Floats,
    winner: Ints,
    close: NDArray[np.bool_],
    offset: NDArray[np.uint64],
) -> int:
    """The argmax of the indices at level f.

    Computes the index of the arm with the largest tangent, then of all arms whose tangents are not
    below it, which are rare. Arms with the same sum and count have the same index, whatever their
    tangents; and once an index is 1, no later arm can have a larger one.
    """
    arms = len(counts)
    refresh(intercept, slope, until, winner, close, offset, f, 0.0)
    best = winner[root_of(offset)]
    _, _, largest = index_of(counts, sums, best, f)
    k = next_above(intercept, slope, offset, 0, arms, f, largest - MARGIN)
    while k < arms and not (largest >= 1.0 and k > best):
        if counts[k] == counts[best] and sums[k] == sums[best]:
            best = min(best, k)
        else:
            T, mean, value = index_of(counts, sums, k, f)
            a, b = tangent(T, mean, value, f)
            put(intercept, slope, until, winner, close, offset, k, a, b, f, 0.0)
            if value > largest or (value == largest and k < best):
                best, largest = k, value
        k = next_above(intercept, slope, offset, k + 1, arms, f, largest - MARGIN)
    return best


@dataclass(frozen=True)
class KLUCB(EveryArmOnce):
    """Play every arm once, then the largest mean compatible with its rewards.

    The index of an arm is max{q : T·kl(mean, q) ≤ log t + c·log log t}, where kl is the divergence
    of Bernoulli laws, T the number of the arm's rewards and t the number of all rewards. Ties go to
    the lowest arm. The grid's structure is not used. Choices are those of the plain argmax.

    Parameters
    ----------
    c
        Factor of log log t. The analysis needs 3; 0 is better in practice.

    Notes
    -----
    If the level log t + c·log log t is undefined (t = 1) or negative (possible at t = 2), it is 0
    and an index is the mean. An arm whose mean is 1 has the index 1.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.KLUCB(), problem, n=20_000, runs=3, seed=1)
    >>> result.best_pairs("kl_ucb")
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Garivier, Cappé: The KL-UCB algorithm for bounded stochastic bandits and beyond. COLT 2011.
    https://arxiv.org/abs/1102.2490
    """

    name = "kl_ucb"
    layout = 3
    c: float = 3.0

    def __post_init__(self) -> None:
        checks.number("c", self.c, 0, 1e9)

    def start(self, known: Known) -> KLUCBState:
        """The state before the first step."""
        self.check(known.grid)
        require_unit_rewards(self.name, known)
        arms = known.arms
        at = np.zeros(1, AT)
        at[0].c = self.c
        return KLUCBState(
            known.limits,
            at,
            np.zeros(arms, np.bool_),
            np.zeros(arms, np.int64),
            np.zeros(arms),
            *start_kinetic(arms),
        )
