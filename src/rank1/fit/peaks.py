"""Could a second peak hide? What the pulls of each arm can say against the rank-one fit."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.errors import InputError
from rank1.fit.model import Fit, fit
from rank1.fit.newton import cross_sums
from rank1.grid import Grid

__all__ = ["Peak", "powers", "second_peak"]

Floats = NDArray[np.float64]

#: The level of each test.
LEVEL = 0.05
_LIMIT = NormalDist().inv_cdf(1 - LEVEL)
#: To be tested, an arm must have at least this share of its fitted mean decided by other arms.
LEAST_PREDICTED = 1e-6


class Peak(NamedTuple):
    """What counts say about a second peak, from `second_peak`."""

    #: The levels of the arm about which least is known; None if the leader is the only arm.
    arm: tuple[int, ...] | None
    #: The probability that a one-sided 5% test would notice if this arm were as good as the leader.
    power: float
    #: The levels of an arm that contradicts rank one: its own average is significantly above the
    #: fit and may well reach the leader's mean. None if there is none.
    against: tuple[int, ...] | None


def second_peak(successes: ArrayLike, failures: ArrayLike, leader: Sequence[int]) -> Peak:
    """Find the arm that could best hide a second peak, and one that looks like it.

    Parameters
    ----------
    successes, failures
        Arrays of counts with one axis per side, as for `fit`.
    leader
        The levels of the leading arm.

    Notes
    -----
    `power` and `arm` are the minimum of `powers` and its place. For `against`, each arm's own
    average is tested against the fit, corrected for the arm's own contribution to it, at a level of
    5% shared by all tried arms. That holds for a single look; among a hundred looks a false alarm
    is more likely.

    Examples
    --------
    If the true best arm was tried once, nothing is known about it. With equal numbers of pulls, it
    contradicts rank one:

    >>> from rank1 import fit
    >>> peak = fit.second_peak([[150, 75], [75, 0]], [[4850, 4925], [4925, 1]], leader=(0, 0))
    >>> peak.arm, round(peak.power, 2), peak.against
    ((1, 1), 0.03, None)
    >>> fit.second_peak([[150, 75], [75, 165]], [[4850, 4925], [4925, 4835]], leader=(0, 0)).against
    (1, 1)
    """
    found = fit(successes, failures)
    grid = Grid(found.successes.shape)
    first = _leader(found, leader)
    if grid.arms == 1:
        return Peak(None, 1.0, None)
    quantiles = _quantiles(found, first)
    least, against = int(quantiles.argmin()), _against(found, first)
    return Peak(
        grid.levels(least),
        NormalDist().cdf(quantiles[least]),
        None if against is None else grid.levels(against),
    )


def powers(found: Fit, leader: Sequence[int]) -> Floats:
    """The probability that each arm's pulls would show that it is as good as the leader.

    For each arm, the power of the one-sided binomial test at 5% of the fitted mean against the
    leader's, with the arm's number of pulls; 1 for the leader. The power is 0 for an arm without a
    pull, and for an arm that is better than the leader according to the fit.

    Examples
    --------
    >>> from rank1 import fit
    >>> found = fit.fit([[150, 75], [75, 0]], [[4850, 4925], [4925, 1]])
    >>> fit.powers(found, leader=(0, 0)).round(2)
    array([[1.  , 1.  ],
           [1.  , 0.03]])
    """
    cdf = np.vectorize(NormalDist().cdf, otypes=[np.float64])
    return cdf(_quantiles(found, _leader(found, leader))).reshape(found.means.shape)


def _quantiles(found: Fit, leader: int) -> Floats:
    """The powers as quantiles of the normal distribution."""
    n = (found.successes + found.failures).ravel()
    means = np.clip(found.means.ravel(), 1e-12, 1 - 1e-12)
    # The smallest number of successes that would reject the fitted mean, starting slightly below.
    spread = np.sqrt(n * means * (1 - means))
    guess = n * means + _LIMIT * spread + (_LIMIT**2 - 1) * (1 - 2 * means) / 6 - 1.5
    least = np.maximum(1.0, np.floor(guess))
    for _ in range(3):
        least += _below(least, n, means) < _LIMIT
    reached = -_below(least, n, _mean_of(found, leader))
    reached[leader] = np.inf
    return reached


def _leader(found: Fit, leader: Sequence[int]) -> int:
    sizes = found.successes.shape
    if len(leader) != len(sizes):
        raise InputError("leader", tuple(leader), f"{len(sizes)} levels, one for each side")
    for level, size in zip(leader, sizes, strict=True):
        checks.integer("leader", level, 0, size - 1)
    return Grid(sizes).arm([int(level) for level in leader])


def _mean_of(found: Fit, arm: int) -> float:
    """An arm's own average, with one more pull at the fitted mean."""
    s, n = found.successes.flat[arm], found.successes.flat[arm] + found.failures.flat[arm]
    return float(np.clip((s + found.means.flat[arm]) / (n + 1), 1e-12, 1 - 1e-12))


def _below(k: Floats, n: Floats, p: Floats | float) -> Floats:
    """The normal quantile of P(S < k), S binomial, 1 ≤ k ≤ n; infinite if k > n.

    Peizer, Pratt: A normal approximation for binomial, F, beta, and other common, related tail
    probabilities, I. JASA 1968. https://doi.org/10.1080/01621459.1968.11009335
    """
    inside = k <= n
    k, n = np.where(inside, k, 1.0), np.maximum(n, 1.0)
    q, a, b = 1 - p, k - 0.5, n - k + 0.5
    d = k - 1 / 3 - (n + 1 / 3) * p + 0.02 * (q / k - p / (n - k + 1) + (q - 0.5) / (n + 1))
    off = a - n * p
    deviance = 2 * (a * np.log(a / (n * p)) + b * np.log(b / (n * q)))
    near = np.abs(off) < 1e-5 * n * p * q
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(
            near, 1 / np.sqrt(n * p * q), np.sqrt(np.maximum(deviance, 0.0)) / np.abs(off)
        )
    return np.where(inside, d * slope / np.sqrt(1 + 1 / (6 * n)), np.inf)


def _against(found: Fit, leader: int) -> int | None:
    """The arm that contradicts the fit most clearly and may reach the leader, if there is one."""
    s, n = found.successes.ravel(), (found.successes + found.failures).ravel()
    means = np.clip(found.means.ravel(), 1e-12, 1 - 1e-12)
    free = 1 - _leverages(found).ravel()
    tested = (n > 0) & (free > LEAST_PREDICTED)
    tested[leader] = False
    if not tested.any():
        return None
    limit = NormalDist().inv_cdf(1 - LEVEL / int(tested.sum()))
    above = _below(np.clip(s, 1.0, None), n, means) / np.sqrt(np.where(tested, free, 1.0))
    top, others = _mean_of(found, leader), s / np.maximum(n, 1.0)
    n_top = n[leader] + 1
    pooled = (n_top * top + s) / (n_top + n)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n_top + 1 / np.maximum(n, 1.0)))
    speaks = tested & (s >= 1) & (above >= limit) & (others >= top - limit * error)
    return int(np.where(speaks, above, -np.inf).argmax()) if speaks.any() else None


def _leverages(found: Fit) -> Floats:
    """How much each arm's own counts decide its fitted mean, from 0 to 1."""
    n, sizes = found.successes + found.failures, found.successes.shape
    weights = n * found.means / np.maximum(1 - found.means, 1e-12)
    information = cross_sums(weights)
    scale = np.diagonal(information).copy()
    scale[scale == 0] = 1.0
    # Factors f_d·c and f_e/c have the same means: a ridge picks one solution.
    information[np.diag_indices_from(information)] += 1e-9 * scale
    covariance = np.linalg.inv(information)
    ends = np.cumsum([0, *sizes])
    variance = np.zeros(sizes)
    for d in range(len(sizes)):
        for e in range(len(sizes)):
            block = covariance[ends[d] : ends[d + 1], ends[e] : ends[e + 1]]
            shape = [1] * len(sizes)
            if d == e:
                shape[d] = sizes[d]
                variance += np.diagonal(block).reshape(shape)
            else:
                shape[d], shape[e] = sizes[d], sizes[e]
                variance += (block if d < e else block.T).reshape(shape)
    return np.clip(weights * variance, 0.0, 1.0)
