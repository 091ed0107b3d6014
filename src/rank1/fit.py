"""Is a grid of rank one? The maximum-likelihood fit of u[i]·v[j] to counts, and how far off it is.

With x = log u and y = log v a pair's log-likelihood is s·(x + y) + f·log(1 − exp(x + y)), which is
concave; means of at most 1 are the only constraint. So there is one optimum, and Newton's method
finds it. Failures keep a mean from 1 by themselves. Where a pair has none, a little of a failure
stands in for the constraint, and is made smaller until it adds less than 1e-9 to the likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import jit, kernel
from rank1.errors import InputError
from rank1.stopping.rule import counts

__all__ = ["Cell", "Fit", "Replay", "fit", "fixed_design", "p_value"]

Floats = NDArray[np.float64]
#: Counts that the design of some data gives on a grid of these means: successes and failures.
Replay = Callable[[Floats, np.random.Generator], tuple[ArrayLike, ArrayLike]]

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
    """Solve S·x = b for a positive definite S by Cholesky's method, in place."""
    n = len(b)
    for j in range(n):
        pivot = math.sqrt(max(S[j, j], 1e-300))
        for i in range(j, n):
            S[i, j] /= pivot
        for k in range(j + 1, n):
            factor = S[k, j]
            for i in range(k, n):
                S[i, k] -= factor * S[i, j]
    for j in range(n):
        b[j] /= S[j, j]
        for i in range(j + 1, n):
            b[i] -= b[j] * S[i, j]
    for j in range(n - 1, -1, -1):
        for i in range(j + 1, n):
            b[j] -= S[i, j] * b[i]
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
            for k in range(L):
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


class Cell(NamedTuple):
    """A pair beside its fit."""

    row: int
    column: int
    #: Observed mean, fitted mean, and the signed root of the deviance between them.
    rate: float
    fitted: float
    residual: float


@dataclass(frozen=True)
class Fit:
    """The likeliest grid of rank one; what `fit` returns.

    Only products u[i]·v[j] can be estimated; here max(u) = max(v). A line without a success has the
    factor 0. One without a trial can't be estimated: it has the average of its side, weighted by
    trials.
    """

    successes: Floats
    failures: Floats
    u: Floats
    v: Floats
    #: Of the fit, and of the observed means: the largest possible on any grid.
    log_likelihood: float
    saturated: float

    @cached_property
    def means(self) -> Floats:
        """The fitted means, K×L."""
        return np.outer(self.u, self.v)

    @property
    def deviance(self) -> float:
        """D = 2·(saturated − log_likelihood): how far the counts are from rank one."""
        return max(0.0, 2 * (self.saturated - self.log_likelihood))

    @property
    def explained(self) -> float:
        """Which share of the deviance of one mean for all pairs the fit explains."""
        s, f = float(self.successes.sum()), float(self.failures.sum())
        n = max(s + f, 1e-300)
        total = 2 * (self.saturated - float(_x_log_y(s, s / n) + _x_log_y(f, f / n)))
        return 1 - self.deviance / total if total > 1e-9 else 1.0

    @cached_property
    def degrees_of_freedom(self) -> int:
        """Pairs with a trial less parameters: (K − 1)·(L − 1) if every pair has one."""
        tried = self.successes + self.failures > 0
        rows, columns = tried.any(axis=1), tried.any(axis=0)
        return int(tried.sum() - rows.sum() - columns.sum() + _components(tried))

    @property
    def chi2_p(self) -> float:
        """The p-value of D by the χ² table: for large counts from a design fixed in advance."""
        from scipy.special import chdtrc

        df = self.degrees_of_freedom
        return float(chdtrc(df, self.deviance)) if df > 0 else 1.0

    @cached_property
    def residuals(self) -> Floats:
        """K×L: signed roots of the pairs' parts of D; above 0 where the observed mean is higher."""
        s, f, n = self.successes, self.failures, self.successes + self.failures
        with np.errstate(invalid="ignore", divide="ignore"):
            parts = _x_log_y(s, s / n / self.means) + _x_log_y(f, f / n / (1 - self.means))
        roots = np.sqrt(2 * np.maximum(np.where(n > 0, parts, 0), 0))
        return np.where(s >= n * self.means, roots, -roots)

    @property
    def row_effects(self) -> Floats:
        """Factors u relative to the best row: (K, 2), with the standard error of the logarithm.

        The error is right for large counts from a design fixed in advance; it is infinite where
        data don't connect the line with the best one.
        """
        return np.column_stack([_relative(self.u), self._errors[: len(self.u)]])

    @property
    def column_effects(self) -> Floats:
        """Factors v relative to the best column: (L, 2), like `row_effects`."""
        return np.column_stack([_relative(self.v), self._errors[len(self.u) :]])

    @cached_property
    def _errors(self) -> Floats:
        """Standard errors of log u[i]/max(u), then of log v[j]/max(v)."""
        K, L = len(self.u), len(self.v)
        n = self.successes + self.failures
        weights = n * self.means / np.maximum(1 - self.means, 1e-12)
        information = np.zeros((K + L, K + L))
        information[:K, K:] = weights
        information += information.T
        information += np.diag(information.sum(axis=1))
        values, vectors = np.linalg.eigh(information)
        known = values > 1e-12 * max(values[-1], 1e-300)
        best = np.repeat([self.u.argmax(), K + self.v.argmax()], [K, L])
        contrast = np.eye(K + L)
        contrast[np.arange(K + L), best] -= 1
        parts = contrast @ vectors
        blurred = (np.abs(parts[:, ~known]) > 1e-6).any(axis=1)
        variance = (parts[:, known] ** 2 / values[known]).sum(axis=1)
        return np.where(blurred, np.inf, np.sqrt(variance))

    def deviating(self, count: int = 3) -> list[Cell]:
        """The pairs that deviate most from the fit, the worst first."""
        n = self.successes + self.failures
        worst = np.argsort(-np.abs(self.residuals), axis=None, kind="stable")[:count]
        return [
            Cell(i, j, float(self.successes[i, j] / n[i, j]), float(self.means[i, j]), float(r))
            for i, j in (divmod(int(k), len(self.v)) for k in worst)
            if (r := self.residuals[i, j]) != 0
        ]


def _x_log_y(x: Floats | float, y: Floats | float) -> Floats:
    """x·log y, and 0 where x is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(x) > 0, x * np.log(y), 0.0)


def _relative(factors: Floats) -> Floats:
    largest = factors.max()
    return factors / largest if largest > 0 else np.ones_like(factors)


def _components(tried: NDArray[np.bool_]) -> int:
    """How many sets of lines there are that no pair with a trial connects."""
    label = np.arange(len(tried), dtype=np.int64)
    for column in tried.T:
        if column.any():
            label[np.isin(label, label[column])] = label[column].min()
    return len(np.unique(label[tried.any(axis=1)]))


def fit(successes: ArrayLike, failures: ArrayLike) -> Fit:
    """The rank-one grid under which counts are likeliest.

    Parameters
    ----------
    successes, failures
        K×L tables of counts; a reward x in [0, 1] adds x to one and 1 − x to the other. Pairs
        without a trial are left out of the likelihood.

    Examples
    --------
    >>> from rank1 import fit
    >>> found = fit.fit([[60, 30], [30, 15], [12, 40]], [[40, 70], [70, 85], [88, 60]])
    >>> found.means.round(2)
    array([[0.52, 0.4 ],
           [0.26, 0.2 ],
           [0.28, 0.22]])
    >>> round(found.deviance, 1), found.degrees_of_freedom, bool(found.chi2_p < 1e-6)
    (41.7, 2, True)
    >>> found.deviating(1)[0][:2]
    (2, 1)

    References
    ----------
    McCullagh, Nelder: Generalized linear models. 1989 (deviance, and its signed roots).
    """
    s, f = counts(successes, failures)
    trials = s + f
    u, v = np.zeros(s.shape[0]), np.zeros(s.shape[1])
    rows, columns = s.sum(axis=1) > 0, s.sum(axis=0) > 0
    if rows.any():
        u[rows], v[columns] = _optimum(s[rows][:, columns], f[rows][:, columns])
    for factors, axis in ((u, 1), (v, 0)):
        tried = trials.sum(axis=axis)
        if (tried == 0).any() and tried.any():
            factors[tried == 0] = (factors * tried).sum() / tried.sum()
    means = np.outer(u, v)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = s / trials
        fitted = (_x_log_y(s, means) + _x_log_y(f, 1 - means)).sum()
        saturated = (_x_log_y(s, rates) + _x_log_y(f, 1 - rates)).sum()
    return Fit(s, f, u, v, float(fitted), float(saturated))


def _optimum(s: Floats, f: Floats) -> tuple[Floats, Floats]:
    """(u, v) for a table whose lines all have a success."""
    if s.shape[0] < s.shape[1]:  # the shorter side is the one that costs
        v, u = _optimum(np.ascontiguousarray(s.T), np.ascontiguousarray(f.T))
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


def fixed_design(trials: ArrayLike) -> Replay:
    """A replay for data whose numbers of trials were fixed in advance, as in an A/B test.

    Parameters
    ----------
    trials
        K×L whole numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from rank1 import fit
    >>> replay = fit.fixed_design([[10, 20]])
    >>> replay(np.array([[0.0, 1.0]]), np.random.default_rng(1))
    (array([[ 0, 20]]), array([[10,  0]]))
    """
    table, _ = counts(trials, np.zeros(np.shape(trials)))
    whole = table.astype(np.int64)
    if (whole != table).any():
        raise InputError(
            f"trials must be whole numbers, got {table[whole != table].flat[0]}; pass a replay of "
            f"your own for other rewards"
        )

    def replay(means: Floats, rng: np.random.Generator) -> tuple[ArrayLike, ArrayLike]:
        won = rng.binomial(whole, np.clip(means, 0.0, 1.0))
        return won, whole - won

    return replay


def p_value(found: Fit, replay: Replay, B: int = 199, seed: int = 1) -> float:
    """The probability of a deviance like this on the fitted grid, by playing the design again.

    p = (1 + #{D_b ≥ D})/(1 + B). Where a policy chose the pairs, the law of D isn't χ², so
    `replay` has to play that policy for as many reports.

    Parameters
    ----------
    found
        A fit.
    replay
        `replay(means, rng)` gives the successes and failures of one repetition on a grid of these
        means; `fixed_design(trials)` makes one.
    B
        Number of repetitions.
    seed
        Of the repetitions.

    Examples
    --------
    >>> from rank1 import datasets, fit
    >>> table = datasets.hillstrom()
    >>> found = fit.fit(table.successes, table.failures)
    >>> fit.p_value(found, fit.fixed_design(table.trials)) > 0.05
    True
    """
    B, seed = checks.integer("B", B, 1), checks.integer("seed", seed, 0)
    rng = np.random.default_rng(seed)
    larger = 0
    for _ in range(B):
        again = fit(*replay(found.means, rng))
        # Equal data must count as equal, whatever the rounding.
        larger += again.deviance >= found.deviance - 1e-9 * (1 + found.deviance)
    return (1 + larger) / (1 + B)
