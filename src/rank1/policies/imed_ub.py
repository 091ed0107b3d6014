"""IMED-UB: the least empirical divergence among the leader's row and column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit, record
from rank1.divergences import kl
from rank1.policies.base import Known, Policy, Records, require_unit_rewards
from rank1.policies.pending import (
    SHARED,
    add_pull,
    add_reports,
    first_pull,
    give_back,
    start_counts,
)

__all__ = ["IMEDUB"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT = record(
    *SHARED,
    "row",  # the leader's
    "column",
    log_mean=float,  # −log μ and −log(1 − μ) of the leader's average reward μ
    log_rest=float,
)

#: Stands for −log 0, so that nothing is NaN: zero times this is zero.
HUGE = 1e300
#: The two ways to compute an index differ by far less than this times N.
MARGIN = 1e-12


class IMEDUBState(NamedTuple):
    """Counts of the pairs, see `pending`, and a tournament for the leader.

    Node m of `leading` has the winner of nodes 2m and 2m + 1, by average reward and fewest pulls.
    Slots 0 … L − 1 have the pairs of the leader's row, slots L … L + K − 1 those of its column.
    """

    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    pulls: Ints  # N
    reports: Ints
    sums: Floats
    means: Floats  # average rewards μ; −∞ where there is no report
    log_pulls: Floats  # log N
    entropies: Floats  # μ·log μ + (1 − μ)·log(1 − μ); 0 where there is no report
    leading: Ints
    slot_pulls: Floats  # N of a slot's pair; 0 where there is no report
    slot_logs: Floats  # log N; ∞ for the leader
    slot_means: Floats
    slot_entropies: Floats

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        """Every pair once, then the least index near the leader."""
        k = first_pull(self)
        if k < 0:
            k = least_index(self)
        L = self.limits[0].L
        row = k // L
        hand_out(self, row, k - row * L)
        return row, k - row * L, 0

    def issued(self, row: int, column: int, tag: int) -> None:
        """This pull was handed out, whoever chose it."""
        hand_out(self, row, column)

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        """Add the reward to its pair."""
        add(self, row, column, 1, reward)

    def load(self, row: int, column: int, count: int, total: float) -> None:
        """So many rewards of this pair are known, with this sum."""
        if count > 0:
            add(self, row, column, count, total)

    def expects(self, row: int, column: int, tag: int) -> bool:
        """Any pull may be reported."""
        return True

    def forget(self, row: int, column: int, tag: int) -> IMEDUBState:
        """The pull no longer counts; a pair's only one is issued again."""
        k = row * self.limits[0].L + column
        give_back(self, k)
        self.log_pulls[k] = math.log(max(self.pulls[k], 1))
        settle(self, row, column)
        return self

    def best(self) -> tuple[int, int]:
        """The leader."""
        row, column = divmod(max(int(self.at[0].leader), 0), int(self.limits[0].L))
        return row, column


@inlined
def hand_out(state: IMEDUBState, row: int, column: int) -> None:
    """This pair was handed out."""
    k = row * state.limits[0].L + column
    add_pull(state, k)
    state.log_pulls[k] = math.log(state.pulls[k])
    settle(state, row, column)


@inlined
def add(state: IMEDUBState, row: int, column: int, count: int, total: float) -> None:
    """So many rewards of this pair came in, with this sum."""
    k = row * state.limits[0].L + column
    pulls = state.pulls[k]
    mean = add_reports(state, k, count, total)
    if pulls < state.pulls[k]:
        state.log_pulls[k] = math.log(state.pulls[k])
    log_mean = -math.log(mean) if mean > 0.0 else HUGE
    log_rest = -math.log1p(-mean) if mean < 1.0 else HUGE
    state.means[k] = mean
    state.entropies[k] = -mean * log_mean - (1.0 - mean) * log_rest
    settle(state, row, column)
    if k == state.at[0].leader:
        state.at[0].log_mean, state.at[0].log_rest = log_mean, log_rest


@inlined
def settle(state: IMEDUBState, row: int, column: int) -> None:
    """The counts of this pair have changed: find the leader, and fill the slots."""
    at, L = state.at[0], state.limits[0].L
    k = row * L + column
    leader = replay(state.means, state.pulls, state.leading, k)
    if leader != at.leader and state.reports[leader] > 0:
        gather(state, leader)
    else:
        if row == at.row:
            fill(state, column, k)
        if column == at.column:
            fill(state, L + row, k)


@inlined
def replay(means: Floats, pulls: Ints, leading: Ints, k: int) -> int:
    """The leader, after a change of pair k."""
    node = len(leading) // 2 + k
    while node > 1:
        node >>= 1
        best, other = leading[2 * node], leading[2 * node + 1]
        if means[other] > means[best] or (
            means[other] == means[best] and pulls[other] < pulls[best]
        ):
            best = other
        if leading[node] == best and best != k:
            break
        leading[node] = best
    return leading[1]


@jit
def gather(state: IMEDUBState, leader: int) -> None:
    """Put the row and the column of a new leader into the slots."""
    at, K, L = state.at[0], state.limits[0].K, state.limits[0].L
    at.leader = leader
    at.row = leader // L
    at.column = leader - at.row * L
    mean = state.means[leader]
    at.log_mean = -math.log(mean) if mean > 0.0 else HUGE
    at.log_rest = -math.log1p(-mean) if mean < 1.0 else HUGE
    for j in range(L):
        fill(state, j, at.row * L + j)
    for i in range(K):
        fill(state, L + i, i * L + at.column)


@inlined
def fill(state: IMEDUBState, slot: int, k: int) -> None:
    """Pair k is in this slot."""
    known = state.reports[k] > 0
    state.slot_pulls[slot] = state.pulls[k] if known else 0.0
    state.slot_logs[slot] = state.log_pulls[k] if k != state.at[0].leader else math.inf
    state.slot_means[slot] = state.means[k] if known else 0.0
    state.slot_entropies[slot] = state.entropies[k]


@inlined
def least_index(state: IMEDUBState) -> int:
    """The pair of the least index among the leader, its row and its column."""
    at = state.at[0]
    own = state.log_pulls[at.leader]
    x, y = at.log_mean, at.log_rest
    close = 0
    # N·kl(μ, q) = N·(μ·log μ + (1 − μ)·log(1 − μ) − μ·log q − (1 − μ)·log(1 − q)): no logarithm to
    # compute, and no branch. Mostly no index is as low as the leader's, which is log N.
    for slot in range(len(state.slot_pulls)):
        mean = state.slot_means[slot]
        divergence = state.slot_entropies[slot] + mean * x + (1.0 - mean) * y - MARGIN
        index = state.slot_pulls[slot] * divergence + state.slot_logs[slot]
        close += index <= own
    if close == 0:
        return at.leader
    return least_among(state)


@jit
def least_among(state: IMEDUBState) -> int:
    """The same where there are others than the leader to be compared."""
    at, L = state.at[0], state.limits[0].L
    leader, q = at.leader, state.means[at.leader]
    best, least = leader, state.log_pulls[leader]
    for slot in range(len(state.slot_pulls)):
        mean = state.slot_means[slot]
        divergence = state.slot_entropies[slot] + mean * at.log_mean + (1.0 - mean) * at.log_rest
        rough = state.slot_pulls[slot] * (divergence - MARGIN) + state.slot_logs[slot]
        if rough <= least:
            k = at.row * L + slot if slot < L else (slot - L) * L + at.column
            index = state.log_pulls[k]
            if state.reports[k] > 0:
                index += state.pulls[k] * kl(state.means[k], q)
            if index < least or (index == least and k < best):
                best, least = k, index
    return best


@dataclass(frozen=True)
class IMEDUB(Policy):
    """The least N·kl(μ, μ_leader) + log N among the pairs of the leader's row and column.

    Every pair once; then the leader is the pair of the largest average reward, of several the least
    pulled, of these the first. Among the leader, its row and its column the pair of the least index
    is played, the first of several; N counts a pair's pulls and μ is its average reward. The
    leader's own index is log N. There is nothing to set, and nothing is drawn at random.

    Notes
    -----
    N counts pulls from when they are handed out, and averages are of the rewards that came in. A
    pair with no report has nothing against it: its index is log N.

    The divergences are bounded by two multiplications each, and computed only where an index may be
    below the leader's. Choices are those of computing all K + L − 1.

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
    every_pair_first = True
    counts: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True

    def start(self, known: Known) -> IMEDUBState:
        """The state before the first step."""
        require_unit_rewards(self.name, known)
        pairs, slots = known.K * known.L, known.K + known.L
        at = np.zeros(1, AT)
        at[0].leader = at[0].row = at[0].column = -1
        leaves = 1 << (pairs - 1).bit_length()
        # Leaves that stand for no pair have the last one once more. All wait for a report.
        leading = np.zeros(2 * leaves, np.int64)
        leading[leaves:] = np.minimum(np.arange(leaves), pairs - 1)
        for node in range(leaves - 1, 0, -1):
            leading[node] = leading[2 * node]
        return IMEDUBState(
            known.limits,
            at,
            **start_counts(pairs),
            means=np.full(pairs, -math.inf),
            log_pulls=np.zeros(pairs),
            entropies=np.zeros(pairs),
            leading=leading,
            slot_pulls=np.zeros(slots),
            slot_logs=np.full(slots, math.inf),
            slot_means=np.zeros(slots),
            slot_entropies=np.zeros(slots),
        )
