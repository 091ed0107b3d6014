"""TopTwo, literally: all means and all K + L − 2 challengers in every step.

EB-TCI of Jourdan, Degenne, Baudry, de Heide, Kaufmann: Top two algorithms revisited (NeurIPS 2022),
with the leader's row and column in the place of all other arms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.literal.divergence import kl
from rank1.policies.base import Known

Ints = NDArray[np.int64]


class LiteralTopTwo(NamedTuple):
    """N counts pulls from when they are handed out; means are of the rewards that came in."""

    share: NDArray[np.float64]  # β, one number
    N: Ints  # pulls of each pair
    T: Ints  # rewards of each pair
    sums: NDArray[np.float64]  # of rewards
    led: Ints  # how often a pair has been the leader

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        K, L = self.N.shape
        row, column, largest = -1, -1, -1.0
        few_row, few_column = 0, 0
        for i in range(K):
            for j in range(L):
                if self.N[i, j] == 0:  # every pair once
                    self.N[i, j] = 1
                    return i, j, 0
                if self.N[i, j] < self.N[few_row, few_column]:
                    few_row, few_column = i, j
                if self.T[i, j] > 0 and self.sums[i, j] / self.T[i, j] > largest:
                    row, column, largest = i, j, self.sums[i, j] / self.T[i, j]
        if row < 0:  # no reward has come in
            self.N[few_row, few_column] += 1
            return few_row, few_column, 0
        self.led[row, column] += 1
        led = self.led[row, column]
        best_row, best_column, least = row, column, math.inf
        if math.floor(self.share[0] * led) == math.floor(self.share[0] * (led - 1)):
            N_a = self.N[row, column]
            for i in range(K):
                for j in range(L):
                    if (i == row) != (j == column):
                        N_b = self.N[i, j]
                        W = 0.0
                        if self.T[i, j] > 0:
                            mean = self.sums[i, j] / self.T[i, j]
                            if largest > mean:
                                m = (N_a * largest + N_b * mean) / (N_a + N_b)
                                W = N_a * kl(largest, m) + N_b * kl(mean, m)
                        index = W + math.log(N_b)
                        if index < least:
                            best_row, best_column, least = i, j, index
        self.N[best_row, best_column] += 1
        return best_row, best_column, 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        self.T[row, column] += 1
        self.sums[row, column] += reward

    def forget(self, row: int, column: int, tag: int) -> None:
        self.N[row, column] -= 1


def literal_top_two(known: Known, share: float | None = None) -> LiteralTopTwo:
    """The settings are those of `rank1.TopTwo`."""
    shape = known.K, known.L
    if share is None:
        share = 1 / (1 + math.sqrt(known.K + known.L - 2))
    return LiteralTopTwo(
        np.array([share]),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
        np.zeros(shape),
        np.zeros(shape, np.int64),
    )
