"""IMED-UB, literally: all means and all K + L − 1 indices in every step.

Saber, Ménard, Maillard: Indexed minimum empirical divergence for unimodal bandits. NeurIPS 2021.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.literal.divergence import kl
from rank1.policies.base import Known

Ints = NDArray[np.int64]


class LiteralIMEDUB(NamedTuple):
    """N counts pulls from when they are handed out; means are of the rewards that came in."""

    N: Ints  # pulls of each pair
    T: Ints  # rewards of each pair
    sums: NDArray[np.float64]  # of rewards

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
                if self.T[i, j] > 0:
                    mean = self.sums[i, j] / self.T[i, j]
                    if mean > largest or (mean == largest and self.N[i, j] < self.N[row, column]):
                        row, column, largest = i, j, mean
        if row < 0:  # no reward has come in
            self.N[few_row, few_column] += 1
            return few_row, few_column, 0
        best_row, best_column, least = row, column, math.inf
        for i in range(K):
            for j in range(L):
                if i == row or j == column:
                    index = math.log(self.N[i, j])
                    if self.T[i, j] > 0:
                        index += self.N[i, j] * kl(self.sums[i, j] / self.T[i, j], largest)
                    if index < least:
                        best_row, best_column, least = i, j, index
        self.N[best_row, best_column] += 1
        return best_row, best_column, 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        self.T[row, column] += 1
        self.sums[row, column] += reward

    def forget(self, row: int, column: int, tag: int) -> None:
        self.N[row, column] -= 1


def literal_imed_ub(known: Known) -> LiteralIMEDUB:
    """There are no settings."""
    shape = known.K, known.L
    return LiteralIMEDUB(np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape))
