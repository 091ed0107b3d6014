"""Thompson sampling, literally: one Beta sample of every pair in every step.

Agrawal, Goyal: Analysis of Thompson sampling for the multi-armed bandit problem. COLT 2012,
Algorithm 1; for rewards between 0 and 1, Algorithm 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.policies.base import Known


class LiteralThompson(NamedTuple):
    """A pair's posterior is Beta(1 + successes, 1 + failures)."""

    successes: NDArray[np.int64]
    failures: NDArray[np.int64]
    uniform: NDArray[np.float64]  # one number, to decide whether the next reward is a success

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        K, L = self.successes.shape
        row, column, largest = 0, 0, -1.0
        for i in range(K):
            for j in range(L):
                sample = rng.beta(1.0 + self.successes[i, j], 1.0 + self.failures[i, j])
                if sample > largest:
                    row, column, largest = i, j, sample
        self.uniform[0] = rng.random()
        return row, column, 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        if self.uniform[0] < reward:
            self.successes[row, column] += 1
        else:
            self.failures[row, column] += 1


def literal_thompson(known: Known) -> LiteralThompson:
    """It has no settings."""
    shape = known.K, known.L
    return LiteralThompson(np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(1))
