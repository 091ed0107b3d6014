"""The characteristic time of the rank-one class, solved numerically.

Alternatives are rank-one grids in which level l of a side is at least as good as the best one, a.
The closest of them has f(l) = f(a): with the logarithms of the factors as variables Σ w·d(μ, μ') is
convex, so Newton's method finds it, as the fit to the grid in which l is pooled with a. That
smallest sum, F_l(w), is concave in the shares w, and each alternative found gives a linear function
above it: 1/T* = max min F_l is found by linear programmes with more and more of these.

Levels with equal factors are exchangeable, and by concavity some optimum treats them equally. So
they form one group, with a total share; of the group of l, only l itself is pooled.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np

from rank1.divergences import kl_bernoulli
from rank1.problems import Problem, RankOne
from rank1.problems.base import Floats

__all__ = ["MAX_DIFFERENT", "is_quickly_solved", "rank_one_time"]

#: The number of different arms of a grid that can be solved in seconds.
MAX_DIFFERENT = 100

#: The smallest weight of an arm in a fit, so that the solution is unique.
LEAST = 1e-12
#: An alternative that was inactive in this many programmes is dropped.
PATIENCE = 8
ROUNDS = 2000


def groups_of(side: Floats, best: int) -> tuple[Floats, Floats, np.ndarray]:
    """A side's distinct factors, best first; how often each occurs; and each level's group.

    >>> values, counts, own = groups_of(np.array([0.5, 0.7, 0.5]), 1)
    >>> values.tolist(), counts.tolist(), own.tolist()
    ([0.7, 0.5], [1.0, 2.0], [1, 0, 1])
    """
    values, own, counts = np.unique(-side, return_inverse=True, return_counts=True)
    assert own[best] == 0
    return -values, counts.astype(np.float64), own


def is_quickly_solved(problem: Problem) -> bool:
    """Whether a solution takes seconds: few arms, with levels of equal factors counted once.

    >>> import rank1
    >>> is_quickly_solved(rank1.spike(64, 64, 0.5, 0.5, 0.2, 0.2))
    True
    """
    if not isinstance(problem, RankOne):
        return False
    return math.prod(len(np.unique(side)) for side in problem.factors) <= MAX_DIFFERENT


def rank_one_time(
    factors: list[Floats], levels: tuple[int, ...], tolerance: float
) -> tuple[float, Floats]:
    """T* to a relative accuracy, and shares by arm that nearly attain it."""
    from scipy.optimize import linprog

    sides = [groups_of(side, best) for side, best in zip(factors, levels, strict=True)]
    means: Floats = functools.reduce(np.multiply.outer, [side[0] for side in sides])
    counts = [side[1] for side in sides]
    size, starts = means.size, {}  # type: tuple[int, dict[tuple[int, int], Floats]]
    w: Floats = functools.reduce(np.multiply.outer, map(_first_shares, counts))
    best_w, reached, limit = w, 0.0, math.inf
    cuts, idle = np.empty((0, size)), np.empty(0, np.int64)
    equal = np.append(np.ones(size), 0.0)[None]
    for _ in range(ROUNDS):
        slopes = np.array([slope.ravel() for slope in _closest(w, means, counts, starts)])
        told = slopes @ w.ravel()
        if told.min() > reached:
            best_w, reached = w, float(told.min())
        new = slopes[told <= min(limit, 2 * reached) * (1 + tolerance)]
        cuts, idle = np.vstack([cuts, new]), np.append(idle, np.zeros(len(new), np.int64))
        scale = cuts.max()
        bounded = np.column_stack([-cuts / scale, np.ones(len(cuts))])
        target = np.append(np.zeros(size), -1.0)
        found = linprog(target, bounded, np.zeros(len(cuts)), equal, [1.0], method="highs")
        if not found.success:
            raise RuntimeError(f"the linear programme was not solved: {found.message}")
        limit = min(limit, -found.fun * scale)
        if limit - reached <= tolerance * limit:
            break
        idle = np.where(found.ineqlin.marginals < -1e-12, 0, idle + 1)
        cuts, idle = cuts[idle <= PATIENCE], idle[idle <= PATIENCE]
        w = 0.5 * best_w + 0.5 * found.x[:size].reshape(means.shape)
    else:
        raise RuntimeError(f"T* was not found to {tolerance:g} in {ROUNDS} programmes")
    of_each = best_w / functools.reduce(np.multiply.outer, counts)
    return float(1 / limit), of_each[np.ix_(*[side[2] for side in sides])]


def _first_shares(counts: Floats) -> Floats:
    """A side's shares as if all its levels except the best were equal."""
    others = counts.sum() - 1
    leader = 1 / (1 + math.sqrt(others))
    shares = counts * (1 - leader) / max(others, 1.0)
    shares[0] = leader
    return shares


def _closest(
    w: Floats, means: Floats, counts: list[Floats], starts: dict[tuple[int, int], Floats]
) -> Iterator[Floats]:
    """For each group that may overtake, the slope of F in w: d(μ, μ') of the closest grid."""
    for side in range(means.ndim):
        own_w, own = np.moveaxis(w, side, 0), np.moveaxis(means, side, 0)
        for group in range(1, len(own)):
            share = 1 / counts[side][group]
            pooled_w = np.maximum(own_w[0] + share * own_w[group], LEAST)
            pooled = (own_w[0] * own[0] + share * own_w[group] * own[group]) / pooled_w
            pooled = np.where(pooled > 0, pooled, own[0])
            # The pooled level, then all others: the best level and l have no weight there.
            table_w, table = own_w.copy(), own.copy()
            table_w[group] *= 1 - share
            table_w[0], table[0] = pooled_w, pooled
            key = side, group
            fitted, starts[key] = _fit(np.maximum(table_w, LEAST), table, starts.get(key))
            slope = kl_bernoulli(own, fitted)
            slope[group] *= 1 - share
            slope[group] += share * kl_bernoulli(own[group], fitted[0])
            yield np.moveaxis(slope, 0, side)


def _fit(w: Floats, means: Floats, start: Floats | None) -> tuple[Floats, Floats]:
    """The rank-one grid with the smallest Σ w·d(means, grid), and its parameters.

    Levels whose means are 0 fit perfectly with a factor of 0 and are left out.
    """
    axes = range(means.ndim)
    inside = [(means > 0).any(axis=tuple(e for e in axes if e != d)) for d in axes]
    at = np.ix_(*inside)
    w, m = w[at], means[at]
    free = np.concatenate([np.arange(size) > (0 if d else -1) for d, size in enumerate(m.shape)])
    x = np.zeros(len(free)) if start is None else start
    eta = _sums(x, m.shape)
    if start is None or eta.max() >= 0:
        x = np.zeros(len(free))
        x[: m.shape[0]] = math.log(float((w * m).sum() / w.sum()))
        eta = _sums(x, m.shape)
    value = _loss(w, m, eta)
    for _ in range(100):
        p = np.exp(eta)
        q = -np.expm1(eta)
        slope, bend = w * ((p - m) / q), w * (1 - m) * p / (q * q)
        gradient, hessian = _margins(slope, bend)
        gradient, hessian = gradient[free], hessian[np.ix_(free, free)]
        hessian[np.diag_indices_from(hessian)] *= 1 + 1e-13
        step = np.zeros(len(x))
        step[free] = np.linalg.solve(hessian, -gradient)
        gain = -float(gradient @ step[free])
        if not gain > 1e-17:
            break
        along, length = _sums(step, m.shape), 1.0
        while length > 1e-9:
            tried = eta + length * along
            if tried.max() < 0 and _loss(w, m, tried) <= value - 1e-4 * length * gain:
                break
            length /= 2
        else:
            break
        x, eta = x + length * step, tried
        value = _loss(w, m, eta)
    fitted = np.zeros_like(means)
    fitted[at] = np.exp(eta)
    return fitted, x


def _loss(w: Floats, m: Floats, eta: Floats) -> float:
    return float((w * (-m * eta - (1 - m) * np.log(-np.expm1(eta)))).sum())


def _sums(x: Floats, sizes: tuple[int, ...]) -> Floats:
    """For each arm, the sum of its parameters, one per side."""
    parts = np.split(x, np.cumsum(sizes)[:-1])
    return functools.reduce(np.add.outer, parts)


def _margins(slope: Floats, bend: Floats) -> tuple[Floats, Floats]:
    """Gradient and Hessian in the parameters, from the derivatives in the arms' sums."""
    axes, sizes = range(slope.ndim), slope.shape
    ends = np.cumsum((0, *sizes))
    gradient, hessian = np.empty(ends[-1]), np.empty((ends[-1], ends[-1]))
    for d in axes:
        own = slice(ends[d], ends[d + 1])
        gradient[own] = slope.sum(axis=tuple(e for e in axes if e != d))
        hessian[own, own] = np.diag(bend.sum(axis=tuple(e for e in axes if e != d)))
        for e in range(d):
            both = bend.sum(axis=tuple(i for i in axes if i not in (d, e)))
            other = slice(ends[e], ends[e + 1])
            hessian[other, own], hessian[own, other] = both, both.T
    return gradient, hessian
