"""Thompson sampling, literally: one Beta sample of every pair in every step."""

from __future__ import annotations

import numpy as np


class LiteralThompson:
    def __init__(self, K: int, L: int) -> None:
        self.L = L
        self.successes, self.failures = [0] * (K * L), [0] * (K * L)

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        samples = [
            rng.beta(1 + s, 1 + f) for s, f in zip(self.successes, self.failures, strict=True)
        ]
        self.uniform = rng.random()  # for the Bernoulli trick
        return *divmod(samples.index(max(samples)), self.L), 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        counted = self.successes if self.uniform < reward else self.failures
        counted[row * self.L + column] += 1
