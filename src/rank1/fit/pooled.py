"""The average mean of all arms, even if a policy has tried some of them rarely."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1.counts import distinct

__all__ = ["mean_of_all"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Bounds of the logit of the arms' common mean, and of the logarithm of how similar they are.
BOUNDS = ((-20.0, 20.0), (-2.0, 14.0))


def mean_of_all(successes: ArrayLike, failures: ArrayLike) -> float:
    """Estimate the average of all arms' means if a policy chose how often to try each.

    The average of the arms' own averages would be too low: a policy abandons arms that had bad
    luck, and they never make up for it. So each arm's mean is treated as drawn from a beta
    distribution, the one that makes the counts likeliest (the beta-binomial model), and is
    estimated given its counts; the likelihood doesn't depend on why an arm was tried. Arms without
    data get the distribution's mean. If a few arms are much better than all others, no beta
    distribution fits, and the estimate is too high.

    Examples
    --------
    Three equal arms, one of which was abandoned after two failures:

    >>> print(f"{mean_of_all([50, 51, 0], [50, 49, 2]):.3f}")
    0.500
    """
    won = np.asarray(successes, np.float64).ravel()
    lost = np.asarray(failures, np.float64).ravel()
    total = won.sum() + lost.sum()
    if total <= 0:
        return float("nan")
    rate = won.sum() / total
    if rate <= 0 or rate >= 1:
        return float(rate)
    a, b, which = distinct(won, lost)
    times = np.bincount(which, minlength=len(a))
    mean, size = _prior(a, b, times, rate)
    return float(times @ ((a + mean * size) / (a + b + size)) / len(won))


def _prior(a: Floats, b: Floats, times: Ints, rate: float) -> tuple[float, float]:
    """Mean and size (α + β) of the likeliest beta distribution; `times` counts arms per pair."""
    from scipy.optimize import brentq, minimize
    from scipy.special import betaln, expit, logit, psi

    def loss(x: Floats) -> tuple[float, Floats]:
        mean, size = expit(x[0]), np.exp(x[1])
        alpha, beta = mean * size, (1 - mean) * size
        value = times @ (betaln(a + alpha, b + beta) - betaln(alpha, beta))
        common = psi(size) - psi(a + b + size)
        by_alpha = times @ (psi(a + alpha) - psi(alpha) + common)
        by_beta = times @ (psi(b + beta) - psi(beta) + common)
        slope = (by_alpha - by_beta) * size * mean * (1 - mean), by_alpha * alpha + by_beta * beta
        return -value, -np.array(slope)

    begin = [logit(rate), 3.0]
    found: Any = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=BOUNDS)
    size = float(np.exp(found.x[1]))

    # If the arms are equal the likelihood is flat, and only its slope finds the mean exactly.
    def slope(mean: float) -> float:
        alpha, beta = mean * size, (1 - mean) * size
        by_alpha, by_beta = psi(a + alpha) - psi(alpha), psi(b + beta) - psi(beta)
        return float(times @ (by_alpha - by_beta))

    return brentq(slope, 1e-12, 1 - 1e-12, xtol=1e-12), size
