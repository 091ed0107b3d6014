"""The leader's row and column, and the least of an index that depends on the leader, too.

What `TopTwo` uses beside the counts of `pending`. A slot is a pair of the leader's row or column,
in row-major order. Its index is W(a, b) + log N_b for the leader a, see there. `least` is a
tournament over the slots: node m has the winner of nodes 2m and 2m + 1, that of the lower bound.

When pair b changes, its index is computed anew. When a changes, all of them do; but each can be
bounded from below at the cost of a division, see `shift`, and is computed only if it may be least.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit, record
from rank1.divergences import kl
from rank1.policies.base import Records

__all__ = ["AROUND", "challenger", "start_challengers", "touch"]

Ints = NDArray[np.int64]

#: Entries that the `at` of the policy has for this.
AROUND: dict[str, type] = {
    "home": np.int64,  # the leader whose row and column are in the slots; −1 for none
    "row": np.int64,  # its row
    "column": np.int64,  # its column
    "moved": np.int64,  # whether its counts have changed since the bounds of all slots
    "won": float,  # its successes, failures and `entropy_of` as the bounds have them
    "lost": float,
    "entropy": float,
}

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


def start_challengers(at: Records, slots: int) -> dict[str, NDArray[Any]]:
    """The fields for so many slots; none has a pair."""
    at[0].home = at[0].row = at[0].column = -1
    near = np.zeros(slots, SLOT)
    near["bound"] = -math.inf
    leaves = 1 << (slots - 1).bit_length()
    # Leaves that stand for no slot have the last one once more.
    least = np.zeros(2 * leaves, np.int64)
    least[leaves:] = np.minimum(np.arange(leaves), slots - 1)
    return {"slots": near, "least": least}


@inlined
def touch(state: Any, row: int, column: int) -> None:
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
def challenger(state: Any) -> int:
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
def believed(state: Any, k: int) -> float:
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
def note_leader(state: Any) -> None:
    """From here on, bounds are for the leader's counts as they are now."""
    at = state.at[0]
    at.won = believed(state, at.leader)
    at.lost = state.pulls[at.leader] - at.won
    at.entropy = entropy_of(at.won, at.lost)
    at.moved = 0


@jit
def gather(state: Any) -> None:
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
def shift(state: Any) -> None:
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
def weigh(state: Any, slot: int) -> None:
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
