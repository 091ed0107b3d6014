"""A problem with relabelled levels, for one run."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, method
from rank1.grid import Grid
from rank1.problems.arms import ArmsLaw
from rank1.problems.base import Floats, Problem, draw, gap
from rank1.problems.bernoulli import BernoulliLaw
from rank1.problems.gaussian import GaussianLaw

__all__ = ["Shuffled"]

Ints = NDArray[np.int64]

tally = method("tally")
split = method("split")


class ShuffledLaw(NamedTuple):
    """A law with relabelled arms."""

    law: Any
    order: Ints  # the law's own number of each level, one side after another
    sides: Ints  # for each side, its stride, and where its levels begin in `order`
    row_twin: Ints
    column_twin: Ints

    def gap(self, arm: int) -> float:
        """Delegate to the law."""
        return gap(self.law, own_arm(self.order, self.sides, arm))

    def draw(self, arm: int, rng: np.random.Generator) -> tuple[float, float]:
        """Delegate to the law."""
        return draw(self.law, own_arm(self.order, self.sides, arm), rng)

    @property
    def tally_size(self) -> int:
        """Delegate to the law."""
        return self.law.tally_size

    def tally(
        self, arm: int, count: int, rng: np.random.Generator, tallied: Floats
    ) -> tuple[float, float]:
        """Delegate to the law."""
        return tally(self.law, own_arm(self.order, self.sides, arm), count, rng, tallied)

    def split(
        self, arm: int, count: int, part: int, rng: np.random.Generator, tallied: Floats
    ) -> float:
        """Delegate to the law."""
        return split(self.law, own_arm(self.order, self.sides, arm), count, part, rng, tallied)


@inlined
def own_arm(order: Ints, sides: Ints, arm: int) -> int:
    """The law's own number of an arm."""
    own = 0
    for side in range(len(sides)):
        stride, begin = sides[side, 0], sides[side, 1]
        level = arm // stride
        arm -= level * stride
        own += order[begin + level] * stride
    return own


class Shuffled(Problem):
    """Another problem with the levels of each side in random order.

    If several arms look equal, many policies choose the first one. So they find the best pair of a
    spike, (0, 0), more often than in the same grid with its levels reversed. A new order in each
    run removes this advantage.

    Parameters
    ----------
    problem
        Any problem. A new order for each run costs little, even on a large grid of two factors.
    rng
        Draws the order.

    Examples
    --------
    >>> import numpy as np, rank1
    >>> problem = rank1.Bernoulli([0.9, 0.1, 0.2], [0.2, 0.1, 0.8])
    >>> shuffled = Shuffled(problem, np.random.default_rng(3))
    >>> shuffled.best_pair, problem.grid.levels(shuffled.arm(shuffled.best_arm))
    ((2, 1), (0, 2))
    """

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        self.problem = problem
        #: The problem's own number of each level, for each side.
        self.orders: list[Ints] = [rng.permutation(size) for size in problem.grid.sizes]
        self.description = problem.description
        self.sigma, self.low, self.high = problem.sigma, problem.low, problem.high
        self.block, self.binary = problem.block, problem.binary
        if problem.labels is not None:
            self.labels = [
                [names[level] for level in order]
                for names, order in zip(problem.labels, self.orders, strict=True)
            ]

    def arm(self, arm: int) -> int:
        """The problem's own number of an arm of this grid."""
        levels = zip(self.orders, self.grid.levels(arm), strict=True)
        return self.grid.arm([int(order[level]) for order, level in levels])

    def _place(self, arm: int) -> int:
        """The arm of this grid for one of the problem's own arms."""
        levels = zip(self.orders, self.grid.levels(arm), strict=True)
        return self.grid.arm([int(inverse(order)[level]) for order, level in levels])

    @cached_property
    def means(self) -> Floats:
        """Mean rewards, with one axis per side."""
        return self.problem.means[np.ix_(*self.orders)]

    # The methods below would work as in `Problem`, but they would need all means.

    @property
    def grid(self) -> Grid:
        """The problem's grid."""
        return self.problem.grid

    @cached_property
    def best_arm(self) -> int:
        """The problem's best arm in this grid; not necessarily the first, if tied."""
        return self._place(self.problem.best_arm)

    @property
    def best_arms(self) -> list[int]:
        """All arms with the largest mean, in order."""
        return sorted(map(self._place, self.problem.best_arms))

    def is_best(self, arm: int) -> bool:
        """Whether an arm is one of the best."""
        return self.problem.is_best(self.arm(arm))

    def mean(self, arm: int) -> float:
        """Mean reward of an arm."""
        return self.problem.mean(self.arm(arm))

    @property
    def best_mean(self) -> float:
        """Mean reward of the best arm."""
        return self.problem.best_mean

    @property
    def lowest_mean(self) -> float:
        """Mean reward of the worst arm."""
        return self.problem.lowest_mean

    def row_means(self, columns: Ints) -> Floats:
        """Mean reward of each row if the column is drawn uniformly from `columns`."""
        return self.problem.row_means(self.orders[1][columns])[self.orders[0]]

    def column_means(self, rows: Ints) -> Floats:
        """Mean reward of each column if the row is drawn uniformly from `rows`."""
        return self.problem.column_means(self.orders[0][rows])[self.orders[1]]

    @property
    def given(self) -> tuple[Any, ...]:
        """The problem, and the order."""
        return "Shuffled", self.problem.given, *self.orders

    @property
    def has_tallies(self) -> bool:
        """Whether the problem's law can draw many pulls at once."""
        return self.problem.has_tallies

    @property
    def law(self) -> Any:
        """The compiled form of the problem, with the type of the problem's own law if possible.

        Code compiled for that type can then be reused; random numbers are the same either way.
        """
        law = self.problem.law
        lines = [np.empty(0, np.int64)] * 2
        if len(self.orders) == 2 and self.has_tallies:
            lines = [
                inverse(order)[twin[order]]
                for order, twin in zip(self.orders, (law.row_twin, law.column_twin), strict=True)
            ]
        more: dict[str, Any] = {"row_twin": lines[0], "column_twin": lines[1]}
        fixed = self.block is None and type(self.problem).refill is Problem.refill
        if not fixed or type(law) not in (ArmsLaw, BernoulliLaw, GaussianLaw):
            strides = self.grid.strides
            begins = np.cumsum([0, *self.grid.sizes[:-1]])
            sides = np.stack([strides, begins], axis=1).astype(np.int64)
            return ShuffledLaw(law, np.concatenate(self.orders), sides, *lines)
        if isinstance(law, BernoulliLaw):
            more["best_row"], more["best_column"] = self.best_pair
        else:
            more["best"] = self.best_arm
        given = {name: getattr(law, name) for name in law._fields}
        moved = {
            name: self._moved(given[name])
            for name in ("means", "joint", "table")
            if len(given.get(name, ()))
        }
        for name, order in zip("uv", self.orders, strict=False):
            if len(given.get(name, ())):
                moved[name] = given[name][order]
        for name, array in moved.items():  # Numba has a different type for writeable arrays
            array.flags.writeable = given[name].flags.writeable
        return law._replace(**moved, **more)

    def _moved(self, values: Floats) -> Floats:
        """Values of each arm, in the order of this grid."""
        own = np.arange(self.arms).reshape(self.grid.sizes)[np.ix_(*self.orders)].ravel()
        return values[own]

    def refill(self, law: Any, rng: np.random.Generator) -> None:
        """Draw what the inner law needs for the next `block` steps."""
        if isinstance(law, ShuffledLaw):
            self.problem.refill(law.law, rng)


def inverse(order: Ints) -> Ints:
    """The inverse permutation.

    >>> inverse(np.array([2, 0, 1]))
    array([1, 2, 0])
    """
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place
