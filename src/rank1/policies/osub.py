"""OSUB: KL-UCB among the leader and its neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import inlined, record
from rank1.divergences import kl_level, kl_upper
from rank1.policies.averages import Averages
from rank1.policies.base import Known, Records, require_unit_rewards
from rank1.policies.every_arm_once import (
    SHARED,
    BeginsWithAll,
    EveryArmOnce,
    first_pull,
    note_first,
)
from rank1.policies.neighbours import gather, start_slots
from rank1.tournament import put, start_tournament, winner

__all__ = ["OSUB"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT = record(
    *SHARED,
    "by_leader",  # 1 if the level depends on how often the leader has led
    "home",  # see `neighbours`
    c=float,  # the setting
)


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    begun: NDArray[np.bool_]  # arms whose first pull was issued
    arms: Ints
    slot: Ints
    top: Floats
    sums: Floats  # of rewards
    counts: Ints  # T
    entropies: Floats  # T·(m·log m + (1 − m)·log(1 − m)) for the mean m
    led: Ints  # how often an arm has been the leader


class OSUBState(_Arrays, BeginsWithAll, Averages):
    """Counts and sums of each arm, the tournament of their means, and the leader's `neighbours`."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """Every arm once, then the leader or a neighbour."""
        arm, tag = first_pull(self.at, self.begun)
        return largest_index(self, lead(self)) if arm < 0 else arm, tag

    def issued(self, arm: int, tag: int) -> None:
        """Record a first pull, or that the leader has led once more."""
        if not note_first(self.at, self.begun, arm, tag):
            lead(self)

    def learn(self, arm: int, count: int, total: float) -> None:
        """Add rewards to an arm."""
        self.at[0].reported += count
        self.counts[arm] += count
        self.sums[arm] += total
        won, lost = self.sums[arm], self.counts[arm] - self.sums[arm]
        mean = won / self.counts[arm]
        entropy = 0.0
        if won > 0.0:
            entropy += won * math.log(mean)
        if lost > 0.0:
            entropy += lost * math.log1p(-mean)
        self.entropies[arm] = entropy
        put(self.top, arm, mean)


@inlined
def lead(state: OSUBState) -> int:
    """Return the leader, and count that it leads."""
    leader = winner(state.top)
    if leader != state.at[0].home:
        gather(state.limits, state.at, state.arms, state.slot, leader)
    state.led[leader] += 1
    return leader


@inlined
def largest_index(state: OSUBState, leader: int) -> int:
    """The leader if it is its turn; otherwise the largest index among it and its neighbours."""
    slots = len(state.arms)
    if state.led[leader] % slots == 0:
        return leader
    at = state.at[0]
    level = kl_level(state.led[leader] if at.by_leader == 1 else at.reported, at.c)
    found, best = leader, -1.0
    log_best, log_rest = 0.0, 0.0
    for place in range(-1, slots):
        # The leader first, because it usually wins: then no other equation needs solving.
        k = state.arms[place] if place >= 0 else leader
        count, won = state.counts[k], state.sums[k]
        if count == 0 or (k == leader and place >= 0):
            continue
        # The index is at most `best` if T·kl(mean, best) ≥ level. This test costs no logarithm.
        divergence = state.entropies[k] - won * log_best - (count - won) * log_rest
        if won < best * count and divergence > level + 1e-12 * count:
            continue
        index = kl_upper(won / count, level / count)
        if index > best or (index == best and k < found):
            found, best = k, index
            # Slightly lower, so that rounding can't hide a larger index.
            below = best * (1.0 - 1e-14)
            log_best, log_rest = np.log(below), np.log1p(-below)
    return found


@dataclass(frozen=True)
class OSUB(EveryArmOnce):
    """KL-UCB among the leader and its neighbours, the arms with one level changed.

    Plays every arm once. Then the leader is the arm with the largest average reward (the first, if
    tied). It has Σ(K_d − 1) neighbours: with two sides, its row and its column. Whenever the number
    of times that an arm has led is a multiple of this number plus one, the arm itself is played;
    otherwise the arm with the largest index max{q : T·kl(mean, q) ≤ log t + c·log log t} among the
    leader and its neighbours (the first, if tied); t counts the rewards so far.

    Parameters
    ----------
    c
        Factor of log log t, at least 0.
    level
        What t counts: "time", all rewards so far; or "leader", how often the leader has led.

    Notes
    -----
    It assumes the same of a grid as [UTS](../policies/uts.md): an arm that isn't the best has a
    better neighbour.

    An index is computed only if it may win: T·kl(mean, q) at the largest index q so far is compared
    with the level first. The choices are the same as when computing all.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.OSUB(), problem, n=100_000, runs=3, seed=1)
    >>> result.best_pairs("osub")
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Combes, Proutière: Unimodal bandits: regret lower bounds and optimal algorithms. ICML 2014.
    https://arxiv.org/abs/1405.5096

    Garivier, Cappé: The KL-UCB algorithm for bounded stochastic bandits and beyond. COLT 2011.
    https://arxiv.org/abs/1102.2490
    """

    name = "osub"
    layout = 4
    c: float = 3.0
    level: str = "time"

    def __post_init__(self) -> None:
        checks.number("c", self.c, 0, 1e9)
        checks.one_of("level", self.level, ("time", "leader"))

    def start(self, known: Known) -> OSUBState:
        """The state before the first step."""
        self.check(known.grid)
        require_unit_rewards(self.name, known)
        arms = known.arms
        at = np.zeros(1, AT)
        at[0].c, at[0].by_leader, at[0].home = self.c, self.level == "leader", -1
        return OSUBState(
            known.limits,
            at,
            np.zeros(arms, np.bool_),
            **start_slots(known),
            top=start_tournament(arms)[0],
            sums=np.zeros(arms),
            counts=np.zeros(arms, np.int64),
            entropies=np.zeros(arms),
            led=np.zeros(arms, np.int64),
        )
