"""OSUB: KL-UCB among the leader's row and column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import inlined, record
from rank1.divergences import kl_level, kl_upper
from rank1.policies.base import Known, Policy, Records, require_unit_rewards
from rank1.policies.every_pair_once import SHARED, first_pulls, issue_again, mark_begun, note_first
from rank1.policies.unimodal import first_leader, report_mean, start_unimodal, tied_leader

__all__ = ["OSUB"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT = record(
    *SHARED,
    "by_leader",  # 1 if the level is that of the leader's count
    c=float,  # the setting
)


class OSUBState(NamedTuple):
    """Means and leaders of the pairs in row-major order; see `unimodal`."""

    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    begun: NDArray[np.bool_]  # pairs whose first pull was issued
    top: Floats
    ties: Ints
    sums: Floats  # of rewards
    counts: Ints  # T
    entropies: Floats  # T·(m·log m + (1 − m)·log(1 − m)) for the mean m
    led: Ints  # how often a pair has been the leader

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        """Every pair once, then one near the leader."""
        k, tag = first_pulls(self.at, self.begun)
        if k < 0:
            k = play_leader(self)
        L = self.limits[0].L
        row = k // L
        return row, k - row * L, tag

    def issued(self, row: int, column: int, tag: int) -> None:
        """A first pull is noted; for any other a pair has led once more."""
        if not note_first(self.at, self.begun, row * self.limits[0].L + column, tag):
            self.led[tied_leader(self.top, self.ties, 0)] += 1

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        """Add the reward to its pair."""
        learn(self, row * self.limits[0].L + column, 1, reward)

    def load(self, row: int, column: int, count: int, total: float) -> None:
        """So many rewards are known of the pair."""
        if count > 0:
            k = row * self.limits[0].L + column
            mark_begun(self.at, self.begun, k)
            learn(self, k, count, total)

    def expects(self, row: int, column: int, tag: int) -> bool:
        """Any pull may be reported."""
        return True

    def forget(self, row: int, column: int, tag: int) -> OSUBState:
        """A pair's first pull is issued again; nothing else depends on the pull."""
        issue_again(self.at, self.begun, row * int(self.limits[0].L) + column, tag)
        return self

    def best(self) -> tuple[int, int]:
        """The leader."""
        row, column = divmod(first_leader(self), int(self.limits[0].L))
        return row, column


@inlined
def learn(state: OSUBState, k: int, count: int, total: float) -> None:
    """Add rewards to pair k."""
    state.at[0].reported += count
    state.counts[k] += count
    state.sums[k] += total
    won, lost = state.sums[k], state.counts[k] - state.sums[k]
    mean = won / state.counts[k]
    entropy = 0.0
    if won > 0.0:
        entropy += won * math.log(mean)
    if lost > 0.0:
        entropy += lost * math.log1p(-mean)
    state.entropies[k] = entropy
    report_mean(state, k, mean)


@inlined
def play_leader(state: OSUBState) -> int:
    """The leader, or the largest index among it, its row and its column."""
    leader = tied_leader(state.top, state.ties, 0)
    rows, columns = state.limits[0].K, state.limits[0].L
    state.led[leader] += 1
    if state.led[leader] % (rows + columns - 1) == 0:
        return leader
    at = state.at[0]
    level = kl_level(state.led[leader] if at.by_leader == 1 else at.reported, at.c)
    row = leader // columns
    column = leader - row * columns
    winner, best = leader, -1.0
    log_best, log_rest = 0.0, 0.0
    for place in range(-1, columns + rows):
        if place < 0:
            k = leader  # first, because it mostly wins: then no other equation has to be solved
        elif place < columns:
            k = row * columns + place
        else:
            k = (place - columns) * columns + column
        count, won = state.counts[k], state.sums[k]
        if count == 0 or (k == leader and place >= 0):
            continue
        # The index is at most `best` where T·kl(mean, best) ≥ level. This test costs no logarithm.
        divergence = state.entropies[k] - won * log_best - (count - won) * log_rest
        if won < best * count and divergence > level + 1e-12 * count:
            continue
        index = kl_upper(won / count, level / count)
        if index > best or (index == best and k < winner):
            winner, best = k, index
            # A little below, so that rounding can't hide an index that is larger.
            below = best * (1.0 - 1e-14)
            log_best, log_rest = np.log(below), np.log1p(-below)
    return winner


@dataclass(frozen=True)
class OSUB(Policy):
    """KL-UCB among the pairs that share a row or a column with the leader.

    Every pair once; then the leader is the pair of the largest average reward, the first of
    several. Each (K + L − 1)-th time that a pair leads it is played itself, else the pair of the
    largest index max{q : T·kl(mean, q) ≤ log t + c·log log t} among the leader, its row and its
    column, the first of several; t counts the rewards so far.

    Parameters
    ----------
    c
        Factor of log log t, at least 0.
    level
        What t counts: "time", all rewards so far; or "leader", how often the leader has led.

    Notes
    -----
    An index is solved for only where it may win: T·kl(mean, q) at the largest index q so far is
    compared with the level first. Choices are those of solving for all K + L − 1.

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
    every_pair_first = True
    layout = 2
    counts = True
    deterministic = True
    later: ClassVar[tuple[str, ...]] = ("level",)
    c: float = 3.0
    level: str = "time"

    def __post_init__(self) -> None:
        checks.number("c", self.c, 0, 1e9)
        checks.one_of("level", self.level, ("time", "leader"))

    def start(self, known: Known) -> OSUBState:
        """The state before the first step."""
        require_unit_rewards(self.name, known)
        pairs = known.K * known.L
        at = np.zeros(1, AT)
        at[0].c, at[0].by_leader = self.c, self.level == "leader"
        return OSUBState(
            known.limits,
            at,
            **start_unimodal(pairs),
            begun=np.zeros(pairs, np.bool_),
            sums=np.zeros(pairs),
            counts=np.zeros(pairs, np.int64),
            entropies=np.zeros(pairs),
            led=np.zeros(pairs, np.int64),
        )
