"""The leader's neighbour with the smallest index, when the index also depends on the leader.

`TopTwo` uses this with the counts of `counting` and the slots of `neighbours`. The index of the arm
b in a slot is W(a, b) + log N_b for the leader a; see there. Lower bounds on the indices, negated,
are the leaves of a `tournament`: `low`.

When arm b changes, its index is recomputed. When a changes, all indices change; but each can be
bounded from below at the cost of a division, see `shift`, and is computed only if it may be the
smallest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit, record
from rank1.divergences import kl
from rank1.policies.neighbours import gather
from rank1.tournament import put, replay_all, start_tournament, winner

__all__ = ["AROUND", "challenger", "start_challengers", "touch"]

#: Entries that the policy's `at` needs for this.
AROUND: dict[str, type] = {
    "home": np.int64,  # see `neighbours`
    "moved": np.int64,  # whether its counts have changed since all bounds were computed
    "won": float,  # its successes, failures and `entropy_of` when the bounds were computed
    "lost": float,
    "entropy": float,
}

#: One of the arms to compare with the leader.
SLOT = record(
    "exact",  # whether its bound is the index itself
    log_pulls=float,  # log N
    won=float,  # successes, and pulls, as used in W
    pulls=float,
    # With the pooled mean m at the time the index was computed:
    log_m=float,  # log m
    inverse_m=float,  # 1/m
    log_rest=float,  # log(1 − m)
    inverse_rest=float,  # 1/(1 − m)
)

#: Bounds and indices are sums of rounded numbers: SLACK·pulls is far above their errors.
SLACK = 1e-12


def start_challengers(slots: int) -> dict[str, NDArray[Any]]:
    """The fields for this number of slots, all empty."""
    low, _ = start_tournament(slots, math.inf)
    return {"slots": np.zeros(slots, SLOT), "low": low}


@inlined
def touch(state: Any, k: int) -> None:
    """Record that the counts of arm k have changed."""
    slot = state.slot[k]
    if k == state.at[0].home:
        state.at[0].moved = 1
    elif slot >= 0 and state.low[len(state.low) // 2 + slot] < math.inf:
        state.slots[slot].exact, state.slots[slot].log_pulls = 0, -math.inf
        put(state.low, slot, math.inf)


@jit
def challenger(state: Any) -> int:
    """The leader's neighbour with the smallest index."""
    at = state.at[0]
    if at.home != at.leader:
        surround(state)
    elif at.moved:
        shift(state)
    slot = winner(state.low)
    while not state.slots[slot].exact:
        put(state.low, slot, -weigh(state, slot))
        slot = winner(state.low)
    return state.arms[slot]


@inlined
def believed(state: Any, k: int) -> float:
    """Successes of an arm, assuming that pending pulls succeed as often as reported ones."""
    pending = state.pulls[k] - state.reports[k]
    won = state.sums[k]
    return won + won / state.reports[k] * pending if pending > 0 else won


@inlined
def entropy_of(won: float, lost: float) -> float:
    """The maximum log-likelihood of these numbers of successes and failures."""
    total = 0.0
    if won > 0.0:
        total += won * math.log(won / (won + lost))
    if lost > 0.0:
        total += lost * math.log(lost / (won + lost))
    return total


@inlined
def note_leader(state: Any) -> None:
    """From now on, bounds refer to the leader's current counts."""
    at = state.at[0]
    at.won = believed(state, at.leader)
    at.lost = state.pulls[at.leader] - at.won
    at.entropy = entropy_of(at.won, at.lost)
    at.moved = 0


@jit
def surround(state: Any) -> None:
    """Put the new leader and its neighbours into the slots. Since W ≥ 0, log N is a bound."""
    at = state.at[0]
    gather(state.limits, state.at, state.arms, state.slot, at.leader)
    note_leader(state)
    first = len(state.low) // 2
    for slot in range(len(state.slots)):
        one, k = state.slots[slot], state.arms[slot]
        one.exact, one.log_pulls = 0, math.log(state.pulls[k])
        one.pulls = state.pulls[k] if state.reports[k] > 0 else 0.0
        one.won = believed(state, k) if state.reports[k] > 0 else 0.0
        state.low[first + slot] = SLACK * (at.won + at.lost + one.pulls) - one.log_pulls
        one.log_m, one.inverse_m, one.log_rest, one.inverse_rest = 1.0, 0.0, 1.0, 0.0
    leave_out_leader(state)


@jit
def shift(state: Any) -> None:
    """Bound every index from below, after the leader's counts have changed.

    With H = `entropy_of`, W(a, b) = H(a) + H(b) − H(a + b). H is convex with the gradient
    (log m, log(1 − m)), so H(a + b) grows by at most the gradient at its new m times the change of
    a; and log m ≤ log m₀ + m/m₀ − 1 for any m₀.
    """
    at = state.at[0]
    won, lost, entropy = at.won, at.lost, at.entropy
    note_leader(state)
    won, lost, entropy = at.won - won, at.lost - lost, at.entropy - entropy
    s, n = at.won, at.won + at.lost
    usable = won >= 0.0 and lost >= 0.0  # otherwise, after late rewards, only log N is a bound
    first = len(state.low) // 2
    for slot in range(len(state.slots)):
        one = state.slots[slot]
        slack = SLACK * (n + one.pulls)
        m = (s + one.won) / (n + one.pulls)
        log_m = one.log_m + one.inverse_m * m - 1.0
        log_rest = one.log_rest + one.inverse_rest * (1.0 - m) - 1.0
        bound = entropy - state.low[first + slot] - won * log_m - lost * log_rest - slack
        floor = one.log_pulls - slack
        state.low[first + slot] = -bound if usable and bound > floor else -floor
        one.exact = 0
    leave_out_leader(state)


@inlined
def leave_out_leader(state: Any) -> None:
    """Replay the tournament with all new bounds; the leader's own slot never wins."""
    own = state.slot[state.at[0].home]
    state.slots[own].exact = 1
    state.low[len(state.low) // 2 + own] = -math.inf
    replay_all(state.low)


@inlined
def weigh(state: Any, slot: int) -> float:
    """Compute the index of a slot's arm."""
    a, b, one = state.at[0].home, state.arms[slot], state.slots[slot]
    N_b = state.pulls[b]
    one.log_pulls, one.exact = math.log(N_b), 1
    one.won, one.pulls = 0.0, 0.0
    index, m = one.log_pulls, 0.0
    if state.reports[b] > 0:
        N_a, mean_a = state.pulls[a], state.sums[a] / state.reports[a]
        mean_b = state.sums[b] / state.reports[b]
        one.won, one.pulls = believed(state, b), N_b
        m = (N_a * mean_a + N_b * mean_b) / (N_a + N_b)
        if mean_a > mean_b:
            index = N_a * kl(mean_a, m) + N_b * kl(mean_b, m) + one.log_pulls
    if 0.0 < m < 1.0:
        one.log_m, one.inverse_m = math.log(m), 1.0 / m
        one.log_rest, one.inverse_rest = math.log1p(-m), 1.0 / (1.0 - m)
    else:  # bound the logarithms by 0
        one.log_m, one.inverse_m, one.log_rest, one.inverse_rest = 1.0, 0.0, 1.0, 0.0
    return index
