"""The likeliest grid of rank one, its deviance and its effects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1.counts import tables
from rank1.fit.newton import optimum

__all__ = ["Cell", "Fit", "fit"]

Floats = NDArray[np.float64]


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
    https://doi.org/10.1201/9780203753736
    """
    s, f = tables(successes, failures)
    trials = s + f
    u, v = np.zeros(s.shape[0]), np.zeros(s.shape[1])
    rows, columns = s.sum(axis=1) > 0, s.sum(axis=0) > 0
    if rows.any():
        u[rows], v[columns] = optimum(s[rows][:, columns], f[rows][:, columns])
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
