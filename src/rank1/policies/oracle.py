"""The oracle: the best arm at every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.grid import MAX_ARMS
from rank1.policies.base import Deterministic, Known, Records, Simple, require_truth

__all__ = ["Oracle"]


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    arm: NDArray[np.int64]


class OracleState(_Arrays, Simple):
    """The best arm."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """The best arm."""
        return self.arm[0], 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Do nothing: there is nothing to learn."""

    def best(self) -> int:
        """The best arm."""
        return int(self.arm[0])


@dataclass(frozen=True)
class Oracle(Deterministic):
    """Play the best arm from the first step: a zero-regret baseline for plots.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=2, L=2, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.Oracle(), problem, n=1000, runs=2, seed=1)
    >>> float(result["oracle"].expected.max())
    0.0
    """

    name = "oracle"
    layout = 2
    most_arms = MAX_ARMS
    needs_truth = True

    def start(self, known: Known) -> OracleState:
        """The state before the first step."""
        self.check(known.grid)
        truth = require_truth(self.name, known)
        return OracleState(known.limits, np.array([truth.best_arm]))
