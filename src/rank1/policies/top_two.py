"""TopTwo: the fewest pulls until one may stop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import inlined, jit
from rank1.divergences import kl
from rank1.errors import InputError
from rank1.policies.base import Known, Policy, Records, record, require_unit_rewards
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

AT = record(
    *SHARED,
    "home",  # the leader whose row and column are in the slots; −1 for none
    "row",  # its row
    "column",  # its column
    "moved",  # whether its counts have changed since the bounds of all slots were computed
    share=float,  # β
    won=float,  # its successes, failures and `entropy` as the bounds have them
    lost=float,
    entropy=float,
)

#: One of the pairs to be compared with the leader.
SLOT = record(
    "exact",  # whether `bound` is the index itself
    bound=float,  # on its index W + log N, from below
    log_pulls=float,  # log N
    won=float,  # successes, and pulls, as far as they count in W
    pulls=float,
    # With the pooled mean m of when the index was computed:
    log_m=float,  # log m
    inverse_m=float,  # 1/m
    log_rest=float,  # log(1 − m)
    inverse_rest=float,  # 1/(1 − m)
)

#: Bounds and indices are sums of rounded numbers: this times the pulls is far above their errors.
SLACK = 1e-12


class TopTwoState(NamedTuple):
    """Counts of the pairs, see `pending`; the leader, see `unimodal`; and its challengers.

    A slot is a pair of the leader's row or column, in row-major order. `least` is a tournament over
    the slots: node m has the winner of nodes 2m and 2m + 1, that of the lower bound.
    """

    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    pulls: Ints  # N
    reports: Ints
    sums: Floats
    top: Floats
    ties: Ints
    led: Ints  # how often a pair has been the leader
    slots: Records  # see `SLOT`
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
        give_back(self, row * int(self.limits[0].L) + column)
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


@inlined
def touch(state: TopTwoState, row: int, column: int) -> None:
    """The counts of this pair have changed."""
    at = state.at[0]
    if row == at.row:
        if column == at.column:
            at.moved = 1
            return
        slot = row + column
    elif column == at.column:
        slot = row if row < at.row else row + state.limits[0].L - 1
    else:
        return
    one = state.slots[slot]
    if one.bound > -math.inf:
        one.exact, one.bound, one.log_pulls = 0, -math.inf, -math.inf
        replay(state.slots, state.least, slot)


@inlined
def replay(slots: Records, least: Ints, slot: int) -> None:
    """This slot has a new bound."""
    node = (len(least) + 2 * slot) >> 1
    while node > 1:
        node >>= 1
        left, right = least[2 * node], least[2 * node + 1]
        least[node] = right if slots[right].bound < slots[left].bound else left


@jit
def replay_all(slots: Records, least: Ints) -> None:
    """All slots have new bounds."""
    for node in range(len(least) // 2 - 1, 0, -1):
        left, right = least[2 * node], least[2 * node + 1]
        least[node] = right if slots[right].bound < slots[left].bound else left


@jit
def challenger(state: TopTwoState) -> int:
    """The pair of the least index in the leader's row and column, without the leader."""
    at = state.at[0]
    if at.home != at.leader:
        gather(state)
    elif at.moved:
        shift(state)
    slot = state.least[1]
    while not state.slots[slot].exact:
        weigh(state, slot)
        replay(state.slots, state.least, slot)
        slot = state.least[1]
    return pair_of(at.row, at.column, state.limits[0].L, slot)


@inlined
def pair_of(row: int, column: int, L: int, slot: int) -> int:
    """The pair in a slot: column `column` up to `row`, all of `row`, and the column's rest."""
    if slot < row:
        return slot * L + column
    if slot < row + L:
        return row * L + slot - row
    return (slot - L + 1) * L + column


@inlined
def believed(state: TopTwoState, k: int) -> float:
    """Successes of a pair, if its pending pulls do as its reported ones did."""
    pending = state.pulls[k] - state.reports[k]
    won = state.sums[k]
    return won + won / state.reports[k] * pending if pending > 0 else won


@inlined
def entropy_of(won: float, lost: float) -> float:
    """The largest log-likelihood of so many successes and failures."""
    total = 0.0
    if won > 0.0:
        total += won * math.log(won / (won + lost))
    if lost > 0.0:
        total += lost * math.log(lost / (won + lost))
    return total


@inlined
def note_leader(state: TopTwoState) -> None:
    """From here on, bounds are for the leader's counts as they are now."""
    at = state.at[0]
    at.won = believed(state, at.leader)
    at.lost = state.pulls[at.leader] - at.won
    at.entropy = entropy_of(at.won, at.lost)
    at.moved = 0


@jit
def gather(state: TopTwoState) -> None:
    """Put the new leader's row and column into the slots. As W ≥ 0, log N is a bound."""
    at, L = state.at[0], state.limits[0].L
    at.home = at.leader
    at.row = at.leader // L
    at.column = at.leader - at.row * L
    note_leader(state)
    for slot in range(len(state.slots)):
        one = state.slots[slot]
        k = pair_of(at.row, at.column, L, slot)
        one.exact, one.log_pulls = 0, math.log(state.pulls[k])
        one.pulls = state.pulls[k] if state.reports[k] > 0 else 0.0
        one.won = believed(state, k) if state.reports[k] > 0 else 0.0
        one.bound = one.log_pulls - SLACK * (at.won + at.lost + one.pulls)
        one.log_m, one.inverse_m, one.log_rest, one.inverse_rest = 1.0, 0.0, 1.0, 0.0
    own = state.slots[at.row + at.column]
    own.exact, own.bound = 1, math.inf
    replay_all(state.slots, state.least)


@jit
def shift(state: TopTwoState) -> None:
    """The leader's counts have changed, and with them all indices: bound each from below.

    With H = `entropy_of`, W(a, b) = H(a) + H(b) − H(a + b). H is convex with the gradient
    (log m, log(1 − m)), so that H(a + b) grows by at most the gradient at its new m times the
    change of a; and log m ≤ log m₀ + m/m₀ − 1 for any m₀.
    """
    at = state.at[0]
    won, lost, entropy = at.won, at.lost, at.entropy
    note_leader(state)
    won, lost, entropy = at.won - won, at.lost - lost, at.entropy - entropy
    s, n = at.won, at.won + at.lost
    usable = won >= 0.0 and lost >= 0.0  # else, after late rewards, only log N is left
    for slot in range(len(state.slots)):
        one = state.slots[slot]
        slack = SLACK * (n + one.pulls)
        m = (s + one.won) / (n + one.pulls)
        log_m = one.log_m + one.inverse_m * m - 1.0
        log_rest = one.log_rest + one.inverse_rest * (1.0 - m) - 1.0
        bound = one.bound + entropy - won * log_m - lost * log_rest - slack
        floor = one.log_pulls - slack
        one.bound = bound if usable and bound > floor else floor
        one.exact = 0
    own = state.slots[at.row + at.column]
    own.exact, own.bound = 1, math.inf
    replay_all(state.slots, state.least)


@inlined
def weigh(state: TopTwoState, slot: int) -> None:
    """Compute the index of a slot's pair."""
    at, one = state.at[0], state.slots[slot]
    a, b = at.home, pair_of(at.row, at.column, state.limits[0].L, slot)
    N_b = state.pulls[b]
    one.log_pulls, one.bound, one.exact = math.log(N_b), math.log(N_b), 1
    one.won, one.pulls = 0.0, 0.0
    m = 0.0
    if state.reports[b] > 0:
        N_a, mean_a = state.pulls[a], state.sums[a] / state.reports[a]
        mean_b = state.sums[b] / state.reports[b]
        one.won, one.pulls = believed(state, b), N_b
        m = (N_a * mean_a + N_b * mean_b) / (N_a + N_b)
        if mean_a > mean_b:
            one.bound = N_a * kl(mean_a, m) + N_b * kl(mean_b, m) + math.log(N_b)
    if 0.0 < m < 1.0:
        one.log_m, one.inverse_m = math.log(m), 1.0 / m
        one.log_rest, one.inverse_rest = math.log1p(-m), 1.0 / (1.0 - m)
    else:  # no logarithm is above 0
        one.log_m, one.inverse_m, one.log_rest, one.inverse_rest = 1.0, 0.0, 1.0, 0.0


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
    (EB-TCI, for arms that have nothing in common.)
    """

    name = "top_two"
    counts: ClassVar[bool] = True
    share: float | None = None

    def __post_init__(self) -> None:
        if self.share is not None and checks.number("share", self.share, 0, 1, above=True) == 1:
            raise InputError("share must be a number above 0 and below 1, or None, got 1")

    def start(self, known: Known) -> TopTwoState:
        """The state before the first step."""
        require_unit_rewards(self.name, known)
        pairs, slots = known.K * known.L, known.K + known.L - 1
        share = 1 / (1 + math.sqrt(slots - 1)) if self.share is None else self.share
        at = np.zeros(1, AT)
        at[0].leader = at[0].home = at[0].row = at[0].column = -1
        at[0].share = share
        leaves = 1 << (slots - 1).bit_length()
        near = np.zeros(slots, SLOT)
        near["bound"] = -math.inf
        return TopTwoState(
            known.limits,
            at,
            **start_counts(pairs),
            **start_unimodal(pairs),
            led=np.zeros(pairs, np.int64),
            slots=near,
            least=start_least(slots, leaves),
        )


def start_least(slots: int, leaves: int) -> Ints:
    """The tournament; leaves that stand for no slot have the last one once more."""
    least: Any = np.zeros(2 * leaves, np.int64)
    least[leaves:] = np.minimum(np.arange(leaves), slots - 1)
    return least
