"""The state of a study as a fold over its log: plain Python that may be compiled.

Nothing here draws a random number or looks at a clock. What the fold needs beside the policy's
state is a `Book` of plain arrays.

Evidence and knowledge are counted apart. *Knowledge* is what the policy has learned: every reward
as soon as it is known, with its weight fading where the study forgets. *Evidence* is what the
stopping rule may look at: each reward once, at a time that doesn't depend on what it is. Where
missing rewards are filled with a default, a success may be known at once and a failure only when
the window closes; so there a report counts as evidence when its window closes.

A study that draws by shares has no policy to teach, and its bets withstand delays that depend on
the reward. There each reward is evidence at once, and a row of the journal: see `live_design`.
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

__all__ = ["Book", "close_windows", "fold_events", "new_book", "overdue", "place_in"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT = record(
    "seq",  # of the last event
    "head",  # no entry of the table before this one can become overdue or close
    "used",  # entries of the table so far
    "suggested",  # exposures, those that were recorded too
    "reported",  # those of them with a reward
    "cancelled",  # suggestions that were cancelled
    "expired",  # suggestions that are overdue, and of which nothing else became
    "learned",  # rewards that the policy has learned since it last forgot
    "retired",  # 1 when the study is closed
    "arm",  # the policy's pull that the loop has stopped at, for `forget`
    "tag",
    "evidence",  # rewards that are evidence, without those from elsewhere, ...
    "version",  # the current one; -1 before the first
    "noted",  # rows of the journal so far
    "held",  # rewards of units that are held out, ...
    time=float,  # of the last event
    gained=float,  # ... the sum of these rewards, scaled to [0, 1], and of their squares
    squares=float,
    held_sum=float,  # ... and the same of them
    held_squares=float,
)

RULES = record(
    "on_expiry",
    "by_window",  # 1 if a report counts as evidence when its window closes
    "forget_every",  # rewards after which the policy forgets a little; 0 for never
    "design",  # 1 if levels are drawn by shares
    low=float,
    high=float,
    window=float,  # infinite where nothing becomes overdue
    default=float,
)

#: What became of a suggestion that is in the table.
GONE, PENDING, WAITING, REPORTED = range(4)

#: A suggestion of which something may still become.
OPEN = record(
    "seq",
    "arm",  # its place in the tables of a book
    "living",  # the policy's number of it, -1 where it can't be played any more
    "tag",  # of its event; -1 for a pull that the policy's present state knows nothing of
    "nonce",
    "status",
    asked=float,
    value=float,  # as it was told, where it was reported and isn't evidence yet
)

#: A reward that is bet on, or the value of a guardrail.
NOTE = record(
    "version",  # that its levels were drawn under
    "under",  # the current one when it came
    "arm",  # its place in the tables of a book
    "metric",  # 0 for the reward
    value=float,
    asked=float,
)

# What the loop stops for. The event at which it does is folded, and this remains to be done.
# BAD is for an event that can't be, FULL for one that needs an empty journal; neither is folded.
DONE, FORGET, REVISE, FADE, VERSION, BAD, FULL = range(7)

_SUGGESTED, _REPORTED = int(Kind.SUGGESTED), int(Kind.REPORTED)
_VERSION, _RECORDED, _GUARDRAIL = int(Kind.VERSION), int(Kind.RECORDED), int(Kind.GUARDRAIL)
_CANCELLED, _EXPIRED, _REVISED = int(Kind.CANCELLED), int(Kind.EXPIRED), int(Kind.REVISED)
_HISTORY, _RETIRED = int(Kind.HISTORY), int(Kind.RETIRED)
_DEFAULT, _WAITING = int(Expiry.DEFAULT), int(Expiry.WAITING)


#: Rows of a journal.
JOURNAL = 8192
#: The tables of a book.
TABLES = ("counts", "sums", "known", "known_sums", "imported")


class Book(NamedTuple):
    """What a study knows beside the policy's state.

    Tables have an entry for each arm of the grid of all levels that ever were.
    """

    at: Records  # see `AT`
    rules: Records  # see `RULES`
    counts: Floats  # evidence: rewards of each arm
    sums: Floats  # their sum, scaled to [0, 1]
    known: Floats  # knowledge: how many rewards, as far as they aren't forgotten
    known_sums: Floats
    imported: Floats  # how many of the evidence came from elsewhere
    table: Records  # see `OPEN`: suggestions of which something may still become, in order
    journal: Records  # see `NOTE`
    #: Delays, in events, of the rewards below and above the average: number, sum and squares.
    delays: Floats


def new_book(arms: int, rules: Records) -> Book:
    """Before the first event."""
    tables: Any = {name: np.zeros(arms) for name in TABLES}
    at, journal = np.zeros(1, AT), np.zeros(JOURNAL if rules[0].design else 0, NOTE)
    at[0].version = -1
    return Book(
        at, rules, table=np.zeros(64, OPEN), journal=journal, delays=np.zeros((2, 3)), **tables
    )


@jit
def place_of(table: Records, used: int, seq: int) -> int:
    """Where a suggestion stands in the table; -1 if it isn't there (any more)."""
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
    """The same, of a book; outside of compiled code."""
    at, table = book.at[0], book.table
    k = int(np.searchsorted(table["seq"][: at.used], seq))
    return k if k < at.used and table[k].seq == seq and table[k].status != GONE else -1


@inlined
def scaled(book: Book, value: float) -> float:
    """A reward as a number in [0, 1]."""
    rules = book.rules[0]
    return min(max((value - rules.low) / (rules.high - rules.low), 0.0), 1.0)


@inlined
def add_evidence(book: Book, arm: int, x: float) -> None:
    """One reward that the stopping rule may look at."""
    at = book.at[0]
    book.counts[arm] += 1.0
    book.sums[arm] += x
    at.evidence += 1
    at.gained += x
    at.squares += x * x


@inlined
def note(book: Book, version: int, arm: int, metric: int, value: float, asked: float) -> None:
    """A row of the journal, in which there must be room."""
    at, rules = book.at[0], book.rules[0]
    if rules.design == 1 and version >= 0:
        row = book.journal[at.noted]
        row.version, row.under, row.arm, row.metric = version, at.version, arm, metric
        row.value, row.asked = value, asked
        at.noted += 1


@inlined
def note_delay(book: Book, x: float, delay: float) -> None:
    """How long a reward took: `best` says so if that depends on what it is."""
    at = book.at[0]
    row = book.delays[1 if at.evidence * x > at.gained else 0]
    row[0] += 1.0
    row[1] += delay
    row[2] += delay * delay


@inlined
def credit(
    state: Any, book: Book, arm: int, living: int, tag: int, value: float, asked: float, now: bool
) -> None:
    """A reward has come. `now` says whether it is evidence at once."""
    at, x = book.at[0], scaled(book, value)
    if tag == HELD_OUT:
        at.held += 1
        at.held_sum += x
        at.held_squares += x * x
    elif tag != REPEAT:
        learn(state, book, arm, living, tag, x)
        if now:
            add_evidence(book, arm, x)
            low, high = book.rules[0].low, book.rules[0].high
            note(book, tag, arm, 0, min(max(value, low), high), asked)


@inlined
def learn(state: Any, book: Book, arm: int, living: int, tag: int, x: float) -> None:
    """One reward that the policy may learn from, if it can."""
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
def close_windows(book: Book, now: float) -> None:
    """Reports whose windows have closed become evidence."""
    at, table, window = book.at[0], book.table, book.rules[0].window
    while at.head < at.used and table[at.head].status in (GONE, WAITING):
        at.head += 1
    if book.rules[0].by_window == 0:
        return
    k = at.head
    while k < at.used and table[k].asked + window <= now:
        one = table[k]
        if one.status == REPORTED:
            add_evidence(book, one.arm, scaled(book, one.value))
            one.status = GONE
        k += 1


def overdue(book: Book, now: float) -> list[int]:
    """The suggestions whose window has closed without anything having become of them."""
    at, window = book.at[0], float(book.rules[0].window)
    found, k = [], int(at.head)
    while k < at.used and book.table[k].asked + window <= now:
        if book.table[k].status == PENDING:
            found.append(int(book.table[k].seq))
        k += 1
    return found


@inlined
def enter(book: Book, seq: int, time: float, arm: int, living: int, tag: int, nonce: int) -> None:
    """A suggestion: there must be room in the table."""
    at = book.at[0]
    one = book.table[at.used]
    one.seq, one.arm, one.living, one.tag, one.nonce = seq, arm, living, tag, nonce
    one.status, one.asked, one.value = PENDING, time, 0.0
    at.used += 1
    at.suggested += 1


@jit
def give_back(state: Any, book: Book, k: int) -> bool:
    """Nothing will come of entry k. False if the policy is still to be told so."""
    at, one = book.at[0], book.table[k]
    one.status = GONE
    at.arm, at.tag = one.living, one.tag
    if one.tag < 0 or one.living < 0:
        return True
    return give_up(state, at.arm, at.tag)


def fold_events(
    state: Any, book: Book, events: Events, arms: Ints, living: Ints, begin: int, known: bool
) -> tuple[int, int]:
    """Fold the events from `begin` on; where it stopped, and what for.

    `arms` has each event's place in the tables, -1 where it has none, and `living` the policy's
    number of its arm, -1 where it can't be played any more. With `known` the state has chosen
    the suggestions among them, and needn't be told of them.
    """
    at, table, rules = book.at[0], book.table, book.rules[0]
    for e in range(begin, len(arms)):
        kind, arm, tag = events.kind[e], arms[e], events.tag[e]
        # Nothing else keeps a damaged log from being written beside the arrays.
        if arm < 0 or (kind == _HISTORY and tag < 1):
            return e, BAD
        if rules.design == 1 and at.noted == len(book.journal):
            return e, FULL
        at.seq, at.time = events.seq[e], events.at[e]
        close_windows(book, at.time)
        if kind == _SUGGESTED:
            enter(book, events.seq[e], events.at[e], arm, living[e], tag, events.nonce[e])
            if not known and tag >= 0 and living[e] >= 0:
                issued(state, living[e], tag)
        elif kind == _RECORDED:
            if math.isnan(events.value[e]):
                enter(book, events.seq[e], events.at[e], arm, living[e], tag, events.nonce[e])
            else:
                at.suggested += 1
                at.reported += 1
                credit(state, book, arm, living[e], tag, events.value[e], at.time, True)
        elif kind == _REPORTED:
            at.reported += 1
            k = place_of(table, at.used, events.suggestion[e])
            if k < 0:
                at.expired -= 1
                if rules.on_expiry != _DEFAULT:  # else the default was counted in its place
                    drawn = rules.design == 1 and events.metric[e] > 0
                    own = events.metric[e] - 1 if drawn else min(-1, tag)
                    credit(state, book, arm, living[e], own, events.value[e], 0.0, True)
            else:
                one = table[k]
                at.expired -= one.status == WAITING
                now = rules.by_window == 0
                credit(state, book, one.arm, one.living, one.tag, events.value[e], one.asked, now)
                if now and one.tag != REPEAT:
                    note_delay(book, scaled(book, events.value[e]), float(at.seq - one.seq))
                if now or one.tag <= REPEAT:
                    one.status = GONE
                else:
                    one.status, one.value = REPORTED, events.value[e]
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
                one.status = GONE
                credit(state, book, one.arm, one.living, one.tag, events.value[e], one.asked, True)
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
