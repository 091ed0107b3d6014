"""TopTwo: the fewest pulls until one may stop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import inlined, record
from rank1.policies.base import Known, Policy, Records, require_unit_rewards
from rank1.policies.challengers import AROUND, challenger, start_challengers, touch
from rank1.policies.pending import (
    SHARED,
    add_pull,
    add_reports,
    first_pull,
    give_back,
    start_counts,
)
from rank1.policies.unimodal import report_mean, start_unimodal, tied_leader

__all__ = ["TopTwo"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT = record(*SHARED, **AROUND, share=float)  # β


class TopTwoState(NamedTuple):
    """Counts, see `pending`; the leader, see `unimodal`; its row and column, see `challengers`."""

    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    pulls: Ints  # N
    reports: Ints
    sums: Floats
    top: Floats
    ties: Ints
    led: Ints  # how often a pair has been the leader
    slots: Records
    least: Ints

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        """Every pair once, then the leader or its challenger."""
        k = pick(self)
        L = self.limits[0].L
        row = k // L
        hand_out(self, row, k - row * L)
        return row, k - row * L, 0

    def issued(self, row: int, column: int, tag: int) -> None:
        """This pull was handed out, whoever chose it."""
        pick(self)  # leaves the bounds as choosing does
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

    def forget(self, row: int, column: int, tag: int) -> TopTwoState:
        """The pull no longer counts; a pair's only one is issued again."""
        give_back(self, row * self.limits[0].L + column)
        self.at[0].home = -1
        return self

    def best(self) -> tuple[int, int]:
        """The leader."""
        row, column = divmod(max(int(self.at[0].leader), 0), int(self.limits[0].L))
        return row, column


@inlined
def pick(state: TopTwoState) -> int:
    """The next pair."""
    k = first_pull(state)
    if k >= 0:
        return k
    leader, share = state.at[0].leader, state.at[0].share
    led = state.led[leader]
    if math.floor(share * (led + 1)) > math.floor(share * led):
        return leader
    return challenger(state)


@inlined
def hand_out(state: TopTwoState, row: int, column: int) -> None:
    """This pair was handed out."""
    at = state.at[0]
    if at.cursor >= len(state.pulls) and at.reported > 0:
        state.led[at.leader] += 1
    add_pull(state, row * state.limits[0].L + column)
    touch(state, row, column)


@inlined
def add(state: TopTwoState, row: int, column: int, count: int, total: float) -> None:
    """So many rewards of this pair came in, with this sum."""
    at, k = state.at[0], row * state.limits[0].L + column
    mean = add_reports(state, k, count, total)
    before = state.top[1]
    report_mean(state, k, mean)
    if k == at.leader or mean >= before:
        at.leader = tied_leader(state.top, state.ties, 0)
    touch(state, row, column)


@dataclass(frozen=True)
class TopTwo(Policy):
    """The leader and its strongest challenger: the fewest pulls until one may stop.

    For those who want to know rather than to earn; see `rank1.identify`. Every pair once; then the
    leader a is the pair of the largest average reward, the first of several. A share β of the times
    that a pair leads it is played itself: when β·ℓ passes a whole number, where ℓ counts how often
    it has led. Else its challenger is played: among the other pairs b of its row and column the one
    of the least W(a, b) + log N_b, the first of several. W(a, b) = N_a·kl(μ_a, m) + N_b·kl(μ_b, m)
    is the evidence that a is better than b, with averages μ and the pooled average m; it is 0
    unless μ_a > μ_b.

    Parameters
    ----------
    share
        β, above 0 and below 1; None is for 1/(1 + √(K + L − 2)), the optimal share where all pairs
        of the leader's row and column are alike.

    Notes
    -----
    N counts pulls from when they are handed out, and averages are of the rewards that came in. A
    pair with no report has no evidence against it: W = 0.

    Only indices that may be the least are computed: a change of the leader's counts moves all of
    them, but it also bounds by how much. Choices are those of computing all K + L − 2.

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
    every_pair_first = True
    counts: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True
    share: float | None = None

    def __post_init__(self) -> None:
        if self.share is not None:
            checks.number("share", self.share, 0, 1, above=True, below=True)

    def start(self, known: Known) -> TopTwoState:
        """The state before the first step."""
        require_unit_rewards(self.name, known)
        pairs, others = known.K * known.L, known.K + known.L - 2
        at = np.zeros(1, AT)
        at[0].leader = -1
        at[0].share = 1 / (1 + math.sqrt(others)) if self.share is None else self.share
        return TopTwoState(
            known.limits,
            at,
            **start_counts(pairs),
            **start_unimodal(pairs),
            led=np.zeros(pairs, np.int64),
            **start_challengers(at, others + 1),
        )
