"""idTS, literally: a sample of every row and column, and every weight of the hidden outcomes.

Yu, Kveton, Wen, Zhang, Mengshoel: Graphical models meet bandits: a variational Thompson sampling
approach. ICML 2020.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from rank1.policies.base import Known

Floats = NDArray[np.float64]


class LiteralIdTS:
    """q = ∏ Beta(a_i, b_i)·∏ Beta(c_j, d_j)."""

    def __init__(self, known: Known, update: str = "variational", passes: float = 2) -> None:
        self.kind, self.passes = update, int(passes)
        K, L = known.K, known.L
        self.a, self.b, self.c, self.d = np.ones(K), np.ones(K), np.ones(L), np.ones(L)
        self.S, self.F = np.zeros((K, L)), np.zeros((K, L))
        self.uniform = 0.0

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        u = [rng.beta(a, b) for a, b in zip(self.a, self.b, strict=True)]
        v = [rng.beta(c, d) for c, d in zip(self.c, self.d, strict=True)]
        self.uniform = rng.random()
        return int(np.argmax(u)) * len(v) + int(np.argmax(v)), 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        row, column = divmod(arm, len(self.c))
        success = self.uniform < reward
        (self.S if success else self.F)[row, column] += 1
        if self.kind == "variational":
            for _ in range(self.passes):
                w00, w01, w10 = self.weights()
                self.a = 1 + (self.S + self.F * w10).sum(axis=1)
                self.b = 1 + (self.F * (w00 + w01)).sum(axis=1)
                self.c = 1 + (self.S + self.F * w01).sum(axis=0)
                self.d = 1 + (self.F * (w00 + w10)).sum(axis=0)
        elif success:
            self.a[row] += 1
            self.c[column] += 1
        else:
            w00, w01, w10 = (w[row, column] for w in self.weights())
            self.a[row] += w10
            self.b[row] += w00 + w01
            self.c[column] += w01
            self.d[column] += w00 + w10

    def weights(self) -> tuple[Floats, Floats, Floats]:
        """The probabilities that a reward of 0 of each pair was 0·0, 0·1 or 1·0."""
        a, b = digamma(self.a)[:, None], digamma(self.b)[:, None]
        c, d = digamma(self.c)[None, :], digamma(self.d)[None, :]
        w00, w01, w10 = np.exp(b + d), np.exp(b + c), np.exp(a + d)
        total = w00 + w01 + w10
        return w00 / total, w01 / total, w10 / total
