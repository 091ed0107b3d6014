"""Kullback–Leibler divergences d(p, q) between rewards with means p and q, and KL intervals."""

from __future__ import annotations

import math
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import jit
from rank1.errors import InputError

__all__ = ["kl", "kl_bernoulli", "kl_gaussian", "kl_level", "kl_upper"]

Floats = NDArray[np.float64]

#: Below this |x|, x − log(1 + x) is computed as a series, to avoid cancellation.
SERIES_BELOW = 0.3
#: The number of terms: |x| ≤ 0.3 means s² ≤ 0.032 in `_one_outcome`, and 0.032¹¹ is negligible.
SERIES_TERMS = 11


@overload
def kl_bernoulli(p: float, q: float) -> float: ...
@overload
def kl_bernoulli(p: ArrayLike, q: ArrayLike) -> Floats: ...
def kl_bernoulli(p: ArrayLike, q: ArrayLike) -> float | Floats:
    """d(p, q) = p·log(p/q) + (1 − p)·log((1 − p)/(1 − q)), between Bernoulli laws.

    Accurate to a few units in the last place, even if p and q are nearly equal and the two
    logarithms almost cancel. With 0·log 0 = 0, d(0, 0) = d(1, 1) = 0; otherwise d(p, 0) and d(p, 1)
    are infinite.

    Parameters
    ----------
    p, q
        Means in [0, 1], single numbers or arrays whose shapes broadcast.

    Examples
    --------
    >>> from rank1 import theory
    >>> round(theory.kl_bernoulli(0.63, 0.81), 6)
    0.088269
    >>> round(theory.kl_bernoulli(0.5, 0.5 + 2**-40) / 2**-79, 12)  # 2·(q − p)² to leading order
    1.0
    >>> theory.kl_bernoulli([0.0, 1.0, 0.5], 1.0)
    array([inf,  0., inf])

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, Theorem 2.
    https://arxiv.org/abs/1608.03023
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
    """d(p, q) = (p − q)²/(2·sigma²), between normal laws with the same variance.

    Parameters
    ----------
    p, q
        Means, single numbers or arrays whose shapes broadcast.
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
    https://arxiv.org/abs/1608.03023
    """
    sigma = checks.number("sigma", sigma, 0, above=True)
    with np.errstate(over="ignore"):  # a divergence may be infinite
        scaled = (np.asarray(p, dtype=np.float64) - np.asarray(q, dtype=np.float64)) / sigma
        total = np.asarray(scaled * scaled / 2)
    return total if total.ndim else float(total)


def _mean(name: str, value: ArrayLike) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    bad = ~((array >= 0) & (array <= 1))  # catches NaN too
    if bad.any():
        raise InputError(name, float(array[bad].flat[0]), "a mean in [0, 1]")
    return array


def _one_outcome(p: Floats, q: Floats, delta: Floats) -> Floats:
    """p·log(p/q) + delta for delta = q − p, which is p·(x − log(1 + x)) with x = delta/p."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        x = delta / p
        close = np.abs(x) <= SERIES_BELOW
        near = far = delta
        if close.any():
            # log(1 + x) = 2·artanh(s), so x − log(1 + x) = s·x − 2·(s³/3 + s⁵/5 + …).
            s = x / (2 + x)
            square: Floats = s * s
            tail = _COEFFICIENTS[-1] * square + _COEFFICIENTS[-2]
            for coefficient in _COEFFICIENTS[-3::-1]:
                tail = tail * square + coefficient
            near = p * s * (x - 2 * s * s * tail)
        if not close.all():
            ratio = p / q
            usable = (ratio > 0) & (ratio < np.inf)
            logarithm = np.where(usable, np.log(ratio), np.log(p) - np.log(q))
            far = p * logarithm + delta
    return np.where(p == 0, delta, np.where(close, near, far))


_COEFFICIENTS = [1.0 / k for k in range(3, 3 + 2 * SERIES_TERMS, 2)]


@jit
def kl(p: float, q: float) -> float:
    """p·log(p/q) + (1 − p)·log((1 − p)/(1 − q)) with 0·log 0 = 0, as written; for policies."""
    total = 0.0
    if p > 0:
        total += p * math.log(p / q) if q > 0 else math.inf
    if p < 1:
        total += (1 - p) * math.log((1 - p) / (1 - q)) if q < 1 else math.inf
    return total


@jit
def kl_upper(mean: float, divergence: float) -> float:
    """max{q ≥ mean : kl(mean, q) ≤ divergence}, accurate to a few units in the last place.

    Newton's method for d = q − mean from above the solution: kl(mean, ·) is convex and increasing
    there, so the steps decrease towards the solution and never pass it, up to rounding.
    """
    if mean >= 1.0:
        return 1.0
    if divergence <= 0.0:
        return mean
    if mean < 1e-200:  # treated as 0, where kl(0, q) = −log(1 − q)
        return -math.expm1(-divergence)
    rest = 1.0 - mean
    # kl(mean, q) = ∫ (z − mean)/(z(1 − z)) dz ≥ d²/(2·variance), where the variance is the largest
    # z(1 − z) between mean and q. With a variance of 1/4 this is Pinsker's inequality.
    z = max(mean, min(0.5, mean + math.sqrt(0.5 * divergence)))
    d = math.sqrt(2.0 * divergence * z * (1.0 - z))
    if d >= 0.5 * rest:
        # Near 1, kl without the term −mean·log q ≥ 0 gives a better start.
        entropy = -mean * math.log(mean) - rest * math.log(rest)
        y = math.exp(-(divergence + entropy) / rest)
        if y < 1e-16:
            return 1.0
        d = min(d, rest - y)
    for _ in range(100):
        y = rest - d
        excess = -mean * math.log1p(d / mean) - rest * math.log1p(-d / rest) - divergence
        step = excess * (mean + d) * y / d
        d -= step
        # The remaining error is at most about step²·(1/d + 1/y)/2, which must be small against q.
        if step * step * rest <= 1e-16 * (mean + d) * d * y:
            break
    return min(mean + d, 1.0)


@jit
def kl_level(t: int, c: float) -> float:
    """The level log t + c·log log t; 0 if it is negative or, for t ≤ 1, undefined."""
    log_t = math.log(t) if t > 1 else 0.0
    return max(0.0, log_t + c * math.log(log_t)) if log_t > 0.0 else 0.0
