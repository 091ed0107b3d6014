"""The stopping rule with a look after every report, as a state that compiled code can use.

A look costs next to nothing, because

- one comparison below the threshold, the *witness*, is enough to continue, and reports of arms
  other than the leader and the witness don't change it;
- a report of either moves log E by a bounded amount. If (p, q) was the likeliest point of the
  null when log E was last computed, E is at most M(p, q) ever after (see `evalues`), and a report x
  of a multiplies M(p, q) by at most x·P/p + (1 − x)·(1 − P)/(1 − p), where P = (s + ½)/(n + 1).
  The logarithm of that is at most the number minus 1. So a few multiplications keep a bound on log
  E up to date, and log E itself is computed only when the bound reaches the threshold. Similarly,
  with the evidence of `sharp`, log E is at most log E⁺_a(p) + log E⁻_b(q), which a report x raises
  by at most x·c + (1 − x)·d, where c and d are the most that a reward of 1 and of 0 can add;
- the leader is the winner of a tournament over the means, in which a new mean plays at most
  log₂(arms) matches.

The answer equals `verdict(...).stop` at every look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import inlined, jit, record
from rank1.errors import InputError
from rank1.grid import Grid
from rank1.stopping.evalues import likeliest, log_loss, log_price
from rank1.stopping.evidence import SHARP
from rank1.stopping.rule import rule_of
from rank1.stopping.sharp import log_sharp, steepest
from rank1.tournament import put, start_tournament, winner

__all__ = ["Watch", "may_stop", "note_report", "report", "start_watch"]

Floats = NDArray[np.float64]

#: The bound is a sum of rounded numbers; this is far more than all their errors.
SLACK = 1e-6
#: Replaces 1/0, so that nothing is NaN: zero times this is zero.
HUGE = 1e300

AT = record(
    "leader",  # the arm with the largest mean, -1 before any report
    "witness",  # the arm whose comparison is known to fall short, or -1
    "place",  # the position of the witness among the arms to compare
    "kind",  # of evidence, see `rank1.stopping.evidence`
    margin=float,
    threshold=float,
    bound=float,  # on the witness's log E; infinite if there is no witness
    a1=float,  # 1/p, 1/(1 − p), 1/q and 1/(1 − q); for sharp evidence, what 1 and 0 can add
    a0=float,
    b1=float,
    b0=float,
)
SIDE = record("levels", "stride")


class Watch(NamedTuple):
    """Counts of the arms, the tournament of their means, and what else the rule needs."""

    at: NDArray[Any]  # see `AT`
    sides: NDArray[Any]  # see `SIDE`: of the grid on which the leader is compared with neighbours
    successes: Floats
    failures: Floats
    top: Floats  # see `rank1.tournament`


def start_watch(
    sizes: Sequence[int],
    confidence: float = 0.95,
    tolerance: float = 0.0,
    rank_one: bool = True,
    rule: str = "kt",
) -> Watch:
    """The state before the first report, for `report` and `may_stop`.

    Parameters
    ----------
    sizes
        The number of levels of each side.
    confidence, tolerance, rank_one, rule
        As for `verdict`.

    Examples
    --------
    >>> from rank1 import stopping
    >>> watch = stopping.start_watch([2])
    >>> for step in range(1, 1000):
    ...     stopping.report(watch, step % 2, float(step % 2))
    ...     if stopping.may_stop(watch):
    ...         break
    >>> step, int(watch.at[0].leader)
    (9, 1)
    """
    made = rule_of(Grid(sizes).sizes, confidence, tolerance, rank_one, rule)
    at = np.zeros(1, AT)
    at[0].leader = at[0].witness = -1
    at[0].margin, at[0].threshold, at[0].bound = made.tolerance, made.threshold, math.inf
    at[0].kind = made.kind
    sides = np.array(list(zip(made.grid.sizes, made.grid.strides, strict=True)), SIDE)
    arms = made.grid.arms
    return Watch(at, sides, np.zeros(arms), np.zeros(arms), start_tournament(arms)[0])


def report(watch: Watch, arm: int, reward: float) -> None:
    """Add a reward in [0, 1] of an arm; raises an `InputError` for anything else."""
    arms = len(watch.successes)
    if not 0 <= arm < arms:
        raise InputError("arm", arm, f"in 0 … {arms - 1}")
    note_report(watch, arm, checks.number("reward", reward, 0, 1))


@inlined
def note_report(watch: Watch, arm: int, reward: float) -> None:
    """Like `report` but unchecked; works in compiled code."""
    at = watch.at[0]
    s, f = watch.successes[arm], watch.failures[arm]
    if arm == at.leader or arm == at.witness:
        one, zero = (at.a1, at.a0) if arm == at.leader else (at.b1, at.b0)
        if at.kind == SHARP:
            at.bound += reward * one + (1.0 - reward) * zero
        else:
            won, lost = reward * (s + 0.5) * one, (1.0 - reward) * (f + 0.5) * zero
            at.bound += (won + lost) / (s + f + 1.0) - 1.0
    s += reward
    f += 1.0 - reward
    watch.successes[arm], watch.failures[arm] = s, f
    mean, before = s / (s + f), watch.top[1]
    put(watch.top, arm, mean)
    if arm == at.leader or mean >= before:
        leader = winner(watch.top)
        if leader != at.leader:
            at.leader, at.bound = leader, math.inf


@inlined
def may_stop(watch: Watch) -> bool:
    """Whether you may stop now: `verdict(...).stop` for the counts so far."""
    if watch.at[0].bound < watch.at[0].threshold - SLACK:
        return False
    return find_witness(watch)


@jit
def find_witness(watch: Watch) -> bool:
    """Look for a comparison that falls short, starting at the last one; True if there is none."""
    at, sides = watch.at[0], watch.sides
    s, f = watch.successes, watch.failures
    if len(s) == 1:
        return True
    leader = at.leader
    if leader < 0:
        return False
    places, null = 0, len(sides)
    for d in range(null):
        places += sides[d].levels
    s_a, f_a = float(s[leader]), float(f[leader])
    price = log_price(s_a, f_a)
    place = at.place
    for _ in range(places):
        if place >= places:
            place = 0
        b = _compared(sides, leader, place)
        if b != leader:
            s_b, f_b = float(s[b]), float(f[b])
            if at.kind == SHARP:
                value, p, q = log_sharp(null, float(at.margin), s_a, f_a, s_b, f_b)
            else:
                p, q = likeliest(null, float(at.margin), s_a, f_a, s_b, f_b)
                lost = log_loss(s_a, f_a, p) + log_loss(s_b, f_b, q)
                value = lost + price + log_price(s_b, f_b)
            if not value >= at.threshold:
                at.witness, at.place, at.bound = b, place, value
                if at.kind == SHARP:
                    at.a1, at.a0 = steepest(True, True, p), steepest(True, False, p)
                    at.b1, at.b0 = steepest(False, True, q), steepest(False, False, q)
                else:
                    at.a1, at.a0 = min(_inverse(p), HUGE), min(_inverse(1.0 - p), HUGE)
                    at.b1, at.b0 = min(_inverse(q), HUGE), min(_inverse(1.0 - q), HUGE)
                return False
        place += 1
    return True


@jit
def _inverse(x: float) -> float:
    return 1.0 / x if x > 0.0 else math.inf


@jit
def _compared(sides: NDArray[Any], leader: int, place: int) -> int:
    """The arm to compare at this place, going through the levels of all sides; or the leader."""
    for d in range(len(sides)):
        levels, stride = sides[d].levels, sides[d].stride
        if place < levels:
            return leader + (place - leader // stride % levels) * stride
        place -= levels
    return leader
