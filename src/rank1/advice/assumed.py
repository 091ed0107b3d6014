"""Grids that are simulated, since nobody knows the real one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rank1 import checks
from rank1.errors import InputError, InputTypeError
from rank1.problems import Bernoulli

__all__ = ["LIFTS", "AssumedGrid", "assumed_grid", "assumed_grids"]

#: How much better the best lines are than the others, unless told.
LIFTS = (0.2, 0.5)


@dataclass(frozen=True)
class AssumedGrid:
    """A grid that is simulated."""

    #: "spike" or "stairs".
    shape: str
    lift: float
    problem: Bernoulli = field(repr=False)

    @property
    def words(self) -> str:
        """What it looks like."""
        lines = [
            name for name, size in (("row", self.problem.K), ("column", self.problem.L)) if size > 1
        ]
        if self.shape == "spike":
            subject = " and ".join(f"one {name}" for name in lines)
            verb = "is" if len(lines) == 1 else "are"
            return f"{subject} {verb} {self.lift:.0%} better than the others, which are alike"
        verb = "is" if len(lines) == 1 else "are"
        return (
            f"the best {' and the best '.join(lines)} {verb} {self.lift:.0%} better than the "
            "second, and the others fall off to half of that"
        )


def assumed_grid(K: int, L: int, rate: float, lift: float, shape: str = "spike") -> AssumedGrid:
    """A grid of rank one whose means have the average `rate`.

    Parameters
    ----------
    K, L
        Rows and columns.
    rate
        Average of all means.
    lift
        How much better the best row is than the second, and the best column: 0.2 for 20%.
    shape
        "spike": all others are like the second. "stairs": they fall off evenly to half of it.

    Examples
    --------
    >>> grid = assumed_grid(12, 8, rate=0.05, lift=0.5)
    >>> round(float(grid.problem.means.mean()), 4), round(grid.problem.best_mean, 4)
    (0.05, 0.1016)
    """
    checks.one_of("shape", shape, ("spike", "stairs"))
    rows, columns = (_side(size, lift, shape) for size in (K, L))
    best = rate / (rows.mean() * columns.mean())  # the largest entry of a side is 1
    if best > 1:
        raise InputError(
            f"lift must leave the best pair a mean of at most 1, got {lift:g}: at an average of "
            f"{rate:g} it would have {best:.3g}; take a smaller lift"
        )
    return AssumedGrid(shape, lift, Bernoulli(rows * best**0.5, columns * best**0.5))


def _side(size: int, lift: float, shape: str) -> Any:
    others = np.ones(size - 1) if shape == "spike" else np.linspace(1, 0.5, size - 1)
    return np.concatenate([[1.0], others / (1 + lift)])


def assumed_grids(K: int, L: int, rate: float, lifts: Sequence[float] | None) -> list[AssumedGrid]:
    """Grids of each lift, in the shapes that have no mean above 1."""
    shapes = ("spike", "stairs") if max(K, L) > 2 else ("spike",)  # two lines have no stairs
    found: list[AssumedGrid] = []
    for lift in LIFTS if lifts is None else _checked_lifts(lifts):
        fitting, why = [], None
        for shape in shapes:
            try:
                fitting.append(assumed_grid(K, L, rate, lift, shape))
            except InputError as error:
                why = error
        if lifts is not None and not fitting and why:
            raise why
        found += fitting
    if not found:
        raise InputError(
            f"rate must leave the best pair a mean of at most 1, got {rate:g}: with a lift of "
            f"{min(LIFTS):g} it would have more; take a smaller rate, or name smaller lifts"
        )
    return found


def _checked_lifts(lifts: Sequence[float]) -> list[float]:
    try:
        given = list(lifts)
    except TypeError:
        raise InputTypeError(
            f"lifts must be a list of numbers, such as [0.2, 0.5], got {checks.shown(lifts)}"
        ) from None
    found = [checks.number("lift", lift, 0, 100, above=True) for lift in given]
    if not found:
        raise InputError("lifts must be at least one number, got none")
    for lift in found:
        if found.count(lift) > 1:
            raise InputError(f"lifts must differ from each other, got {lift:g} twice")
    return found
