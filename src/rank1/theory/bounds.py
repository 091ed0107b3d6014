"""The paper's theorems in closed form."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rank1 import checks
from rank1.errors import InputError, InputTypeError
from rank1.problems import Bernoulli, Problem, RankOne
from rank1.problems.base import Floats
from rank1.theory.gaps import checked, hardness, has_unique_best_pair
from rank1.theory.kl import divergence

__all__ = [
    "LowerBound",
    "UpperBound",
    "lower_bound",
    "lower_bound_terms",
    "upper_bound",
    "upper_bound_terms",
]


class UpperBound(NamedTuple):
    """The parts of Theorem 1; they add up to `total`."""

    #: (384/μ²)·log n·Σ 1/Δ̄ over the rows, and over the columns.
    rows: float
    columns: float
    #: 3·(K + L)
    constant: float

    @property
    def total(self) -> float:
        """The bound itself."""
        return self.rows + self.columns + self.constant


def upper_bound(problem: Problem, n: int) -> float:
    """Theorem 1: Rank1Elim's expected regret in n steps is at most this.

    R(n) ≤ (384/μ²)·(Σᵢ 1/Δ̄ᵁᵢ + Σⱼ 1/Δ̄ⱽⱼ)·log n + 3·(K + L).

    Parameters
    ----------
    problem
        A `RankOne` problem whose rewards are products of independent factors in [0, 1]: `Bernoulli`
        and its kin, or `Factors` of any law. Gaussian noise isn't bounded and a `Categorical` grid
        has no factors, so the theorem says nothing of those.
    n
        Number of steps. (The proof uses n ≥ 3; below that, 3·(K + L) alone is more than n.)

    Returns
    -------
    float
        Infinite if μ = 0. Nothing keeps it below the trivial bound, n times the largest gap.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> round(theory.upper_bound(rank1.spike(8, 8, 0.7, 0.7, 0.2, 0.2), n=2_000_000), 1)
    848002.3

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, Theorem 1.
    https://arxiv.org/abs/1608.03023
    """
    return upper_bound_terms(problem, n).total


def upper_bound_terms(problem: Problem, n: int) -> UpperBound:
    """Theorem 1 with its two sums apart.

    Parameters
    ----------
    problem, n
        As for `upper_bound`.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> terms = theory.upper_bound_terms(rank1.spike(4, 2, 0.7, 0.7, 0.2, 0.2), n=1000)
    >>> round(terms.rows, 1), round(terms.columns, 1), terms.constant
    (94313.9, 47156.9, 18.0)

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, Theorem 1.
    https://arxiv.org/abs/1608.03023
    """
    checked(problem)
    n = checks.integer("n", n, 1)
    if not isinstance(problem, RankOne):
        raise InputTypeError(
            f"problem must be a rank1.RankOne, with rewards that are products of a row's and a "
            f"column's factor, got {problem!r}, which needn't have rank one: "
            "Theorem 1 says nothing of it"
        )
    if problem.sigma > 0 or problem.low < 0 or problem.high > 1:
        raise InputTypeError(
            f"problem must have rewards in [0, 1], such as those of rank1.Bernoulli or "
            f"rank1.Factors, got {problem!r}: Theorem 1 says nothing of unbounded noise"
        )
    hard = hardness(problem)
    sums = []
    for barred in (hard.barred_row_gaps, hard.barred_column_gaps):
        if hard.mu == 0:
            sums.append(math.inf)
            continue
        with np.errstate(over="ignore"):  # a gap below 1e-308 has an infinite reciprocal
            total = float((384 / barred).sum())
        # One division after the other, because μ² may underflow to 0.
        sums.append(total / hard.mu / hard.mu * math.log(n) if n > 1 else 0.0)
    return UpperBound(sums[0], sums[1], 3.0 * (problem.K + problem.L))


class LowerBound(NamedTuple):
    """The two sums of Theorem 2 or 3, factors of log n; they add up to `total`."""

    #: What it costs to learn the best row while playing the best column, and the converse.
    rows: float
    columns: float

    @property
    def total(self) -> float:
        """The bound itself."""
        return self.rows + self.columns


def lower_bound(problem: Problem) -> float:
    """Theorems 2 and 3: a uniformly efficient algorithm's regret grows at least as this·log n.

    Σ over the other pairs of the best row and of the best column of gap/d(mean, best mean): with
    the Bernoulli divergence for Bernoulli problems (Theorem 2), with (p − q)²/(2σ²) for Gaussian
    ones (Theorem 3). The statement is about n → ∞; at a given n, regret may well lie below it.

    Parameters
    ----------
    problem
        `Bernoulli` (also `spike`, `PositionBased`, `Campaign`) or `Gaussian`, with one best pair;
        for Bernoulli rewards its mean must be below 1.

    Examples
    --------
    >>> import math, rank1
    >>> from rank1 import theory
    >>> slope = theory.lower_bound(rank1.spike(8, 8, 0.7, 0.7, 0.2, 0.2))
    >>> round(slope * math.log(2_000_000), 2)
    414.21
    >>> round(theory.lower_bound(rank1.Gaussian([0.75, 0.5], [1.0, 0.5], sigma=0.5)), 4)
    3.3333

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, Theorems 2 and 3.
    https://arxiv.org/abs/1608.03023
    """
    return lower_bound_terms(problem).total


def lower_bound_terms(problem: Problem) -> LowerBound:
    """Theorem 2 or 3 with its two sums apart.

    Parameters
    ----------
    problem
        As for `lower_bound`.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> terms = theory.lower_bound_terms(rank1.Gaussian([0.75, 0.5], [1.0, 0.5], sigma=0.5))
    >>> terms.rows, round(terms.columns, 4)
    (2.0, 1.3333)

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, Theorems 2 and 3.
    https://arxiv.org/abs/1608.03023
    """
    return LowerBound(*(float((gaps / d).sum()) for gaps, d in cross(problem)))


def cross(problem: Problem) -> list[tuple[Floats, Floats]]:
    """Gaps and divergences of the other pairs in the best column, then of those in the best row.

    Raises what a theorem requires and the problem lacks.
    """
    checked(problem)
    d = divergence(problem)
    if d is None or not isinstance(problem, RankOne):
        remedy = (
            "of other factors; rank1.Bernoulli(problem.u, problem.v) has the same means"
            if isinstance(problem, RankOne)
            else "which needn't have rank one"
        )
        raise InputTypeError(
            f"problem must be a rank1.Bernoulli (Theorem 2) or rank1.Gaussian (Theorem 3) problem, "
            f"got {problem!r}, {remedy}"
        )
    name = "Theorem 2" if isinstance(problem, Bernoulli) else "Theorem 3"
    if not has_unique_best_pair(problem):
        raise InputError(
            f"problem must have one best pair for {name}, got {problem!r}, where several pairs "
            f"have the largest mean"
        )
    if isinstance(problem, Bernoulli) and problem.best_mean == 1:
        raise InputError(
            f"problem must have a best mean below 1 for Theorem 2, got {problem!r}: its best pair "
            f"always pays, divergences from it are infinite, and regret need not grow"
        )
    row, column = problem.best_pair
    sides = []
    for side, means in (
        ("row", np.delete(problem.u, row) * problem.v[column]),
        ("column", problem.u[row] * np.delete(problem.v, column)),
    ):
        best = problem.u[row] * problem.v[column]
        divergences = d.of(means, np.full_like(means, best))
        bad = ~((divergences > 0) & (divergences < np.inf))
        if bad.any():
            at = int(bad.argmax())
            far = divergences[at] > 0
            why = "too far apart for the noise" if far else "too close to be told apart"
            raise InputError(
                f"problem must have divergences above 0 and below infinity for {name}, got "
                f"{divergences[at]} between means {means[at]} and {best} of a {side} and of the "
                f"best one: they are {why} in double precision"
            )
        sides.append((best - means, divergences))
    return sides
