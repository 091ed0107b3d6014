"""Uniform play: the line that every policy should stay below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.policies.base import Known, Policy, Records
from rank1.policies.every_pair_once import best_mean

__all__ = ["Uniform"]


class UniformState(NamedTuple):
    """Sums and counts of each pair; only `best` looks at them."""

    limits: Records  # see `Known.limits`
    sums: NDArray[np.float64]
    counts: NDArray[np.int64]

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        """Any pair: a row, then a column."""
        K, L = self.counts.shape
        return int(rng.random() * K), int(rng.random() * L), 0

    def issued(self, row: int, column: int, tag: int) -> None:
        """Nothing depends on it."""

    def load(self, row: int, column: int, count: int, total: float) -> None:
        """Count the rewards."""
        self.sums[row, column] += total
        self.counts[row, column] += count

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        """Count the reward."""
        self.sums[row, column] += reward
        self.counts[row, column] += 1

    def expects(self, row: int, column: int, tag: int) -> bool:
        """Any pull may be reported."""
        return True

    def forget(self, row: int, column: int, tag: int) -> UniformState:
        """Nothing depends on a pull that isn't reported."""
        return self

    def best(self) -> tuple[int, int]:
        """The pair of the largest average."""
        return best_mean(self.sums, self.counts)


@dataclass(frozen=True)
class Uniform(Policy):
    """Play every pair with the same probability, whatever comes back.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=2, L=2, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.Uniform(), problem, n=10_000, runs=1, seed=1)
    >>> result.best_pairs("uniform")
    [(0, 0)]
    """

    name = "uniform"
    counts = True

    def propensity(self, K: int, L: int) -> float:
        """All pairs are alike."""
        return 1 / (K * L)

    def start(self, known: Known) -> UniformState:
        """The state before the first step."""
        shape = known.K, known.L
        return UniformState(known.limits, np.zeros(shape), np.zeros(shape, np.int64))
