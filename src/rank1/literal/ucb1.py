"""UCB1, literally: the index of every arm in every step.

Auer, Cesa-Bianchi, Fischer: Finite-time analysis of the multiarmed bandit problem. Machine Learning
2002, Figure 1: play each arm once, then the arm with the largest mean + √(2·log t / T).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.policies.base import Known


class LiteralUCB1(NamedTuple):
    """Scalars are arrays of one entry, so that the methods can be compiled."""

    a: NDArray[np.float64]
    t: NDArray[np.int64]  # rewards so far
    issued: NDArray[np.bool_]  # arms that were played
    T: NDArray[np.int64]  # rewards of each arm
    sums: NDArray[np.float64]  # of rewards

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        best, largest = 0, -math.inf
        a_log_t = self.a[0] * math.log(max(self.t[0], 1))
        for k in range(len(self.T)):
            if not self.issued[k]:  # every arm once
                self.issued[k] = True
                return k, 1
            if self.T[k] > 0:
                # To twelve decimals, so that arms tie if their sums of fifths differ only in order.
                mean = np.rint(self.sums[k] / self.T[k] * 2.0**40) * 2.0**-40
                index = mean + math.sqrt(a_log_t / self.T[k])
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


def literal_ucb1(known: Known, confidence: float = 2.0) -> LiteralUCB1:
    """The settings are those of `rank1.UCB1`."""
    reach = known.high - known.low  # the radius grows with the range of the rewards
    w = max(1.0, reach) if math.isfinite(reach) else 1.0
    return LiteralUCB1(
        np.array([confidence * w**2]),
        np.zeros(1, np.int64),
        np.zeros(known.arms, np.bool_),
        np.zeros(known.arms, np.int64),
        np.zeros(known.arms),
    )
