"""The oracle: the best pair at every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.policies.base import Known, Policy, Records, require_truth

__all__ = ["Oracle"]


class OracleState(NamedTuple):
    """The best pair."""

    limits: Records  # see `Known.limits`
    pair: NDArray[np.int64]

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        """The best pair."""
        return self.pair[0], self.pair[1], 0

    def issued(self, row: int, column: int, tag: int) -> None:
        """Nothing depends on the past."""

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        """There is nothing to learn."""

    def expects(self, row: int, column: int, tag: int) -> bool:
        """Any pull may be reported."""
        return True

    def forget(self, row: int, column: int, tag: int) -> OracleState:
        """Nothing depends on the past."""
        return self

    def best(self) -> tuple[int, int]:
        """The best pair."""
        return int(self.pair[0]), int(self.pair[1])


@dataclass(frozen=True)
class Oracle(Policy):
    """Play the best pair from the first step: no regret, for a sanity line in plots.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=2, L=2, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.Oracle(), problem, n=1000, runs=2, seed=1)
    >>> float(result["oracle"].expected.max())
    0.0
    """

    name = "oracle"
    deterministic = True

    @property
    def needs_truth(self) -> bool:
        """It is told the best pair."""
        return True

    def start(self, known: Known) -> OracleState:
        """The state before the first step."""
        truth = require_truth(self.name, known)
        return OracleState(known.limits, np.array(truth.best_pair, np.int64))
