"""How hard a problem is: the quantities in which the paper's bounds are written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rank1 import checks
from rank1.errors import InputTypeError
from rank1.problems import Problem, RankOne
from rank1.problems.base import Floats
from rank1.problems.rank_one import gaps_of, smallest_positive

__all__ = ["Hardness", "hardness", "has_unique_best_pair"]


@dataclass(frozen=True)
class Hardness:
    """Gaps and averages of a problem; what `hardness` returns."""

    #: Δᵁ and Δⱽ: distances from the best row and from the best column.
    row_gaps: Floats
    column_gaps: Floats
    #: The smallest positive ones; infinite if a side has none.
    min_row_gap: float
    min_column_gap: float
    #: The smaller of the averages of ū and v̄.
    mu: float
    #: Δ̄ᵁ and Δ̄ⱽ of Theorem 1: zero gaps replaced by the other side's smallest positive gap.
    barred_row_gaps: Floats
    barred_column_gaps: Floats


def hardness(problem: Problem) -> Hardness:
    """The gaps, the minimum gaps, μ, and the gaps of Theorem 1.

    Where a side has no positive gap (one row, or all rows alike), its minimum gap is the minimum
    over the empty set, infinity. A barred gap that falls back on it is infinite too: a row of zero
    gap costs nothing if no column costs anything.

    Parameters
    ----------
    problem
        Any problem. For one that isn't a `RankOne`, and so has no factors, the averages of the
        rows and of the columns stand in their place.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> hard = theory.hardness(rank1.Bernoulli(u=[0.75, 0.5], v=[0.5, 0.25, 0.5]))
    >>> hard.row_gaps, hard.min_row_gap, hard.min_column_gap
    (array([0.  , 0.25]), 0.25, 0.25)
    >>> hard.barred_column_gaps     # two best columns: both take the smallest row gap
    array([0.25, 0.25, 0.25])
    >>> theory.hardness(rank1.Bernoulli(u=[0.75, 0.5], v=[0.5])).barred_row_gaps
    array([ inf, 0.25])

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, equations (2) to (4) and Theorem 1.
    https://arxiv.org/abs/1608.03023
    """
    checked(problem)
    if isinstance(problem, RankOne):
        u, v = problem.u, problem.v
    else:
        u = problem.row_means(np.arange(problem.L))
        v = problem.column_means(np.arange(problem.K))
    rows, columns = gaps_of(u), gaps_of(v)
    min_row, min_column = smallest_positive(rows), smallest_positive(columns)
    return Hardness(
        row_gaps=rows,
        column_gaps=columns,
        min_row_gap=min_row,
        min_column_gap=min_column,
        mu=float(min(u.mean(), v.mean())),
        barred_row_gaps=np.where(rows == 0, min_column, rows),
        barred_column_gaps=np.where(columns == 0, min_row, columns),
    )


def has_unique_best_pair(problem: Problem) -> bool:
    """Whether one pair alone has the largest mean; unlike `best_pairs`, it lists nothing.

    Parameters
    ----------
    problem
        Any problem.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> theory.has_unique_best_pair(rank1.Bernoulli([0.9, 0.5], [0.4, 0.8]))
    True
    >>> theory.has_unique_best_pair(rank1.Bernoulli([0.9, 0.5], [0.8, 0.8]))
    False
    """
    checked(problem)
    if not isinstance(problem, RankOne):
        return int((problem.means == problem.best_mean).sum()) == 1
    if problem.best_mean == 0:  # then every pair is a best pair
        return problem.K * problem.L == 1
    return all(int((side == side.max()).sum()) == 1 for side in (problem.u, problem.v))


def checked(problem: Problem) -> Problem:
    """`problem`, if it is one."""
    if not isinstance(problem, Problem):
        raise InputTypeError(
            f"problem must be a problem such as rank1.Bernoulli(u, v), got {checks.shown(problem)}"
        )
    return problem
