"""A verdict from the same draws that assumes nothing about the grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import kernel_for
from rank1.design.shares import FIRST_PASSES, fit_factors
from rank1.design.values import Design, Floats, Ints, Totals, Version
from rank1.design.wealth import level_sums
from rank1.grid import Grid

__all__ = ["any_grid", "flat_arms", "flattened"]


def any_grid(design: Design) -> Design:
    """Return a design that assumes nothing about the chosen sides: it joins them into one side.

    The levels of that side are all combinations of their levels. Given sides come first and stay
    given: the best combination is assumed to be best whatever the given levels are.

    >>> any_grid(Design([2, 3])).sizes, any_grid(Design([2, 3, 4], given=[1])).sizes
    ((6,), (3, 8))
    """
    given = [design.sizes[side] for side in design.given]
    flat = math.prod(design.sizes[side] for side in design.chosen)
    return Design(
        Grid([*given, flat]), design.confidence, design.low, design.high,
        growth=design.growth, min_lift=design.min_lift, first=design.first,
        given=range(len(given)),
    )  # fmt: skip


def flat_arms(design: Design, arms: Ints) -> Ints:
    """Return the numbers of arms in `any_grid(design)`; they are the same if no side is given.

    >>> flat_arms(Design([2, 3], given=[1]), np.array([0, 1, 2, 3])).tolist()
    [0, 2, 4, 1]
    """
    numbers = np.arange(design.grid.arms)
    places = np.empty_like(numbers)
    places[_moved(design, numbers)] = numbers
    return places[arms]


def flattened(design: Design, version: Version, seen: Totals, sums: Floats) -> Version:
    """Convert a version to `any_grid(design)`: the share of an arm is the product of its shares.

    The arm with the largest mean leads. `seen`, and `sums` with the sum of each arm's scaled
    rewards, are for the arms of `design`. To get the verdict on any grid, fold the same draws
    under these versions, with `flat_arms` instead of the arms.
    """
    arms, given = any_grid(design), len(design.given)
    shares, living = np.ones(1), np.ones(1, np.bool_)
    for side in design.chosen:
        shares = np.multiply.outer(shares, version.shares[side]).ravel()
        living = np.multiply.outer(living, design.kept[side]).ravel()
    fit, room = np.ones((2, sum(arms.sizes)))
    counts, cells = _moved(design, seen.counts), _moved(design, sums).reshape(arms.sizes)
    for _ in range(FIRST_PASSES if given else 1):
        work = len(counts) // 8
        kernel_for(fit_factors, work=work)(arms.sides, counts, level_sums(cells), fit, room)
    split = arms.split(fit)
    leader = int(np.where(shares > 0, split[-1], -1.0).argmax()) if version.bets else -1
    placeholders = tuple(np.full(size, 1 / size) for size in arms.sizes[:-1])
    return Version(
        version.number,
        (*placeholders, shares / shares.sum()),
        (-1,) * given + (leader,),
        split,
        (*(np.ones(size, np.bool_) for size in arms.sizes[:-1]), living),
    )


def _moved(design: Design, cells: NDArray[Any]) -> NDArray[Any]:
    """Reorder values by arm into the order of `any_grid(design)`."""
    order = (*design.given, *design.chosen)
    return np.ascontiguousarray(cells.reshape(design.sizes).transpose(order)).ravel()
