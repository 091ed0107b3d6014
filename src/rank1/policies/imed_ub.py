"""IMED-UB: the smallest empirical divergence among the leader and its neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit, record
from rank1.divergences import kl
from rank1.policies.base import Known, Records, require_unit_rewards
from rank1.policies.counting import Counted, add_pull, add_reports, give_back, start_counts
from rank1.policies.every_arm_once import SHARED, EveryArmOnce, next_first
from rank1.policies.neighbours import gather, start_slots
from rank1.tournament import fewest_winner, put_second, start_tournament

__all__ = ["IMEDUB"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT = record(
    *SHARED,
    "home",  # the leader when last determined, see `neighbours`
    "stale",  # whether another arm may lead now
    log_mean=float,  # −log μ and −log(1 − μ) of the leader's average reward μ
    log_rest=float,
)

#: Replaces −log 0, so that nothing is NaN: zero times this is zero.
HUGE = 1e300
#: The two ways to compute an index differ by far less than MARGIN·N.
MARGIN = 1e-12


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    pulls: Ints  # N
    reports: Ints
    sums: Floats
    log_pulls: Floats  # log N
    entropies: Floats  # μ·log μ + (1 − μ)·log(1 − μ); 0 if there is no report
    top: Floats
    fewest: Ints
    arms: Ints
    slot: Ints
    slot_pulls: Floats  # N of a slot's arm; 0 if there is no report
    slot_logs: Floats  # log N; ∞ for the leader
    slot_means: Floats
    slot_entropies: Floats


class IMEDUBState(_Arrays, Counted):
    """Counts of the arms (see `counting`), the leader (see `tournament`), and its `neighbours`."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """Every arm once, then the smallest index near the leader."""
        arm = pick(self)
        hand_out(self, arm)
        return arm, 0

    def issued(self, arm: int, tag: int) -> None:
        """Record that this pull was handed out, whichever policy chose it."""
        if next_first(self.at, self.pulls) < 0:
            find_leader(self)
        hand_out(self, arm)

    def learn(self, arm: int, count: int, total: float) -> None:
        """Add `count` rewards of an arm with this sum."""
        pulls = self.pulls[arm]
        mean = add_reports(self, arm, count, total)
        if pulls < self.pulls[arm]:
            self.log_pulls[arm] = math.log(self.pulls[arm])
        log_mean, log_rest = logs(mean)
        self.entropies[arm] = -mean * log_mean - (1.0 - mean) * log_rest
        settle(self, arm, mean)
        if arm == self.at[0].home:
            self.at[0].log_mean, self.at[0].log_rest = log_mean, log_rest

    def forget(self, arm: int, tag: int) -> IMEDUBState:
        """Stop counting the pull; if it was an arm's only one, issue it again."""
        give_back(self, arm)
        self.log_pulls[arm] = math.log(max(self.pulls[arm], 1))
        settle(self, arm, mean_of(self, arm))
        return self

    def best(self) -> int:
        """The leader."""
        return int(fewest_winner(self.top, self.fewest)) if self.at[0].reported > 0 else 0


@inlined
def pick(state: IMEDUBState) -> int:
    """The next arm."""
    arm = next_first(state.at, state.pulls)
    if arm >= 0:
        return arm
    find_leader(state)
    return least_index(state)


@inlined
def hand_out(state: IMEDUBState, k: int) -> None:
    """Record that arm k was handed out."""
    add_pull(state, k)
    state.log_pulls[k] = math.log(state.pulls[k])
    settle(state, k, mean_of(state, k))


@inlined
def mean_of(state: IMEDUBState, k: int) -> float:
    """The average reward of arm k, read from the tournament."""
    return state.top[len(state.top) // 2 + k]


@inlined
def logs(mean: float) -> tuple[float, float]:
    """−log μ and −log(1 − μ)."""
    return (
        -math.log(mean) if mean > 0.0 else HUGE,
        -math.log1p(-mean) if mean < 1.0 else HUGE,
    )


@inlined
def settle(state: IMEDUBState, k: int, mean: float) -> None:
    """Update everything that depends on the counts and the mean of arm k."""
    at = state.at[0]
    if state.reports[k] > 0:
        put_second(state.top, state.fewest, k, mean, state.pulls[k], True)
        if k == at.home or at.home < 0 or mean >= mean_of(state, at.home):
            at.stale = 1
    if state.slot[k] >= 0:
        fill(state, state.slot[k], k)


@inlined
def find_leader(state: IMEDUBState) -> None:
    """Find the current leader, and fill the slots around a new one."""
    at = state.at[0]
    if at.stale == 1:
        at.stale = 0
        leader = fewest_winner(state.top, state.fewest)
        if leader != at.home:
            surround(state, leader)


@jit
def surround(state: IMEDUBState, leader: int) -> None:
    """Put a new leader and its neighbours into the slots."""
    gather(state.limits, state.at, state.arms, state.slot, leader)
    state.at[0].log_mean, state.at[0].log_rest = logs(mean_of(state, leader))
    for slot in range(len(state.arms)):
        fill(state, slot, state.arms[slot])


@inlined
def fill(state: IMEDUBState, slot: int, k: int) -> None:
    """Put arm k into this slot."""
    known = state.reports[k] > 0
    state.slot_pulls[slot] = state.pulls[k] if known else 0.0
    state.slot_logs[slot] = state.log_pulls[k] if k != state.at[0].home else math.inf
    state.slot_means[slot] = mean_of(state, k) if known else 0.0
    state.slot_entropies[slot] = state.entropies[k]


@inlined
def least_index(state: IMEDUBState) -> int:
    """The arm with the smallest index among the leader and its neighbours."""
    at = state.at[0]
    own = state.log_pulls[at.home]
    x, y = at.log_mean, at.log_rest
    close = 0
    # N·kl(μ, q) = N·(μ·log μ + (1 − μ)·log(1 − μ) − μ·log q − (1 − μ)·log(1 − q)): needs no
    # logarithm and no branch. Usually no index is as low as the leader's, which is log N.
    for slot in range(len(state.slot_pulls)):
        mean = state.slot_means[slot]
        divergence = state.slot_entropies[slot] + mean * x + (1.0 - mean) * y - MARGIN
        index = state.slot_pulls[slot] * divergence + state.slot_logs[slot]
        close += index <= own
    if close == 0:
        return at.home
    return least_among(state)


@jit
def least_among(state: IMEDUBState) -> int:
    """Like `least_index`, when some arm besides the leader may have the smallest index."""
    at = state.at[0]
    best, least = at.home, state.log_pulls[at.home]
    q = mean_of(state, at.home)
    for slot in range(len(state.slot_pulls)):
        mean = state.slot_means[slot]
        divergence = state.slot_entropies[slot] + mean * at.log_mean + (1.0 - mean) * at.log_rest
        rough = state.slot_pulls[slot] * (divergence - MARGIN) + state.slot_logs[slot]
        if rough <= least:
            k = state.arms[slot]
            index = state.log_pulls[k]
            if state.reports[k] > 0:
                index += state.pulls[k] * kl(mean, q)
            if index < least or (index == least and k < best):
                best, least = k, index
    return best


@dataclass(frozen=True)
class IMEDUB(EveryArmOnce):
    """Play the smallest N·kl(μ, μ_leader) + log N among the leader and its neighbours.

    Plays every arm once. Then the leader is the arm with the largest average reward; ties go to the
    least pulled arm, then to the first. Among the leader and its neighbours, the arms with one
    level changed, the arm with the smallest index is played (the first, if tied); N counts an arm's
    pulls and μ is its average reward. The leader's own index is log N. There are no settings and no
    random choices.

    Notes
    -----
    It assumes the same of a grid as [UTS](../policies/uts.md): an arm that isn't the best has a
    better neighbour.

    N counts a pull as soon as it is handed out; averages use the rewards that have arrived. An arm
    without a report has the index log N.

    Two multiplications bound each divergence; it is computed only if the index may be below the
    leader's. The choices are the same as when computing all.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.IMEDUB(), problem, n=100_000, runs=3, seed=1)
    >>> result.best_pairs("imed_ub")
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Saber, Ménard, Maillard: Indexed minimum empirical divergence for unimodal bandits. NeurIPS
    2021. IMED-UB is also in their Forced-exploration free strategies for unimodal bandits, 2020,
    https://arxiv.org/abs/2006.16569
    """

    name = "imed_ub"
    layout = 2

    def start(self, known: Known) -> IMEDUBState:
        """The state before the first step."""
        self.check(known.grid)
        require_unit_rewards(self.name, known)
        arms, slots = known.arms, known.grid.cross + 1
        at = np.zeros(1, AT)
        at[0].home = -1
        top, fewest = start_tournament(arms)
        return IMEDUBState(
            known.limits,
            at,
            **start_counts(arms),
            log_pulls=np.zeros(arms),
            entropies=np.zeros(arms),
            top=top,
            fewest=fewest,
            **start_slots(known),
            slot_pulls=np.zeros(slots),
            slot_logs=np.full(slots, math.inf),
            slot_means=np.zeros(slots),
            slot_entropies=np.zeros(slots),
        )
