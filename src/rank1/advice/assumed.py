"""Grids to simulate instead of the real one, which is unknown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rank1 import checks
from rank1.errors import InputError, InputTypeError
from rank1.policies import Policy
from rank1.problems import Product
from rank1.progress import Progress

__all__ = ["LIFTS", "AssumedGrid", "assumed_grid", "assumed_grids", "plays"]

#: The default lifts of the best levels over the others.
LIFTS = (0.2, 0.5)
_FITTING = "one that leaves the best arm a mean of at most 1"


@dataclass(frozen=True)
class AssumedGrid:
    """A grid to simulate."""

    #: "spike" or "stairs".
    shape: str
    lift: float
    problem: Product = field(repr=False)
    #: The name of each side, used for its levels; None: rows and columns, or just levels.
    names: tuple[str, ...] | None = None

    @property
    def arm(self) -> str:
        """The word for an arm: a pair, if there are two sides."""
        return "pair" if len(self.problem.grid.sizes) == 2 else "arm"

    @property
    def levels(self) -> str:
        """The word for what can be merged."""
        return "levels" if self.names or len(self.problem.grid.sizes) != 2 else "rows or columns"

    @property
    def words(self) -> str:
        """A description of the grid."""
        sizes = self.problem.grid.sizes
        names = self.names or ("row", "column")
        lines = [name for name, size in zip(names, sizes, strict=False) if size > 1]
        if self.names is None and len(sizes) != 2:
            lines = ["level" if len(sizes) == 1 else "level of each side"]
        verb = "is" if len(lines) == 1 else "are"
        article = "one" if self.shape == "spike" else "the best"
        *most, last = (f"{article} {name}" for name in lines)
        subject = f"{', '.join(most)} and {last}" if most else last
        if self.shape == "spike":
            return f"{subject} {verb} {self.lift:.0%} better than the others, which are equal"
        return (
            f"{subject} {verb} {self.lift:.0%} better than the second, and the others decrease to "
            "half of that"
        )


def assumed_grid(
    sizes: Sequence[int],
    rate: float,
    lift: float,
    shape: str = "spike",
    names: tuple[str, ...] | None = None,
) -> AssumedGrid:
    """A grid of rank one whose means average `rate`.

    On each side the best level is better than the second by `lift`, 0.2 for 20%. In a "spike" the
    others equal the second; in "stairs" they decrease evenly to half of it.

    >>> grid = assumed_grid([12, 8], rate=0.05, lift=0.5)
    >>> round(float(grid.problem.means.mean()), 4), round(grid.problem.best_mean, 4)
    (0.05, 0.1016)
    """
    checks.one_of("shape", shape, ("spike", "stairs"))
    sides = [_side(size, lift, shape) for size in sizes]
    best = rate / math.prod(side.mean() for side in sides)  # the largest entry of a side is 1
    if best > 1:
        hint = f"at an average of {rate:g} it would be {best:.3g}; use a smaller lift"
        raise InputError("lift", lift, _FITTING, hint, got=f"{lift:g}")
    problem = Product([side * best ** (1 / len(sides)) for side in sides])
    return AssumedGrid(shape, lift, problem, names)


def _side(size: int, lift: float, shape: str) -> Any:
    others = np.ones(size - 1) if shape == "spike" else np.linspace(1, 0.5, size - 1)
    return np.concatenate([[1.0], others / (1 + lift)])


def assumed_grids(
    sizes: Sequence[int],
    rate: float,
    lifts: Sequence[float] | None,
    names: tuple[str, ...] | None = None,
) -> list[AssumedGrid]:
    """Grids with each lift, in the shapes that have no mean above 1."""
    shapes = ("spike", "stairs") if max(sizes) > 2 else ("spike",)  # two levels have no stairs
    found: list[AssumedGrid] = []
    for lift in LIFTS if lifts is None else _checked_lifts(lifts):
        fitting, why = [], None
        for shape in shapes:
            try:
                fitting.append(assumed_grid(sizes, rate, lift, shape, names))
            except InputError as error:
                why = error
        if lifts is not None and not fitting and why:
            raise why
        found += fitting
    if not found:
        larger = f"with a lift of {min(LIFTS):g} it would be larger"
        raise InputError("rate", rate, _FITTING, f"{larger}; use a smaller rate, or smaller lifts")
    return found


def _checked_lifts(lifts: Sequence[float]) -> list[float]:
    try:
        given = list(lifts)
    except TypeError:
        raise InputTypeError("lifts", lifts, "a list of numbers, such as [0.2, 0.5]") from None
    found = [checks.number("lift", lift, 0, 100, above=True) for lift in given]
    if not found or len(set(found)) < len(found):
        raise InputError("lifts", lifts, "at least one number, without duplicates")
    return found


def plays(
    grids: Sequence[AssumedGrid], policies: Sequence[Policy], progress: bool, title: str
) -> Iterator[tuple[AssumedGrid, Policy, dict[str, Any]]]:
    """Each policy on each grid, and what a row of figures says about the grid; with a bar."""
    with Progress(progress, title, len(grids) * len(policies)) as bar:
        for grid in grids:
            about = {"shape": grid.shape, "lift": grid.lift, "best_mean": grid.problem.best_mean}
            for policy in policies:
                yield grid, policy, about
                bar.advance(1, f"{policy.label}, {grid.shape}, lift {grid.lift:.0%}")
