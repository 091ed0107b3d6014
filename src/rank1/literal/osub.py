"""OSUB, literally: all means and all K + L − 1 indices, by bisection, in every step.

Combes, Proutière: Unimodal bandits: regret lower bounds and optimal algorithms. ICML 2014. There
the level of the index has the number of times that the leader has led in the place of t, as here
with level="leader".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.divergences import kl_upper
from rank1.literal.divergence import exploration_level, upper_end
from rank1.policies.base import Known

Ints = NDArray[np.int64]


class LiteralOSUB(NamedTuple):
    """Entries of one number are arrays, so that the methods can be compiled."""

    c: NDArray[np.float64]
    by_leader: NDArray[np.bool_]
    bisect: NDArray[np.bool_]
    t: Ints  # rewards so far
    T: Ints  # rewards of each pair
    sums: NDArray[np.float64]  # of rewards
    led: Ints  # how often a pair has been the leader

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        K, L = self.T.shape
        row, column, largest = 0, 0, -1.0
        for i in range(K):
            for j in range(L):
                if self.T[i, j] == 0:  # every pair once
                    return i, j, 0
                mean = self.sums[i, j] / self.T[i, j]
                if mean > largest:
                    row, column, largest = i, j, mean
        self.led[row, column] += 1
        if self.led[row, column] % (K + L - 1) == 0:
            return row, column, 0
        t = self.led[row, column] if self.by_leader[0] else self.t[0]
        level = exploration_level(t, self.c[0])
        best_row, best_column, best = row, column, -1.0
        for i in range(K):
            for j in range(L):
                if i == row or j == column:
                    mean, T = self.sums[i, j] / self.T[i, j], self.T[i, j]
                    if self.bisect[0]:
                        index = upper_end(mean, T, level)
                    else:
                        index = kl_upper(mean, level / T)
                    if index > best:
                        best_row, best_column, best = i, j, index
        return best_row, best_column, 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        self.t[0] += 1
        self.T[row, column] += 1
        self.sums[row, column] += reward


def literal_osub(
    known: Known, c: float = 3.0, level: str = "time", *, bisect: bool = True
) -> LiteralOSUB:
    """The settings are those of `rank1.OSUB`; without `bisect` its own solver finds the indices."""
    shape = known.K, known.L
    return LiteralOSUB(
        np.array([float(c)]),
        np.array([level == "leader"]),
        np.array([bisect]),
        np.zeros(1, np.int64),
        np.zeros(shape, np.int64),
        np.zeros(shape),
        np.zeros(shape, np.int64),
    )
