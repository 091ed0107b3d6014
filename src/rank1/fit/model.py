"""The likeliest grid of rank one, its deviance and its effects."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1.counts import tables
from rank1.fit.newton import cross_sums, optimum, over_others
from rank1.grid import Grid, two_sides

__all__ = ["Deviation", "Fit", "fit", "products"]

Floats = NDArray[np.float64]


class Deviation(NamedTuple):
    """An arm compared with its fit."""

    levels: tuple[int, ...]
    #: Observed mean, fitted mean, and the signed root of the deviance between them.
    rate: float
    fitted: float
    residual: float


@dataclass(frozen=True)
class Fit:
    """The likeliest grid of rank one, from `fit`.

    Only products of factors can be estimated; here the largest factors of all sides are equal. A
    level without a success has the factor 0. A level without a trial can't be estimated: it gets
    the average of its side, weighted by trials.
    """

    #: Arrays with one axis per side.
    successes: Floats
    failures: Floats
    #: The factors of the levels, for each side.
    factors: tuple[Floats, ...]
    #: Of the fit; and of the observed means, the largest possible on any grid.
    log_likelihood: float
    saturated: float

    @property
    def u(self) -> Floats:
        """The rows' factors, for two sides."""
        return two_sides(self.factors)[0]

    @property
    def v(self) -> Floats:
        """The columns' factors, for two sides."""
        return two_sides(self.factors)[1]

    @cached_property
    def means(self) -> Floats:
        """The fitted means, shaped like the counts."""
        return products(self.factors)

    @property
    def deviance(self) -> float:
        """D = 2·(saturated − log_likelihood): how far the counts are from rank one."""
        return max(0.0, 2 * (self.saturated - self.log_likelihood))

    @property
    def explained(self) -> float:
        """The share of the deviance of one common mean that the fit explains."""
        s, f = float(self.successes.sum()), float(self.failures.sum())
        n = max(s + f, 1e-300)
        total = 2 * (self.saturated - float(_x_log_y(s, s / n) + _x_log_y(f, f / n)))
        return 1 - self.deviance / total if total > 1e-9 else 1.0

    @cached_property
    def degrees_of_freedom(self) -> int:
        """Tried arms minus parameters: (K − 1)·(L − 1) if every pair of two sides was tried."""
        tried = self.successes + self.failures > 0
        parameters = sum(tried.shape) - tried.ndim + 1
        if not tried.all():  # tried arms may then fall into sets that no level connects
            parameters = int(
                np.linalg.matrix_rank(cross_sums(tried.astype(np.float64)), hermitian=True)
            )
        return int(tried.sum()) - parameters

    @property
    def chi2_p(self) -> float:
        """The p-value of D from the χ² law: for large counts from a design fixed in advance."""
        from scipy.special import chdtrc

        df = self.degrees_of_freedom
        return float(chdtrc(df, self.deviance)) if df > 0 else 1.0

    @cached_property
    def residuals(self) -> Floats:
        """Signed roots of the arms' parts of D; positive if the observed mean is higher."""
        s, f, n = self.successes, self.failures, self.successes + self.failures
        with np.errstate(invalid="ignore", divide="ignore"):
            parts = _x_log_y(s, s / n / self.means) + _x_log_y(f, f / n / (1 - self.means))
        roots = np.sqrt(2 * np.maximum(np.where(n > 0, parts, 0), 0))
        return np.where(s >= n * self.means, roots, -roots)

    @cached_property
    def effects(self) -> tuple[Floats, ...]:
        """Factors relative to the best level, for each side, with standard errors.

        One array per side, one row per level: the ratio of the factors and the standard error of
        its logarithm. The error is right for large counts from a design fixed in advance; it is
        infinite if the data don't connect the level with the best one.
        """
        ends = np.cumsum(self.successes.shape)
        errors = np.split(self._errors, ends[:-1])
        both = zip(map(_relative, self.factors), errors, strict=True)
        return tuple(np.column_stack(side) for side in both)

    @property
    def row_effects(self) -> Floats:
        """The effects of the rows, for two sides: (K, 2)."""
        return two_sides(self.effects)[0]

    @property
    def column_effects(self) -> Floats:
        """The effects of the columns, for two sides: (L, 2)."""
        return two_sides(self.effects)[1]

    @property
    def _errors(self) -> Floats:
        """Standard errors of the logarithms of the effects, one side after another."""
        n, sizes = self.successes + self.failures, self.successes.shape
        values, vectors = np.linalg.eigh(
            cross_sums(n * self.means / np.maximum(1 - self.means, 1e-12))
        )
        known = values > 1e-12 * max(values[-1], 1e-300)
        offsets = np.cumsum(sizes) - sizes
        best = offsets + [int(factors.argmax()) for factors in self.factors]
        contrast = np.eye(sum(sizes))
        contrast[np.arange(sum(sizes)), np.repeat(best, sizes)] -= 1
        parts = contrast @ vectors
        blurred = (np.abs(parts[:, ~known]) > 1e-6).any(axis=1)
        variance = (parts[:, known] ** 2 / values[known]).sum(axis=1)
        return np.where(blurred, np.inf, np.sqrt(variance))

    def deviating(self, count: int = 3) -> list[Deviation]:
        """The arms that deviate most from the fit, the worst first."""
        s, n, grid = self.successes, self.successes + self.failures, Grid(self.successes.shape)
        worst = np.argsort(-np.abs(self.residuals), axis=None, kind="stable")[:count]
        return [
            Deviation(at, float(s[at] / n[at]), float(self.means[at]), float(self.residuals[at]))
            for at in (grid.levels(int(arm)) for arm in worst)
            if self.residuals[at] != 0
        ]


def _x_log_y(x: Floats | float, y: Floats | float) -> Floats:
    """x·log y, and 0 if x is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(x) > 0, x * np.log(y), 0.0)


def _relative(factors: Floats) -> Floats:
    largest = factors.max()
    return factors / largest if largest > 0 else np.ones_like(factors)


def products(factors: Sequence[Floats]) -> Floats:
    """The means of a grid of rank one."""
    return functools.reduce(np.multiply.outer, factors)


def fit(successes: ArrayLike, failures: ArrayLike) -> Fit:
    """Find the rank-one grid under which the counts are likeliest.

    Parameters
    ----------
    successes, failures
        Arrays of counts with one axis per side, 1 to 16: K×L for two sides. A reward x in [0, 1]
        adds x to one and 1 − x to the other. Arms without a trial don't affect the likelihood.

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
    >>> found.deviating(1)[0].levels
    (2, 1)

    Three sides, exactly a product:

    >>> import numpy as np
    >>> means = np.multiply.outer(np.outer([0.9, 0.6], [0.8, 0.4]), [0.5, 0.25, 0.1])
    >>> found = fit.fit(1000 * means, 1000 * (1 - means))
    >>> [side[:, 0].round(2).tolist() for side in found.effects], found.degrees_of_freedom
    ([[1.0, 0.67], [1.0, 0.5], [1.0, 0.5, 0.2]], 7)

    References
    ----------
    McCullagh, Nelder: Generalized linear models. 1989 (deviance, and its signed roots).
    https://doi.org/10.1201/9780203753736
    """
    s, f = tables(successes, failures)
    trials = s + f
    factors = [np.zeros(size) for size in s.shape]
    won = [over_others(s, side) > 0 for side in range(s.ndim)]
    if won[0].any():
        at = np.ix_(*won)
        for side, found in enumerate(optimum(s[at], f[at])):
            factors[side][won[side]] = found
    for side, found in enumerate(factors):
        tried = over_others(trials, side)
        if (tried == 0).any() and tried.any():
            found[tried == 0] = (found * tried).sum() / tried.sum()
    means = products(factors)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = s / trials
        fitted = (_x_log_y(s, means) + _x_log_y(f, 1 - means)).sum()
        saturated = (_x_log_y(s, rates) + _x_log_y(f, 1 - rates)).sum()
    return Fit(s, f, tuple(factors), float(fitted), float(saturated))
