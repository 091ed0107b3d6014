"""The grid that all play: a spike whose best row and column are anywhere.

The reward of step t comes from the t-th uniform number of the run's seed, whoever plays.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

__all__ = ["CHECKPOINT", "Game", "spike"]

#: Regret is recorded here, too: not everybody can play more steps.
CHECKPOINT = 1_000
P, DELTA = 0.7, 0.2


def spike(K: int, rng: np.random.Generator) -> list[list[float]]:
    """K×K means: 0.9 for the best row and column, times 0.7 for all others."""
    u, v = (rng.permutation([P + DELTA] + [P] * (K - 1)) for _ in range(2))
    means: list[list[float]] = np.outer(u, v).tolist()
    return means


class Game:
    """One run: n pulls of a K×K grid."""

    def __init__(self, K: int, n: int, seed: int) -> None:
        rng = np.random.default_rng((K, seed))
        self.K, self.L, self.n, self.seed = K, K, n, seed
        self.means = spike(K, rng)
        self.best = max(map(max, self.means))
        self.steps = 0
        self.regret = 0.0
        self.regret_at_checkpoint = float("nan")
        self._uniforms = _uniforms(rng)

    def pull(self, row: int, column: int) -> int:
        """Show the pair, and see its reward: 0 or 1."""
        mean = self.means[row][column]
        self.steps += 1
        self.regret += self.best - mean
        if self.steps == CHECKPOINT:
            self.regret_at_checkpoint = self.regret
        return int(next(self._uniforms) < mean)

    def pulls(self, row: int, column: int, count: int) -> int:
        """The sum of `count` rewards of a pair."""
        return sum(self.pull(row, column) for _ in range(count))

    def is_best(self, row: int, column: int) -> bool:
        """Whether this is the best pair."""
        return self.means[row][column] == self.best


def _uniforms(rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield from rng.random(4096).tolist()
