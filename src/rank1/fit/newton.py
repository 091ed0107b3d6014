"""Newton's method for the rank-one fit.

With x = log u and y = log v a pair's log-likelihood is s·(x + y) + f·log(1 − exp(x + y)), which is
concave; means of at most 1 are the only constraint. So there is one optimum. Failures keep a mean
from 1 by themselves. Where a pair has none, a little of a failure stands in for the constraint, and
is made smaller until it adds less than 1e-9 to the likelihood.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit, kernel

__all__ = ["optimum"]

Floats = NDArray[np.float64]

#: The failure that stands in for a constraint, from the first to the last.
FIRST_STAND_IN, LAST_STAND_IN, SHRINKING = 1.0, 1e-11, 0.05
#: Newton's method ends when a step would add less than this to the log-likelihood.
ENOUGH = 1e-13
#: What is added to the Hessian, relative to its diagonal: (u·c, v/c) are the same means for any c.
RIDGE = 1e-11


@jit
def _value(s: Floats, f: Floats, x: Floats, y: Floats, stand_in: float) -> float:
    """The log-likelihood at (x, y); −∞ if a mean is 1 or more."""
    total = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            z = x[i] + y[j]
            if z >= 0.0:
                return -math.inf
            failures = f[i, j] if f[i, j] > 0.0 else stand_in
            total += s[i, j] * z
            if failures > 0.0:
                total += failures * math.log(-math.expm1(z))
    return total


@jit
def _solve(S: Floats, b: Floats) -> None:
    """Solve S·x = b for a positive definite S, of which the upper half is given, in place.

    By Cholesky's method, a row at a time, which is how S lies in memory.
    """
    n = len(b)
    for j in range(n):
        pivot = math.sqrt(max(S[j, j], 1e-300))
        for i in range(j, n):
            S[j, i] /= pivot
        for k in range(j + 1, n):
            factor = S[j, k]
            for i in range(k, n):
                S[k, i] -= factor * S[j, i]
    for j in range(n):
        b[j] /= S[j, j]
        for i in range(j + 1, n):
            b[i] -= b[j] * S[j, i]
    for j in range(n - 1, -1, -1):
        for i in range(j + 1, n):
            b[j] -= S[j, i] * b[i]
        b[j] /= S[j, j]


def _newton(
    s: Floats,
    f: Floats,
    x: Floats,
    y: Floats,
    stand_in: float,
    W: Floats,
    S: Floats,
    dx: Floats,
    dy: Floats,
    a: Floats,
    b: Floats,
) -> int:
    """Improve (x, y) to the optimum; the arrays after the stand-in are room to work in."""
    K, L = len(x), len(y)
    steps = 0
    while True:
        for _ in range(200):
            steps += 1
            a[:], b[:], dx[:], dy[:] = 0.0, 0.0, 0.0, 0.0
            for i in range(K):
                for j in range(L):
                    failures = f[i, j] if f[i, j] > 0.0 else stand_in
                    mean = math.exp(x[i] + y[j])
                    odds = mean / -math.expm1(x[i] + y[j])
                    slope = s[i, j] - failures * odds
                    W[i, j] = failures * odds * (1.0 + odds)
                    a[i] += W[i, j]
                    b[j] += W[i, j]
                    dx[i] += slope
                    dy[j] += slope
            gained = _direction(W, S, dx, dy, a, b)
            if not gained > ENOUGH:
                break
            # As far as the means stay below 1, and not beyond where the likelihood rises.
            reach = 1.0
            for i in range(K):
                for j in range(L):
                    rise = dx[i] + dy[j]
                    if rise > 0.0:
                        reach = min(reach, -0.95 * (x[i] + y[j]) / rise)
            before = _value(s, f, x, y, stand_in) if gained > 1e-6 else math.inf
            for _ in range(60):
                for i in range(K):
                    a[i] = x[i] + reach * dx[i]
                for j in range(L):
                    b[j] = y[j] + reach * dy[j]
                if before == math.inf:
                    break
                if _value(s, f, a, b, stand_in) >= before + 1e-4 * reach * gained:
                    break
                reach *= 0.5
            for i in range(K):
                x[i] = a[i]
            for j in range(L):
                y[j] = b[j]
        if stand_in <= LAST_STAND_IN:
            return steps
        stand_in = max(LAST_STAND_IN, stand_in * SHRINKING)


@jit
def _direction(W: Floats, S: Floats, dx: Floats, dy: Floats, a: Floats, b: Floats) -> float:
    """Turn the gradient in (dx, dy) into Newton's step; what it would gain, twice.

    The Hessian is [[diag a, W], [Wᵀ, diag b]], so that dx is eliminated at once.
    """
    K, L = W.shape
    gained = 0.0
    for i in range(K):
        a[i] *= 1.0 + RIDGE
    for j in range(L):
        b[j] *= 1.0 + RIDGE
        for k in range(L):
            S[j, k] = 0.0
        S[j, j] = b[j]
        b[j] = dy[j]
    for i in range(K):
        for j in range(L):
            factor = W[i, j] / a[i]
            b[j] -= factor * dx[i]
            for k in range(j, L):
                S[j, k] -= factor * W[i, k]
    _solve(S, b)
    for i in range(K):
        step = dx[i]
        for j in range(L):
            step -= W[i, j] * b[j]
        step /= a[i]
        gained += step * dx[i]
        dx[i] = step
    for j in range(L):
        gained += b[j] * dy[j]
        dy[j] = b[j]
    return gained


def optimum(s: Floats, f: Floats) -> tuple[Floats, Floats]:
    """(u, v) for a table whose lines all have a success."""
    if s.shape[0] < s.shape[1]:  # the shorter side is the one that costs
        v, u = optimum(np.ascontiguousarray(s.T), np.ascontiguousarray(f.T))
        return u, v
    s, f = np.ascontiguousarray(s), np.ascontiguousarray(f)
    n = s + f
    rate = s.sum() / n.sum()
    x = np.log(s.sum(axis=1) / n.sum(axis=1) / math.sqrt(rate))
    y = np.log(s.sum(axis=0) / n.sum(axis=0) / math.sqrt(rate))
    x -= max(0.0, x.max() + y.max() + 0.05)
    K, L = s.shape
    room = np.empty((K, L)), np.empty((L, L)), np.empty(K), np.empty(L), np.empty(K), np.empty(L)
    stand_in = FIRST_STAND_IN if (f == 0).any() else 0.0
    kernel(_newton)(s, f, x, y, stand_in, *room)
    shift = (x.max() - y.max()) / 2
    return np.exp(x - shift), np.exp(y + shift)
