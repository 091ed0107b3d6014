"""BetElim, literally: multiplies each wealth by its factor and computes each share, as defined.

Rewards are immediate and lie in [0, 1], and the smallest lift is 0.
"""

from __future__ import annotations

import math

import numpy as np

from rank1.grid import Grid
from rank1.policies.base import Known

KAPPAS = np.array([[0.03], [0.06], [0.12], [0.25], [0.5], [0.95]])


class LiteralBetElim:
    """The settings are those of `rank1.BetElim`."""

    def __init__(
        self, known: Known, confidence: float = 0.95, growth: float = 0.01, floor: float = 0.0,
        any_grid: bool = False, min_lift: float = 0.0, window: int = 0,
    ) -> None:  # fmt: skip
        assert (min_lift, window) == (0, 0)
        self.grid = Grid([known.arms]) if any_grid else known.grid
        sizes, self.growth, self.floor = self.grid.sizes, growth, floor
        self.most = max(1, sum(K > 1 for K in sizes)) / (1 - confidence)
        self.N, self.S = np.zeros(sizes), np.zeros(sizes)  # reports and sums of rewards, by arm
        self.f, self.r = [np.ones(K) for K in sizes], [np.full(K, 1 / K) for K in sizes]
        self.living = [np.full(K, True) for K in sizes]
        self.wealth = [np.ones((len(KAPPAS), K)) for K in sizes]
        self.leaders: list[int] = []  # none in the first version
        self.next = self.version = 0

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        x = [int(np.searchsorted(r.cumsum(), rng.random(), side="right")) for r in self.r]
        return self.grid.arm(x), self.version

    def update(self, arm: int, tag: int, reward: float) -> None:
        x = self.grid.levels(arm)
        for d, a in enumerate(self.leaders):
            r, f, every = self.r[d], self.f[d], np.arange(len(self.r[d]))
            others = math.prod(self.f[e][x[e]] for e in range(len(x)) if e != d)
            bet = self.living[d] & (every != a) & ((every == x[d]) | (x[d] == a))
            rho = r[bet] / (r[a] + r[bet])
            m = (((1 - rho) * f[a] + rho * f[bet]) * others).clip(1e-4, 0.99)
            most = np.minimum(0.95 / (rho * m), 0.95 / ((1 - rho) * (1 - m)))
            c = np.minimum(KAPPAS / (1 - m), most)
            self.wealth[d][:, bet] *= 1 + c * (rho if x[d] == a else rho - 1) * (reward - m)
        self.N[x] += 1
        self.S[x] += reward
        first = self.version == 0 and self.N.sum() < 200 and self.S.sum() < 60
        if self.N.sum() >= self.next and not first:
            self.begin_version()

    def begin_version(self) -> None:
        E = [wealth.mean(axis=0) for wealth in self.wealth]
        for living, e in zip(self.living, E, strict=True):
            last = np.where(living, e, np.inf).argmin()
            living &= e < self.most
            living[last] |= not living.any()
        for _ in range(1 if self.leaders else 8):
            self.fit()
        both = list(zip(self.f, self.living, strict=True))
        self.leaders = [int(np.where(living, f, -1).argmax()) for f, living in both]
        for d, a in enumerate(self.leaders):
            others = self.living[d] & (np.arange(len(E[d])) != a)
            own = 1 / (1 + math.sqrt(others.sum()))
            share = np.where(np.arange(len(E[d])) == a, own, 0)
            part = np.maximum(E[d][others].min(initial=np.inf) / E[d][others], math.exp(-50))
            share[others] = (1 - own) * part / part.sum()
            self.r[d] = self.floor + (1 - self.floor * len(share)) * share
        shortest = 1 + len(self.f) * self.grid.arms // 512 + sum(self.grid.sizes) // 16
        self.next = self.N.sum() + max(shortest, int(self.growth * self.N.sum()))
        self.version += 1

    def fit(self) -> None:
        for d in range(len(self.f)):
            exposure, rest = self.N, [e for e in range(len(self.f)) if e != d]
            for e in reversed(rest):
                exposure = np.tensordot(exposure, self.f[e], axes=(e, 0))
            g = max(self.S.sum(), 0.5) / exposure.sum()
            self.f[d] = (self.S.sum(axis=tuple(rest)) + 2) / (exposure + 2 / g)
