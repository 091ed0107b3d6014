"""IMED-UB, literally: all means, and all indices around the leader, in every step.

Saber, Ménard, Maillard: Indexed minimum empirical divergence for unimodal bandits. NeurIPS 2021.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.literal.cross import near
from rank1.literal.divergence import kl
from rank1.policies.base import Known, Records

Ints = NDArray[np.int64]


class LiteralIMEDUB(NamedTuple):
    """N counts a pull as soon as it is handed out; means use the rewards that have arrived."""

    limits: Records  # see `Known.limits`
    again: Ints  # one number: how often an arm was pulled again because no reward had arrived
    N: Ints  # pulls of each arm
    T: Ints  # rewards of each arm
    sums: NDArray[np.float64]  # of rewards

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        arms = len(self.N)
        leader, largest = -1, -1.0
        for k in range(arms):
            if self.N[k] == 0:  # every arm once
                self.N[k] = 1
                return k, 0
            if self.T[k] > 0:
                mean = self.sums[k] / self.T[k]
                if mean > largest or (mean == largest and self.N[k] < self.N[leader]):
                    leader, largest = k, mean
        if leader < 0:  # no reward has arrived: every arm once more
            arm = self.again[0] % arms
            self.again[0] += 1
        else:
            arm, least = leader, math.inf
            for k in range(arms):
                if near(self.limits, k, leader):
                    index = math.log(self.N[k])
                    if self.T[k] > 0:
                        index += self.N[k] * kl(self.sums[k] / self.T[k], largest)
                    if index < least:
                        arm, least = k, index
        self.N[arm] += 1
        return arm, 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        self.T[arm] += 1
        self.sums[arm] += reward

    def forget(self, arm: int, tag: int) -> None:
        self.N[arm] -= 1


def literal_imed_ub(known: Known) -> LiteralIMEDUB:
    """There are no settings."""
    return LiteralIMEDUB(
        known.limits,
        np.zeros(1, np.int64),
        np.zeros(known.arms, np.int64),
        np.zeros(known.arms, np.int64),
        np.zeros(known.arms),
    )
