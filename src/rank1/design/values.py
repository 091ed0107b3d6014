"""The plain, immutable values that the design's functions take and return."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.design.bets import KAPPAS, LEADERS, LONGER, Records, sides_of
from rank1.design.options import check_floor
from rank1.errors import InputError
from rank1.grid import MAX_KEPT, Grid

__all__ = ["Design", "Totals", "Version", "Wealth", "checked_version"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: How far the sum of a side's shares may be from 1.
ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class Design:
    """The settings that never change, from the first version to the last.

    Parameters
    ----------
    sides
        A `Grid`, or the number of levels of each side.
    confidence
        1 − α, above 0 and below 1.
    low, high
        The smallest and the largest possible reward.
    growth
        The fraction by which reports grow until the next version is due.
    floor
        The smallest share of each level, even of an eliminated one.
    fixed
        Shares that never change, by side and level: `{(0, 2): 0.1}` for a control or a holdout.
    min_lift
        The smallest lift that matters, in reward above the lowest possible reward.
    first
        The largest number of reports in the first version, in which all levels have equal shares.
    given
        Numbers of the sides whose level comes with the visitor, such as a segment. There are no
        bets on them and their levels are never eliminated, but the fit includes their factors.
    retired
        Levels that must not be shown any more, by side and level: `[(0, 2)]`. They have no share,
        even with a floor; see also `restarted`.

    Examples
    --------
    >>> Design([3, 2]).sizes
    (3, 2)
    >>> Design([8, 3, 2], given=[0]).chosen
    (1, 2)
    >>> Design([4], floor=0.25)
    Traceback (most recent call last):
    ...
    rank1.InputError: floor must be below 1/4, for the 4 levels of side 0, got 0.25: nothing is left to choose
    """  # noqa: E501

    grid: Grid
    confidence: float
    low: float
    high: float
    growth: float
    floor: float
    fixed: Mapping[tuple[int, int], float]
    min_lift: float
    first: int
    given: tuple[int, ...]
    retired: frozenset[tuple[int, int]]

    def __init__(
        self,
        sides: Grid | Sequence[int],
        confidence: float = 0.95,
        low: float = 0.0,
        high: float = 1.0,
        *,
        growth: float = 0.01,
        floor: float = 0.0,
        fixed: Mapping[tuple[int, int], float] | None = None,
        min_lift: float = 0.0,
        first: int = 200,
        given: Iterable[int] = (),
        retired: Iterable[tuple[int, int]] = (),
    ) -> None:
        grid = sides if isinstance(sides, Grid) else Grid(sides)
        if grid.arms > MAX_KEPT:
            raise InputError("sides", grid.sizes, f"of at most {MAX_KEPT:,} arms", got=str(grid))
        low = checks.number("low", low)
        values: dict[str, Any] = {
            "grid": grid,
            "confidence": checks.number("confidence", confidence, 0, 1, above=True, below=True),
            "low": low,
            "high": checks.number("high", high, low, above=True),
            "growth": checks.number("growth", growth, 0, 1),
            "floor": checks.number("floor", floor, 0, 1, below=True),
            "fixed": dict(fixed or {}),
            "min_lift": checks.number("min_lift", min_lift, 0, 1),
            "first": checks.integer("first", first, 1),
            "given": tuple(sorted(set(given))),
            "retired": frozenset(retired),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_given()
        self._check_shares()

    def changed(self, sides: Grid | Sequence[int] | None = None, **settings: Any) -> Design:
        """Return this design with other sides or settings.

        >>> Design([3, 2], 0.9).changed([4, 2]).confidence
        0.9
        """
        kept = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        grid = kept.pop("grid")
        return Design(grid if sides is None else sides, **{**kept, **settings})

    def _check_given(self) -> None:
        for side in self.given:
            if not isinstance(side, int) or not 0 <= side < len(self.sizes):
                raise InputError("given", side, f"sides in 0 … {len(self.sizes) - 1}")
        if not self.chosen:
            raise InputError("given", self.given, "fewer sides: at least one must be chosen")
        for side, level in (*self.fixed, *self.retired):
            expected = f"a level of a side that is chosen, of the grid {self.grid}"
            if side not in self.chosen or not 0 <= level < self.sizes[side]:
                name = "fixed" if (side, level) in self.fixed else "retired"
                raise InputError(name, (side, level), expected)
        for side in self.chosen:
            if not self.kept[side].any():
                raise InputError(
                    "retired", side, "fewer levels: at least one must remain on each side"
                )

    def _check_shares(self) -> None:
        for (side, level), share in self.fixed.items():
            checks.number(f"fixed[{side}, {level}]", share, 0, 1, above=True, below=True)
        for side in self.chosen:
            size = int(self.kept[side].sum())
            fixed = [
                share
                for (where, level), share in self.fixed.items()
                if where == side and self.kept[side][level]
            ]
            if not fixed and self.floor * size >= 1:
                check_floor(self.floor, {f"side {side}": size})
            if fixed and sum(fixed) + self.floor * (size - len(fixed)) >= 1:
                expected = f"less than 1 on side {side}, with the floors of the other levels"
                got = f"{sum(fixed) + self.floor * (size - len(fixed)):g}"
                raise InputError("fixed", self.fixed, expected, got=got)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of levels of each side."""
        return self.grid.sizes

    @property
    def chosen(self) -> tuple[int, ...]:
        """Numbers of the sides whose level is drawn."""
        return tuple(side for side in range(len(self.sizes)) if side not in self.given)

    @cached_property
    def kept(self) -> tuple[Bools, ...]:
        """For each side, the levels that aren't retired."""
        kept = [np.ones(size, np.bool_) for size in self.sizes]
        for side, level in self.retired:
            kept[side][level] = False
        return tuple(kept)

    @cached_property
    def sides(self) -> Records:
        """The sides for compiled code."""
        return sides_of(self.grid)

    @property
    def kappas(self) -> Floats:
        """The lifts to bet on; there are more of them if rewards lie in a range."""
        return np.array(KAPPAS if (self.low, self.high) == (0, 1) else LONGER)

    @property
    def threshold(self) -> float:
        """The log E at which a level is eliminated: log(D/α), or log(2D/α) with a smallest lift."""
        # Given sides and sides with a single level can't err.
        sides = max(1, sum(self.sizes[side] > 1 for side in self.chosen))
        return math.log((2 if self.min_lift > 0 else 1) * sides / (1 - self.confidence))

    @cached_property
    def pair_rows(self) -> Ints:
        """Where each side's rows of `Wealth.pairs` begin, and where the last side's rows end."""
        led = [min(size, LEADERS) * size if self.min_lift > 0 else 0 for size in self.sizes]
        return np.cumsum([0, *led])

    def scaled(self, rewards: Floats) -> Floats:
        """Scale rewards to [0, 1]."""
        return (rewards - self.low) / (self.high - self.low)

    def split(self, levels: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Split a row of values for all levels into an array for each side."""
        return tuple(np.split(levels, np.cumsum(self.sizes)[:-1]))


@dataclasses.dataclass(frozen=True, eq=False)
class Version:
    """A numbered set of shares, with the leaders and the fit that its bets use.

    Under it, each side's level is drawn by its shares, independently of the other sides.
    """

    number: int
    #: For each side, the share of each level.
    shares: tuple[Floats, ...]
    #: For each side, the leading level; −1 for a given side, and for all sides if there are no bets
    #: under this version.
    leaders: tuple[int, ...]
    #: For each side, the factor of each level.
    fit: tuple[Floats, ...]
    #: For each side, the levels that weren't eliminated when this version began.
    living: tuple[Bools, ...]

    @property
    def bets(self) -> bool:
        """Whether there are bets under this version."""
        return max(self.leaders) >= 0


class Totals(NamedTuple):
    """Numbers of reports by arm, and sums of scaled rewards by level: the input of a fit."""

    counts: Floats
    sums: Floats


class Wealth(NamedTuple):
    """The wealth of the bets: the log wealth of each level and κ, all 0 at first.

    The last two fields are for a smallest lift: which levels have led, and the log wealth of each
    pair of a level that has led and another level.
    """

    logs: Floats
    slots: Ints
    pairs: Floats


def checked_version(design: Design, version: Version) -> Version:
    """Check that a version's shares fit this design's sides, and return the version.

    >>> half = np.array([0.5, 0.4]),
    >>> checked_version(Design([2]), Version(1, half, (0,), half, (np.ones(2, bool),)))
    Traceback (most recent call last):
    ...
    rank1.InputError: shares of side 0 in version 1 must be numbers that add up to 1, got 0.9
    """
    checks.integer("version", version.number, 0)
    for side, size in enumerate(design.sizes):
        name = f"of side {side} in version {version.number}"
        shares = checks.vector(f"shares {name}", version.shares[side])
        if len(shares) != size:
            raise InputError(f"shares {name}", shares, f"{size} numbers", got=f"{len(shares)}")
        if side not in design.given and abs(shares.sum() - 1) > ROUNDING:
            total = float(shares.sum())
            raise InputError(f"shares {name}", total, "numbers that add up to 1", got=f"{total:g}")
        fit = checks.vector(f"fit {name}", version.fit[side], 0, math.inf)
        if len(fit) != size or not (fit > 0).all() or not np.isfinite(fit).all():
            raise InputError(f"fit {name}", fit, f"{size} numbers above 0")
        top = -1 if side in design.given else size - 1
        if not -1 <= version.leaders[side] <= top:
            expected = "-1 for a given side" if top < 0 else f"a level in 0 … {top}"
            raise InputError(f"leader {name}", version.leaders[side], expected)
    return version
