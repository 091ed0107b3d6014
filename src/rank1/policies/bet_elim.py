"""BetElim: shares, bets and levels that go; the fewest pulls until the best arm is known."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rank1 import checks
from rank1.design.bets import KAPPAS, LONGER
from rank1.errors import InputError
from rank1.grid import Grid
from rank1.policies.base import Known, Policy
from rank1.policies.bet_elim_state import BetElimState, start_bets

__all__ = ["BetElim"]

#: Reports of the first version, in which all levels have equal shares.
FIRST = 200


@dataclass(frozen=True)
class BetElim(Policy):
    name = "bet_elim"
    confidence: float = 0.95
    growth: float = 0.01
    floor: float = 0.0
    any_grid: bool = False
    min_lift: float = 0.0
    window: int = 0

    def __post_init__(self) -> None:
        checks.number("confidence", self.confidence, 0, 1, above=True, below=True)
        checks.number("growth", self.growth, 0, 1)
        checks.number("floor", self.floor, 0, 1, below=True)
        checks.boolean("any_grid", self.any_grid)
        checks.number("min_lift", self.min_lift, 0, 1)
        checks.integer("window", self.window, 0, 10**7)

    def start(self, known: Known) -> BetElimState:
        """The state before the first pull."""
        self.check(known.grid)
        grid = Grid([known.arms]) if self.any_grid else known.grid
        if not (math.isfinite(known.low) and math.isfinite(known.high)):
            raise InputError("rewards", (known.low, known.high), "x")
        sides = max(1, sum(size > 1 for size in grid.sizes))
        threshold = math.log(sides / (1 - self.confidence)) + (math.log(2) if self.min_lift else 0)
        kappas = KAPPAS if (known.low, known.high) == (0, 1) else LONGER
        return start_bets(
            known, grid, kappas, threshold, float(self.growth), float(self.floor),
            float(self.min_lift), int(self.window), FIRST,
        )  # fmt: skip
