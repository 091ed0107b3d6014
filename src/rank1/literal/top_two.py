"""TopTwo, literally: all means, and all neighbours of the leader, in every step.

EB-TCI of Jourdan, Degenne, Baudry, de Heide, Kaufmann: Top two algorithms revisited (NeurIPS 2022),
with the leader's neighbours instead of all other arms.
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


class LiteralTopTwo(NamedTuple):
    """N counts a pull as soon as it is handed out; means use the rewards that have arrived."""

    limits: Records  # see `Known.limits`
    share: NDArray[np.float64]  # β, one number
    again: Ints  # one number: how often an arm was pulled again because no reward had arrived
    N: Ints  # pulls of each arm
    T: Ints  # rewards of each arm
    sums: NDArray[np.float64]  # of rewards
    led: Ints  # how often an arm has been the leader

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        arms = len(self.N)
        leader, largest = -1, -1.0
        for k in range(arms):
            if self.N[k] == 0:  # every arm once
                self.N[k] = 1
                return k, 0
            if self.T[k] > 0 and self.sums[k] / self.T[k] > largest:
                leader, largest = k, self.sums[k] / self.T[k]
        if leader < 0:  # no reward has arrived: every arm once more
            arm = self.again[0] % arms
            self.again[0] += 1
        else:
            arm = leader
            self.led[leader] += 1
            led, least = self.led[leader], math.inf
            if math.floor(self.share[0] * led) == math.floor(self.share[0] * (led - 1)):
                for k in range(arms):
                    if k != leader and near(self.limits, k, leader):
                        W = 0.0
                        if self.T[k] > 0 and self.sums[k] / self.T[k] < largest:
                            mean, N_a, N_b = self.sums[k] / self.T[k], self.N[leader], self.N[k]
                            m = (N_a * largest + N_b * mean) / (N_a + N_b)
                            W = N_a * kl(largest, m) + N_b * kl(mean, m)
                        if W + math.log(self.N[k]) < least:
                            arm, least = k, W + math.log(self.N[k])
        self.N[arm] += 1
        return arm, 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        self.T[arm] += 1
        self.sums[arm] += reward

    def forget(self, arm: int, tag: int) -> None:
        self.N[arm] -= 1


def literal_top_two(known: Known, share: float | None = None) -> LiteralTopTwo:
    """The settings are those of `rank1.TopTwo`."""
    if share is None:
        share = 1 / (1 + math.sqrt(known.grid.cross))
    return LiteralTopTwo(
        known.limits,
        np.array([share]),
        np.zeros(1, np.int64),
        np.zeros(known.arms, np.int64),
        np.zeros(known.arms, np.int64),
        np.zeros(known.arms),
        np.zeros(known.arms, np.int64),
    )
