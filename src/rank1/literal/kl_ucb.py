"""KL-UCB, literally: the index of every arm in every step, by bisection.

Garivier, Cappé: The KL-UCB algorithm for bounded stochastic bandits and beyond. COLT 2011,
Algorithm 1: play each arm once, then the arm with the largest max{q : T·kl(mean, q) ≤ log t +
c·log log t}.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.divergences import kl_upper
from rank1.literal.divergence import exploration_level, upper_end
from rank1.policies.base import Known


class LiteralKLUCB(NamedTuple):
    """Scalars are arrays of one entry, so that the methods can be compiled."""

    c: NDArray[np.float64]
    bisect: NDArray[np.bool_]
    t: NDArray[np.int64]  # rewards so far
    issued: NDArray[np.bool_]  # arms that were played
    T: NDArray[np.int64]  # rewards of each arm
    sums: NDArray[np.float64]  # of rewards

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        best, largest = 0, -math.inf
        level = exploration_level(self.t[0], self.c[0])
        for k in range(len(self.T)):
            if not self.issued[k]:  # every arm once
                self.issued[k] = True
                return k, 1
            T = self.T[k]
            if T > 0:
                mean = self.sums[k] / T
                index = upper_end(mean, T, level) if self.bisect[0] else kl_upper(mean, level / T)
                if index > largest:
                    best, largest = k, index
        return best, 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        self.t[0] += 1
        self.T[arm] += 1
        self.sums[arm] += reward

    def forget(self, arm: int, tag: int) -> None:
        if tag == 1:  # it was the arm's first
            self.issued[arm] = False


def literal_kl_ucb(known: Known, c: float = 3.0, *, bisect: bool = True) -> LiteralKLUCB:
    """The settings are those of `rank1.KLUCB`; without `bisect` it uses the policy's own solver.

    Then both also round in the same way, and differ only in how many indices they compute.
    """
    return LiteralKLUCB(
        np.array([float(c)]),
        np.array([bisect]),
        np.zeros(1, np.int64),
        np.zeros(known.arms, np.bool_),
        np.zeros(known.arms, np.int64),
        np.zeros(known.arms),
    )
