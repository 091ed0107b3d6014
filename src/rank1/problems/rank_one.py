"""Grids of rank one: each mean is a product of factors, one per side."""

from __future__ import annotations

import functools
import math
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from rank1.errors import InputError
from rank1.grid import Grid, two_sides
from rank1.problems.base import Floats, Problem

__all__ = ["MAX_TABLE", "RankOne", "gaps_of", "smallest_positive"]

#: The largest number of means to compute: more would fill 2 GB.
MAX_MEANS = 2**28
#: Up to this many arms, a table saves the loop from computing rows and columns.
MAX_TABLE = 2**14


class RankOne(Problem):
    """A grid whose means are products, with the paper's gaps and averages for two sides.

    A subclass sets `factors`, one vector of nonnegative numbers per side, instead of `means`.
    Everything else is computed from the factors, so sides with millions of levels need no K×L
    array.
    """

    #: Factors of the means, one vector per side.
    factors: list[Floats]

    @cached_property
    def means(self) -> Floats:
        """Mean rewards, with one axis per side."""
        if self.grid.arms > MAX_MEANS:
            raise InputError(
                "sides", self.grid.sizes, f"small enough for {MAX_MEANS:,} arms",
                "the mean of every arm is needed", got=f"{self.grid.arms:,} ({self.grid})",
            )  # fmt: skip
        return functools.reduce(np.multiply.outer, self.factors)

    @property
    def u(self) -> Floats:
        """Factors of the rows, for a grid with two sides: ū in the paper."""
        return two_sides(self.factors)[0]

    @property
    def v(self) -> Floats:
        """Factors of the columns, for a grid with two sides: v̄ in the paper."""
        return two_sides(self.factors)[1]

    def means_of(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Floats:
        """Mean rewards of all pairs of some rows and some columns."""
        return np.outer(self.u[rows], self.v[columns])

    @cached_property
    def grid(self) -> Grid:
        """The sides."""
        return Grid([len(side) for side in self.factors])

    @cached_property
    def best_arm(self) -> int:
        """The best arm; the lowest, if tied."""
        if self.best_mean == 0:  # all arms are equally good
            return 0
        return self.grid.arm([int(side.argmax()) for side in self.factors])

    @property
    def best_arms(self) -> list[int]:
        """All arms with the largest mean, in order."""
        if self.best_mean == 0:
            return list(range(self.arms))
        tops = [np.nonzero(side == side.max())[0].tolist() for side in self.factors]
        return [self.grid.arm(levels) for levels in product(*tops)]

    def is_best(self, arm: int) -> bool:
        """Whether an arm is one of the best."""
        levels = zip(self.factors, self.grid.levels(arm), strict=True)
        return bool(self.best_mean == 0 or all(side[k] == side.max() for side, k in levels))

    def mean(self, arm: int) -> float:
        """Mean reward of an arm."""
        levels = zip(self.factors, self.grid.levels(arm), strict=True)
        return math.prod(float(side[level]) for side, level in levels)

    @property
    def best_mean(self) -> float:
        """Mean reward of the best arm."""
        return math.prod(float(side.max()) for side in self.factors)

    @property
    def lowest_mean(self) -> float:
        """Mean reward of the worst arm."""
        return math.prod(float(side.min()) for side in self.factors)

    def row_means(self, columns: NDArray[np.int64]) -> Floats:
        """Mean reward of each row if the column is drawn uniformly from `columns`."""
        return self.u * self.v[columns].mean()

    def column_means(self, rows: NDArray[np.int64]) -> Floats:
        """Mean reward of each column if the row is drawn uniformly from `rows`."""
        return self.v * self.u[rows].mean()

    @property
    def row_gaps(self) -> Floats:
        """Δᵁᵢ = ū(i*) − ū(i)."""
        return gaps_of(self.u)

    @property
    def column_gaps(self) -> Floats:
        """Δⱽⱼ = v̄(j*) − v̄(j)."""
        return gaps_of(self.v)

    @property
    def min_row_gap(self) -> float:
        """The smallest positive row gap; infinite if there is none."""
        return smallest_positive(self.row_gaps)

    @property
    def min_column_gap(self) -> float:
        """The smallest positive column gap; infinite if there is none."""
        return smallest_positive(self.column_gaps)

    @property
    def mu(self) -> float:
        """μ, the smaller of the averages of ū and v̄."""
        return float(min(self.u.mean(), self.v.mean()))


def gaps_of(side: Floats) -> Floats:
    """Distances from the largest.

    >>> gaps_of(np.array([0.25, 0.75]))
    array([0.5, 0. ])
    """
    return side.max() - side


def smallest_positive(gaps: Floats) -> float:
    """The smallest positive gap; infinite if there is none.

    >>> smallest_positive(np.array([0.5, 0.0]))
    0.5
    """
    positive = gaps[gaps > 0]
    return float(positive.min()) if positive.size else math.inf
