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
from rank1.problems.hypergeometric import hypergeometric

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

    @property
    def tally_size(self) -> int:
        """Counts of each value: of this pair, then of the best one."""
        return 2 * len(self.values)

    def tally(
        self, row: int, column: int, count: int, rng: np.random.Generator, tally: Floats
    ) -> tuple[float, float]:
        """Multinomial counts of the values."""
        S = len(self.values)
        total = count_values(self.values, self.probabilities[row, column], count, rng, tally[:S])
        if row == self.best_row and column == self.best_column:
            return total, 0.0
        best = self.probabilities[self.best_row, self.best_column]
        return total, count_values(self.values, best, count, rng, tally[S:]) - total

    def split(
        self,
        row: int,
        column: int,
        count: int,
        part: int,
        rng: np.random.Generator,
        tally: Floats,
    ) -> float:
        """Multivariate hypergeometric counts."""
        if row == self.best_row and column == self.best_column:
            return 0.0
        S = len(self.values)
        own = split_counts(self.values, count, part, rng, tally[:S])
        return split_counts(self.values, count, part, rng, tally[S:]) - own


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
def count_values(
    values: Floats, probabilities: Floats, count: int, rng: np.random.Generator, counts: Floats
) -> float:
    """The sum of `count` draws; their multinomial counts are binomials one after another."""
    total = 0.0
    left = 1.0
    last = len(values) - 1
    for s in range(last):
        hits = 0
        if count > 0 and probabilities[s] > 0.0:
            hits = binomial(count, probabilities[s] / left, rng)
        counts[s] = hits
        total += hits * values[s]
        count -= hits
        left -= probabilities[s]
    counts[last] = count
    return total + count * values[last]


@jit
def split_counts(
    values: Floats, count: int, part: int, rng: np.random.Generator, counts: Floats
) -> float:
    """The sum of the first `part` of `count` draws; the others' counts remain."""
    total = 0.0
    for s in range(len(values)):
        if part == 0:
            break
        size = int(counts[s])
        hits = hypergeometric(count, size, part, rng)
        count -= size
        part -= hits
        counts[s] -= hits
        total += hits * values[s]
    return total


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
    The paper's row gaps, column gaps and μ speak of factors, which such a grid doesn't have;
    `rank1.theory.hardness` takes the averages of rows and columns in their place.

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
        self.low, self.high = float(self.values.min()), float(self.values.max())

    @cached_property
    def description(self) -> dict[str, Any]:  # type: ignore[override]
        """The grid as plain values; made when it is asked for, because it may be large."""
        settings = {"values": self.values.tolist(), "probabilities": self.probabilities.tolist()}
        return {"name": "categorical", "settings": settings}

    @property
    def given(self) -> tuple[Any, ...]:
        """The values and their probabilities, but not the means: they are computed."""
        return "CategoricalLaw", self.values, self.probabilities

    @cached_property
    def means(self) -> Floats:
        """Mean rewards, K×L."""
        return self.probabilities @ self.values

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
