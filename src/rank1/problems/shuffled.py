"""A problem whose rows and columns have other numbers, for one run."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import method
from rank1.problems.base import Floats, Problem
from rank1.problems.bernoulli import BernoulliLaw
from rank1.problems.gaussian import GaussianLaw

__all__ = ["Shuffled"]

Ints = NDArray[np.int64]

draw = method("draw")
gap = method("gap")
tally = method("tally")
split = method("split")


class ShuffledLaw(NamedTuple):
    """A law under other numbers: its row rows[i] is row i here."""

    law: Any
    rows: Ints
    columns: Ints
    row_twin: Ints
    column_twin: Ints

    def gap(self, row: int, column: int) -> float:
        """As the law within."""
        return gap(self.law, self.rows[row], self.columns[column])

    def draw(self, row: int, column: int, rng: np.random.Generator) -> tuple[float, float]:
        """As the law within."""
        return draw(self.law, self.rows[row], self.columns[column], rng)

    @property
    def tally_size(self) -> int:
        """As the law within."""
        return self.law.tally_size

    def tally(
        self, row: int, column: int, count: int, rng: np.random.Generator, tallied: Floats
    ) -> tuple[float, float]:
        """As the law within."""
        return tally(self.law, self.rows[row], self.columns[column], count, rng, tallied)

    def split(
        self,
        row: int,
        column: int,
        count: int,
        part: int,
        rng: np.random.Generator,
        tallied: Floats,
    ) -> float:
        """As the law within."""
        return split(self.law, self.rows[row], self.columns[column], count, part, rng, tallied)


class Shuffled(Problem):
    """Another problem with its rows and columns in random order.

    Where several pairs look alike, many policies take the first one. So they find the best pair of
    a spike, (0, 0), more often than that of the same grid turned round. With a new order in each
    run they can't.

    Parameters
    ----------
    problem
        Any problem. Nothing of size K×L is copied, so that a new order for each run costs little.
    rng
        Draws the order.

    Examples
    --------
    >>> import numpy as np, rank1
    >>> problem = rank1.Bernoulli([0.9, 0.1, 0.2], [0.2, 0.1, 0.8])
    >>> shuffled = Shuffled(problem, np.random.default_rng(3))
    >>> shuffled.best_pair, shuffled.pair(*shuffled.best_pair)
    ((2, 1), (0, 2))
    """

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        self.problem = problem
        #: The problem's own number of each row and of each column.
        self.rows: Ints = rng.permutation(problem.K)
        self.columns: Ints = rng.permutation(problem.L)
        self.description = problem.description
        self.sigma, self.low, self.high = problem.sigma, problem.low, problem.high
        self.block = problem.block
        if problem.row_labels is not None and problem.column_labels is not None:
            self.row_labels = [problem.row_labels[i] for i in self.rows]
            self.column_labels = [problem.column_labels[j] for j in self.columns]

    def pair(self, row: int, column: int) -> tuple[int, int]:
        """A pair of this grid by the problem's own numbers."""
        return int(self.rows[row]), int(self.columns[column])

    @cached_property
    def means(self) -> Floats:
        """Mean rewards, K×L."""
        return self.problem.means[np.ix_(self.rows, self.columns)]

    # What follows would do as it stands in `Problem`, but not without K×L means.

    @property
    def K(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def L(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @cached_property
    def best_pair(self) -> tuple[int, int]:
        """Where the problem's best pair is here. Of several it needn't be the first one."""
        row, column = self.problem.best_pair
        return int(inverse(self.rows)[row]), int(inverse(self.columns)[column])

    @property
    def best_pairs(self) -> list[tuple[int, int]]:
        """All pairs of the largest mean, in row-major order."""
        rows, columns = inverse(self.rows).tolist(), inverse(self.columns).tolist()
        return sorted((rows[i], columns[j]) for i, j in self.problem.best_pairs)

    def is_best(self, row: int, column: int) -> bool:
        """Whether a pair is one of the best."""
        return self.problem.is_best(*self.pair(row, column))

    @property
    def best_mean(self) -> float:
        """Mean reward of the best pair."""
        return self.problem.best_mean

    @property
    def lowest_mean(self) -> float:
        """Mean reward of the worst pair."""
        return self.problem.lowest_mean

    def row_means(self, columns: Ints) -> Floats:
        """Mean reward of each row when the column is drawn evenly from `columns`."""
        return self.problem.row_means(self.columns[columns])[self.rows]

    def column_means(self, rows: Ints) -> Floats:
        """Mean reward of each column when the row is drawn evenly from `rows`."""
        return self.problem.column_means(self.rows[rows])[self.columns]

    @property
    def given(self) -> tuple[Any, ...]:
        """The problem, and the order."""
        return "Shuffled", self.problem.given, self.rows, self.columns

    @property
    def has_tallies(self) -> bool:
        """As the problem."""
        return self.problem.has_tallies

    @property
    def law(self) -> Any:
        """The compiled side of the problem: of its own type where all that it has is two factors.

        What is compiled for the problem will do then; the random numbers are the same either way.
        """
        law = self.problem.law
        twins = [np.empty(0, np.int64)] * 2
        if self.has_tallies:
            twins = [
                inverse(self.rows)[law.row_twin[self.rows]],
                inverse(self.columns)[law.column_twin[self.columns]],
            ]
        fixed = self.block is None and type(self.problem).refill is Problem.refill
        if not fixed or type(law) not in (BernoulliLaw, GaussianLaw):
            return ShuffledLaw(law, self.rows, self.columns, *twins)
        u, v = law.u[self.rows], law.v[self.columns]
        for new, old in ((u, law.u), (v, law.v)):  # what may be written to is of another type
            new.flags.writeable = old.flags.writeable
        return law._replace(
            u=u,
            v=v,
            best_row=int(inverse(self.rows)[law.best_row]),
            best_column=int(inverse(self.columns)[law.best_column]),
            row_twin=twins[0],
            column_twin=twins[1],
        )

    def refill(self, law: Any, rng: np.random.Generator) -> None:
        """Draw what the law within needs for the next `block` steps."""
        if isinstance(law, ShuffledLaw):
            self.problem.refill(law.law, rng)


def inverse(order: Ints) -> Ints:
    """Where each line is.

    >>> inverse(np.array([2, 0, 1]))
    array([1, 2, 0])
    """
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place
