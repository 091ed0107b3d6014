"""How hard a problem is: the quantities that appear in the paper's bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rank1.errors import InputTypeError
from rank1.grid import two_sides
from rank1.problems import Problem, RankOne
from rank1.problems.base import Floats
from rank1.problems.rank_one import gaps_of, smallest_positive

__all__ = ["Hardness", "hardness", "has_unique_best_arm"]


@dataclass(frozen=True)
class Hardness:
    """Gaps and averages of a problem, from `hardness`."""

    #: Distances from the best level, for each side.
    gaps: tuple[Floats, ...]
    #: The smallest of the averages of the sides' factors.
    mu: float

    @property
    def min_gaps(self) -> tuple[float, ...]:
        """The smallest positive gap of each side; infinite if a side has none."""
        return tuple(map(smallest_positive, self.gaps))

    @property
    def row_gaps(self) -> Floats:
        """Δᵁ, for two sides."""
        return two_sides(self.gaps)[0]

    @property
    def column_gaps(self) -> Floats:
        """Δⱽ, for two sides."""
        return two_sides(self.gaps)[1]

    @property
    def min_row_gap(self) -> float:
        """The smallest positive row gap; infinite if there is none."""
        return two_sides(self.min_gaps)[0]

    @property
    def min_column_gap(self) -> float:
        """The smallest positive column gap; infinite if there is none."""
        return two_sides(self.min_gaps)[1]

    @property
    def barred_row_gaps(self) -> Floats:
        """Δ̄ᵁ of Theorem 1: zero gaps replaced by the smallest positive column gap."""
        return np.where(self.row_gaps == 0, self.min_column_gap, self.row_gaps)

    @property
    def barred_column_gaps(self) -> Floats:
        """Δ̄ⱽ of Theorem 1: zero gaps replaced by the smallest positive row gap."""
        return np.where(self.column_gaps == 0, self.min_row_gap, self.column_gaps)


def hardness(problem: Problem) -> Hardness:
    """The gaps, the minimum gaps, μ, and the gaps of Theorem 1, see `upper_bound`.

    If a side has no positive gap (one row, or all rows equal), its minimum gap is the minimum over
    the empty set, infinity. A barred gap that uses it is infinite, too: a row with zero gap costs
    nothing if no column costs anything.

    Parameters
    ----------
    problem
        Any problem. If it isn't a `RankOne` and so has no factors, the averages over each level's
        arms replace them.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> hard = theory.hardness(rank1.Bernoulli(u=[0.75, 0.5], v=[0.5, 0.25, 0.5]))
    >>> hard.row_gaps, hard.min_row_gap, hard.min_column_gap
    (array([0.  , 0.25]), 0.25, 0.25)
    >>> hard.barred_column_gaps     # two best columns: both get the smallest row gap
    array([0.25, 0.25, 0.25])
    >>> theory.hardness(rank1.Bernoulli(u=[0.75, 0.5], v=[0.5])).barred_row_gaps
    array([ inf, 0.25])
    """
    checked(problem)
    if isinstance(problem, RankOne):
        sides = problem.factors
    else:
        axes = range(problem.means.ndim)
        sides = [problem.means.mean(axis=tuple(e for e in axes if e != d)) for d in axes]
    return Hardness(tuple(map(gaps_of, sides)), float(min(side.mean() for side in sides)))


def has_unique_best_arm(problem: Problem) -> bool:
    """Whether a single arm has the largest mean; unlike `best_arms`, it builds no list.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> theory.has_unique_best_arm(rank1.Bernoulli([0.9, 0.5], [0.4, 0.8]))
    True
    >>> theory.has_unique_best_arm(rank1.Bernoulli([0.9, 0.5], [0.8, 0.8]))
    False
    """
    checked(problem)
    if not isinstance(problem, RankOne):
        return int((problem.means == problem.best_mean).sum()) == 1
    if problem.best_mean == 0:  # every arm is a best arm
        return problem.arms == 1
    return all(int((side == side.max()).sum()) == 1 for side in problem.factors)


def checked(problem: Problem) -> Problem:
    """Return `problem`, or raise an error if it isn't one."""
    if not isinstance(problem, Problem):
        raise InputTypeError("problem", problem, "a problem such as rank1.Bernoulli(u, v)")
    return problem
