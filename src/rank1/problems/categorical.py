"""A grid of laws over a few values, of any rank."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import jit
from rank1.errors import InputError, InputTypeError
from rank1.hypergeometric import hypergeometric
from rank1.problems.arms import binomial
from rank1.problems.base import AxisPerSide, Floats, Problem

__all__ = ["Categorical"]


class CategoricalLaw(NamedTuple):
    """values[s] with probability probabilities[arm, s]; arms are independent."""

    values: Floats
    probabilities: Floats
    means: Floats
    best: int
    row_twin: NDArray[np.int64]
    column_twin: NDArray[np.int64]

    def gap(self, arm: int) -> float:
        """Mean of the best arm minus that of this one."""
        return self.means[self.best] - self.means[arm]

    def draw(self, arm: int, rng: np.random.Generator) -> tuple[float, float]:
        """This arm's value, then the best arm's unless it is the same."""
        reward = self.values[pick(self.probabilities[arm], rng)]
        if arm == self.best:
            return reward, 0.0
        return reward, self.values[pick(self.probabilities[self.best], rng)] - reward

    @property
    def tally_size(self) -> int:
        """Counts of each value: for this arm, then for the best one."""
        return 2 * len(self.values)

    def tally(
        self, arm: int, count: int, rng: np.random.Generator, tally: Floats
    ) -> tuple[float, float]:
        """Multinomial counts of the values."""
        S = len(self.values)
        total = count_values(self.values, self.probabilities[arm], count, rng, tally[:S])
        if arm == self.best:
            return total, 0.0
        best = self.probabilities[self.best]
        return total, count_values(self.values, best, count, rng, tally[S:]) - total

    def split(
        self, arm: int, count: int, part: int, rng: np.random.Generator, tally: Floats
    ) -> float:
        """Multivariate hypergeometric counts."""
        if arm == self.best:
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
    """The sum of `count` draws; draws their multinomial counts as successive binomials."""
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
    """The sum of the first `part` of `count` draws; leaves the counts of the others."""
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
    """A grid of laws over a few values, such as star ratings, not necessarily of rank one.

    Parameters
    ----------
    values
        The S possible values of a reward.
    probabilities
        One axis per side and one of length S; the probabilities of each arm add up to one.

    Notes
    -----
    The paper's row gaps, column gaps and μ are about factors, which such a grid doesn't have;
    `rank1.theory.hardness` uses the averages of rows and columns instead.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.Categorical([0, 1], [[[0.9, 0.1], [0.2, 0.8]]])
    >>> problem.best_pair, problem.means
    ((0, 1), array([[0.1, 0.8]]))
    """

    def __init__(self, values: ArrayLike, probabilities: AxisPerSide) -> None:
        self.values = checks.vector("values", values, -1e15, 1e15)
        grid = _checked_grid(probabilities, len(self.values))
        self.probabilities = grid
        self.low, self.high = float(self.values.min()), float(self.values.max())

    @cached_property
    def description(self) -> dict[str, Any]:  # type: ignore[override]
        """The grid as plain values; computed lazily, because it may be large."""
        settings = {"values": self.values.tolist(), "probabilities": self.probabilities.tolist()}
        return {"name": "categorical", "settings": settings}

    @property
    def given(self) -> tuple[Any, ...]:
        """The values and their probabilities; not the means, because they are computed."""
        return "CategoricalLaw", self.values, self.probabilities

    @cached_property
    def means(self) -> Floats:
        """Mean rewards, with one axis per side."""
        return self.probabilities @ self.values

    @cached_property
    def law(self) -> CategoricalLaw:
        """The compiled form of the problem."""
        S, lines = len(self.values), [np.empty(0, np.int64)] * 2
        if self.means.ndim == 2:
            lines = [np.arange(size) for size in self.means.shape]
        flat = self.probabilities.reshape(-1, S)
        return CategoricalLaw(self.values, flat, self.means.ravel(), self.best_arm, *lines)


def _checked_grid(probabilities: AxisPerSide, size: int) -> Floats:
    expected = f"an array of numbers with one axis per side, then one of length {size}"
    try:
        grid = np.array(probabilities, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError("probabilities", probabilities, expected) from None
    if grid.ndim < 2 or grid.size == 0 or grid.shape[-1] != size:
        raise InputError("probabilities", probabilities, expected, got=f"shape {grid.shape}")
    bad = ~((grid >= 0) & (grid <= 1))
    if bad.any():
        at = tuple(int(k) for k in np.unravel_index(int(bad.argmax()), grid.shape))
        raise InputError(f"probabilities{list(at)}", float(grid[at]), "in [0, 1]")
    off = np.abs(grid.sum(axis=-1) - 1)
    if off.max() > 1e-6:
        at = tuple(int(k) for k in np.unravel_index(int(off.argmax()), off.shape))
        raise InputError(
            f"probabilities{list(at)}", float(grid[at].sum()), "numbers that add up to 1"
        )
    # Leave normalised values unchanged to the last bit, so that a saved problem stays the same.
    grid = np.where(off[..., None] > 1e-12, grid / grid.sum(axis=-1, keepdims=True), grid)
    grid.setflags(write=False)
    return grid
