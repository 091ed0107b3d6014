"""What the design's functions take and return: plain, immutable values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.design.bets import KAPPAS, LONGER, Records, sides_of
from rank1.errors import InputError, InputTypeError
from rank1.grid import MAX_KEPT, Grid

__all__ = ["Counts", "Design", "Totals", "Version", "Wealth", "checked_counts", "checked_version"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: How far from 1 the sum of a side's shares may be.
ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class Design:
    """What stays the same from the first version to the last.

    Parameters
    ----------
    sides
        A `Grid`, or how many levels each side has.
    confidence
        1 − α, above 0 and below 1.
    low, high
        The least and the largest reward.
    growth
        By which part reports grow until the next version is due.
    floor
        The least share of every level, also of one that has gone.
    fixed
        Shares that never change, by side and level: `{(0, 2): 0.1}` for a control or a holdout.
    min_lift
        The smallest lift worth having.
    first
        The most reports of the first version, in which all levels have equal shares.

    Examples
    --------
    >>> Design([3, 2]).sizes
    (3, 2)
    >>> Design([4], floor=0.25)
    Traceback (most recent call last):
    ...
    rank1.InputError: floor must be below 1/4, for side 0 of 4 levels, got 0.25: nothing is left to choose
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
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_shares()

    def _check_shares(self) -> None:
        for (side, level), share in self.fixed.items():
            name = f"fixed[{side}, {level}]"
            if not 0 <= side < len(self.sizes) or not 0 <= level < self.sizes[side]:
                raise InputError(name, share, f"of a level of the grid {self.grid}")
            checks.number(name, share, 0, 1, above=True, below=True)
        for side, size in enumerate(self.sizes):
            fixed = [share for (where, _), share in self.fixed.items() if where == side]
            if not fixed and self.floor * size >= 1:
                expected = f"below 1/{size}, for side {side} of {size} levels"
                raise InputError("floor", self.floor, expected, "nothing is left to choose")
            if fixed and sum(fixed) + self.floor * (size - len(fixed)) >= 1:
                expected = f"less than 1 on side {side}, with the floors of the other levels"
                got = f"{sum(fixed) + self.floor * (size - len(fixed)):g}"
                raise InputError("fixed", self.fixed, expected, got=got)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many levels each side has."""
        return self.grid.sizes

    @cached_property
    def sides(self) -> Records:
        """The sides for compiled code."""
        return sides_of(self.grid)

    @property
    def kappas(self) -> Floats:
        """The lifts that are bet on: more of them where rewards lie in a range."""
        return np.array(KAPPAS if (self.low, self.high) == (0, 1) else LONGER)

    @property
    def threshold(self) -> float:
        """The log E at which a level goes: D/α, twice that where there is a smallest lift."""
        # A side of one level can't err.
        sides = max(1, sum(size > 1 for size in self.sizes))
        return math.log((2 if self.min_lift > 0 else 1) * sides / (1 - self.confidence))

    def scaled(self, rewards: Floats) -> Floats:
        """Rewards in [0, 1]."""
        return (rewards - self.low) / (self.high - self.low)

    def split(self, levels: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """What there is for all levels in a row, as an array for each side."""
        return tuple(np.split(levels, np.cumsum(self.sizes)[:-1]))


@dataclasses.dataclass(frozen=True, eq=False)
class Version:
    """A numbered set of shares, with the leaders and the fit that the bets under it use.

    While it lasts each side's level is drawn by its shares, independently of the other sides.
    """

    number: int
    #: For each side, the share of each level.
    shares: tuple[Floats, ...]
    #: For each side, the level that leads; −1 in a version under which nothing is bet.
    leaders: tuple[int, ...]
    #: For each side, the factor of each level.
    fit: tuple[Floats, ...]
    #: For each side, which levels had not gone when it began.
    living: tuple[Bools, ...]


class Counts(NamedTuple):
    """How many pulls of an arm, drawn under a version, gave which reward: a row for each."""

    version: Ints
    arm: Ints
    reward: Floats
    pulls: Ints

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, float, int]]) -> Counts:
        """From rows of version, arm, reward and number of pulls.

        >>> Counts.of([(0, 3, 1.0, 12)]).pulls.tolist()
        [12]
        """
        columns = zip(*rows, strict=True)
        kinds: tuple[Any, ...] = np.int64, np.int64, np.float64, np.int64
        found = [np.array(column, kind) for column, kind in zip(columns, kinds, strict=False)]
        return cls(*(found or [np.zeros(0, kind) for kind in kinds]))


class Totals(NamedTuple):
    """Numbers of reports by arm, and sums of scaled rewards by level: what a fit needs."""

    counts: Floats
    sums: Floats


class Wealth(NamedTuple):
    """What the bets have won: log wealth of each level and κ, all 0 at first.

    The last two are for a smallest lift: which levels have led, and log wealth of each pair of a
    level that led and another.
    """

    logs: Floats
    slots: Ints
    pairs: Floats


def checked_version(design: Design, version: Version) -> Version:
    """The version, whose shares must be some on this design's sides.

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
        if abs(shares.sum() - 1) > ROUNDING:
            total = float(shares.sum())
            raise InputError(f"shares {name}", total, "numbers that add up to 1", got=f"{total:g}")
        fit = checks.vector(f"fit {name}", version.fit[side], 0, math.inf)
        if len(fit) != size or not (fit > 0).all() or not np.isfinite(fit).all():
            raise InputError(f"fit {name}", fit, f"{size} numbers above 0")
        if not -1 <= version.leaders[side] < size:
            raise InputError(f"leader {name}", version.leaders[side], f"a level in 0 … {size - 1}")
    return version


def checked_counts(design: Design, versions: Mapping[int, Version], counts: Counts) -> Counts:
    """The rows with a count, equal ones added up; the rest is refused.

    Each must be of a known version and of an arm that it draws.
    """
    lengths = {len(column) for column in counts}
    if len(lengths) != 1:
        raise InputError("counts", counts, "columns of one length", got=f"{sorted(lengths)}")
    version, arm, reward, pulls = (_column(name, getattr(counts, name)) for name in Counts._fields)
    for number in np.unique(version):
        if int(number) not in versions:
            known = ", ".join(map(str, sorted(versions))) or "none"
            raise InputError("version", int(number), f"one of the versions known ({known})")
    _refuse("arm", arm, (arm < 0) | (arm >= design.grid.arms), f"in 0 … {design.grid.arms - 1}")
    outside = ~((reward >= design.low) & (reward <= design.high))  # catches NaN too
    _refuse("reward", reward, outside, f"a number in [{design.low:g}, {design.high:g}]")
    _refuse("pulls", pulls, (pulls < 0) | (pulls != np.floor(pulls)), "a whole number, at least 0")
    kept = pulls > 0
    version, arm, pulls = (column[kept].astype(np.int64) for column in (version, arm, pulls))
    rows = Counts(version, arm, reward[kept].astype(np.float64), pulls)
    for number in np.unique(rows.version):
        of_it = rows.arm[rows.version == number]
        drawn = np.ones(len(of_it), np.bool_)
        for side, shares in zip(design.sides, versions[int(number)].shares, strict=True):
            drawn &= shares[of_it // side.stride % side.levels] > 0
        expected = f"one that version {number} draws, with a share above 0"
        _refuse("arm", of_it, ~drawn, expected)
    return _merged(rows, design.grid.arms)


def _merged(rows: Counts, arms: int) -> Counts:
    """One row for all pulls of an arm under a version that gave the same reward."""
    if len(rows.arm) < 2:
        return rows
    rewards, which = np.array([rows.reward.min(), rows.reward.max()]), rows.reward != rows.reward[0]
    if rows.reward[0] != rewards[0]:
        which = ~which
    if (rewards[which.astype(np.int64)] != rows.reward).any():  # more than two
        rewards, which = np.unique(rows.reward, return_inverse=True)
    numbers, version = np.unique(rows.version, return_inverse=True)
    key = (version * arms + rows.arm) * len(rewards) + which
    if len(numbers) * arms * len(rewards) <= 4 * len(key) + 2**16:
        pulls = np.bincount(key, rows.pulls)
        kept = np.nonzero(pulls)[0]
        pulls = pulls[kept]
    else:
        kept, where = np.unique(key, return_inverse=True)
        pulls = np.bincount(where, rows.pulls)
    rest, reward = np.divmod(kept, len(rewards))
    return Counts(
        numbers[rest // arms], rest % arms, rewards[reward], np.rint(pulls).astype(np.int64)
    )


def _column(name: str, values: ArrayLike) -> NDArray[Any]:
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "iuf":
        raise InputTypeError(name, values, "a column of numbers")
    return found


def _refuse(name: str, values: NDArray[Any], bad: Bools, expected: str) -> None:
    if bad.any():
        raise InputError(name, values[int(bad.argmax())].item(), expected)
