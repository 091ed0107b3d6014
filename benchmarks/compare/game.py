"""The grid that all packages play: a spike whose best row and column are at random places.

The reward of step t comes from the t-th uniform number of the run's seed, whatever is played. With
drift, all means fall to a tenth and rise again, repeatedly; the order of the pairs stays the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHECKPOINT", "Game", "spike"]

#: Regret is also recorded at this step, because some packages are too slow to play more.
CHECKPOINT = 1_000
P, DELTA = 0.7, 0.2
AMPLITUDE, PERIOD = 0.9, 3_000
DRIFT = [1 - AMPLITUDE * (1 - math.cos(2 * math.pi * t / PERIOD)) / 2 for t in range(PERIOD)]


def spike(K: int, rng: np.random.Generator) -> list[list[float]]:
    """K×K means: 0.9 for the best row and column, times 0.7 for all others."""
    u, v = (rng.permutation([P + DELTA] + [P] * (K - 1)) for _ in range(2))
    means: list[list[float]] = np.outer(u, v).tolist()
    return means


class Game:
    """One run: n pulls of a K×K grid."""

    def __init__(self, K: int, n: int, seed: int, drift: bool = False) -> None:
        rng = np.random.default_rng((K, seed))
        self.K, self.L, self.n, self.seed = K, K, n, seed
        self.means = spike(K, rng)
        self.best = max(map(max, self.means))
        self.steps = 0
        self.played = [0] * (K * K)
        self.regret = 0.0
        self.regret_at_checkpoint = float("nan")
        self._drift = DRIFT if drift else [1.0]
        self._uniforms = _uniforms(rng)
        self._order = np.random.default_rng((K, seed, 1))

    def pull(self, row: int, column: int) -> int:
        """Show the pair and return its reward: 0 or 1."""
        mean, level = self.means[row][column], self._drift[self.steps % len(self._drift)]
        self.steps += 1
        self.played[row * self.L + column] += 1
        self.regret += (self.best - mean) * level
        if self.steps == CHECKPOINT:
            self.regret_at_checkpoint = self.regret
        return int(next(self._uniforms) < mean * level)

    def rounds(self, pairs: Sequence[int] | NDArray[np.int_], count: int) -> NDArray[np.int64]:
        """Show each pair `count` times, in random order in each round; return sums of rewards."""
        order = self._order.permuted(np.tile(np.arange(len(pairs)), (count, 1)), axis=1).ravel()
        steps = np.arange(self.steps, self.steps + len(order))
        levels = np.array(self._drift)[steps % len(self._drift)]
        means = np.ravel(self.means)[np.asarray(pairs)][order]
        drawn = np.fromiter(itertools.islice(self._uniforms, len(order)), float, len(order))
        self.steps += len(order)
        self.regret += float((self.best - means) @ levels)
        for pair in pairs:
            self.played[pair] += count
        return np.bincount(order[drawn < means * levels], minlength=len(pairs))

    def is_best(self, row: int, column: int) -> bool:
        """Tell whether this is the best pair."""
        return self.means[row][column] == self.best

    @property
    def most_played(self) -> tuple[int, int]:
        """Return the most played pair, the answer of a policy without a stopping rule."""
        return divmod(self.played.index(max(self.played)), self.L)


def _uniforms(rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield from rng.random(4096).tolist()
