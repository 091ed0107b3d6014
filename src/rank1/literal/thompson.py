"""Thompson sampling, literally: one Beta sample for every arm in every step.

Agrawal, Goyal: Analysis of Thompson sampling for the multi-armed bandit problem. COLT 2012,
Algorithm 1; for rewards between 0 and 1, Algorithm 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.policies.base import Known


class LiteralThompson(NamedTuple):
    """An arm's posterior is Beta(1 + successes, 1 + failures)."""

    successes: NDArray[np.int64]
    failures: NDArray[np.int64]
    uniform: NDArray[np.float64]  # one number that decides whether the next reward is a success

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        best, largest = 0, -1.0
        for k in range(len(self.successes)):
            sample = rng.beta(1.0 + self.successes[k], 1.0 + self.failures[k])
            if sample > largest:
                best, largest = k, sample
        self.uniform[0] = rng.random()
        return best, 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        if self.uniform[0] < reward:
            self.successes[arm] += 1
        else:
            self.failures[arm] += 1


def literal_thompson(known: Known) -> LiteralThompson:
    """It has no settings."""
    zeros = np.zeros(known.arms, np.int64)
    return LiteralThompson(zeros, zeros.copy(), np.zeros(1))
