"""Sides, levels and arms: how a grid is numbered.

A grid has sides (headline, image, button), a side has levels, an arm is one level of each side.
Compiled code, logs and files identify an arm by its number, in row-major order: the last side's
level changes fastest. Names and levels are used only in interfaces for people.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rank1.errors import InputError, InputTypeError, shown

__all__ = ["MAX_ARMS", "MAX_KEPT", "MAX_SIDES", "Grid", "product_text", "two_sides"]

T = TypeVar("T")
Ints = NDArray[np.int64]

#: The largest number of sides of a grid.
MAX_SIDES = 16
#: The largest number of arms for policies that store data for every arm.
MAX_KEPT = 2**20
#: The largest number of arms at all: products with arms are exact as 64-bit doubles.
MAX_ARMS = 2**50


@dataclass(frozen=True)
class Grid:
    """The number of levels of each side.

    Parameters
    ----------
    sides
        The number of levels of each side, for 1 to 16 sides; or a mapping from the name of each
        side to the names of its levels.

    Examples
    --------
    >>> grid = Grid([2, 3, 2])
    >>> grid.arms, grid.strides, grid.levels(7), grid.arm((1, 0, 1))
    (12, (6, 2, 1), (1, 0, 1), 7)
    >>> grid.neighbours(7).tolist()
    [1, 9, 11, 6]
    >>> grid.line(side=1, level=2).tolist()
    [4, 5, 10, 11]
    >>> Grid({"image": ["x", "y"], "button": ["buy", "go"]}).named(3)
    {'image': 'y', 'button': 'go'}
    >>> Grid([4, 0])
    Traceback (most recent call last):
    ...
    rank1.InputError: side 1 must be a side of at least 1 level, got 0
    """

    sizes: tuple[int, ...]
    #: Names of the sides, and of their levels; None if they have none.
    names: tuple[str, ...] | None = None
    labels: tuple[tuple[str, ...], ...] | None = None

    def __init__(self, sides: Iterable[int] | Mapping[str, Sequence[str]]) -> None:
        if isinstance(sides, Mapping):
            object.__setattr__(self, "names", tuple(sides))
            object.__setattr__(self, "labels", tuple(map(_labels, sides, sides.values())))
            sizes = [len(levels) for levels in self.labels or ()]
        else:
            try:
                sizes = list(sides)
            except TypeError:
                raise InputTypeError("sides", sides, "a list of numbers of levels") from None
        for name, size in zip(self.names or _numbered(len(sizes)), sizes, strict=True):
            if not isinstance(size, int | np.integer) or isinstance(size, bool):
                raise InputTypeError(name, size, "a whole number of levels")
            if size < 1:
                raise InputError(name, size, "a side of at least 1 level")
        if not 1 <= len(sizes) <= MAX_SIDES:
            raise InputError("sides", sides, f"1 to {MAX_SIDES} sides", got=f"{len(sizes)}")
        object.__setattr__(self, "sizes", tuple(map(int, sizes)))
        if self.arms > MAX_ARMS:
            raise InputError(
                "sides", sides, f"small enough for {MAX_ARMS:,} arms", got=f"{self.arms:,}"
            )

    @property
    def arms(self) -> int:
        """The number of arms."""
        return math.prod(self.sizes)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """How much an arm's number grows if the level of each side grows by one."""
        return tuple(math.prod(self.sizes[side + 1 :]) for side in range(len(self.sizes)))

    @property
    def cross(self) -> int:
        """The number of neighbours of an arm."""
        return sum(self.sizes) - len(self.sizes)

    def arm(self, levels: Sequence[int]) -> int:
        """The arm with these levels."""
        if len(levels) != len(self.sizes):
            raise InputError("levels", levels, f"{len(self.sizes)} levels, one for each side")
        for side, (level, size) in enumerate(zip(levels, self.sizes, strict=True)):
            if not 0 <= level < size:
                raise InputError(f"levels[{side}]", level, f"in 0 … {size - 1}")
        return sum(int(level) * stride for level, stride in zip(levels, self.strides, strict=True))

    def levels(self, arm: int) -> tuple[int, ...]:
        """The level of each side of an arm."""
        self.check(arm)
        return tuple(
            int(arm) // stride % size for size, stride in zip(self.sizes, self.strides, strict=True)
        )

    def check(self, arm: int) -> int:
        """Return `arm`, or raise an error if it isn't on the grid."""
        if not 0 <= arm < self.arms:
            raise InputError("arm", arm, f"in 0 … {self.arms - 1}")
        return int(arm)

    def neighbours(self, arm: int) -> Ints:
        """The arms with one level changed, one side after another."""
        sides = zip(self.levels(arm), self.sizes, self.strides, strict=True)
        return np.concatenate(
            [arm + (np.delete(np.arange(size), k) - k) * stride for k, size, stride in sides]
        )

    def line(self, side: int, level: int) -> Ints:
        """All arms with this level of this side."""
        every = np.arange(self.arms, dtype=np.int64).reshape(self.sizes)
        return every.take(level, axis=side).ravel()

    def named(self, arm: int) -> dict[str, str]:
        """The names of an arm's levels, by side."""
        if self.names is None or self.labels is None:
            raise InputError("grid", self, "a grid whose levels have names")
        at = zip(self.names, self.labels, self.levels(arm), strict=True)
        return {name: levels[level] for name, levels, level in at}

    def __str__(self) -> str:
        return product_text(self.sizes)


def product_text(sizes: Iterable[int]) -> str:
    """Numbers of levels as people write them.

    >>> product_text([12, 8])
    '12×8'
    """
    return "×".join(map(str, sizes))


def two_sides(sides: Sequence[T]) -> tuple[T, T]:
    """The entries for rows and columns; raises an error unless there are two sides."""
    if len(sides) != 2:
        raise InputError("sides", len(sides), "two, rows and columns")
    return sides[0], sides[1]


def _numbered(count: int) -> list[str]:
    return [f"side {side}" for side in range(count)]


def _labels(name: Any, levels: Any) -> tuple[str, ...]:
    """The names of a side's levels, which must differ."""
    if not isinstance(name, str) or not name:
        raise InputTypeError("sides", name, "a mapping from names of sides to names of levels")
    if isinstance(levels, str | bytes) or not isinstance(levels, Iterable):
        raise InputTypeError(name, levels, "a list of names of levels")
    found = tuple(levels)
    for level in found:
        if not isinstance(level, str):
            raise InputTypeError(name, level, "a list of names of levels", got=shown(level))
        if found.count(level) > 1:
            raise InputError(name, level, "names that differ", got=f"{shown(level)} twice")
    return found
