"""Standardised Thompson sampling, literally: arrays with one axis per side."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from rank1.policies.base import Known

Floats = NDArray[np.float64]


class LiteralFactorTS:
    """Pulls N and sums S of each arm; factors of each side, relative to its largest."""

    def __init__(self, known: Known) -> None:
        self.grid = known.grid
        self.N, self.S = np.zeros(self.grid.sizes), np.zeros(self.grid.sizes)
        self.factors = [np.ones(size) for size in self.grid.sizes]
        #: The number of reports at which the next fit is due.
        self.due = 1

    def of_levels(self, table: Floats, side: int) -> Floats:
        """The sum over all arms with each level of this side."""
        return table.sum(axis=tuple(e for e in range(table.ndim) if e != side))

    def exposure(self, side: int) -> Floats:
        """Pulls of each level of a side, weighted by the factors of the other sides' levels."""
        without = [np.ones_like(f) if side == other else f for other, f in enumerate(self.factors)]
        return self.of_levels(self.N * functools.reduce(np.multiply.outer, without), side)

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        levels = []
        for side in range(self.N.ndim):
            won, exposure = self.of_levels(self.S, side), self.exposure(side)
            lost = np.maximum(0, exposure - won)
            samples = [rng.beta(1 + s, 1 + f) for s, f in zip(won, lost, strict=True)]
            levels.append(int(np.argmax(samples)))
        return self.grid.arm(levels), 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        self.N.flat[arm] += 1
        self.S.flat[arm] += reward
        reports = int(self.N.sum())
        if reports >= self.due:
            for _ in range(2):
                for side in range(self.N.ndim):
                    won, exposure = self.of_levels(self.S, side), self.exposure(side)
                    g = (won.sum() + 1) / (exposure.sum() + 1)
                    f = (won + 2) / (exposure + 2 / g)
                    self.factors[side] = f / f.max()
            self.due = reports + 1 + reports // 50
