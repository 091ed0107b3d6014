"""UCB1, literally: the index of every pair in every step.

Auer, Cesa-Bianchi, Fischer: Finite-time analysis of the multiarmed bandit problem. Machine Learning
2002, Figure 1: play each arm once, then the arm of the largest mean + √(2·log t / T).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.policies.base import Known


class LiteralUCB1(NamedTuple):
    """Arms are pairs. Entries of one number are arrays, so that the methods can be compiled."""

    a: NDArray[np.float64]
    t: NDArray[np.int64]  # rewards so far
    issued: NDArray[np.bool_]  # pairs that were played
    T: NDArray[np.int64]  # rewards of each pair
    sums: NDArray[np.float64]  # of rewards

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        K, L = self.T.shape
        row, column, largest = 0, 0, -math.inf
        a_log_t = self.a[0] * math.log(max(self.t[0], 1))
        for i in range(K):
            for j in range(L):
                if not self.issued[i, j]:  # every pair once
                    self.issued[i, j] = True
                    return i, j, 1
                T = self.T[i, j]
                if T > 0:
                    index = self.sums[i, j] / T + math.sqrt(a_log_t / T)
                    if index > largest:
                        row, column, largest = i, j, index
        return row, column, 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        self.t[0] += 1
        self.T[row, column] += 1
        self.sums[row, column] += reward

    def forget(self, row: int, column: int, tag: int) -> None:
        if tag == 1:  # it was the pair's first
            self.issued[row, column] = False


def literal_ucb1(known: Known, confidence: float = 2.0) -> LiteralUCB1:
    """The settings are those of `rank1.UCB1`."""
    shape = known.K, known.L
    reach = known.high - known.low  # of the rewards; the radius grows with it
    w = max(1.0, reach) if math.isfinite(reach) else 1.0
    return LiteralUCB1(
        np.array([confidence * w**2]),
        np.zeros(1, np.int64),
        np.zeros(shape, np.bool_),
        np.zeros(shape, np.int64),
        np.zeros(shape),
    )
