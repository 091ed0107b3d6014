"""Rank1Elim, literally: Algorithm 1 of the paper line by line, one pull at a time.

The comments give the lines of the algorithm. Rows and columns count from zero.

Katariya, Kveton, Szepesvári, Vernade, Wen: Stochastic Rank-1 Bandits. AISTATS 2017.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rank1.policies.base import Known


class LiteralRank1Elim:
    """Written as a generator, so that it reads like the paper."""

    def __init__(self, known: Known, confidence_scale: float = 1.0) -> None:
        self.K, self.L, self.n, self.scale = known.K, known.L, known.n, confidence_scale
        # The paper's rewards lie in [0, 1], where this is 1. A reward with a wider range, or with
        # unbounded noise, is sub-Gaussian with s²/4 instead of 1/4; gaps are in units of w.
        reach = known.high - known.low
        self.w = max(1.0, reach) if math.isfinite(reach) else 1.0
        self.s2 = self.w**2 + 4 * known.sigma**2
        self.reward, self.t = math.nan, 0
        self.first_count = 0  # the initial count of a cell
        self.pulls: Iterator[tuple[int, int]] | None = None
        #: Remaining rows and columns at the beginning of each stage so far.
        self.survivors: list[tuple[list[int], list[int]]] = []

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        if self.pulls is None:
            self.pulls = self.algorithm(rng)
        row, column = next(self.pulls)
        return row * self.L + column, 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        self.reward = reward
        self.t += 1

    def stage_length(self, gap: float) -> int:
        return max(1, math.ceil(4 * self.s2 / self.w**2 * gap**-2 * math.log(self.n)))

    def radius(self, n_stage: int) -> float:
        return self.scale * math.sqrt(self.s2 * math.log(self.n) / n_stage)

    def upper(self, mean: float, n_stage: int) -> float:
        return mean + self.radius(n_stage)

    def lower(self, mean: float, n_stage: int) -> float:
        return mean - self.radius(n_stage)

    def algorithm(self, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
        K, L = self.K, self.L
        # 1-3: initialization
        gap = 1.0
        C_row, C_col = np.zeros((K, L)), np.zeros((K, L))
        h_row, h_col = list(range(K)), list(range(L))
        n_before = 0
        while True:  # 5
            n_stage = self.stage_length(gap)  # 6
            rows, cols = sorted(set(h_row)), sorted(set(h_col))  # 7
            self.survivors.append((rows, cols))
            for _ in range(n_stage - n_before):  # 10
                j = h_col[int(rng.random() * L)]  # 11-12
                for i in rows:  # 13-15
                    yield i, j
                    C_row[i, j] += self.reward
                i = h_row[int(rng.random() * K)]  # 16-17
                for j in cols:  # 18-20
                    yield i, j
                    C_col[i, j] += self.reward
            # 22-28: confidence intervals
            n_row, n_col = n_stage + L * self.first_count, n_stage + K * self.first_count
            U_row = {i: self.upper(C_row[i].sum() / n_row, n_row) for i in rows}
            L_row = {i: self.lower(C_row[i].sum() / n_row, n_row) for i in rows}
            U_col = {j: self.upper(C_col[:, j].sum() / n_col, n_col) for j in cols}
            L_col = {j: self.lower(C_col[:, j].sum() / n_col, n_col) for j in cols}
            # 30-41: elimination
            best_row = max(rows, key=lambda i: (L_row[i], -i))
            h_row = [best_row if U_row[h] <= L_row[best_row] else h for h in h_row]
            best_col = max(cols, key=lambda j: (L_col[j], -j))
            h_col = [best_col if U_col[h] <= L_col[best_col] else h for h in h_col]
            gap /= 2  # 43
            n_before = n_stage
