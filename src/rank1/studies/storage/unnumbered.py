"""Events that are added without the study's lock, and numbered later.

A log is numbered without gaps, and each checksum covers the event before. So a writer that adds
numbered events must know where the log ends until it commits: it holds the study's lock, and others
wait while it folds, fits and commits. Exposures drawn by clients, and their rewards, don't depend
on the state, so they needn't wait. On PostgreSQL they are added like this:

- One INSERT statement adds them to the table of events, with a negative number from a sequence
  and no checksum. The statement commits by itself, so the events are durable when it returns.
  Queries that read the log by number don't see them.
- The next transaction that holds the study's lock takes them out, in order of arrival, and
  appends them to the log before it does anything else. So everything that runs under the lock
  (ask, tell, export, forget, verify, delete) sees a complete log. A read that needs the state
  has them numbered first.
- If a server or the database is killed in between, the events are still there, and the next
  transaction numbers them.

Because they are in the same table, the same unique indices decide which event was first, across all
servers and both ways of writing: `rank1_recorded` allows one record per unit, and `rank1_outcomes`
one report per exposure. An INSERT skips rows that conflict with an existing row. The caller then
takes the lock to get the exact answer: a duplicate, or a conflict. A separate table for these
events would need a second check under the lock to see both.

Conflicts that no index detects are resolved when numbers are assigned. If a unit gets a suggestion
at the very moment its record is added, it counts once, by the first of the two in the log: the
record is stored with the tag `REPEAT`. A report whose exposure has expired meanwhile is late.

Each such event is written twice. In return, a record never waits for another server's fold. SQLite
has only one writer at a time in any case, so there this would have only costs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rank1.studies.events import COLUMNS, REPEAT, Event, Kind, late_report
from rank1.studies.storage.array_parameters import arrays

__all__ = ["ADD", "MADE", "TAKE", "WAITING", "columns_of", "numbered"]

#: What version 4 of the tables adds for this.
MADE = f"""
    CREATE SEQUENCE IF NOT EXISTS rank1_unnumbered;
    CREATE UNIQUE INDEX IF NOT EXISTS rank1_recorded ON rank1_events (study, unit)
        WHERE unit IS NOT NULL AND kind = {Kind.RECORDED:d}"""

_GIVEN = ("kind", "arm", "tag", "suggestion", "value", "nonce", "unit", "data")
_FILLED = [name for name in COLUMNS if name not in (*_GIVEN, "key", "seq", "at", "position")]
# The index in the list is stored as the position: the statement uses it to return what it has
# added, and events are numbered in this order. The number here only marks them as unnumbered.
ADD = f"""
    INSERT INTO rank1_events (study, {", ".join(_GIVEN)}, seq, at, position, {", ".join(_FILLED)})
    SELECT study, {", ".join(_GIVEN)}, -nextval('rank1_unnumbered'),
        extract(epoch FROM statement_timestamp())::float8, place - 1{", 0" * len(_FILLED)}
    FROM unnest(%s::int4[], {", ".join(f"%s::{COLUMNS[name]}[]" for name in _GIVEN)})
        WITH ORDINALITY AS given (study, {", ".join(_GIVEN)}, place)
    WHERE study IN (SELECT id FROM rank1_studies) AND NOT EXISTS (
        SELECT FROM rank1_events AS e WHERE e.study = given.study AND e.unit = given.unit)
    ON CONFLICT DO NOTHING RETURNING position"""
WAITING = "EXISTS (SELECT FROM rank1_events WHERE study = {study} AND seq < 0)"
# Also returns other events of the unit, and whether the exposure has expired.
TAKE = f"""
    DELETE FROM rank1_events AS e WHERE study = ? AND seq < 0
    RETURNING {", ".join(Event._fields)}, EXISTS (
        SELECT FROM rank1_events AS o WHERE o.study = e.study AND o.unit = e.unit AND o.seq > 0
    ), EXISTS (
        SELECT FROM rank1_events AS o WHERE o.study = e.study AND o.suggestion > 0
        AND o.suggestion = e.suggestion AND o.kind = {Kind.EXPIRED:d})"""


def columns_of(added: Sequence[tuple[int, Event]]) -> list[Any]:
    """Return the parameters of `ADD`, from numbers of studies and their events.

    The tag of a report is its exposure's tag. The data of an event is None, or the guardrail values
    reported with it, by number (JSON).
    """
    studies, events = zip(*added, strict=True)
    given = dict(zip(Event._fields, zip(*events, strict=True), strict=True))
    types = "int4", *(COLUMNS[name] for name in _GIVEN)
    return arrays(types, (studies, *(given[name] for name in _GIVEN)))


def numbered(rows: Sequence[tuple[Any, ...]]) -> list[Event]:
    """Return the events that `TAKE` took out, ready to append to the log."""
    found: list[Event] = []
    taken = [(Event._make(fields), seen, late) for *fields, seen, late in rows]
    for event, seen, late in sorted(taken, key=lambda each: (each[0].at, each[0].position)):
        tag = REPEAT if seen else event.tag
        metrics = json.loads(event.data) if event.data else {}
        own, metric = tag, 0
        if event.suggestion:
            own, metric = late_report(tag) if late else (0, 0)
        found.append(event._replace(tag=own, metric=metric, position=0, data=None))
        for metric, value in metrics.items():
            found.append(
                Event(
                    Kind.GUARDRAIL, arm=event.arm, tag=tag, value=value, metric=int(metric),
                    at=event.at,
                )
            )  # fmt: skip
    return found
