"""Any grid of laws over a few values, of any rank."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import jit
from rank1.errors import InputError, InputTypeError
from rank1.problems.base import Floats, Problem
from rank1.problems.bernoulli import binomial

__all__ = ["Categorical"]


class CategoricalLaw(NamedTuple):
    """values[s] with probability probabilities[row, column, s]; pairs share nothing."""

    values: Floats
    probabilities: Floats
    means: Floats
    best_row: int
    best_column: int
    row_twin: NDArray[np.int64]
    column_twin: NDArray[np.int64]

    def gap(self, row: int, column: int) -> float:
        """Mean of the best pair less that of this one."""
        return self.means[self.best_row, self.best_column] - self.means[row, column]

    def draw(self, row: int, column: int, rng: np.random.Generator) -> tuple[float, float]:
        """This pair's value, then the best pair's unless it is the same."""
        reward = self.values[pick(self.probabilities[row, column], rng)]
        if row == self.best_row and column == self.best_column:
            return reward, 0.0
        best = self.probabilities[self.best_row, self.best_column]
        return reward, self.values[pick(best, rng)] - reward

    def draw_many(
        self, row: int, column: int, count: int, rng: np.random.Generator
    ) -> tuple[float, float]:
        """Multinomial counts of the values."""
        total = sum_of(self.values, self.probabilities[row, column], count, rng)
        if row == self.best_row and column == self.best_column:
            return total, 0.0
        best = self.probabilities[self.best_row, self.best_column]
        return total, sum_of(self.values, best, count, rng) - total


@jit
def pick(probabilities: Floats, rng: np.random.Generator) -> int:
    """An index, drawn by inverting the distribution function."""
    x = rng.random()
    last = len(probabilities) - 1
    for s in range(last):
        x -= probabilities[s]
        if x < 0.0:
            return s
    while probabilities[last] == 0.0:  # rounding must not give an impossible value
        last -= 1
    return last


@jit
def sum_of(values: Floats, probabilities: Floats, count: int, rng: np.random.Generator) -> float:
    """The sum of `count` draws: a multinomial, as binomials one value after another."""
    total = 0.0
    left = 1.0
    for s in range(len(values) - 1):
        if count == 0:
            return total
        hits = binomial(count, probabilities[s] / left, rng) if probabilities[s] > 0.0 else 0
        total += hits * values[s]
        count -= hits
        left -= probabilities[s]
    return total + count * values[-1]


class Categorical(Problem):
    """A K×L grid of laws over a few values, such as star ratings. It need not have rank one.

    Parameters
    ----------
    values
        The S values that a reward may take.
    probabilities
        K×L×S; each pair's probabilities add up to one.

    Notes
    -----
    The paper's row gaps, column gaps and μ speak of factors, which such a grid doesn't have. Here
    `u` and `v` are the row and the column averages of the means: what exploring a row over random
    columns sees. The best pair is that of the largest mean.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.Categorical([0, 1], [[[0.9, 0.1], [0.2, 0.8]]])
    >>> problem.best_pair, problem.means
    ((0, 1), array([[0.1, 0.8]]))
    """

    def __init__(self, values: ArrayLike, probabilities: ArrayLike) -> None:
        self.values = checks.vector("values", values, -1e15, 1e15)
        grid = _checked_grid(probabilities, len(self.values))
        self.probabilities = grid
        self.u, self.v = self.means.mean(axis=1), self.means.mean(axis=0)
        self.low, self.high = float(self.values.min()), float(self.values.max())

    @cached_property
    def description(self) -> dict[str, Any]:  # type: ignore[override]
        """The grid as plain values; made when it is asked for, because it may be large."""
        settings = {"values": self.values.tolist(), "probabilities": self.probabilities.tolist()}
        return {"name": "categorical", "settings": settings}

    @property
    def given(self) -> tuple[str | Floats, ...]:
        """The values and their probabilities."""
        return "CategoricalLaw", self.values, self.probabilities

    def is_best(self, row: int, column: int) -> bool:
        """Whether a pair is one of the best."""
        return bool(self.means[row, column] == self.best_mean)

    @cached_property
    def means(self) -> Floats:
        """Mean rewards, K×L."""
        return self.probabilities @ self.values

    @cached_property
    def best_pair(self) -> tuple[int, int]:
        """The pair of the largest mean; of several, the first in row-major order."""
        row, column = np.unravel_index(int(self.means.argmax()), self.means.shape)
        return int(row), int(column)

    @property
    def best_pairs(self) -> list[tuple[int, int]]:
        """All pairs of the largest mean, in row-major order."""
        rows, columns = np.nonzero(self.means == self.best_mean)
        return list(zip(rows.tolist(), columns.tolist(), strict=True))

    @property
    def best_mean(self) -> float:
        """Mean reward of the best pair."""
        return float(self.means.max())

    @property
    def lowest_mean(self) -> float:
        """Mean reward of the worst pair."""
        return float(self.means.min())

    def row_means(self, columns: NDArray[np.int64]) -> Floats:
        """Mean reward of each row when the column is drawn evenly from `columns`."""
        return self.means[:, columns].mean(axis=1)

    def column_means(self, rows: NDArray[np.int64]) -> Floats:
        """Mean reward of each column when the row is drawn evenly from `rows`."""
        return self.means[rows].mean(axis=0)

    @cached_property
    def law(self) -> CategoricalLaw:
        """The compiled side of the problem."""
        return CategoricalLaw(
            self.values,
            self.probabilities,
            self.means,
            *self.best_pair,
            np.arange(self.K),
            np.arange(self.L),
        )


def _checked_grid(probabilities: ArrayLike, size: int) -> Floats:
    try:
        grid = np.array(probabilities, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"probabilities must be a K×L×{size} array of numbers, "
            f"got {checks.shown(probabilities)}"
        ) from None
    if grid.ndim != 3 or grid.size == 0 or grid.shape[2] != size:
        raise InputError(
            f"probabilities must have shape (K, L, {size}), one per value; got shape {grid.shape}"
        )
    bad = ~((grid >= 0) & (grid <= 1))
    if bad.any():
        at = tuple(int(k) for k in np.unravel_index(int(bad.argmax()), grid.shape))
        raise InputError(f"probabilities{list(at)} must be in [0, 1], got {grid[at]}")
    off = np.abs(grid.sum(axis=2) - 1)
    if off.max() > 1e-6:
        row, column = np.unravel_index(int(off.argmax()), off.shape)
        raise InputError(
            f"probabilities[{row}, {column}] must add up to 1, got {grid[row, column].sum()}"
        )
    # What is normalised stays as it is to the last bit, so that a saved problem is the same again.
    grid = np.where(off[:, :, None] > 1e-12, grid / grid.sum(axis=2, keepdims=True), grid)
    grid.setflags(write=False)
    return grid
