"""Gaussian rewards around a rank-one grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import inlined
from rank1.errors import InputError
from rank1.problems.arms import checked_factors
from rank1.problems.base import Floats, twins
from rank1.problems.rank_one import RankOne
from rank1.rows import row_magic, row_of

__all__ = ["Gaussian"]


@inlined
def draw_normal(
    mean: float, best: float, sigma: float, is_best: bool, rng: np.random.Generator
) -> tuple[float, float]:
    """This arm's noise, then the best arm's unless it is the same."""
    reward = mean + sigma * rng.standard_normal()
    if is_best:
        return reward, 0.0
    return reward, best + sigma * rng.standard_normal() - reward


@inlined
def tally_normal(
    count: int, mean: float, best: float, sigma: float, is_best: bool,
    rng: np.random.Generator, tally: Floats,
) -> tuple[float, float]:  # fmt: skip
    """A sum of independent normals is normal. The tally is the realised regret."""
    spread = sigma * math.sqrt(count)
    total = count * mean + spread * rng.standard_normal()
    tally[0] = 0.0
    if not is_best:
        tally[0] = count * best + spread * rng.standard_normal() - total
    return total, tally[0]


@inlined
def split_normal(
    count: int, part: int, sigma: float, is_best: bool, rng: np.random.Generator, tally: Floats
) -> float:
    """A bridge: given the total, the sum of the first `part` terms is normal."""
    first = tally[0] * (part / count)
    if part < count and not is_best:
        # Each term is the difference of two rewards, so its variance is 2·sigma².
        variance = 2.0 * part * ((count - part) / count)
        first += sigma * math.sqrt(variance) * rng.standard_normal()
    tally[0] -= first
    return first


class GaussianLaw(NamedTuple):
    """N(u[row]·v[column], sigma²); the noise is on the product, so nothing is shared."""

    u: Floats
    v: Floats
    sigma: float
    magic: int  # see `row_of`
    best_row: int
    best_column: int
    row_twin: NDArray[np.int64]
    column_twin: NDArray[np.int64]

    @property
    def tally_size(self) -> int:
        """One sum."""
        return 1

    def gap(self, arm: int) -> float:
        """Mean of the best pair minus that of this one."""
        return best_of(self) - mean_of(self, arm)

    def draw(self, arm: int, rng: np.random.Generator) -> tuple[float, float]:
        """Two normals, or one for the best pair."""
        return draw_normal(mean_of(self, arm), best_of(self), self.sigma, is_best(self, arm), rng)

    def tally(
        self, arm: int, count: int, rng: np.random.Generator, tally: Floats
    ) -> tuple[float, float]:
        """Normal sums."""
        mean, best = mean_of(self, arm), best_of(self)
        return tally_normal(count, mean, best, self.sigma, is_best(self, arm), rng, tally)

    def split(
        self, arm: int, count: int, part: int, rng: np.random.Generator, tally: Floats
    ) -> float:
        """A bridge."""
        return split_normal(count, part, self.sigma, is_best(self, arm), rng, tally)


@inlined
def mean_of(law: GaussianLaw, arm: int) -> float:
    """The mean of an arm."""
    row = row_of(arm, law.magic, len(law.v))
    return law.u[row] * law.v[arm - row * len(law.v)]


@inlined
def best_of(law: GaussianLaw) -> float:
    """The mean of the best arm."""
    return law.u[law.best_row] * law.v[law.best_column]


@inlined
def is_best(law: GaussianLaw, arm: int) -> bool:
    """Whether this is the best arm."""
    return arm == law.best_row * len(law.v) + law.best_column


class GaussianArmsLaw(NamedTuple):
    """The same by arm, for one side or more than two."""

    means: Floats
    sigma: float
    best: int
    row_twin: NDArray[np.int64]
    column_twin: NDArray[np.int64]

    @property
    def tally_size(self) -> int:
        """One sum."""
        return 1

    def gap(self, arm: int) -> float:
        """Mean of the best arm minus that of this one."""
        return self.means[self.best] - self.means[arm]

    def draw(self, arm: int, rng: np.random.Generator) -> tuple[float, float]:
        """Two normals, or one for the best arm."""
        best = self.means[self.best]
        return draw_normal(self.means[arm], best, self.sigma, arm == self.best, rng)

    def tally(
        self, arm: int, count: int, rng: np.random.Generator, tally: Floats
    ) -> tuple[float, float]:
        """Normal sums."""
        mean, best = self.means[arm], self.means[self.best]
        return tally_normal(count, mean, best, self.sigma, arm == self.best, rng, tally)

    def split(
        self, arm: int, count: int, part: int, rng: np.random.Generator, tally: Floats
    ) -> float:
        """A bridge."""
        return split_normal(count, part, self.sigma, arm == self.best, rng, tally)


class Gaussian(RankOne):
    """Rewards N(u[i]·v[j], sigma²), the model of the paper's conclusion and third theorem.

    Parameters
    ----------
    u, v
        Factors of the means, each in [0, 1].
    sigma
        Standard deviation of the noise, above 0.
    factors
        One list of factors per side, instead of u and v, for any number of sides.

    Examples
    --------
    >>> import rank1
    >>> rank1.Gaussian(u=[0.9, 0.5], v=[0.4, 0.8], sigma=0.5).best_pair
    (0, 1)
    >>> rank1.Gaussian(factors=[[0.9, 0.5], [0.4, 0.8], [1.0, 0.5]], sigma=0.5).grid.sizes
    (2, 2, 2)

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, section 7 and appendix B.
    https://arxiv.org/abs/1608.03023
    """

    low, high = -math.inf, math.inf

    def __init__(
        self,
        u: ArrayLike | None = None,
        v: ArrayLike | None = None,
        sigma: float = 1.0,
        *,
        factors: Sequence[ArrayLike] | None = None,
    ) -> None:
        self.sigma = checks.number("sigma", sigma, 0, 1e6, above=True)
        if factors is None:
            self.factors = [
                checks.vector("u", () if u is None else u),
                checks.vector("v", () if v is None else v),
            ]
            settings = {"u": self.u.tolist(), "v": self.v.tolist(), "sigma": self.sigma}
        elif u is not None or v is not None:
            raise InputError("factors", factors, "None if u and v are given")
        else:
            self.factors = checked_factors("factors", factors)
            settings = {"factors": [side.tolist() for side in self.factors], "sigma": self.sigma}
        self.description = {"name": "gaussian", "settings": settings}

    @cached_property
    def law(self) -> GaussianLaw | GaussianArmsLaw:
        """The compiled form of the problem."""
        if len(self.factors) != 2:
            none = np.empty(0, np.int64)
            return GaussianArmsLaw(self.means.flatten(), self.sigma, self.best_arm, none, none)
        row, column = self.best_pair
        lines = twins(self.u, row), twins(self.v, column)
        magic = row_magic(self.K, self.L)
        return GaussianLaw(self.u, self.v, self.sigma, magic, row, column, *lines)
