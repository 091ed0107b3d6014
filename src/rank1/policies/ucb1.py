"""UCB1 on the K·L pairs, without looking at all of them in every step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import inlined, jit, record
from rank1.policies.base import Known, Policy, Records
from rank1.policies.every_pair_once import (
    SHARED,
    best_mean,
    first_pulls,
    issue_again,
    mark_begun,
    note_first,
)
from rank1.policies.tournament import next_above, put, refresh, root_of, start_tournament

__all__ = ["UCB1"]

AT = record(
    *SHARED,
    "winner",  # the pair to play once every pair was issued
    confidence=float,  # a
    scale=float,  # no mean and no radius was ever larger
)

# A pair is named row·2³² + column: a division by L would cost as much as a match.
SHIFT = 32
COLUMN = 2**32 - 1

# A pair's score and its index by the formula differ by rounding: by less than 10·2⁻⁵³·scale, and
# each of the at most 26 matches on the way to the root adds as much. Pairs whose scores are further
# apart than this times the scale are in the order of their indices; between others the indices
# themselves decide.
ROUNDING = 1e-13


class UCB1State(NamedTuple):
    """Counts and sums of each pair, and the tournament of their indices.

    With x = √(a·log t) the index mean + √(a·log t / T) is the score mean + x/√T, and x only grows.
    """

    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    begun: NDArray[np.bool_]  # pairs whose first pull was issued
    counts: NDArray[np.int64]  # T
    sums: NDArray[np.float64]
    intercept: NDArray[np.float64]
    slope: NDArray[np.float64]
    until: NDArray[np.float64]
    winner: NDArray[np.int64]
    close: NDArray[np.bool_]
    offset: NDArray[np.uint64]

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        """Every pair once, then the pair of the largest index."""
        k, tag = first_pulls(self.at, self.begun)
        pair = self.at[0].winner if k < 0 else self.winner[k]
        return pair >> SHIFT, pair & COLUMN, tag

    def issued(self, row: int, column: int, tag: int) -> None:
        """Only a first pull changes anything."""
        note_first(self.at, self.begun, row * self.counts.shape[1] + column, tag)

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        """Give the pair its new score, and find the largest of all."""
        learn(self, row, column, 1, reward)

    def load(self, row: int, column: int, count: int, total: float) -> None:
        """So many rewards are known of the pair."""
        if count > 0:
            mark_begun(self.at, self.begun, row * self.counts.shape[1] + column)
            learn(self, row, column, count, total)

    def expects(self, row: int, column: int, tag: int) -> bool:
        """Any pull may be reported."""
        return True

    def forget(self, row: int, column: int, tag: int) -> UCB1State:
        """A pair's first pull is issued again; nothing else depends on the pull."""
        issue_again(self.at, self.begun, row * self.counts.shape[1] + column, tag)
        return self

    def best(self) -> tuple[int, int]:
        """The pair of the largest average reward."""
        return best_mean(self.sums, self.counts)


@inlined
def learn(state: UCB1State, row: int, column: int, count: int, total: float) -> None:
    """Give the pair its new score, and find the largest of all."""
    at = state.at[0]
    at.reported += count
    state.counts[row, column] += count
    state.sums[row, column] += total
    T = state.counts[row, column]
    mean = state.sums[row, column] / T
    at.scale = max(at.scale, abs(mean))
    margin = ROUNDING * at.scale
    a_log_t = at.confidence * math.log(at.reported)
    x = math.sqrt(a_log_t)
    scores = state.intercept, state.slope, state.until, state.winner, state.close, state.offset
    leaf = row * state.counts.shape[1] + column
    put(*scores, leaf, mean, 1.0 / math.sqrt(T), x, margin)
    root = root_of(state.offset)
    if state.until[root] <= x:
        refresh(*scores, x, margin)
    at.winner = state.winner[root]
    if state.close[root]:
        largest = state.intercept[root] + state.slope[root] * x
        k = largest_index(
            state.intercept, state.slope, state.offset, state.counts, x, largest - margin, a_log_t
        )
        at.winner = state.winner[k]


@jit
def largest_index(
    intercept: Any, slope: Any, offset: Any, counts: Any, x: float, threshold: float, a_log_t: float
) -> int:
    """The argmax of the indices by their formula, among the pairs that rounding leaves open."""
    K, L = counts.shape
    best, largest = 0, -math.inf
    k = next_above(intercept, slope, offset, 0, K * L, x, threshold)
    while k < K * L:
        index = intercept[k] + math.sqrt(a_log_t / counts[k // L, k % L])
        if index > largest:
            best, largest = k, index
        k = next_above(intercept, slope, offset, k + 1, K * L, x, threshold)
    return best


@dataclass(frozen=True)
class UCB1(Policy):
    """Every pair once, then the largest mean + √(a·log t / T); ties go to the lowest pair.

    T counts a pair's rewards and t all of them. Rows and columns are not told apart: the K·L pairs
    are arms of their own. A step costs log(K·L), and its choice is that of the plain argmax.
    Rewards in an interval of width w > 1, such as stars, make the radius w times as large.

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
    every_pair_first = True
    layout = 2
    counts = True
    deterministic = True
    confidence: float = 2.0

    def __post_init__(self) -> None:
        checks.number("confidence", self.confidence, 0, 1e9, above=True)

    def start(self, known: Known) -> UCB1State:
        """The state before the first step."""
        K, L = known.K, known.L
        names = (np.arange(K)[:, None] << SHIFT) + np.arange(L)
        reach = known.high - known.low
        w = max(1.0, reach) if math.isfinite(reach) else 1.0  # as in Rank1Elim
        a = self.confidence * w**2
        at = np.zeros(1, AT)
        at[0].confidence, at[0].scale = a, math.sqrt(a * math.log(checks.MAX_STEPS))
        return UCB1State(
            known.limits,
            at,
            np.zeros(K * L, np.bool_),
            np.zeros((K, L), np.int64),
            np.zeros((K, L)),
            *start_tournament(names.ravel()),
        )
