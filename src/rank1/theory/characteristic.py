"""How many pulls it takes to find the best arm: the lower bound for fixed confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rank1 import checks
from rank1.divergences import kl_bernoulli
from rank1.errors import InputError, InputTypeError
from rank1.problems import Gaussian, Means, Problem, Product
from rank1.problems.base import Floats
from rank1.problems.rank_one import MAX_MEANS
from rank1.theory.bounds import cross
from rank1.theory.gaps import checked, has_unique_best_arm
from rank1.theory.kl import divergence
from rank1.theory.rank_one_time import rank_one_time

__all__ = ["STRUCTURES", "CharacteristicTime", "characteristic_time"]

#: What is known about the grid, from most to least.
STRUCTURES = ("rank_one", "unimodal", "any")
#: Relative accuracy of the numerical solution for "rank_one".
ACCURACY = 1e-5

#: Halvings of an interval of length 160 in the logarithm of a ratio of shares.
HALVINGS = 55


@dataclass(frozen=True)
class CharacteristicTime:
    """T* and the shares of pulls that attain it, from `characteristic_time`."""

    #: T*: pulls per unit of log(1/α).
    value: float
    #: By arm, with one axis per side; they add up to 1.
    shares: Floats

    def pulls(self, confidence: float = 0.95) -> float:
        """T*·log(1/α) for α = 1 − confidence."""
        confidence = checks.number("confidence", confidence, 0, 1, below=True)
        return self.value * math.log(1 / (1 - confidence))


def characteristic_time(problem: Problem, structure: str = "unimodal") -> CharacteristicTime:
    """T*: naming the best arm with error α takes at least about T*·log(1/α) pulls on average.

    1/T* = max over shares w of min over alternatives of Σ w_x·d(μ_x, μ'_x), where the alternatives
    are the grids of the same structure with another best arm. It is asymptotic in α → 0.

    Parameters
    ----------
    problem
        `Product` (also `Bernoulli` and its subclasses), with one best arm whose mean is below 1;
        `Gaussian` with one best arm, except for "rank_one"; `Means` for "any".
    structure
        What is known about the grid. "rank_one": means are products of factors. "unimodal": an arm
        that beats its neighbours, those with one level changed, is the best; TopTwo and its rule
        rely on this. "any": nothing.

    Returns
    -------
    CharacteristicTime
        With value 0 for a grid with one arm. For "rank_one" the value is a lower bound, accurate to
        10⁻⁵, and takes seconds if the levels of a side differ and there are a hundred arms.

    Notes
    -----
    "unimodal" and "any" are solved as by Garivier and Kaufmann: an alternative raises one arm b, a
    neighbour or any other, to the best arm a, at m = (w_a·μ_a + w_b·μ_b)/(w_a + w_b). With
    x = w_b/w_a the evidence against b is w_a·g_b(x), where g_b grows from 0 to d(μ_a, μ_b). At the
    optimum all g_b equal one number y, which is the zero of Σ_b d(μ_a, m_b)/d(μ_b, m_b) − 1. If all
    B arms b are equal, the best arm's share is 1/(1 + √B) for Gaussian rewards, and nearly that for
    Bernoulli ones. For "rank_one" see `rank1.theory.rank_one_time`: there, all arms give
    information on the best arm's levels.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> problem = rank1.spike(8, 8, 0.5, 0.5, 0.2, 0.2)
    >>> for structure in ("rank_one", "unimodal", "any"):
    ...     time = theory.characteristic_time(problem, structure)
    ...     print(structure, round(time.value), round(time.pulls(confidence=0.95)))
    rank_one 464 1390
    unimodal 561 1681
    any 994 2977
    >>> theory.characteristic_time(problem).shares.round(3)[:2, :3]
    array([[0.209, 0.057, 0.057],
           [0.057, 0.   , 0.   ]])

    References
    ----------
    Garivier, Kaufmann: Optimal best arm identification with fixed confidence. COLT 2016.
    https://arxiv.org/abs/1602.04589
    """
    checks.one_of("structure", structure, STRUCTURES)
    if problem.arms > MAX_MEANS:
        expected = f"one with at most {MAX_MEANS:,} arms, because every arm has a share"
        raise InputError("problem", problem, expected)
    if structure == "any":
        gaps, others = _all_gaps(problem)
    else:
        # Raises if the bound doesn't apply.
        gaps = np.concatenate([gap for gap, _ in cross(problem)])
        others = problem.grid.neighbours(problem.best_arm)
    sizes = problem.grid.sizes
    if gaps.size == 0:
        return CharacteristicTime(0.0, np.ones(sizes))
    if structure == "rank_one":
        if not isinstance(problem, Product):
            expected = "a rank1.Product or rank1.Bernoulli for the structure rank_one"
            raise InputTypeError("problem", problem, expected, "use unimodal instead")
        levels = problem.grid.levels(problem.best_arm)
        value, shares = rank_one_time(problem.factors, levels, ACCURACY)
        return CharacteristicTime(value, shares)
    value, share, ratios = _raised(problem, gaps)
    shares = np.zeros(problem.arms)
    shares[problem.best_arm], shares[others] = share, share * ratios
    return CharacteristicTime(value, shares.reshape(sizes))


def _all_gaps(problem: Problem) -> tuple[Floats, np.ndarray]:
    """The gaps of all arms except the best, and these arms."""
    checked(problem)
    if not isinstance(problem, Product | Means | Gaussian):
        expected = "a rank1.Means, rank1.Product or rank1.Gaussian problem"
        raise InputTypeError("problem", problem, expected)
    if not has_unique_best_arm(problem):
        hint = "several arms have the largest mean"
        raise InputError("problem", problem, "one with a single best arm", hint)
    if not isinstance(problem, Gaussian) and problem.best_mean == 1:
        hint = "its best arm always pays, and divergences from it are infinite"
        raise InputError("problem", problem, "one with a best mean below 1", hint)
    others = np.delete(np.arange(problem.arms), problem.best_arm)
    gaps = problem.best_mean - problem.means.ravel()[others]
    if not (gaps > 0).all():
        hint = "means are too close in double precision"
        raise InputError("problem", problem, "one with gaps above 0", hint)
    return gaps, others


def _raised(problem: Problem, gaps: Floats) -> tuple[float, float, Floats]:
    """T* if alternatives raise one of these arms; the best arm's share, and theirs over it."""
    from scipy.optimize import brentq

    best = problem.best_mean
    gaps, place = np.unique(gaps, return_inverse=True)  # equal arms are solved once
    others = best - gaps
    both = np.stack([np.full_like(others, best), others])
    own = divergence(problem)
    d = kl_bernoulli if own is None else own.of

    def middle(x: Floats) -> Floats:
        # From the gap, so that it never lies beyond either mean.
        return best - gaps * (x / (1 + x))

    def evidence(x: Floats) -> Floats:
        of_best, of_others = d(both, middle(x))
        return np.asarray(of_best + x * of_others)

    def ratios(y: float) -> Floats:
        """The x at which each g_b(x) = y, by bisection of log x."""
        low, high = np.full(gaps.shape, -80.0), np.full(gaps.shape, 80.0)
        for _ in range(HALVINGS):
            x = (low + high) / 2
            short = evidence(np.exp(x)) < y
            low, high = np.where(short, x, low), np.where(short, high, x)
        return np.exp((low + high) / 2)

    def imbalance(y: float) -> float:
        of_best, of_others = d(both, middle(ratios(y)))
        with np.errstate(divide="ignore"):
            total = (of_best / of_others)[place].sum()
            return float(1 / (1 + 1 / total)) - 0.5  # from −½ to ½, and finite

    most = float(np.min(d(np.full_like(others, best), others)))
    y = brentq(imbalance, 0.0, most, xtol=1e-15 * most, rtol=1e-13)
    x = ratios(y)[place]
    share = float(1 / (1 + x.sum()))
    return 1 / (y * share), share, x
