"""KL-UCB, literally: the index of every pair in every step, by bisection.

Garivier, Cappé: The KL-UCB algorithm for bounded stochastic bandits and beyond. COLT 2011,
Algorithm 1: play each arm once, then the arm of the largest max{q : T·kl(mean, q) ≤ log t + c·log
log t}.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.divergences import kl_upper
from rank1.literal.divergence import exploration_level, upper_end
from rank1.policies.base import Known


class LiteralKLUCB(NamedTuple):
    """Arms are pairs. Entries of one number are arrays, so that the methods can be compiled."""

    c: NDArray[np.float64]
    bisect: NDArray[np.bool_]
    t: NDArray[np.int64]  # rewards so far
    issued: NDArray[np.bool_]  # pairs that were played
    T: NDArray[np.int64]  # rewards of each pair
    sums: NDArray[np.float64]  # of rewards

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        K, L = self.T.shape
        row, column, largest = 0, 0, -math.inf
        level = exploration_level(self.t[0], self.c[0])
        for i in range(K):
            for j in range(L):
                if not self.issued[i, j]:  # every pair once
                    self.issued[i, j] = True
                    return i, j, 1
                T = self.T[i, j]
                if T > 0:
                    mean = self.sums[i, j] / T
                    if self.bisect[0]:
                        index = upper_end(mean, T, level)
                    else:
                        index = kl_upper(mean, level / T)
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


def literal_kl_ucb(known: Known, c: float = 3.0, *, bisect: bool = True) -> LiteralKLUCB:
    """The settings are those of `rank1.KLUCB`; without `bisect` its own solver finds the indices.

    Then the two also round alike, and differ in speed only by how many indices they compute.
    """
    shape = known.K, known.L
    return LiteralKLUCB(
        np.array([float(c)]),
        np.array([bisect]),
        np.zeros(1, np.int64),
        np.zeros(shape, np.bool_),
        np.zeros(shape, np.int64),
        np.zeros(shape),
    )
