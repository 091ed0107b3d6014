"""The queries for writing that SQLite and PostgreSQL share; each runs them in its own way."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import repeat
from typing import Any, Self

from rank1.errors import (
    ConflictError,
    InputError,
    StorageError,
    StudyExistsError,
    UnknownStudyError,
)
from rank1.studies.events import (
    OUTCOMES,
    WITH_DATA,
    Event,
    Kind,
    check_text,
    check_texts,
    new_uid,
    nonces,
)
from rank1.studies.storage.base import Snapshot, Storage, StudyRow, seal_of, several
from rank1.studies.storage.checksum import chained, packed
from rank1.studies.storage.integrity import integrity_problems
from rank1.studies.storage.sql_reader import SqlReader

__all__ = ["SqlStorage", "SqlTransaction"]

TAIL = "SELECT seq, at, checksum FROM rank1_events WHERE study = ? ORDER BY seq DESC LIMIT 1"
# Includes events without a number.
OF_UNIT = "SELECT seq FROM rank1_events WHERE study = ? AND unit = ?"
# Clears columns that the checksum doesn't cover; by seq, or SQLite wouldn't use its index.
FORGET = f"""
    UPDATE rank1_events SET unit = NULL, data = NULL,
        key = CASE WHEN replace(key, ?, '') = key THEN key END
    WHERE study = ? AND seq IN ({OF_UNIT})"""
KEYS = """
    SELECT seq, suggestion, key FROM rank1_events
    WHERE study = ? AND key IS NOT NULL AND replace(key, ?, '') <> key"""
PUT_SNAPSHOT = """
    INSERT INTO rank1_snapshots (study, seq, layout, blob, digest) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (study, seq) DO UPDATE
    SET layout = excluded.layout, blob = excluded.blob, digest = excluded.digest"""
PRUNE_SNAPSHOTS = """
    DELETE FROM rank1_snapshots WHERE study = ? AND seq NOT IN (
        SELECT seq FROM rank1_snapshots WHERE study = ? ORDER BY seq DESC LIMIT 2)"""


class SqlTransaction(SqlReader):
    """A `Transaction` built on `clock` and `insert`, which each database provides."""

    #: The statement that creates a study from name, uid and time, with a new number.
    new_study: str

    def __init__(self, studies: Sequence[int]) -> None:
        self._studies = studies
        #: By study: the seq, time and checksum of its last event, ...
        self._lasts: dict[int, tuple[int, float, int]] = {}
        #: ... and the time for new events.
        self._times: dict[int, float] = {}
        self._clock: float | None = None
        #: The last added event, and its study.
        self.added: tuple[int, Event] | None = None
        #: Whether there were changes that must be repeated if it is unknown whether the transaction
        #: was committed.
        self.changed = False
        self.failed = False

    def insert(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write rows of events, with the fields of `tables.WRITTEN`."""
        raise NotImplementedError

    def create(self, name: str, spec: str) -> StudyRow:
        """Create a study, whose log begins with its specification."""
        # Read the table itself: with a damaged index, a study could be created twice.
        if self.rows("SELECT created FROM rank1_studies WHERE name || '' = ?", name):
            raise ConflictError(f"the study {name!r} already exists", study=name)
        uid = new_uid()
        while self.rows("SELECT 1 FROM rank1_studies WHERE uid = ?", uid):
            uid = new_uid()
        now = self.clock()
        ((study,),) = self.rows(self.new_study, name, uid, now)
        self._studies, self._lasts[study], self._times[study] = [study], (0, now, 0), now
        self.append(study, [Event(Kind.CREATED, data=spec)])
        return self.study(name)

    def last(self, study: int) -> tuple[int, float]:
        if study not in self._studies:  # others may append to it
            return super().last(study)
        return self._last(study)[:2]

    def _last(self, study: int) -> tuple[int, float, int]:
        if study not in self._lasts:
            for seq, at, checksum in self.rows(TAIL, study):
                self._lasts[study] = seq, at, checksum
                break
            else:
                raise UnknownStudyError(f"there is no study with the number {study}")
        return self._lasts[study]

    def end(self, study: int) -> tuple[int, float]:
        """Return the seq of the last event, and the time for new events."""
        if study not in self._studies:
            raise InputError("study", study, "one of those that the transaction names")
        seq, at, _ = self._last(study)
        if study not in self._times:
            if self._clock is None:
                self._clock = self.clock()
            self._times[study] = max(at, self._clock)
        return seq, self._times[study]

    def append(self, study: int, events: Sequence[Event], as_dated: bool = False) -> int:
        last, at = self.end(study)
        if not events:
            return last + 1
        # Going by columns is three times as fast as event by event.
        given: dict[str, Any] = dict(zip(Event._fields, zip(*events, strict=True), strict=True))
        kinds = given["kind"] = list(map(int, given["kind"]))
        for name in ("key", "unit"):
            check_texts(name, given[name])
        for text in given["data"]:
            if text is not None and not (text.isascii() and "\0" not in text):
                raise InputError("data", text, "ASCII, as JSON can be")
        for k, (kind, suggestion) in enumerate(zip(kinds, given["suggestion"], strict=True)):
            if (suggestion > 0) != (kind in OUTCOMES) or suggestion > last:
                raise InputError("suggestion", events[k], "one that was made before")
        if not all(given["nonce"]):
            some = zip(given["nonce"], nonces(len(events)), strict=True)
            given["nonce"] = [nonce or new for nonce, new in some]
        # SQLite keeps neither -0.0 nor the bits of a NaN.
        given["value"] = [x + 0.0 if x == x else math.nan for x in given["value"]]
        given["seq"] = range(last + 1, last + 1 + len(events))
        times = [at] * len(events)
        if as_dated:  # time never runs backwards
            before = self._last(study)[1]
            times = [before := max(before, min(each, at)) for each in given["at"]]
        given["at"] = times
        pieces = packed(given)
        for k, kind in enumerate(kinds):
            if kind in WITH_DATA:
                pieces[k] += (given["data"][k] or "").encode()
        checksums = given["checksum"] = chained(pieces, self._last(study)[2])
        try:
            self.insert(zip(repeat(study), *given.values()))
        except BaseException:
            self.failed = True  # some of the rows may have been written
            raise
        self._lasts[study] = last + len(events), times[-1], checksums[-1]
        self.added = study, Event(*(column[-1] for column in given.values()))
        return last + 1

    def retire(self, study: int) -> None:
        if self.rows("SELECT 1 FROM rank1_studies WHERE id = ? AND retired IS NOT NULL", study):
            raise ConflictError("the study is already retired")
        self.append(study, [Event(Kind.RETIRED)])
        self.rows("UPDATE rank1_studies SET retired = ? WHERE id = ?", self.now(study), study)

    def forget_unit(self, study: int, unit: str) -> int:
        self.end(study)  # raises if the transaction hasn't locked the study
        self.changed = True
        own = {seq for (seq,) in self.rows(OF_UNIT, study, check_text("unit", unit))}
        # In other units' keys, match whole words: "ann" is in "ask-ann-1" but not in "joanna".
        word = re.compile(rf"(?<![^\W_]){re.escape(unit)}(?![^\W_])")
        keys = [
            seq
            for seq, suggestion, key in self.rows(KEYS, study, unit)
            if seq not in own and (suggestion in own or word.search(key))
        ]
        self.rows(FORGET, unit, study, study, unit)
        for some in several(keys):
            condition, parameter = self.among(some)
            update = f"UPDATE rank1_events SET key = NULL WHERE study = ? AND seq {condition}"
            self.rows(update, study, parameter)
        return len(own) + len(keys)

    def archive(self, study: int, archived: bool = True) -> None:
        _, now = self.end(study)
        self.changed = True
        time = now if archived else None
        self.rows("UPDATE rank1_studies SET archived = ? WHERE id = ?", time, study)

    def delete(self, study: int) -> None:
        _, now = self.end(study)
        self.changed = True
        for table in ("rank1_snapshots", "rank1_events"):
            self.rows(f"DELETE FROM {table} WHERE study = ?", study)
        self.rows("DELETE FROM rank1_studies WHERE id = ?", study)
        self.rows("INSERT INTO rank1_deleted (study, at) VALUES (?, ?)", study, now)
        del self._lasts[study]

    def check_whole(self) -> None:
        """Refuse to commit an incomplete append."""
        if self.failed:
            raise StorageError("an append failed, so nothing of its transaction can be committed")


class SqlStorage(Storage):
    """Storage methods built on `prepare`, `reading` and `transaction` of each database."""

    def reading(self) -> AbstractContextManager[SqlReader]:
        raise NotImplementedError

    def transaction(self, *studies: int) -> AbstractContextManager[SqlTransaction]:
        raise NotImplementedError

    def creation(self) -> AbstractContextManager[SqlTransaction]:
        """Return a transaction for creating a study; only one runs at a time."""
        return self.transaction()

    def create(self, name: str, spec: str) -> StudyRow:
        check_text("name", name)
        self.prepare()
        try:
            with self.creation() as log:
                return log.create(name, spec)
        except ConflictError as error:
            raise StudyExistsError(
                f"study {name!r} already exists in {self.where!r}", "open it, or use another name",
                study=name, where=self.where,
            ) from error  # fmt: skip

    def put_snapshot(self, study: int, snapshot: Snapshot) -> None:
        with self.transaction() as log:
            log.rows(PUT_SNAPSHOT, study, *snapshot, seal_of(study, snapshot))
            log.rows(PRUNE_SNAPSHOTS, study, study)

    def check(self) -> list[str]:
        try:
            with self.reading() as log:
                return log.damage() or integrity_problems(log.rows) or log.wrong_checksums()
        except StorageError as error:
            return [str(error)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
