"""The stopping rule with a look after every report, as a compiled state.

A look costs next to nothing, because

- one comparison below the threshold, the *witness*, is enough to go on, and reports of pairs
  other than the leader and the witness don't change it;
- a report of either moves log E by a bounded amount. If (p, q) was the likeliest point of the
  null when log E was last computed, E is at most M(p, q) ever after (see `evalues`), and a report x
  of a multiplies M(p, q) by at most x·P/p + (1 − x)·(1 − P)/(1 − p), where P = (s + ½)/(n + 1).
  The logarithm of that is at most the number less 1. So a bound on log E is kept up to date by a
  few multiplications, and log E itself is computed only when the bound reaches the threshold;
- the leader is the winner of a tournament over the means, in which a new mean plays log₂(K·L)
  matches at most.

The answer is that of `verdict(...).stop` at every look.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import entry, inlined, jit
from rank1.errors import InputError
from rank1.stopping.evalues import DIFFERENCE, likeliest, log_loss, log_price
from rank1.stopping.rule import rule_of

__all__ = ["Watch", "may_stop", "note_report", "report", "start_watch"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The bound is a sum of rounded numbers; this is far more than all their errors.
SLACK = 1e-6
#: Stands for 1/0, so that nothing is NaN: zero times this is zero.
HUGE = 1e300

AT = np.dtype(
    (
        np.record,
        [
            ("columns", np.int64),  # L
            ("null", np.int64),  # which null is to be rejected
            ("leader", np.int64),  # the pair of the largest mean, -1 before any report
            ("witness", np.int64),  # the pair whose comparison is known to fall short, or -1
            ("place", np.int64),  # where the witness stands among the pairs to be compared
            ("margin", np.float64),
            ("threshold", np.float64),
            ("bound", np.float64),  # on the witness's log E; infinite if there is no witness
            ("a1", np.float64),  # 1/p, 1/(1 − p), 1/q and 1/(1 − q)
            ("a0", np.float64),
            ("b1", np.float64),
            ("b0", np.float64),
        ],
    )
)


class Watch(NamedTuple):
    """Counts and means of the pairs in row-major order, and what the rule needs beside them."""

    at: NDArray[Any]  # see `AT`
    successes: Floats
    failures: Floats
    means: Floats
    winner: Ints  # the tournament: node m has the winner of nodes 2m and 2m + 1; -1 for nobody


def start_watch(
    K: int, L: int, confidence: float = 0.95, tolerance: float = 0.0, rank_one: bool = True
) -> Watch:
    """The state before the first report, for `report` and `may_stop`.

    Parameters
    ----------
    K, L
        Number of rows and columns.
    confidence, tolerance, rank_one
        As for `verdict`.

    Examples
    --------
    >>> from rank1 import stopping
    >>> watch = stopping.start_watch(K=1, L=2)
    >>> for step in range(1, 1000):
    ...     stopping.report(watch, 0, step % 2, float(step % 2))
    ...     if stopping.may_stop(watch):
    ...         break
    >>> step, int(watch.at[0].leader)
    (9, 1)
    """
    K, L = checks.integer("K", K, 1), checks.integer("L", L, 1)
    threshold, tolerance, null = rule_of((K, L), confidence, tolerance, rank_one)
    at = np.zeros(1, AT)
    at[0].columns, at[0].null, at[0].leader, at[0].witness = L, null, -1, -1
    at[0].margin, at[0].threshold, at[0].bound = tolerance, threshold, math.inf
    leaves = 1 << (K * L - 1).bit_length()
    zeros = np.zeros(K * L), np.zeros(K * L), np.zeros(K * L)
    return Watch(at, *zeros, np.full(2 * leaves, -1, np.int64))


@entry
def report(watch: Watch, row: int, column: int, reward: float) -> None:
    """A reward in [0, 1] of a pair has come in; anything else is an `InputError`.

    Python calls it, and so may compiled code.
    """
    columns = watch.at[0].columns
    if row < 0 or column < 0 or column >= columns or row >= len(watch.successes) // columns:
        raise InputError("row and column must be those of a pair of the grid")
    if not 0.0 <= reward <= 1.0:
        raise InputError("reward must lie in [0, 1]")
    note_report(watch, row, column, reward)


@inlined
def note_report(watch: Watch, row: int, column: int, reward: float) -> None:
    """The same for what has been checked."""
    at = watch.at[0]
    k = row * at.columns + column
    s, f = watch.successes[k], watch.failures[k]
    if k == at.leader:
        won, lost = reward * (s + 0.5) * at.a1, (1.0 - reward) * (f + 0.5) * at.a0
        at.bound += (won + lost) / (s + f + 1.0) - 1.0
    elif k == at.witness:
        won, lost = reward * (s + 0.5) * at.b1, (1.0 - reward) * (f + 0.5) * at.b0
        at.bound += (won + lost) / (s + f + 1.0) - 1.0
    s += reward
    f += 1.0 - reward
    watch.successes[k], watch.failures[k] = s, f
    watch.means[k] = s / (s + f)
    means, winner = watch.means, watch.winner
    node = len(winner) // 2 + k
    winner[node] = k
    while node > 1:
        node >>= 1
        left, right = winner[2 * node], winner[2 * node + 1]
        best = left
        if left < 0 or (right >= 0 and means[right] > means[left]):
            best = right
        if winner[node] == best and best != k:
            break
        winner[node] = best
    if winner[1] != at.leader:
        at.leader = winner[1]
        at.bound = math.inf


@entry
def may_stop(watch: Watch) -> bool:
    """Whether one may stop now: `verdict(...).stop` for the counts so far."""
    if watch.at[0].bound < watch.at[0].threshold - SLACK:
        return False
    return find_witness(watch)


@inlined
def inverse(x: float) -> float:
    """1/x, and `HUGE` for 1/0, which is an error where code isn't compiled."""
    return 1.0 / x if x > 1.0 / HUGE else HUGE


@jit
def find_witness(watch: Watch) -> bool:
    """Look for a comparison that falls short, from the last one on; True if there is none."""
    at = watch.at[0]
    s, f, columns = watch.successes, watch.failures, at.columns
    pairs = len(s)
    if pairs == 1:
        return True
    leader = at.leader
    if leader < 0:
        return False
    row = leader // columns
    column = leader - row * columns
    places = pairs if at.null == DIFFERENCE else columns + pairs // columns
    s_a, f_a = s[leader], f[leader]
    price = log_price(s_a, f_a)
    place = at.place
    for _ in range(places):
        if place >= places:
            place = 0
        if at.null == DIFFERENCE:
            k = place
        elif place < columns:
            k = row * columns + place
        else:
            k = (place - columns) * columns + column
        if k != leader:
            p, q = likeliest(at.null, at.margin, s_a, f_a, s[k], f[k])
            lost = log_loss(s_a, f_a, p) + log_loss(s[k], f[k], q)
            value = lost + price + log_price(s[k], f[k])
            if not value >= at.threshold:
                at.witness, at.place, at.bound = k, place, value
                at.a1, at.a0 = inverse(p), inverse(1.0 - p)
                at.b1, at.b0 = inverse(q), inverse(1.0 - q)
                return False
        place += 1
    return True
