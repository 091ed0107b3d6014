"""TopTwo: find the best arm in few pulls, playing the leader and its strongest challenger."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import inlined, record
from rank1.policies.base import Known, Records, require_unit_rewards
from rank1.policies.challengers import AROUND, challenger, start_challengers, touch
from rank1.policies.counting import Counted, add_pull, add_reports, give_back, start_counts
from rank1.policies.every_arm_once import SHARED, EveryArmOnce, next_first
from rank1.policies.neighbours import start_slots
from rank1.tournament import put, start_tournament, winner

__all__ = ["TopTwo"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT = record(
    *SHARED,
    "leader",  # the arm with the largest average reward; −1 before any report
    **AROUND,
    share=float,  # β
)


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    pulls: Ints  # N
    reports: Ints
    sums: Floats
    top: Floats
    led: Ints  # how often an arm has been the leader
    arms: Ints
    slot: Ints
    slots: Records
    low: Floats


class TopTwoState(_Arrays, Counted):
    """Counts, see `counting`; the leader, see `tournament`; around it, see `challengers`."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """Every arm once, then the leader or its challenger."""
        arm = pick(self)
        hand_out(self, arm)
        return arm, 0

    def issued(self, arm: int, tag: int) -> None:
        """Record that this pull was handed out, whichever policy chose it."""
        pick(self)  # updates the bounds as `choose` does
        hand_out(self, arm)

    def learn(self, arm: int, count: int, total: float) -> None:
        """Add `count` rewards of an arm with this sum."""
        at = self.at[0]
        mean = add_reports(self, arm, count, total)
        before = self.top[1]
        put(self.top, arm, mean)
        if arm == at.leader or mean >= before:
            at.leader = winner(self.top)
        touch(self, arm)

    def forget(self, arm: int, tag: int) -> TopTwoState:
        """Stop counting the pull; if it was an arm's only one, issue it again."""
        give_back(self, arm)
        touch(self, arm)
        return self

    def best(self) -> int:
        """The leader."""
        return max(int(self.at[0].leader), 0)


@inlined
def pick(state: TopTwoState) -> int:
    """The next arm."""
    arm = next_first(state.at, state.pulls)
    if arm >= 0:
        return arm
    leader, share = state.at[0].leader, state.at[0].share
    led = state.led[leader]
    if math.floor(share * (led + 1)) > math.floor(share * led):
        return leader
    return challenger(state)


@inlined
def hand_out(state: TopTwoState, k: int) -> None:
    """Record that arm k was handed out."""
    at = state.at[0]
    if at.cursor >= len(state.pulls) and at.reported > 0:
        state.led[at.leader] += 1
    add_pull(state, k)
    touch(state, k)


@dataclass(frozen=True)
class TopTwo(EveryArmOnce):
    """Play the leader and its strongest challenger, to stop after the fewest pulls.

    For finding the best arm rather than earning; see `rank1.identify`. Plays every arm once. Then
    the leader a is the arm with the largest average reward (the first, if tied). An arm is played
    in a share β of the times that it leads: when β·ℓ passes an integer, where ℓ counts how often it
    has led. Otherwise its challenger is played: among its neighbours b, the arms with one level
    changed, the one with the smallest W(a, b) + log N_b (the first, if tied). W(a, b) =
    N_a·kl(μ_a, m) + N_b·kl(μ_b, m) is the evidence that a is better than b, with averages μ and the
    pooled average m; it is 0 unless μ_a > μ_b.

    Parameters
    ----------
    share
        β, above 0 and below 1. None: 1/(1 + √(Σ(K_d − 1))), the optimal share if all neighbours of
        the leader are equal; with two sides this is 1/(1 + √(K + L − 2)).

    Notes
    -----
    It assumes the same of a grid as [UTS](../policies/uts.md): an arm that isn't the best has a
    better neighbour.

    N counts a pull as soon as it is handed out; averages use the rewards that have arrived. There
    is no evidence against an arm without a report: W = 0.

    Only indices that may be the smallest are computed: a change of the leader's counts moves all of
    them, but by a bounded amount. The choices are the same as when computing all.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> found = rank1.identify(rank1.TopTwo(), problem, confidence=0.95, runs=3)
    >>> found["top_two"].best_pairs
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Jourdan, Degenne, Baudry, de Heide, Kaufmann: Top two algorithms revisited. NeurIPS 2022.
    (EB-TCI, for arms that have nothing in common.) https://arxiv.org/abs/2206.05979
    """

    name = "top_two"
    layout = 3
    share: float | None = None

    def __post_init__(self) -> None:
        if self.share is not None:
            checks.number("share", self.share, 0, 1, above=True, below=True)

    def start(self, known: Known) -> TopTwoState:
        """The state before the first step."""
        self.check(known.grid)
        require_unit_rewards(self.name, known)
        arms, others = known.arms, known.grid.cross
        at = np.zeros(1, AT)
        at[0].leader = at[0].home = -1
        at[0].share = 1 / (1 + math.sqrt(others)) if self.share is None else self.share
        return TopTwoState(
            known.limits,
            at,
            **start_counts(arms),
            top=start_tournament(arms)[0],
            led=np.zeros(arms, np.int64),
            **start_slots(known),
            **start_challengers(others + 1),
        )
