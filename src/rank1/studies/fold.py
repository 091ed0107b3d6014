"""The state of a study as a fold over its log: plain Python that may be compiled.

Nothing here draws random numbers or reads a clock. Besides the policy's state, the fold needs only
a `Book` of plain arrays.

Evidence and knowledge are counted separately. *Knowledge* is what the policy has learned: every
reward as soon as it is known, with a weight that fades if the study forgets. *Evidence* is what the
stopping rule may use: each reward once, at a time that doesn't depend on its value. If missing
rewards get a default, a success may be known immediately but a failure only when the window closes;
in that case, a report counts as evidence only when its window closes.

A study that draws by shares has no policy to teach, and each reward becomes a row of the journal:
see `live_design`. If rewards are 0 or 1, its bets stay valid even if delays depend on the reward,
so each reward is evidence immediately. Other rewards become evidence in the order of exposure, each
when its window closes (`Spec.by_window`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit, record
from rank1.policies.base import Records, expects, issued, update
from rank1.policies.folding import give_up, learn_count
from rank1.studies.events import HELD_OUT, REPEAT, Events, Expiry, Kind

__all__ = ["Book", "closable", "close_windows", "fold_events", "new_book", "overdue", "place_in"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT = record(
    "seq",  # of the last event
    "head",  # table entries before this one can no longer expire or close
    "used",  # table entries so far
    "suggested",  # exposures, including recorded ones
    "reported",  # exposures with a reward
    "cancelled",  # cancelled suggestions
    "expired",  # overdue suggestions, without a later report or cancellation
    "learned",  # rewards the policy has learned since it last forgot some
    "retired",  # 1 if the study is closed
    "arm",  # the policy's pull at which the loop stopped, for `forget`
    "tag",
    "evidence",  # rewards that are evidence, without imported ones, ...
    "version",  # the current version; -1 before the first
    "noted",  # journal rows so far
    "held",  # rewards of held-out units, ...
    "limit",  # how much evidence closing windows may add up to before a new version begins
    time=float,  # of the last event
    gained=float,  # ... their sum, scaled to [0, 1], and the sum of their squares
    squares=float,
    held_sum=float,  # ... with the same two sums
    held_squares=float,
)

RULES = record(
    "on_expiry",
    "by_window",  # 1 if a report counts as evidence when its window closes
    "forget_every",  # the policy forgets a little after this many rewards; 0: never
    "design",  # 1 if the study draws levels by shares
    low=float,
    high=float,
    window=float,  # infinite if rewards never expire
    default=float,
)

#: The status of a suggestion in the table.
GONE, PENDING, WAITING, REPORTED = range(4)

#: An open suggestion: it can still be reported, cancelled, expire or become evidence.
OPEN = record(
    "seq",
    "arm",  # its index in the tables of the book
    "living",  # the policy's number of the arm; -1 if it can no longer be played
    "tag",  # the event's tag; -1 if the policy's current state doesn't know the pull
    "nonce",
    "status",
    "number",  # exposures up to this one
    asked=float,
    value=float,  # the reported reward, until it becomes evidence
)

#: A reward to bet on, or the value of a guardrail.
NOTE = record(
    "version",  # the version its levels were drawn from
    "under",  # the current version when it arrived
    "arm",  # its index in the tables of the book
    "metric",  # 0 for the reward
    value=float,
    asked=float,
)

# Why the loop stops. It has folded the event at which it stops, and the caller must do the rest.
# The exceptions are BAD, an impossible event, and FULL, an event that needs an empty journal: these
# aren't folded.
DONE, FORGET, REVISE, FADE, VERSION, BAD, FULL = range(7)

_SUGGESTED, _REPORTED = int(Kind.SUGGESTED), int(Kind.REPORTED)
_VERSION, _RECORDED, _GUARDRAIL = int(Kind.VERSION), int(Kind.RECORDED), int(Kind.GUARDRAIL)
_CANCELLED, _EXPIRED, _REVISED = int(Kind.CANCELLED), int(Kind.EXPIRED), int(Kind.REVISED)
_HISTORY, _RETIRED = int(Kind.HISTORY), int(Kind.RETIRED)
_DEFAULT, _WAITING = int(Expiry.DEFAULT), int(Expiry.WAITING)


#: The capacity of a journal, in rows.
JOURNAL = 8192
#: The tables of a book.
TABLES = ("counts", "sums", "known", "known_sums", "imported")


class Book(NamedTuple):
    """Everything a study knows besides the policy's state.

    Tables have an entry for each arm on the grid of all levels, including retired ones.
    """

    at: Records  # see `AT`
    rules: Records  # see `RULES`
    counts: Floats  # evidence: number of rewards of each arm
    sums: Floats  # their sum, scaled to [0, 1]
    known: Floats  # knowledge: number of rewards, less what was forgotten
    known_sums: Floats
    imported: Floats  # how much of the evidence was imported
    table: Records  # see `OPEN`: open suggestions, in order
    journal: Records  # see `NOTE`
    #: Delays, in exposures, of rewards below and above the average: count, sum, sum of squares.
    #: In events, all delays would grow after a start with asks only, when rewards are low.
    delays: Floats


def new_book(arms: int, rules: Records) -> Book:
    """Return the book before the first event."""
    tables: Any = {name: np.zeros(arms) for name in TABLES}
    at, journal = np.zeros(1, AT), np.zeros(JOURNAL if rules[0].design else 0, NOTE)
    at[0].version = -1
    return Book(
        at, rules, table=np.zeros(64, OPEN), journal=journal, delays=np.zeros((2, 3)), **tables
    )


@jit
def place_of(table: Records, used: int, seq: int) -> int:
    """Return the index of a suggestion in the table; -1 if it isn't (or is no longer) there."""
    low, high = 0, used
    while low < high:
        middle = (low + high) // 2
        if table[middle].seq < seq:
            low = middle + 1
        else:
            high = middle
    if low < used and table[low].seq == seq and table[low].status != GONE:
        return low
    return -1


def place_in(book: Book, seq: int) -> int:
    """Do the same for a book, outside compiled code."""
    table, used = book.table, int(book.at["used"][0])
    k = int(np.searchsorted(table["seq"][:used], seq))
    return k if k < used and table["seq"][k] == seq and table["status"][k] != GONE else -1


@inlined
def scaled(book: Book, value: float) -> float:
    """Scale a reward to [0, 1]."""
    rules = book.rules[0]
    return min(max((value - rules.low) / (rules.high - rules.low), 0.0), 1.0)


@inlined
def add_evidence(book: Book, arm: int, x: float) -> None:
    """Add a reward that the stopping rule may use."""
    at = book.at[0]
    book.counts[arm] += 1.0
    book.sums[arm] += x
    at.evidence += 1
    at.gained += x
    at.squares += x * x


@inlined
def note(book: Book, version: int, arm: int, metric: int, value: float, asked: float) -> None:
    """Add a row to the journal, which must not be full."""
    at, rules = book.at[0], book.rules[0]
    if rules.design == 1 and version >= 0:
        row = book.journal[at.noted]
        row.version, row.under, row.arm, row.metric = version, at.version, arm, metric
        row.value, row.asked = value, asked
        at.noted += 1


@inlined
def note_delay(book: Book, x: float, delay: float) -> None:
    """Record the delay of a reward, so that `best` can warn if delays depend on rewards."""
    at = book.at[0]
    row = book.delays[1 if x > 0 and at.evidence * x >= at.gained else 0]
    row[0] += 1.0
    row[1] += delay
    row[2] += delay * delay


@inlined
def credit(
    state: Any, book: Book, arm: int, living: int, tag: int, value: float, asked: float, now: bool
) -> None:
    """Process a reward that has arrived. `now` says whether it is evidence immediately."""
    if tag >= -1:
        learn(state, book, arm, living, tag, scaled(book, value))
    if now:
        count(book, arm, tag, value, asked)


@inlined
def count(book: Book, arm: int, tag: int, value: float, asked: float) -> None:
    """Add a reward to the evidence, or to the rewards of held-out units."""
    at, x = book.at[0], scaled(book, value)
    if tag == HELD_OUT:
        at.held += 1
        at.held_sum += x
        at.held_squares += x * x
    elif tag != REPEAT:
        add_evidence(book, arm, x)
        low, high = book.rules[0].low, book.rules[0].high
        note(book, tag, arm, 0, min(max(value, low), high), asked)


@inlined
def learn(state: Any, book: Book, arm: int, living: int, tag: int, x: float) -> None:
    """Let the policy learn from a reward, if it can."""
    book.known[arm] += 1.0
    book.known_sums[arm] += x
    book.at[0].learned += 1
    if living < 0:
        return
    if tag < 0:
        learn_count(state, living, 1, x)
    elif expects(state, living, tag):
        update(state, living, tag, x)


@inlined
def close_windows(book: Book, now: float) -> bool:
    """Turn reports whose windows have closed into evidence; False if the journal is full.

    A study that draws by shares does so in the order of exposure, and waits for a new version after
    each tenth of its evidence.
    """
    at, table, rules = book.at[0], book.table, book.rules[0]
    while at.head < at.used and table[at.head].status in (GONE, WAITING):
        at.head += 1
    if rules.by_window == 0:
        return True
    k = at.head
    while k < at.used and table[k].asked + rules.window <= now:
        one = table[k]
        if rules.design == 1:
            if one.status == PENDING or at.evidence >= at.limit:
                break
            if at.noted == len(book.journal):
                return False
        if one.status == REPORTED:
            count(book, one.arm, one.tag, one.value, one.asked)
            one.status = GONE
        k += 1
    return True


def closable(book: Book, now: float) -> Records:
    """Return the reports that `close_windows` would take, without a limit."""
    at, table, rules = book.at[0], book.table, book.rules[0]
    if not rules.by_window or at.head == at.used or table[at.head].asked + rules.window > now:
        return table[:0]
    some = table[at.head : at.used]
    some = some[some["asked"] + rules.window <= now]
    if rules.design and PENDING in some["status"]:
        some = some[: int(np.argmax(some["status"] == PENDING))]
    return some[some["status"] == REPORTED]


def overdue(book: Book, now: float) -> list[int]:
    """Return the pending suggestions whose window has closed."""
    at, window = book.at[0], float(book.rules[0].window)
    found, k = [], int(at.head)
    while k < at.used and book.table[k].asked + window <= now:
        if book.table[k].status == PENDING:
            found.append(int(book.table[k].seq))
        k += 1
    return found


@inlined
def enter(book: Book, seq: int, time: float, arm: int, living: int, tag: int, nonce: int) -> None:
    """Add a suggestion to the table, which must not be full."""
    at = book.at[0]
    one = book.table[at.used]
    one.seq, one.arm, one.living, one.tag, one.nonce = seq, arm, living, tag, nonce
    one.status, one.asked, one.value = PENDING, time, 0.0
    at.used += 1
    at.suggested += 1
    one.number = at.suggested


@jit
def give_back(state: Any, book: Book, k: int) -> bool:
    """Close entry k without a reward. Returns False if the caller must still tell the policy."""
    at, one = book.at[0], book.table[k]
    one.status = GONE
    at.arm, at.tag = one.living, one.tag
    if one.tag < 0 or one.living < 0:
        return True
    return give_up(state, at.arm, at.tag)


def fold_events(
    state: Any, book: Book, events: Events, arms: Ints, living: Ints, begin: int, known: bool
) -> tuple[int, int]:
    """Fold the events from `begin` on; return where the loop stopped, and why.

    `arms` has each event's index in the tables, or -1, and `living` has the policy's number of its
    arm, or -1 if it can no longer be played. With `known`, the state chose the suggestions among
    these events itself, and already knows them.
    """
    at, table, rules = book.at[0], book.table, book.rules[0]
    for e in range(begin, len(arms)):
        kind, arm, tag = events.kind[e], arms[e], events.tag[e]
        # Only this check keeps a damaged log from writing outside the arrays.
        if arm < 0 or (kind == _HISTORY and tag < 1):
            return e, BAD
        closed = close_windows(book, events.at[e])
        if rules.design == 1 and (at.noted == len(book.journal) or not closed):
            return e, FULL
        at.seq, at.time = events.seq[e], events.at[e]
        if kind == _SUGGESTED:
            enter(book, events.seq[e], events.at[e], arm, living[e], tag, events.nonce[e])
            if not known and tag >= 0 and living[e] >= 0:
                issued(state, living[e], tag)
        elif kind == _RECORDED:
            if math.isnan(events.value[e]) or rules.by_window == 1:
                enter(book, events.seq[e], events.at[e], arm, living[e], tag, events.nonce[e])
            else:
                at.suggested += 1
            if not math.isnan(events.value[e]):
                at.reported += 1
                now = rules.by_window == 0
                credit(state, book, arm, living[e], tag, events.value[e], at.time, now)
                if not now:
                    table[at.used - 1].status = REPORTED
                    table[at.used - 1].value = events.value[e]
        elif kind == _REPORTED:
            at.reported += 1
            k = place_of(table, at.used, events.suggestion[e])
            own, delay = REPEAT, float(at.seq - events.suggestion[e])
            if k >= 0:
                delay = float(at.suggested - table[k].number)
            else:  # it is no longer in the table: an estimate
                delay *= at.suggested / at.seq
            if k < 0 or table[k].status == REPORTED:  # expired; or its default waits to be evidence
                at.expired -= 1
                if rules.on_expiry != _DEFAULT:  # otherwise the default was already counted
                    drawn = rules.design == 1 and events.metric[e] > 0
                    own = events.metric[e] - 1 if drawn else min(-1, tag)
                    credit(state, book, arm, living[e], own, events.value[e], 0.0, True)
            else:
                one = table[k]
                own = one.tag
                at.expired -= one.status == WAITING
                now = rules.by_window == 0 or one.status == WAITING
                credit(state, book, one.arm, one.living, own, events.value[e], one.asked, now)
                if now or own == REPEAT:
                    one.status = GONE
                else:
                    one.status, one.value = REPORTED, events.value[e]
            if own != REPEAT and (rules.by_window == 0 or rules.on_expiry != _DEFAULT):
                note_delay(book, scaled(book, events.value[e]), delay)
        elif kind == _CANCELLED:
            at.cancelled += 1
            k = place_of(table, at.used, events.suggestion[e])
            if k < 0:
                at.expired -= 1
            else:
                at.expired -= table[k].status == WAITING
                if not give_back(state, book, k):
                    return e + 1, FORGET
        elif kind == _EXPIRED:
            at.expired += 1
            k = place_of(table, at.used, events.suggestion[e])
            if k >= 0 and tag == _WAITING:
                table[k].status = WAITING
            elif k >= 0 and tag == _DEFAULT:
                one = table[k]
                now = rules.design == 0 or rules.by_window == 0
                credit(state, book, one.arm, one.living, one.tag, events.value[e], one.asked, now)
                one.status = GONE if now or one.tag == REPEAT else REPORTED
                one.value = events.value[e]
                if rules.by_window == 0 and one.tag != REPEAT:
                    delay = float(at.suggested - one.number)
                    note_delay(book, scaled(book, events.value[e]), delay)
            elif k >= 0 and not give_back(state, book, k):
                return e + 1, FORGET
        elif kind == _HISTORY:
            x = scaled(book, events.value[e])
            book.counts[arm] += tag
            book.sums[arm] += tag * x
            book.imported[arm] += tag
            book.known[arm] += tag
            book.known_sums[arm] += tag * x
            if living[e] >= 0:
                learn_count(state, living[e], tag, tag * x)
        elif kind == _GUARDRAIL:
            note(book, tag, arm, events.metric[e], events.value[e], at.time)
        elif kind == _RETIRED:
            at.retired = 1
        elif kind == _VERSION:
            at.version = tag
            return e + 1, VERSION
        elif kind == _REVISED:
            return e + 1, REVISE
        if rules.forget_every > 0 and at.learned >= rules.forget_every:
            return e + 1, FADE
    return len(arms), DONE
