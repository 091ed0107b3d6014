"""Kullback–Leibler divergences d(p, q) between rewards of means p and q."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from rank1 import checks
from rank1.problems import Bernoulli, Gaussian, Problem
from rank1.problems.base import Floats

__all__ = ["Divergence", "divergence", "kl_bernoulli", "kl_gaussian"]

#: Below this |x|, x − log(1 + x) is summed as a series, because the difference cancels.
SERIES_BELOW = 0.3
#: Its terms: |x| ≤ 0.3 means s² ≤ 0.032 in `_one_outcome`, and 0.032¹¹ is below rounding.
SERIES_TERMS = 11


@overload
def kl_bernoulli(p: float, q: float) -> float: ...
@overload
def kl_bernoulli(p: ArrayLike, q: ArrayLike) -> Floats: ...
def kl_bernoulli(p: ArrayLike, q: ArrayLike) -> float | Floats:
    """d(p, q) = p·log(p/q) + (1 − p)·log((1 − p)/(1 − q)), between Bernoulli laws.

    Accurate to a few units in the last place also where p and q nearly agree, where the two
    logarithms all but cancel. With 0·log 0 = 0, d(0, 0) = d(1, 1) = 0; d(p, 0) and d(p, 1) are
    otherwise infinite.

    Parameters
    ----------
    p, q
        Means in [0, 1], single numbers or arrays of shapes that go together.

    Examples
    --------
    >>> from rank1 import theory
    >>> round(theory.kl_bernoulli(0.63, 0.81), 6)
    0.088269
    >>> round(theory.kl_bernoulli(0.5, 0.5 + 2**-40) / 2**-79, 12)  # to leading order 2·(q − p)²
    1.0
    >>> theory.kl_bernoulli([0.0, 1.0, 0.5], 1.0)
    array([inf,  0., inf])

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, Theorem 2.
    """
    p, q = _mean("p", p), _mean("q", q)
    delta = q - p
    # Both outcomes' terms are non-negative, and the ±delta in them cancel exactly.
    total = _one_outcome(p, q, delta) + _one_outcome(1 - p, 1 - q, -delta)
    return total if total.ndim else float(total)


@overload
def kl_gaussian(p: float, q: float, sigma: float) -> float: ...
@overload
def kl_gaussian(p: ArrayLike, q: ArrayLike, sigma: float) -> Floats: ...
def kl_gaussian(p: ArrayLike, q: ArrayLike, sigma: float) -> float | Floats:
    """d(p, q) = (p − q)²/(2·sigma²), between normal laws of one variance.

    Parameters
    ----------
    p, q
        Means, single numbers or arrays of shapes that go together.
    sigma
        The common standard deviation, above 0.

    Examples
    --------
    >>> from rank1 import theory
    >>> theory.kl_gaussian(0.25, 0.75, sigma=0.5)
    0.5

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, Theorem 3.
    """
    sigma = checks.number("sigma", sigma, 0, above=True)
    with np.errstate(over="ignore"):  # a divergence may be infinite
        scaled = (np.asarray(p, dtype=np.float64) - np.asarray(q, dtype=np.float64)) / sigma
        total = np.asarray(scaled * scaled / 2)
    return total if total.ndim else float(total)


class Divergence(NamedTuple):
    """The divergence of a problem's rewards, and its derivative in the second mean."""

    of: Callable[[Any, Any], Any]
    slope: Callable[[Any, Any], Any]


def divergence(problem: Problem) -> Divergence | None:
    """The divergence by which a problem's lower bound is measured; None where there is no theorem.

    Parameters
    ----------
    problem
        Bernoulli (Theorem 2) or Gaussian (Theorem 3); anything else gives None.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> theory.divergence(rank1.Gaussian([0.9, 0.5], [0.8], sigma=0.5)).of(0.25, 0.75)
    0.5
    """
    if isinstance(problem, Bernoulli):
        return Divergence(kl_bernoulli, _slope_bernoulli)
    if isinstance(problem, Gaussian):
        sigma = problem.sigma
        return Divergence(
            lambda p, q: kl_gaussian(p, q, sigma),
            lambda p, q: (q - p) / sigma**2,
        )
    return None


def _slope_bernoulli(p: Any, q: Any) -> Any:
    # (q − p)/(q·(1 − q)); in this form its sign is right to the last bit, and p = q = 0 is a limit.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0, (q - p) / (q * (1 - q)), 1 / (1 - q))


def _mean(name: str, value: ArrayLike) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    bad = ~((array >= 0) & (array <= 1))  # catches NaN too
    if bad.any():
        raise ValueError(f"{name} must be a mean in [0, 1], got {array[bad].flat[0]}")
    return array


def _one_outcome(p: Floats, q: Floats, delta: Floats) -> Floats:
    """p·log(p/q) + delta for delta = q − p, which is p·(x − log(1 + x)) with x = delta/p."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        x = delta / p
        # log(1 + x) = 2·artanh(s), so x − log(1 + x) = s·x − 2·(s³/3 + s⁵/5 + …).
        s = x / (2 + x)
        tail = np.polynomial.polynomial.polyval(s * s, _COEFFICIENTS)
        near = p * s * (x - 2 * s * s * tail)
        ratio = p / q
        usable = (ratio > 0) & (ratio < np.inf)
        logarithm = np.where(usable, np.log(ratio), np.log(p) - np.log(q))
        far = p * logarithm + delta
    return np.where(p == 0, delta, np.where(np.abs(x) <= SERIES_BELOW, near, far))


_COEFFICIENTS = 1.0 / np.arange(3, 3 + 2 * SERIES_TERMS, 2)
