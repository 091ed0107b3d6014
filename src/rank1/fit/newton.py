"""Newton's method for the rank-one fit.

With x_d the logarithms of the factors of side d, an arm's log-likelihood is s·z + f·log(1 − exp z),
where z is the sum of the x_d of its levels. It is concave in z, and so in all x_d together; the
only constraint is that means are at most 1. So there is one optimum. Failures keep a mean below 1
by themselves. If an arm has none, a fraction of a failure replaces the constraint; it is reduced
until it adds less than 1e-9 to the likelihood.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["cross_sums", "optimum", "over_others"]

Floats = NDArray[np.float64]

#: The fraction of a failure that replaces a constraint: first, last, and the factor between steps.
FIRST_STAND_IN, LAST_STAND_IN, SHRINKING = 1.0, 1e-11, 0.05
#: Newton's method ends when a step would add less than this to the log-likelihood.
ENOUGH = 1e-13
#: Added to the Hessian, relative to its diagonal: factors f_d·c and f_e/c have the same means for
#: any c.
RIDGE = 1e-11


def over_others(values: Floats, *sides: int) -> Floats:
    """Sums over all sides except these."""
    return values.sum(axis=tuple(d for d in range(values.ndim) if d not in sides))


def cross_sums(weights: Floats) -> Floats:
    """Weights summed for every two levels: Xᵀ·diag(weights)·X, where X indicates arms' levels.

    >>> cross_sums(np.array([[1.0, 2.0]]))
    array([[3., 1., 2.],
           [1., 1., 0.],
           [2., 0., 2.]])
    """
    ends = list(itertools.accumulate(weights.shape, initial=0))
    places = [slice(*pair) for pair in itertools.pairwise(ends)]
    found = np.zeros((ends[-1], ends[-1]))
    for d, place in enumerate(places):
        found[place, place] = np.diag(over_others(weights, d))
        for e in range(d):
            found[places[e], place] = over_others(weights, e, d)
            found[place, places[e]] = found[places[e], place].T
    return found


def _sums(x: Floats, shape: tuple[int, ...]) -> Floats:
    """For each arm, the sum of its levels' entries."""
    total = np.zeros(())
    for part in np.split(x, np.cumsum(shape)[:-1]):
        total = np.add.outer(total, part)
    return total


def _value(s: Floats, f: Floats, z: Floats) -> float:
    """The log-likelihood; −∞ if a mean is 1 or more."""
    if z.max() >= 0:
        return -math.inf
    with np.errstate(divide="ignore"):
        return float((s * z + f * np.log(-np.expm1(z))).sum())


def _step(slopes: Floats, hessian: Floats, first: int) -> Floats:
    """Newton's step. The first side's block is diagonal, so it is eliminated at once."""
    hessian[np.diag_indices_from(hessian)] *= 1 + RIDGE
    a, W = np.diagonal(hessian)[:first, None], hessian[:first, first:]
    rest = hessian[first:, first:] - (W / a).T @ W
    y = np.linalg.solve(rest, slopes[first:] - (W / a).T @ slopes[:first])
    return np.concatenate([(slopes[:first] - W @ y) / a[:, 0], y])


def _improve(s: Floats, f: Floats, x: Floats) -> Floats:
    """The optimum, starting from x."""
    for _ in range(200):
        z = _sums(x, s.shape)
        odds = np.exp(z) / -np.expm1(z)
        slope = s - f * odds
        slopes = np.concatenate([over_others(slope, d) for d in range(s.ndim)])
        step = _step(slopes, cross_sums(f * odds * (1 + odds)), s.shape[0])
        gained = float(step @ slopes)
        if not gained > ENOUGH:
            break
        # As far as the means stay below 1 and the likelihood rises.
        rise = _sums(step, s.shape)
        with np.errstate(divide="ignore"):
            reach = float(np.min(-0.95 * z / rise, where=rise > 0, initial=1.0))
        if gained > 1e-6:
            before = _value(s, f, z)
            for _ in range(60):
                if _value(s, f, z + reach * rise) >= before + 1e-4 * reach * gained:
                    break
                reach *= 0.5
        x = x + reach * step
    return x


def optimum(s: Floats, f: Floats) -> list[Floats]:
    """The factors of each side, for counts with a success at every level."""
    longest = int(np.argmax(s.shape))  # the first side costs nothing, so make it the longest
    if longest:
        factors = optimum(np.moveaxis(s, longest, 0), np.moveaxis(f, longest, 0))
        factors.insert(longest, factors.pop(0))
        return factors
    D, n = s.ndim, s + f
    shared = (1 - 1 / D) * math.log(s.sum() / n.sum())
    parts = [np.log(over_others(s, d) / over_others(n, d)) - shared for d in range(D)]
    parts[0] -= max(0.0, sum(float(part.max()) for part in parts) + 0.05)
    x = np.concatenate(parts)
    stand_in = FIRST_STAND_IN
    while (f == 0).any():
        x = _improve(s, np.where(f > 0, f, stand_in), x)
        if stand_in <= LAST_STAND_IN:
            break
        stand_in = max(LAST_STAND_IN, stand_in * SHRINKING)
    else:
        x = _improve(s, f, x)
    parts = np.split(x, np.cumsum(s.shape)[:-1])
    top = sum(float(part.max()) for part in parts) / D
    return [np.exp(part - part.max() + top) for part in parts]
