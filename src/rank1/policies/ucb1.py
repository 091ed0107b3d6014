"""UCB1 on all arms, without computing every index in every step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rank1 import checks
from rank1.compiled import inlined, jit, record
from rank1.policies.averages import Averages
from rank1.policies.base import Known
from rank1.policies.every_arm_once import SHARED, BeginsWithAll, EveryArmOnce, first_pull
from rank1.policies.kinetic import (
    Competing,
    next_above,
    put,
    refresh,
    root_of,
    start_competing,
)

__all__ = ["UCB1"]

AT = record(
    *SHARED,
    "winner",  # the arm to play once every arm has been issued
    confidence=float,  # a
    scale=float,  # the largest mean or radius so far
)

# An arm's score and its index by the formula differ by rounding: by less than 10·2⁻⁵³·scale, and
# each of the at most 26 matches on the way to the root adds as much. If two scores differ by more
# than ROUNDING·scale, their indices are in the same order; otherwise the indices are compared.
ROUNDING = 1e-13


class UCB1State(Competing, BeginsWithAll, Averages):
    """Counts and sums of each arm, and the tournament of their indices.

    With x = √(a·log t) the index mean + √(a·log t / T) is the score mean + x/√T, and x only grows.
    """

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """Every arm once, then the arm with the largest index."""
        arm, tag = first_pull(self.at, self.begun)
        return self.at[0].winner if arm < 0 else arm, tag

    def learn(self, arm: int, count: int, total: float) -> None:
        """Give the arm its new score, and find the largest score."""
        at = self.at[0]
        at.reported += count
        self.counts[arm] += count
        self.sums[arm] += total
        T = self.counts[arm]
        mean = rounded_mean(self.sums[arm], T)
        at.scale = max(at.scale, abs(mean))
        margin = ROUNDING * at.scale
        a_log_t = at.confidence * math.log(at.reported)
        x = math.sqrt(a_log_t)
        put(self, arm, mean, 1.0 / math.sqrt(T), x, margin)
        root = root_of(self)
        if self.until[root] <= x:
            refresh(self, x, margin)
        at.winner = self.winner[root]
        if self.close[root]:
            largest = self.intercept[root] + self.slope[root] * x
            at.winner = largest_index(self, x, largest - margin, a_log_t)


@inlined
def rounded_mean(total: float, count: int) -> float:
    """The mean to twelve decimals.

    The last digits of a sum of fifths depend on the order of its terms. Without rounding, hundreds
    of tied arms would differ by that alone, and comparing them takes ten times as long as a step.
    """
    mean: float = np.rint(total / count * 2.0**40) * 2.0**-40
    return mean


@jit
def largest_index(state: Any, x: float, threshold: float, a_log_t: float) -> int:
    """The argmax of the exact indices, among the arms whose order is unclear due to rounding."""
    best, largest = 0, -math.inf
    k = next_above(state, 0, x, threshold)
    while k < len(state.counts):
        index = state.intercept[k] + math.sqrt(a_log_t / state.counts[k])
        if index > largest:
            best, largest = k, index
        k = next_above(state, k + 1, x, threshold)
    return best


@dataclass(frozen=True)
class UCB1(EveryArmOnce):
    """Play every arm once, then the largest mean + √(a·log t / T); ties go to the lowest arm.

    T counts an arm's rewards and t all rewards. The grid's structure is not used. A step takes time
    logarithmic in the number of arms, and makes the same choice as the plain argmax, with means
    rounded to twelve decimals. Rewards in an interval of width w > 1, such as stars, make the
    radius w times as large.

    Parameters
    ----------
    confidence
        a, the width of the confidence interval: 2 in the original.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.UCB1(), problem, n=20_000, runs=3, seed=1)
    >>> result.best_pairs("ucb1")
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Auer, Cesa-Bianchi, Fischer: Finite-time analysis of the multiarmed bandit problem. Machine
    Learning 2002. https://doi.org/10.1023/A:1013689704352
    """

    name = "ucb1"
    layout = 3
    confidence: float = 2.0

    def __post_init__(self) -> None:
        checks.number("confidence", self.confidence, 0, 1e9, above=True)

    def start(self, known: Known) -> UCB1State:
        """The state before the first step."""
        self.check(known.grid)
        reach = known.high - known.low
        w = max(1.0, reach) if math.isfinite(reach) else 1.0  # as in Rank1Elim
        a = self.confidence * w**2
        at = np.zeros(1, AT)
        at[0].confidence, at[0].scale = a, math.sqrt(a * math.log(checks.MAX_STEPS))
        return UCB1State(*start_competing(known, at))
