"""BetElim, literally: each wealth is multiplied by its factor, each share computed, as defined.

Rewards come at once, lie in [0, 1], and the smallest lift is 0.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from rank1.grid import Grid
from rank1.policies.base import Known

KAPPAS = (0.03, 0.06, 0.12, 0.25, 0.5, 0.95)


class LiteralBetElim:
    """The settings are those of `rank1.BetElim`."""

    def __init__(
        self, known: Known, confidence: float = 0.95, growth: float = 0.01, floor: float = 0.0,
        any_grid: bool = False, min_lift: float = 0.0, window: int = 0,
    ) -> None:  # fmt: skip
        assert (min_lift, window) == (0, 0)
        self.grid = Grid([known.arms]) if any_grid else known.grid
        self.growth, self.floor = growth, floor
        D = max(1, sum(K > 1 for K in self.grid.sizes))
        self.most = D / (1 - confidence)
        self.N = dict.fromkeys(product(*map(range, self.grid.sizes)), 0)  # reports of each arm
        self.S = [np.zeros(K) for K in self.grid.sizes]  # sums of rewards, by level
        self.f = [np.ones(K) for K in self.grid.sizes]
        self.r = [np.full(K, 1 / K) for K in self.grid.sizes]  # shares
        self.living = [set(range(K)) for K in self.grid.sizes]
        self.wealth = [np.ones((K, len(KAPPAS))) for K in self.grid.sizes]
        self.leaders: list[int] = []  # none in the first version
        self.reports, self.next, self.version = 0, 1, 0

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """A level of each side by its share, independently of the others."""
        x = [int(np.searchsorted(r.cumsum(), rng.random(), side="right")) for r in self.r]
        return self.grid.arm(x), self.version

    def update(self, arm: int, tag: int, reward: float) -> None:
        x = self.grid.levels(arm)
        for d, a in enumerate(self.leaders):
            others = math.prod(self.f[e][x[e]] for e in range(len(x)) if e != d)
            for level in self.living[d] - {a}:
                if x[d] in (a, level):
                    rho = self.r[d][level] / (self.r[d][a] + self.r[d][level])
                    m = ((1 - rho) * self.f[d][a] + rho * self.f[d][level]) * others
                    m = min(max(m, 1e-4), 0.99)
                    for j, kappa in enumerate(KAPPAS):
                        c = min(kappa / (1 - m), 0.95 / (rho * m), 0.95 / ((1 - rho) * (1 - m)))
                        bet = c * rho if x[d] == a else -c * (1 - rho)
                        self.wealth[d][level, j] *= 1 + bet * (reward - m)
        self.N[x] += 1
        for d, level in enumerate(x):
            self.S[d][level] += reward
        self.reports += 1
        enough = self.version > 0 or self.reports >= 200 or self.S[0].sum() >= 60
        if self.reports >= self.next and enough:
            self.begin_version()

    def begin_version(self) -> None:
        E = [wealth.mean(axis=1) for wealth in self.wealth]
        for d, living in enumerate(self.living):
            least = min(sorted(living), key=E[d].__getitem__)
            self.living[d] = {level for level in living if E[d][level] < self.most} or {least}
        for _ in range(1 if self.leaders else 8):
            self.fit()
        self.leaders = [
            max(sorted(living), key=f.__getitem__)
            for living, f in zip(self.living, self.f, strict=True)
        ]
        for d, a in enumerate(self.leaders):
            K, others = len(self.r[d]), sorted(self.living[d] - {a})
            share = np.zeros(K)
            if others:
                part = np.exp(np.maximum(np.log(E[d][others]).min() - np.log(E[d][others]), -50))
                share[others] = part / part.sum() * (1 - 1 / (1 + math.sqrt(len(others))))
            share[a] = 1 / (1 + math.sqrt(len(others)))
            self.r[d] = self.floor + (1 - self.floor * K) * share
        shortest = 1 + len(self.f) * self.grid.arms // 512 + sum(self.grid.sizes) // 16
        self.next = self.reports + max(shortest, int(self.growth * self.reports))
        self.version += 1

    def fit(self) -> None:
        """A pass of alternating ratios."""
        for d in range(len(self.f)):
            exposure = np.zeros(len(self.f[d]))
            for x, N in self.N.items():
                exposure[x[d]] += N * math.prod(self.f[e][x[e]] for e in range(len(x)) if e != d)
            g = max(self.S[d].sum(), 0.5) / exposure.sum()
            self.f[d] = (self.S[d] + 2) / (exposure + 2 / g)
