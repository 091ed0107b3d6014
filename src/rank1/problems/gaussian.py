"""Gaussian rewards around a rank-one grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import inlined
from rank1.errors import InputError
from rank1.problems.arms import checked_factors
from rank1.problems.base import Floats, twins
from rank1.problems.rank_one import MAX_TABLE, RankOne
from rank1.rows import row_magic, row_of

__all__ = ["Gaussian"]


class GaussianLaw(NamedTuple):
    """N(mean, sigma²) by arm; the noise is on the mean, so nothing is shared."""

    means: Floats  # of each arm; empty if there are many: then a mean is u[row]·v[column]
    u: Floats  # empty unless there are two sides
    v: Floats
    sigma: float
    magic: int  # see `row_of`
    best: int  # the best arm
    best_mean: float
    row_twin: NDArray[np.int64]
    column_twin: NDArray[np.int64]

    @property
    def tally_size(self) -> int:
        """One sum."""
        return 1

    def gap(self, arm: int) -> float:
        """Mean of the best arm minus that of this one."""
        return self.best_mean - mean_of(self, arm)

    def draw(self, arm: int, rng: np.random.Generator) -> tuple[float, float]:
        """This arm's noise, then the best arm's unless it is the same."""
        reward = mean_of(self, arm) + self.sigma * rng.standard_normal()
        if arm == self.best:
            return reward, 0.0
        return reward, self.best_mean + self.sigma * rng.standard_normal() - reward

    def tally(
        self, arm: int, count: int, rng: np.random.Generator, tally: Floats
    ) -> tuple[float, float]:
        """A sum of independent normals is normal. The tally is the realised regret."""
        spread = self.sigma * math.sqrt(count)
        total = count * mean_of(self, arm) + spread * rng.standard_normal()
        tally[0] = 0.0
        if arm != self.best:
            tally[0] = count * self.best_mean + spread * rng.standard_normal() - total
        return total, tally[0]

    def split(
        self, arm: int, count: int, part: int, rng: np.random.Generator, tally: Floats
    ) -> float:
        """A bridge: given the total, the sum of the first `part` terms is normal."""
        first = tally[0] * (part / count)
        if part < count and arm != self.best:
            # Each term is the difference of two rewards, so its variance is 2·sigma².
            variance = 2.0 * part * ((count - part) / count)
            first += self.sigma * math.sqrt(variance) * rng.standard_normal()
        tally[0] -= first
        return first


@inlined
def mean_of(law: GaussianLaw, arm: int) -> float:
    """The mean of an arm."""
    if arm < len(law.means):
        return law.means[arm]
    row = row_of(arm, law.magic, len(law.v))
    return law.u[row] * law.v[arm - row * len(law.v)]


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

    @property
    def given(self) -> tuple[Any, ...]:
        """The factors of two sides, or the means; and sigma."""
        if len(self.factors) == 2:
            return "GaussianLaw", self.grid.sizes, *self.factors, self.sigma
        return "GaussianArmsLaw", self.grid.sizes, self.means.flatten(), self.sigma

    @cached_property
    def law(self) -> GaussianLaw:
        """The compiled form of the problem."""
        means, magic, twin = np.empty(0), 0, [np.empty(0, np.int64)] * 2
        u = v = self.factors[0][:0]
        if len(self.factors) == 2:
            u, v, magic = self.u, self.v, row_magic(self.K, self.L)
            twin = [twins(side, level) for side, level in zip((u, v), self.best_pair, strict=True)]
        if len(self.factors) != 2 or self.arms <= MAX_TABLE:
            means = self.means.flatten()
        best = self.best_arm, self.best_mean
        return GaussianLaw(means, u, v, self.sigma, magic, *best, twin[0], twin[1])
