"""The paper's theorems in closed form."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rank1 import checks
from rank1.errors import InputError, InputTypeError
from rank1.problems import Problem, Product, RankOne
from rank1.problems.base import Floats
from rank1.theory.gaps import checked, hardness, has_unique_best_arm
from rank1.theory.kl import divergence

__all__ = [
    "LowerBound",
    "UpperBound",
    "lower_bound",
    "lower_bound_terms",
    "unimodal_bound",
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
    """Theorem 1: an upper bound on Rank1Elim's expected regret in n steps.

    R(n) ≤ (384/μ²)·(Σᵢ 1/Δ̄ᵁᵢ + Σⱼ 1/Δ̄ⱽⱼ)·log n + 3·(K + L).

    Parameters
    ----------
    problem
        A `RankOne` problem whose rewards are products of independent factors in [0, 1]: `Bernoulli`
        and its subclasses, or `Factors` with any law. The theorem doesn't cover Gaussian noise,
        which is unbounded, nor a `Categorical` grid, which has no factors.
    n
        Number of steps. (The proof uses n ≥ 3; below that, 3·(K + L) alone is more than n.)

    Returns
    -------
    float
        Infinite if μ = 0. It may exceed the trivial bound, n times the largest gap.

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
    """`upper_bound` with its two sums separated.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> terms = theory.upper_bound_terms(rank1.spike(4, 2, 0.7, 0.7, 0.2, 0.2), n=1000)
    >>> round(terms.rows, 1), round(terms.columns, 1), terms.constant
    (94313.9, 47156.9, 18.0)
    """
    checked(problem)
    n = checks.integer("n", n, 1)
    if not isinstance(problem, RankOne):
        raise InputTypeError(
            "problem",
            problem,
            "a rank1.RankOne, with rewards that are products of a row's and a column's factor",
            "Theorem 1 doesn't cover grids that may not have rank one",
        )
    _require_two_sides(problem, "Theorem 1")
    if problem.sigma > 0 or problem.low < 0 or problem.high > 1:
        raise InputTypeError(
            "problem",
            problem,
            "one with rewards in [0, 1], such as rank1.Bernoulli or rank1.Factors",
            "Theorem 1 doesn't cover unbounded noise",
        )
    hard = hardness(problem)
    sums = []
    for barred in (hard.barred_row_gaps, hard.barred_column_gaps):
        if hard.mu == 0:
            sums.append(math.inf)
            continue
        with np.errstate(over="ignore"):  # a gap below 1e-308 has an infinite reciprocal
            total = float((384 / barred).sum())
        # Divide twice, because μ² may underflow to 0.
        sums.append(total / hard.mu / hard.mu * math.log(n) if n > 1 else 0.0)
    return UpperBound(sums[0], sums[1], 3.0 * (problem.K + problem.L))


class LowerBound(NamedTuple):
    """The two sums of Theorem 2 or 3, factors of log n; they add up to `total`."""

    #: The cost of learning the best row while playing the best column, and vice versa.
    rows: float
    columns: float

    @property
    def total(self) -> float:
        """The bound itself."""
        return self.rows + self.columns


def lower_bound(problem: Problem) -> float:
    """Theorems 2 and 3: a lower bound on regret, as a factor of log n.

    It holds for every uniformly efficient algorithm, for n → ∞; at a given n, regret may lie below
    it. The factor is the sum of gap/d(mean, best mean) over the other pairs of the best row and the
    best column, where d is the Bernoulli divergence for Bernoulli problems (Theorem 2) and
    (p − q)²/(2σ²) for Gaussian ones (Theorem 3).

    Parameters
    ----------
    problem
        `Bernoulli` (also `spike`, `PositionBased`, `Campaign`) or `Gaussian` with two sides and one
        best pair; for Bernoulli rewards its mean must be below 1.

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
    """`lower_bound` with its two sums separated.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> terms = theory.lower_bound_terms(rank1.Gaussian([0.75, 0.5], [1.0, 0.5], sigma=0.5))
    >>> terms.rows, round(terms.columns, 4)
    (2.0, 1.3333)
    """
    sides = cross(problem)
    _require_two_sides(problem, _theorem(problem))
    return LowerBound(*(float((gaps / d).sum()) for gaps, d in sides))


def unimodal_bound(problem: Problem) -> float:
    """The factor of log n in the regret of unimodal bandits, for any number of sides.

    The sum of gap/d(mean, best mean) over the neighbours of the best arm, which differ from it in
    one level. OSUB and UTS attain it on grids where every other arm has a better neighbour, such as
    grids of rank one in which all sides but one have strictly positive factors. For two sides it
    equals `lower_bound`.

    Parameters
    ----------
    problem
        `Product` (also `Bernoulli` and its subclasses) or `Gaussian`, with one best arm; for
        Bernoulli rewards its mean must be below 1.

    Notes
    -----
    It is a lower bound for rank one, too: the value that `relaxed` and `graves_lai` compute, for D
    sides as for two. Let arm x have factors r_d times the best ones, and so the mean g·μ*,
    g = ∏ r_d. One pull of x gives at most (g/r_d)·d(r_d·μ*, μ*) of information on its level of side
    d, because d(r·a, a)/a grows with a. At the neighbours' prices, μ*·(1 − r_d)/d(r_d·μ*, μ*), this
    is worth at most μ*·Σ_d (1 − r_d)·∏_{e≠d} r_e ≤ μ*·(1 − g), the regret of the pull. So nothing
    is cheaper than playing the neighbours.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> round(theory.unimodal_bound(rank1.Product([[0.8] + [0.6] * 4] * 3)), 3)
    46.523

    References
    ----------
    Combes, Proutiere: Unimodal Bandits: Regret Lower Bounds and Optimal Algorithms. ICML 2014.
    https://arxiv.org/abs/1405.5096
    """
    return sum(float((gaps / d).sum()) for gaps, d in cross(problem))


def cross(problem: Problem) -> list[tuple[Floats, Floats]]:
    """Gaps and divergences of the best arm's neighbours, for each side on which they differ.

    Raises an error if a theorem's requirements don't hold for the problem.
    """
    checked(problem)
    d = divergence(problem)
    if d is None or not isinstance(problem, RankOne):
        raise InputTypeError(
            "problem",
            problem,
            "a rank1.Product or rank1.Bernoulli (Theorem 2) or rank1.Gaussian (Theorem 3) problem",
            "rank1.Product(problem.factors) has the same means"
            if isinstance(problem, RankOne)
            else "a grid that may not have rank one is not covered",
        )
    name = _theorem(problem)
    if not has_unique_best_arm(problem):
        asked = f"one with a single best arm for {name}"
        raise InputError("problem", problem, asked, "several arms have the largest mean")
    if isinstance(problem, Product) and problem.best_mean == 1:
        raise InputError(
            "problem",
            problem,
            "one with a best mean below 1 for Theorem 2",
            "its best arm always pays, divergences from it are infinite, and regret need not grow",
        )
    levels = problem.grid.levels(problem.best_arm)
    tops = [float(side[level]) for side, level in zip(problem.factors, levels, strict=True)]
    best, sides = math.prod(tops), []
    for number, (factors, level) in enumerate(zip(problem.factors, levels, strict=True)):
        others = math.prod(top for side, top in enumerate(tops) if side != number)
        means = np.delete(factors, level) * others
        divergences = d.of(means, np.full_like(means, best))
        bad = ~((divergences > 0) & (divergences < np.inf))
        if bad.any():
            at = int(bad.argmax())
            far = divergences[at] > 0
            why = "too far apart for the noise" if far else "too close to distinguish"
            raise InputError(
                "problem",
                problem,
                f"one with divergences above 0 and below infinity for {name}",
                f"means {means[at]} and {best}, of a level of side {number} and of its best level, "
                f"are {why} in double precision",
                got=f"{divergences[at]}",
            )
        sides.append((best - means, divergences))
    return sides


def _theorem(problem: Problem) -> str:
    return "Theorem 2" if isinstance(problem, Product) else "Theorem 3"


def _require_two_sides(problem: Problem, theorem: str) -> None:
    grid = problem.grid
    if len(grid.sizes) != 2:
        raise InputError(
            "sides",
            grid.sizes,
            f"2 for {theorem}",
            "theory.unimodal_bound is for any number of sides",
            got=f"{len(grid.sizes)} ({grid})",
        )
