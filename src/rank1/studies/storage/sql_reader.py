"""The queries for reading that SQLite and PostgreSQL share; each runs them in its own way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.errors import UnknownStudyError
from rank1.studies.events import WITH_DATA, Event, Events, Kind, check_text, columns
from rank1.studies.storage.base import Reader, Snapshot, StudyRow, seal_of, several
from rank1.studies.storage.checksum import first_wrong
from rank1.studies.storage.tables import select_events, select_studies

__all__ = ["PORTION", "SqlReader"]

#: Events to read at once.
PORTION = 500_000
#: Errors caused by damaged pages that look like rows, and by damaged events.
GARBAGE = (ValueError, TypeError, OverflowError)
NAME = "SELECT name FROM rank1_studies WHERE id = ?"
LAST = "SELECT seq, at FROM rank1_events WHERE study = ? ORDER BY seq DESC LIMIT 1"
PENDING = f"""
    SELECT seq FROM rank1_events AS asked
    WHERE study = ? AND kind = {Kind.SUGGESTED:d} AND NOT EXISTS (
        SELECT 1 FROM rank1_events AS outcome
        WHERE outcome.study = asked.study AND outcome.suggestion = asked.seq
        AND outcome.suggestion > 0)
    ORDER BY seq"""
SNAPSHOTS = """
    SELECT seq, blob, digest FROM rank1_snapshots
    WHERE study = ? AND layout = ? AND seq <= ? ORDER BY seq DESC"""


class SqlReader(Reader):
    """A `Reader` built on `rows` and `among`, which each database provides."""

    #: The columns of the table of events.
    present: frozenset[str]

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        raise NotImplementedError

    def among(self, values: Sequence[int] | Sequence[str]) -> tuple[str, Any]:
        """Return the SQL condition "is one of `values`", and its parameter."""
        raise NotImplementedError

    def clock(self) -> float:
        """Return the storage's time, in seconds since 1970."""
        raise NotImplementedError

    def end(self, study: int) -> tuple[int, float]:
        """Return the seq of the last event, and the current time, which is never before it."""
        seq, at = self.last(study)
        return seq, max(at, self.clock())

    def now(self, study: int) -> float:
        return self.end(study)[1]

    def records(self, study: int, first: int, count: int) -> NDArray[Any]:
        """Return at most `count` events, from the seq `first`, with the fields of `RECORD`."""
        raise NotImplementedError

    def check_structure(self) -> None:
        """Refuse a table of events or indices that the database itself finds damaged."""

    def read(self, study: int, after: int = 0, limit: int | None = None) -> Events:
        if not after and limit is None:  # a damaged table could silently lack the last events
            self.check_structure()
        try:
            return self._whole(study, after, 2**62 if limit is None else limit)
        except GARBAGE as error:
            raise self.damaged(str(error)) from error

    def _whole(self, study: int, after: int, limit: int) -> Events:
        """Return the events for `read`; raises one of `GARBAGE` if they are damaged."""
        records, before = self.records(study, after, limit + bool(after)), 0
        if after:
            if not len(records) or records["seq"][0] != after:
                end = f"the log ends with event {self.last(study)[0]}"
                raise ValueError(f"event {after} was read before, but is missing now: {end}")
            before, records = int(records["checksum"][0]), records[1:]
        expected = np.arange(after + 1, after + 1 + len(records))
        if not np.array_equal(records["seq"], expected):
            missing = expected[(records["seq"] != expected).argmax()]
            raise ValueError(f"event {missing} of the log is missing")
        told = records["seq"][np.isin(records["kind"], WITH_DATA)]
        texts = {event.seq: event.data for event in self.events(study, told.tolist())}
        wrong = first_wrong(records, texts, before)
        if wrong is not None:
            names = [name for (name,) in self.rows(NAME, study)]
            raise ValueError(
                f"event {records['seq'][wrong]} of study {(names or [study])[0]!r} "
                "doesn't match its checksum"
            )
        return columns(records)

    def wrong_checksums(self) -> list[str]:
        """Return each study's first event that doesn't match its checksum, a sentence each."""
        found = []
        for (study,) in self.rows("SELECT id FROM rank1_studies ORDER BY name"):
            last = 0
            try:
                while (events := self._whole(study, last, PORTION)).size:
                    last = int(events.seq[-1])
            except GARBAGE as error:
                found.append(str(error))
        return found

    def studies(self) -> list[StudyRow]:
        found = [StudyRow(*row) for row in self.rows(select_studies(self.present))]
        if not all(isinstance(row.name, str) for row in found):  # rows of another table
            raise self.damaged("the table of studies has something else in it")
        return sorted(found, key=lambda row: row.name)

    def study(self, name: str) -> StudyRow:
        check_text("name", name)
        for row in self.rows(f"{select_studies(self.present)} WHERE name = ?", name):
            return StudyRow(*row)
        names = [row.name for row in self.studies()]
        if name in names:  # the index doesn't have it
            raise self.damaged(f"study {name!r} is in the table, but not in its index")
        there = ", ".join(map(repr, names[:10])) + (", …" if len(names) > 10 else "")
        raise UnknownStudyError(
            f"there is no study {name!r}", f"there are: {there or 'none yet'}", study=name
        )

    def last(self, study: int) -> tuple[int, float]:
        for seq, at in self.rows(LAST, study):
            return seq, at
        raise UnknownStudyError(f"there is no study with the number {study}")

    def page(
        self,
        study: int,
        after: int | None = None,
        limit: int = 100,
        *,
        kinds: Sequence[Kind] = (),
        newest: bool = False,
    ) -> list[Event]:
        some = f" AND kind IN ({', '.join(str(int(kind)) for kind in kinds)})" if kinds else ""
        if newest:
            beyond, order = "> 0 AND seq <", " DESC"
            after = 2**62 if after is None else after
        else:
            beyond, order = ">", ""
            after = after or 0
        return self._events(
            f"AND seq {beyond} ?{some} ORDER BY seq{order} LIMIT ?", study, after, limit
        )

    def events(self, study: int, seqs: Sequence[int]) -> list[Event]:
        return self._among(study, "seq", sorted(set(seqs)))

    def outcomes(self, study: int, suggestions: Sequence[int]) -> list[Event]:
        return self._among(study, "suggestion > 0 AND suggestion", suggestions)

    def _among(self, study: int, what: str, values: Sequence[int]) -> list[Event]:
        found: list[Event] = []
        for some in several(values):
            condition, parameter = self.among(some)
            found += self._events(f"AND {what} {condition} ORDER BY seq", study, parameter)
        return sorted(found, key=lambda event: event.seq) if len(values) > 1 else found

    def with_key(self, study: int, key: str, limit: int | None = None) -> list[Event]:
        some = 2**62 if limit is None else limit
        return self._events("AND key = ? ORDER BY position LIMIT ?", study, key, some)

    def of_unit(self, study: int, unit: str) -> Event | None:
        return self.of_units(study, [unit]).get(unit)

    def of_units(
        self, study: int, units: Sequence[str], recorded: bool = False
    ) -> dict[str, Event]:
        found: dict[str, Event] = {}
        which = f"coalesce(max(CASE WHEN kind = {Kind.RECORDED:d} THEN seq END), max(seq))"
        which = which if recorded else "max(seq)"
        for some in several(units):
            condition, parameter = self.among(some)
            # Use the index of units: with ORDER BY for the last event, SQLite would read the whole
            # log.
            last = f"SELECT {which} FROM rank1_events WHERE study = ? AND unit {condition}"
            events = self._events(
                f"AND seq IN ({last} GROUP BY unit HAVING max(seq) > 0) ORDER BY seq",
                study, study, parameter,
            )  # fmt: skip
            found |= {str(event.unit): event for event in events}
        return found

    def pending(self, study: int) -> NDArray[np.int64]:
        return np.array([seq for (seq,) in self.rows(PENDING, study)], np.int64)

    def snapshot(self, study: int, layout: str) -> Snapshot | None:
        seq_last, _ = self.last(study)
        for seq, blob, seal in self.rows(SNAPSHOTS, study, layout, seq_last):
            snapshot = Snapshot(seq, layout, bytes(blob))
            if seal_of(study, snapshot) == bytes(seal):
                return snapshot
        return None

    def _events(self, condition: str, *parameters: Any) -> list[Event]:
        rows = self.rows(f"{select_events(self.present)} {condition}", *parameters)
        events = map(Event._make, rows)
        # SQLite stores NaN as NULL.
        return [e if e.value is not None else e._replace(value=math.nan) for e in events]
