"""Gaussian rewards around a rank-one grid."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.problems.base import Floats, twins
from rank1.problems.rank_one import RankOne

__all__ = ["Gaussian"]


class GaussianLaw(NamedTuple):
    """N(u[row]·v[column], sigma²); the noise sits on the product, so nothing is shared."""

    u: Floats
    v: Floats
    sigma: float
    best_row: int
    best_column: int
    row_twin: NDArray[np.int64]
    column_twin: NDArray[np.int64]

    @property
    def tally_size(self) -> int:
        """One sum."""
        return 1

    def gap(self, row: int, column: int) -> float:
        """Mean of the best pair less that of this one."""
        return self.u[self.best_row] * self.v[self.best_column] - self.u[row] * self.v[column]

    def draw(self, row: int, column: int, rng: np.random.Generator) -> tuple[float, float]:
        """This pair's noise, then the best pair's unless it is the same."""
        reward = self.u[row] * self.v[column] + self.sigma * rng.standard_normal()
        if row == self.best_row and column == self.best_column:
            return reward, 0.0
        best = self.u[self.best_row] * self.v[self.best_column]
        return reward, best + self.sigma * rng.standard_normal() - reward

    def tally(
        self, row: int, column: int, count: int, rng: np.random.Generator, tally: Floats
    ) -> tuple[float, float]:
        """A sum of independent normals is normal. The tally is the realised regret."""
        spread = self.sigma * math.sqrt(count)
        total = count * self.u[row] * self.v[column] + spread * rng.standard_normal()
        tally[0] = 0.0
        if row != self.best_row or column != self.best_column:
            best = count * self.u[self.best_row] * self.v[self.best_column]
            tally[0] = best + spread * rng.standard_normal() - total
        return total, tally[0]

    def split(
        self,
        row: int,
        column: int,
        count: int,
        part: int,
        rng: np.random.Generator,
        tally: Floats,
    ) -> float:
        """A bridge: of the sums that add up to the tally, those of `part` terms are normal."""
        first = tally[0] * (part / count)
        if part < count and (row != self.best_row or column != self.best_column):
            # Each term is the difference of two rewards, so its variance is 2·sigma².
            variance = 2.0 * part * ((count - part) / count)
            first += self.sigma * math.sqrt(variance) * rng.standard_normal()
        tally[0] -= first
        return first


class Gaussian(RankOne):
    """Rewards N(u[i]·v[j], sigma²), the model of the paper's conclusion and third theorem.

    Parameters
    ----------
    u, v
        Factors of the means, each in [0, 1].
    sigma
        Standard deviation of the noise, above 0.

    Examples
    --------
    >>> import rank1
    >>> rank1.Gaussian(u=[0.9, 0.5], v=[0.4, 0.8], sigma=0.5).best_pair
    (0, 1)

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, section 7 and appendix B.
    https://arxiv.org/abs/1608.03023
    """

    low, high = -math.inf, math.inf

    def __init__(self, u: ArrayLike, v: ArrayLike, sigma: float) -> None:
        self.u = checks.vector("u", u)
        self.v = checks.vector("v", v)
        self.sigma = checks.number("sigma", sigma, 0, 1e6, above=True)
        settings = {"u": self.u.tolist(), "v": self.v.tolist(), "sigma": self.sigma}
        self.description = {"name": "gaussian", "settings": settings}

    @cached_property
    def law(self) -> GaussianLaw:
        """The compiled side of the problem."""
        row, column = self.best_pair
        return GaussianLaw(
            self.u, self.v, self.sigma, row, column, twins(self.u, row), twins(self.v, column)
        )
