"""UTS, literally: all means, and the samples of the leader and its neighbours.

Trinh, Kaufmann, Vernade, Combes: Solving Bernoulli rank-one bandits with unimodal Thompson
sampling. ALT 2020.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.literal.cross import near
from rank1.policies.base import Known, Records

Ints = NDArray[np.int64]


class LiteralUTS(NamedTuple):
    """An arm's posterior is Beta(1 + successes, 1 + failures), with T the sum of both."""

    limits: Records  # see `Known.limits`
    gamma: NDArray[np.float64]  # γ, one number
    first_round: NDArray[np.bool_]  # one number
    successes: Ints
    T: Ints  # rewards of each arm
    sums: NDArray[np.float64]  # of rewards
    led: Ints  # how often an arm has been the leader
    uniform: NDArray[np.float64]  # one number that decides whether the next reward is a success

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        arms = len(self.T)
        # The leader has the largest mean; ties are broken at random.
        leader, tied, largest = 0, 0, -1.0
        for k in range(arms):
            if self.first_round[0] and self.T[k] == 0:  # every arm once
                self.uniform[0] = rng.random()
                return k, 0
            mean = self.sums[k] / max(1, self.T[k])  # 0 without a reward
            if mean > largest:
                leader, tied, largest = k, 1, mean
            elif mean == largest:
                tied += 1
        if tied > 1:
            place = int(rng.random() * tied)
            for k in range(arms):
                if self.sums[k] / max(1, self.T[k]) == largest:
                    if place == 0:
                        leader = k
                    place -= 1
        self.led[leader] += 1
        arm, best = leader, -1.0
        if self.led[leader] % self.gamma[0] != 0:
            # Thompson sampling among the leader and its neighbours.
            for k in range(arms):
                if near(self.limits, k, leader):
                    won = self.successes[k]
                    sample = rng.beta(1.0 + won, 1.0 + self.T[k] - won)
                    if sample > best:
                        arm, best = k, sample
        self.uniform[0] = rng.random()
        return arm, 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        self.T[arm] += 1
        self.sums[arm] += reward
        if self.uniform[0] < reward:
            self.successes[arm] += 1


def literal_uts(known: Known, gamma: float = 2, first_round: bool = True) -> LiteralUTS:
    """The settings are those of `rank1.UTS`."""
    return LiteralUTS(
        known.limits,
        np.array([float(gamma)]),
        np.array([first_round]),
        np.zeros(known.arms, np.int64),
        np.zeros(known.arms, np.int64),
        np.zeros(known.arms),
        np.zeros(known.arms, np.int64),
        np.zeros(1),
    )
