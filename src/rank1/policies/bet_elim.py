"""BetElim: find the best arm in few pulls, by betting against levels and dropping the losers."""

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

#: The largest number of reports in the first version, where all levels have equal shares.
FIRST = 200
DEFAULT_CONFIDENCE = 0.95


@dataclass(frozen=True)
class BetElim(Policy):
    """Bet against each level and drop those that are refuted, until the best arm is known.

    Each side's level is drawn by known shares, independently of the other sides. Every report
    settles a bet against "this level is the best of its side". A level is dropped permanently when
    the bets against it have multiplied their stake by D/α, where D is the number of sides and 1 − α
    the confidence. When every side has one level left, that arm is the best with probability at
    least `confidence`, whenever that happens. See `rank1.identify`.

    Parameters
    ----------
    confidence
        1 − α, above 0 and below 1.
    growth
        A new version of the shares begins when the number of reports has grown by this fraction;
        levels are dropped only at the end of a version. 0: a new version after every report.
    floor
        The smallest share of every level, even of a dropped level.
    any_grid
        Assume nothing about the grid: treat all arms as levels of one side.
    min_lift
        The smallest lift that matters: stop as soon as no level of a side can exceed the named
        level by more than this fraction. The named arm is then within (1 + min_lift)^D of the best.
    window
        The number of pulls after which every reward has arrived. Only pulls that are at least this
        old count for the fit, so successes that arrive before failures don't mislead it. 0: rewards
        are immediate.

    Notes
    -----
    It assumes one order: the best level of a side is the best whatever the other sides show. This
    holds in a grid of rank one. It assumes nothing about how means change over time, as long as
    the order stays the same, nor about the rewards, except for their range.

    The bet on a report uses the shares of the version that its pull was drawn under, which is in
    the pull's tag, and the leaders and the fit of the current version. Versions depend on reports,
    never on which pulls are pending. So rewards may be late, out of order or missing, as long as
    the delay doesn't depend on the level, nor on the reward unless rewards are 0 or 1. If the
    pull's version is no longer stored, its report counts for the fit but not for the bets.

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

    @property
    def needs_all(self) -> tuple[str, ...]:
        """Shares follow from rewards, and from pulls if a reward must be old enough to count."""
        return ("rewards", "pulls") if self.window else ("rewards",)

    def judging(self, confidence: float, rank_one: bool) -> BetElim:
        """Set this confidence, and `any_grid` unless the rank can be assumed to be one."""
        if self.confidence not in (confidence, DEFAULT_CONFIDENCE):
            expected = f"{confidence:g}, the requested confidence"
            raise InputError(f"confidence of {self.name}", self.confidence, expected)
        return replace(self, confidence=confidence, any_grid=self.any_grid or not rank_one)

    def allowance(self, sides: int) -> float:
        """(1 + min_lift)^D, for D sides."""
        return float((1 + self.min_lift) ** (1 if self.any_grid else sides))

    def check(self, grid: Grid, horizon: int | None = None) -> None:
        """Check the floor as well: it must leave something to choose."""
        super().check(grid, horizon)
        levels = grid.arms if self.any_grid else max(grid.sizes)
        if self.floor * levels >= 1:
            expected = f"below 1/{levels}, for a side of {levels} levels"
            raise InputError("floor", self.floor, expected, "the floors would use up all shares")

    def start(self, known: Known) -> BetElimState:
        """The state before the first pull."""
        self.check(known.grid)
        if not (math.isfinite(known.low) and math.isfinite(known.high)):
            raise InputError(
                "rewards",
                (known.low, known.high),
                f"bounded for {self.name}",
                "cap them, or use a policy for any noise, such as rank1elim",
                got=f"[{known.low:g}, {known.high:g}]",
            )
        grid = Grid([known.arms]) if self.any_grid else known.grid
        # A side of one level can't err.
        sides = max(1, sum(size > 1 for size in grid.sizes))
        ways = 2 if self.min_lift > 0 else 1  # to err: drop the best level, or stop too early
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
