"""Grids of rank one: each mean is a row's factor times a column's."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rank1.problems.base import Floats, Problem

__all__ = ["RankOne", "gaps_of", "smallest_positive"]


class RankOne(Problem):
    """A grid of means u[i]·v[j], with the paper's gaps and averages.

    A subclass sets `u` and `v`, vectors of numbers of at least 0, in place of `means`. All else
    comes from the factors, so that grids with sides of millions cost no K×L numbers.
    """

    #: Factors of the means, ū and v̄ in the paper.
    u: Floats
    v: Floats

    @cached_property
    def means(self) -> Floats:
        """Mean rewards, K×L."""
        return np.outer(self.u, self.v)

    def means_of(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Floats:
        """Mean rewards of the pairs of some rows and some columns."""
        return np.outer(self.u[rows], self.v[columns])

    @property
    def K(self) -> int:
        """Number of rows."""
        return len(self.u)

    @property
    def L(self) -> int:
        """Number of columns."""
        return len(self.v)

    @cached_property
    def best_pair(self) -> tuple[int, int]:
        """The best pair; of several, the first in row-major order."""
        if self.best_mean == 0:  # then all pairs are equally good
            return 0, 0
        return int(self.u.argmax()), int(self.v.argmax())

    @property
    def best_pairs(self) -> list[tuple[int, int]]:
        """All pairs of the largest mean, in row-major order."""
        if self.best_mean == 0:
            return [(i, j) for i in range(self.K) for j in range(self.L)]
        rows, columns = (np.nonzero(side == side.max())[0].tolist() for side in (self.u, self.v))
        return [(i, j) for i in rows for j in columns]

    def is_best(self, row: int, column: int) -> bool:
        """Whether a pair is one of the best."""
        tops = self.u[row] == self.u.max() and self.v[column] == self.v.max()
        return bool(self.best_mean == 0 or tops)

    @property
    def best_mean(self) -> float:
        """Mean reward of the best pair."""
        return float(self.u.max() * self.v.max())

    @property
    def lowest_mean(self) -> float:
        """Mean reward of the worst pair."""
        return float(self.u.min() * self.v.min())

    def row_means(self, columns: NDArray[np.int64]) -> Floats:
        """Mean reward of each row when the column is drawn evenly from `columns`."""
        return self.u * self.v[columns].mean()

    def column_means(self, rows: NDArray[np.int64]) -> Floats:
        """Mean reward of each column when the row is drawn evenly from `rows`."""
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
