"""UTS, literally: all means and all K + L − 1 samples in every step."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


class LiteralUTS:
    def __init__(self, K: int, L: int, gamma: int = 2) -> None:
        self.K, self.L, self.gamma = K, L, gamma
        self.pairs = [(i, j) for i in range(K) for j in range(L)]
        self.sums = {pair: Fraction(0) for pair in self.pairs}
        self.successes = dict.fromkeys(self.pairs, 0)
        self.counts = dict.fromkeys(self.pairs, 0)
        self.led = dict.fromkeys(self.pairs, 0)
        self.means: dict[tuple[int, int], Fraction] = {}

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        row, column = self.pair(rng)
        self.uniform = rng.random()  # for the Bernoulli trick
        return row, column, 0

    def pair(self, rng: np.random.Generator) -> tuple[int, int]:
        if len(self.means) < len(self.pairs):  # every pair once
            return self.pairs[len(self.means)]
        largest = max(self.means.values())
        tied = [pair for pair in self.pairs if self.means[pair] == largest]
        leader = tied[int(rng.random() * len(tied))] if len(tied) > 1 else tied[0]
        self.led[leader] += 1
        if self.led[leader] % self.gamma == 0:
            return leader
        row, column = leader
        near = [(row, j) for j in range(self.L)] + [(i, column) for i in range(self.K) if i != row]
        samples = [
            rng.beta(1 + self.successes[pair], 1 + self.counts[pair] - self.successes[pair])
            for pair in near
        ]
        return near[samples.index(max(samples))]

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        pair = row, column
        self.successes[pair] += int(self.uniform < reward)
        self.counts[pair] += 1
        self.sums[pair] += Fraction(reward)
        self.means[pair] = self.sums[pair] / self.counts[pair]
