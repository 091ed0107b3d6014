"""BetElim: shares, bets and levels that go; the fewest pulls until the best arm is known."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from rank1 import checks
from rank1.design.bets import KAPPAS, LONGER
from rank1.design.versions import ENOUGH
from rank1.errors import InputError
from rank1.grid import Grid
from rank1.policies.base import Known, Policy
from rank1.policies.bet_elim_leaps import LEAPS
from rank1.policies.bet_elim_state import BetElimState, start_bets

__all__ = ["BetElim"]

#: The most reports of the first version, in which all levels have equal shares.
FIRST = 200
DEFAULT_CONFIDENCE = 0.95


@dataclass(frozen=True)
class BetElim(Policy):
    """Bet against each level and drop those that are refuted: it knows when the best is found.

    Each side's level is drawn by known shares, independently of the other sides. Every report is a
    bet against "this level is best on its side"; a level goes, for good, when the bets have
    multiplied their stake by D/α, where D is the number of sides and 1 − α the confidence. When
    every side has one level left, that arm is the best one, with at least the probability
    `confidence`, whenever it stops. See `rank1.identify`.

    Parameters
    ----------
    confidence
        1 − α, above 0 and below 1.
    growth
        By which part reports grow until a new version of the shares begins; looks are at the ends
        of versions. 0 is for a new one after every report.
    floor
        The least share of every level, also of one that has gone.
    any_grid
        Assume nothing of the grid: all arms are levels of one side.
    min_lift
        The smallest lift worth having: stop as soon as no level of a side can exceed the one that
        is named by more than this part. The arm named is then within (1 + min_lift)^D of the best.
    window
        After how many pulls a reward is in. Only pulls that are as old count for the fit, so that
        successes that come before failures don't mislead it. 0 is for rewards at once.

    Notes
    -----
    It assumes one order: a level that is best on its side is best whatever the other sides show.
    In a grid of rank one that holds. Nothing is assumed of how means change over time, as long as
    the order stays, nor of the rewards, but for their range.

    A report is bet on with the shares of the version that its pull was drawn under, which the
    pull's tag names, and with the leaders and the fit of the current version. Versions depend on
    reports, never on which pulls are pending, so rewards may come late, in any order or never, as
    long as the delay doesn't depend on the level, nor on the reward unless that is 0 or 1. Where
    the version is no longer kept, a report counts for the fit but not for the bets.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> found = rank1.identify(rank1.BetElim(), problem, confidence=0.95, runs=3)
    >>> found["bet_elim"].best_pairs
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Waudby-Smith, Ramdas: Estimating means of bounded random variables by betting. JRSS B 2024.
    https://arxiv.org/abs/2010.09686
    """

    name = "bet_elim"
    layout = 2
    leaps = LEAPS
    confidence: float = DEFAULT_CONFIDENCE
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
        object.__setattr__(self, "window", checks.integer("window", self.window, 0, 10**7))

    def judging(self, confidence: float, rank_one: bool) -> BetElim:
        """With this confidence; on any grid, unless the rank may be assumed to be one."""
        if self.confidence not in (confidence, DEFAULT_CONFIDENCE):
            expected = f"{confidence:g}, the confidence that is asked for"
            raise InputError(f"confidence of {self.name}", self.confidence, expected)
        return replace(self, confidence=confidence, any_grid=self.any_grid or not rank_one)

    def allowance(self, sides: int) -> float:
        """The lift that isn't worth having, once a side."""
        return float((1 + self.min_lift) ** (1 if self.any_grid else sides))

    def check(self, grid: Grid, horizon: int | None = None) -> None:
        """Refuse also a floor that leaves nothing to choose."""
        super().check(grid, horizon)
        levels = grid.arms if self.any_grid else max(grid.sizes)
        if self.floor * levels >= 1:
            expected = f"below 1/{levels}, for a side of {levels} levels"
            raise InputError("floor", self.floor, expected, "a floor of all levels leaves nothing")

    def start(self, known: Known) -> BetElimState:
        """The state before the first pull."""
        self.check(known.grid)
        if not (math.isfinite(known.low) and math.isfinite(known.high)):
            raise InputError(
                "rewards",
                (known.low, known.high),
                f"in a range with two ends for {self.name}",
                "cap them, or take a policy for any noise, such as rank1elim",
                got=f"[{known.low:g}, {known.high:g}]",
            )
        grid = Grid([known.arms]) if self.any_grid else known.grid
        # A side of one level can't err.
        sides = max(1, sum(size > 1 for size in grid.sizes))
        ways = 2 if self.min_lift > 0 else 1  # to err: a level goes, or one is named too soon
        settings: dict[str, Any] = {
            "threshold": math.log(ways * sides / (1 - self.confidence)),
            "growth": float(self.growth),
            "floor": float(self.floor),
            "lift": float(self.min_lift),
            "first": FIRST,
            "enough": ENOUGH,
        }
        kappas = KAPPAS if (known.low, known.high) == (0, 1) else LONGER
        return start_bets(known, grid, kappas, self.window, settings)
