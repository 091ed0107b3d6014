"""OSUB, literally: all means, and all indices around the leader by bisection, in every step.

Combes, Proutière: Unimodal bandits: regret lower bounds and optimal algorithms. ICML 2014. There
the level of the index uses the number of times that the leader has led instead of t, as here with
level="leader".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.divergences import kl_upper
from rank1.literal.cross import near
from rank1.literal.divergence import exploration_level, upper_end
from rank1.policies.base import Known, Records

Ints = NDArray[np.int64]


class LiteralOSUB(NamedTuple):
    """Scalars are arrays of one entry, so that the methods can be compiled."""

    limits: Records  # see `Known.limits`
    c: NDArray[np.float64]
    by_leader: NDArray[np.bool_]
    bisect: NDArray[np.bool_]
    slots: Ints  # the number of competing arms: the leader and its neighbours
    t: Ints  # rewards so far
    T: Ints  # rewards of each arm
    sums: NDArray[np.float64]  # of rewards
    led: Ints  # how often an arm has been the leader

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        leader, largest = 0, -1.0
        for k in range(len(self.T)):
            if self.T[k] == 0:  # every arm once
                return k, 0
            if self.sums[k] / self.T[k] > largest:
                leader, largest = k, self.sums[k] / self.T[k]
        self.led[leader] += 1
        if self.led[leader] % self.slots[0] == 0:
            return leader, 0
        t = self.led[leader] if self.by_leader[0] else self.t[0]
        level = exploration_level(t, self.c[0])
        arm, best = leader, -1.0
        for k in range(len(self.T)):
            if near(self.limits, k, leader):
                mean, T = self.sums[k] / self.T[k], self.T[k]
                index = upper_end(mean, T, level) if self.bisect[0] else kl_upper(mean, level / T)
                if index > best:
                    arm, best = k, index
        return arm, 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        self.t[0] += 1
        self.T[arm] += 1
        self.sums[arm] += reward


def literal_osub(
    known: Known, c: float = 3.0, level: str = "time", *, bisect: bool = True
) -> LiteralOSUB:
    """The settings are those of `rank1.OSUB`; without `bisect` it uses the policy's own solver."""
    return LiteralOSUB(
        known.limits,
        np.array([float(c)]),
        np.array([level == "leader"]),
        np.array([bisect]),
        np.array([known.grid.cross + 1]),
        np.zeros(1, np.int64),
        np.zeros(known.arms, np.int64),
        np.zeros(known.arms),
        np.zeros(known.arms, np.int64),
    )
