"""Uniform play: the baseline that every policy should beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.policies.averages import Averages
from rank1.policies.base import Known, Policy, Records

__all__ = ["Uniform"]


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    sums: NDArray[np.float64]
    counts: NDArray[np.int64]


class UniformState(_Arrays, Averages):
    """Sums and counts of each arm, which only `best` reads."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """A random arm."""
        return int(rng.random() * len(self.counts)), 0


@dataclass(frozen=True)
class Uniform(Policy):
    """Play every arm with the same probability, regardless of the rewards.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=2, L=2, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.Uniform(), problem, n=10_000, runs=1, seed=1)
    >>> result.best_pairs("uniform")
    [(0, 0)]
    """

    name = "uniform"

    def propensity(self, arms: int) -> float:
        """The same for all arms."""
        return 1 / arms

    def start(self, known: Known) -> UniformState:
        """The state before the first step."""
        self.check(known.grid)
        return UniformState(known.limits, np.zeros(known.arms), np.zeros(known.arms, np.int64))
