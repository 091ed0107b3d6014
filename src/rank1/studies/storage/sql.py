"""The queries, which SQLite and PostgreSQL share; what runs them is theirs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rank1.errors import (
    ConflictError,
    InputError,
    StorageError,
    StudyExistsError,
    UnknownStudyError,
)
from rank1.studies.events import OUTCOMES, Event, Events, Kind, check_text, new_uid, nonces
from rank1.studies.storage.base import Snapshot, StudyRow, seal_of, several
from rank1.studies.storage.integrity import faults
from rank1.studies.storage.tables import select_events

__all__ = ["SqlReader", "SqlStorage", "SqlTransaction"]

LAST = "SELECT seq, at FROM rank1_events WHERE study = ? ORDER BY seq DESC LIMIT 1"
STUDIES = """
    SELECT id, name, uid, created, retired,
        (SELECT max(seq) FROM rank1_events WHERE study = id),
        (SELECT at FROM rank1_events WHERE study = id ORDER BY seq DESC LIMIT 1)
    FROM rank1_studies"""
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
NEW_STUDY = "INSERT INTO rank1_studies (name, uid, created) VALUES (?, ?, ?) RETURNING id"
PUT_SNAPSHOT = """
    INSERT INTO rank1_snapshots (study, seq, layout, blob, digest) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (study, seq) DO UPDATE
    SET layout = excluded.layout, blob = excluded.blob, digest = excluded.digest"""
PRUNE_SNAPSHOTS = """
    DELETE FROM rank1_snapshots WHERE study = ? AND seq NOT IN (
        SELECT seq FROM rank1_snapshots WHERE study = ? ORDER BY seq DESC LIMIT 2)"""


class SqlReader:
    """A `Reader` over `rows` and `among`, which a database provides."""

    #: The columns that the table of events has.
    present: frozenset[str]

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        raise NotImplementedError

    def among(self, values: Sequence[int]) -> tuple[str, Any]:
        """The condition of being one of `values`, and its parameter."""
        raise NotImplementedError

    def clock(self) -> float:
        """The storage's clock, in seconds since 1970."""
        raise NotImplementedError

    def end(self, study: int) -> tuple[int, float]:
        """Seq of the last event, and the time now, which isn't before it."""
        seq, at = self.last(study)
        return seq, max(at, self.clock())

    def now(self, study: int) -> float:
        return self.end(study)[1]

    def damage(self) -> list[str]:
        """What the database itself finds wrong with its files."""
        return []

    def damaged(self, what: str) -> Exception:
        """What to raise where the tables say what can't be."""
        raise NotImplementedError

    def whole(self, study: int, after: int, events: Events) -> Events:
        """`events`, which must follow `after` without gaps; ValueError."""
        if events.size:
            expected = np.arange(after + 1, after + 1 + events.size)
            if not np.array_equal(events.seq, expected):
                missing = expected[(events.seq != expected).argmax()]
                raise ValueError(f"event {missing} of the log is missing")
        elif after and self.end(study)[0] < after:
            raise ValueError(f"event {after} was read before, but the log ends earlier")
        return events

    def studies(self) -> list[StudyRow]:
        found = [StudyRow(*row) for row in self.rows(STUDIES)]
        if not all(isinstance(row.name, str) for row in found):  # rows of another table
            raise self.damaged("the table of studies has something else in it")
        return sorted(found, key=lambda row: row.name)

    def study(self, name: str) -> StudyRow:
        check_text("name", name)
        for row in self.rows(f"{STUDIES} WHERE name = ?", name):
            return StudyRow(*row)
        names = [row.name for row in self.studies()]
        if name in names:  # the index doesn't know of it
            raise self.damaged(f"study {name!r} is there and can't be found")
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
            beyond, order = "<", " DESC"
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

    def with_key(self, study: int, key: str) -> list[Event]:
        return self._events("AND key = ? ORDER BY position", study, key)

    def of_unit(self, study: int, unit: str) -> Event | None:
        for event in self._events("AND unit = ? ORDER BY seq DESC LIMIT 1", study, unit):
            return event
        return None

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
        # SQLite has no NaN: it keeps NULL.
        return [e if e.value is not None else e._replace(value=math.nan) for e in events]


class SqlTransaction(SqlReader):
    """A `Transaction` over `clock` and `insert`, which a database provides."""

    def __init__(self, studies: Sequence[int]) -> None:
        self._studies = studies
        self._ends: dict[int, tuple[int, float]] = {}
        self._lasts: dict[int, tuple[int, float]] = {}
        self._clock: float | None = None
        #: The study of the last event that was added, and that event.
        self.added: tuple[int, Event] | None = None
        self.failed = False

    def insert(self, rows: list[tuple[Any, ...]]) -> None:
        """Write rows of events, with the fields of `tables.WRITTEN`."""
        raise NotImplementedError

    def create(self, name: str, spec: str) -> StudyRow:
        """A new study, whose log begins with its specification."""
        # From the table itself: by an index that is damaged, a study could be there twice.
        if self.rows("SELECT created FROM rank1_studies WHERE name || '' = ?", name):
            raise ConflictError(f"there is a study {name!r} already", study=name)
        uid = new_uid()
        while self.rows("SELECT 1 FROM rank1_studies WHERE uid = ?", uid):
            uid = new_uid()
        now = self.clock()
        ((study,),) = self.rows(NEW_STUDY, name, uid, now)
        self._studies, self._ends[study] = [study], (0, now)
        self.append(study, [Event(Kind.CREATED, data=spec)])
        return self.study(name)

    def last(self, study: int) -> tuple[int, float]:
        if study not in self._studies:  # somebody else may add to it
            return super().last(study)
        if study not in self._lasts:
            self._lasts[study] = super().last(study)
        return self._lasts[study]

    def end(self, study: int) -> tuple[int, float]:
        """Seq of the last event, and the time of those to come."""
        if study not in self._ends:
            if study not in self._studies:
                raise InputError("study", study, "one that the transaction names")
            seq, at = self.last(study)
            if self._clock is None:
                self._clock = self.clock()
            self._ends[study] = seq, max(at, self._clock)
        return self._ends[study]

    def append(self, study: int, events: Sequence[Event]) -> int:
        last, at = self.end(study)
        for event in events:
            if event.key is not None:
                check_text("key", event.key)
            if event.unit is not None:
                check_text("unit", event.unit)
            if event.data is not None and not (event.data.isascii() and "\0" not in event.data):
                raise InputError("data", event.data, "ASCII, as JSON can be")
            if (event.suggestion > 0) != (event.kind in OUTCOMES) or event.suggestion > last:
                raise InputError("suggestion", event, "one that was made before")
        given = [event.nonce for event in events]
        if not all(given):
            given = [nonce or new for nonce, new in zip(given, nonces(len(events)), strict=True)]
        whole = [
            event._replace(kind=int(event.kind), nonce=nonce, seq=seq, at=at)
            for seq, (event, nonce) in enumerate(zip(events, given, strict=True), last + 1)
        ]
        try:
            self.insert([(study, *event) for event in whole])
        except BaseException:
            self.failed = True  # some of the rows may be there
            raise
        self._ends[study] = self._lasts[study] = last + len(events), at
        if whole:
            self.added = study, whole[-1]
        return last + 1

    def retire(self, study: int) -> None:
        if self.rows("SELECT 1 FROM rank1_studies WHERE id = ? AND retired IS NOT NULL", study):
            raise ConflictError("the study is retired already")
        self.append(study, [Event(Kind.RETIRED)])
        self.rows("UPDATE rank1_studies SET retired = ? WHERE id = ?", self.now(study), study)

    def check_whole(self) -> None:
        """Refuse to commit half of what an append should have written."""
        if self.failed:
            raise StorageError("an append failed, so nothing of its transaction can be committed")


class SqlStorage:
    """What a storage does through `prepare`, `reading` and `transaction`, which a database has."""

    where: str

    def prepare(self) -> None:
        raise NotImplementedError

    def reading(self) -> AbstractContextManager[SqlReader]:
        raise NotImplementedError

    def transaction(self, *studies: int) -> AbstractContextManager[SqlTransaction]:
        raise NotImplementedError

    def creation(self) -> AbstractContextManager[SqlTransaction]:
        """A transaction that creates a study; one at a time."""
        return self.transaction()

    def create(self, name: str, spec: str) -> StudyRow:
        check_text("name", name)
        self.prepare()
        try:
            with self.creation() as log:
                return log.create(name, spec)
        except ConflictError as error:
            raise StudyExistsError(
                f"there is a study {name!r} in {self.where!r}", "open it, or take another name",
                study=name, where=self.where,
            ) from error  # fmt: skip

    def put_snapshot(self, study: int, snapshot: Snapshot) -> None:
        with self.transaction() as log:
            log.rows(PUT_SNAPSHOT, study, *snapshot, seal_of(study, snapshot))
            log.rows(PRUNE_SNAPSHOTS, study, study)

    def check(self) -> list[str]:
        try:
            with self.reading() as log:
                return log.damage() or faults(log.rows)
        except StorageError as error:
            return [str(error)]

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
