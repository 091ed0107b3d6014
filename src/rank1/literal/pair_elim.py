"""PairElim, literally: every process with its own counts and sums, one pull at a time.

Sentenac, Yi, Calauzènes, Perchet, Vojnović: Pure exploration and regret minimization in matching
bandits. ICML 2021, Algorithm for rank-one bandits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rank1.policies.base import Known


class Process:
    """Successive elimination among candidates that are observed together."""

    def __init__(self, candidates: int, horizon: float) -> None:
        self.sums, self.count, self.gap = np.zeros(candidates), 0, 1.0
        self.log_T = math.log(horizon)

    def feed(self, rewards: dict[int, float]) -> None:
        self.count += 1
        for candidate, reward in rewards.items():
            self.sums[candidate] += reward

    def removed(self, active: list[int]) -> tuple[int, list[int]]:
        """The best candidate and those that it eliminates, if it is time to look."""
        length = max(1, math.ceil(4 * self.log_T / self.gap**2))
        if self.count < length:
            return -1, []
        self.gap /= 2
        radius = math.sqrt(self.log_T / length)
        means = self.sums / self.count
        best = max(active, key=lambda x: (means[x], -x))
        return best, [x for x in active if means[x] + radius < means[best] - radius]


class LiteralPairElim:
    """Written as a generator, so that it reads from top to bottom."""

    def __init__(self, known: Known) -> None:
        self.K, self.L, self.n = known.K, known.L, known.n
        self.reward = math.nan
        self.pulls: Iterator[tuple[int, int]] | None = None
        self.h_row, self.h_column = list(range(self.K)), list(range(self.L))

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        if self.pulls is None:
            self.pulls = self.algorithm(rng)
        row, column = next(self.pulls)
        return row * self.L + column, 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        self.reward = reward

    def algorithm(self, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
        K, L, t, w = self.K, self.L, 0, 0
        # Rows are compared within each column and over all columns, and columns in the same way.
        over_rows = [Process(K, max(2, self.n)) for _ in range(L + 1)]
        over_columns = [Process(L, 2.0 ** (2**w)) for _ in range(K + 1)]
        while True:
            j = self.h_column[int(rng.random() * L)]
            i = self.h_row[int(rng.random() * K)]
            rows: dict[int, float] = {}
            for row in sorted(set(self.h_row)):
                yield row, j
                rows[row], t = self.reward, t + 1
            columns: dict[int, float] = {}
            for column in sorted(set(self.h_column)):
                yield i, column
                columns[column], t = self.reward, t + 1
            for process in (over_rows[j], over_rows[L]):
                process.feed(rows)
                remove(self.h_row, *process.removed(sorted(set(self.h_row))))
            for process in (over_columns[i], over_columns[K]):
                process.feed(columns)
                remove(self.h_column, *process.removed(sorted(set(self.h_column))))
            if t > 2.0 ** (2**w):  # a new phase: the columns start again
                while t > 2.0 ** (2**w):
                    w += 1
                self.h_column = list(range(L))
                over_columns = [Process(L, 2.0 ** (2**w)) for _ in range(K + 1)]


def remove(h: list[int], best: int, gone: list[int]) -> None:
    """Replace each eliminated line by the line that eliminated it."""
    h[:] = [best if x in gone else x for x in h]
