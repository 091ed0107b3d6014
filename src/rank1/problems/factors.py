"""The general case: factors with any law on [0, 1], possibly correlated within u or within v."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.problems.base import Floats
from rank1.problems.laws import Laws, checked, fill, means_of, spec_of
from rank1.problems.rank_one import RankOne
from rank1.rows import row_magic, row_of

__all__ = ["Factors"]


class FactorsLaw(NamedTuple):
    """Vectors u_t and v_t, drawn in advance for a block of steps."""

    u_block: Floats
    v_block: Floats
    used: NDArray[np.int64]
    u: Floats
    v: Floats
    magic: int  # see `row_of`
    best_row: int
    best_column: int

    def gap(self, arm: int) -> float:
        """Mean of the best pair minus that of this one."""
        row = row_of(arm, self.magic, len(self.v))
        column = arm - row * len(self.v)
        return self.u[self.best_row] * self.v[self.best_column] - self.u[row] * self.v[column]

    def draw(self, arm: int, rng: np.random.Generator) -> tuple[float, float]:
        """The paper's definition, literally: the next u_t and v_t serve both pairs."""
        row = row_of(arm, self.magic, len(self.v))
        column = arm - row * len(self.v)
        t = self.used[0]
        self.used[0] += 1
        reward = self.u_block[t, row] * self.v_block[t, column]
        best = self.u_block[t, self.best_row] * self.v_block[t, self.best_column]
        return reward, best - reward


class Factors(RankOne):
    """Factor values from any distribution on [0, 1]; u_t and v_t are independent of each other.

    Parameters
    ----------
    u_law, v_law
        Either one law per entry: a `Beta`, an `Interval` (uniform), a `Discrete`, a frozen SciPy
        distribution, a number p for Bernoulli(p), or plain values such as `["beta", 2, 1]`,
        `["interval", 0, 0.5]`, `["discrete", [0, 1], [0.3, 0.7]]`. Or one `Sampler` of whole
        vectors, whose entries may depend on each other.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.Factors([rank1.Beta(3, 1), 0.5], [["interval", 0.2, 0.6], ["beta", 1, 1]])
    >>> problem.u, problem.best_pair
    (array([0.75, 0.5 ]), (0, 1))

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, section 2.
    https://arxiv.org/abs/1608.03023
    """

    def __init__(self, u_law: Laws, v_law: Laws) -> None:
        self.u_law, self.v_law = checked("u_law", u_law), checked("v_law", v_law)
        self.factors = [means_of("u_law", self.u_law), means_of("v_law", self.v_law)]
        self.block = max(1, min(2**16, 2**21 // (self.K + self.L)))
        settings = {"u_law": spec_of(self.u_law), "v_law": spec_of(self.v_law)}
        self.description = {"name": "factors", "settings": settings}

    @property
    def given(self) -> tuple[Any, ...]:
        """The means, and a description of the laws."""
        return "FactorsLaw", self.u, self.v, json.dumps(self.description)

    @property
    def law(self) -> FactorsLaw:
        """The compiled form of the problem; call `refill` before using it."""
        assert self.block is not None
        return FactorsLaw(
            np.empty((self.block, self.K)),
            np.empty((self.block, self.L)),
            np.zeros(1, np.int64),
            self.u,
            self.v,
            row_magic(self.K, self.L),
            *self.best_pair,
        )

    def refill(self, law: FactorsLaw, rng: np.random.Generator) -> None:
        """Draw the next block of vectors, u first."""
        fill("u_law", law.u_block, self.u_law, rng)
        fill("v_law", law.v_block, self.v_law, rng)
        law.used[0] = 0
