"""What every storage of studies can do."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rank1.studies.events import Event, Events, Kind

__all__ = ["PATIENCE", "Reader", "SideBySide", "Snapshot", "Storage", "StudyRow", "Transaction"]

T = TypeVar("T")

#: Seconds that a storage waits for a lock that somebody else holds, or for a server to come back.
PATIENCE = 30.0


class StudyRow(NamedTuple):
    """A study, as the storage lists it."""

    id: int  # within this storage
    name: str
    uid: str  # with which the ids of its suggestions begin
    created: float
    retired: float | None
    archived: float | None  # then it isn't listed
    last_seq: int
    last_at: float


class Snapshot(NamedTuple):
    """A state that was folded up to `seq`. Derived data: it can be thrown away at any time."""

    seq: int
    layout: str
    blob: bytes


class Reader(Protocol):
    """What can be read, all of it as of one moment. A study is given by its `StudyRow.id`."""

    def studies(self) -> list[StudyRow]:
        """All studies, by name."""

    def study(self, name: str) -> StudyRow:
        """The study of this name, or UnknownStudyError."""

    def last(self, study: int) -> tuple[int, float]:
        """Seq and time of the last event."""

    def now(self, study: int) -> float:
        """The time of the storage's clock, which never runs backwards within a study.

        In a transaction it is read once: all that `append` adds happened at this time.
        """

    def read(self, study: int, after: int = 0, limit: int | None = None) -> Events:
        """The events whose seq is larger than `after`, in order, as columns."""

    def page(
        self,
        study: int,
        after: int | None = None,
        limit: int = 100,
        *,
        kinds: Sequence[Kind] = (),
        newest: bool = False,
    ) -> list[Event]:
        """Some events in full, from the oldest on or from the newest back.

        `after` is the seq of the last event of the page before; `kinds` those to show (default:
        all).
        """

    def events(self, study: int, seqs: Sequence[int]) -> list[Event]:
        """The events with these numbers, in order; what isn't there is left out."""

    def outcomes(self, study: int, suggestions: Sequence[int]) -> list[Event]:
        """What became of suggestions: their reports, cancellations and expiries, in order."""

    def with_key(self, study: int, key: str, limit: int | None = None) -> list[Event]:
        """The events with this idempotency key, by position; all, or the first few of them."""

    def of_unit(self, study: int, unit: str) -> Event | None:
        """The last event of this unit."""

    def of_units(
        self, study: int, units: Sequence[str], recorded: bool = False
    ) -> dict[str, Event]:
        """The last event of each of these units, by unit; those without one are left out.

        With `recorded`, the record of a unit that has one.
        """

    def pending(self, study: int) -> NDArray[np.int64]:
        """The suggestions of which nothing became yet, in order."""

    def snapshot(self, study: int, layout: str) -> Snapshot | None:
        """The newest snapshot of this layout that is whole and not ahead of the log."""

    def damage(self) -> list[str]:
        """What the database itself finds wrong with its files."""

    def damaged(self, what: str) -> Exception:
        """What to raise, while reading, where the log says what can't be: a DamagedError."""


class Transaction(Reader, Protocol):
    """Reads what is there, and adds to it; nobody else adds to the same studies meanwhile."""

    def append(self, study: int, events: Sequence[Event]) -> int:
        """Add events to the log; the seq of the first. They are there when the block has ended.

        An event without a nonce is given one. ConflictError where the log has an event of the
        same kind for the same suggestion, or one with the same key and position; here, or when the
        block ends.
        """

    def retire(self, study: int) -> None:
        """Close the study, once."""

    def forget_unit(self, study: int, unit: str) -> int:
        """Remove a unit's name, what was stored with it, and keys in which it is; how many events.

        The events stay, and so does all that is folded of them.
        """

    def archive(self, study: int, archived: bool = True) -> None:
        """Hide a study from lists, or show it again."""

    def delete(self, study: int) -> None:
        """Delete a study with its log. Its number is never given to another."""


@runtime_checkable
class Storage(Protocol):
    """Where studies are kept. It can be used by many threads, by many processes, after a fork."""

    #: As messages name it.
    where: str

    def prepare(self) -> None:
        """Make the file or the tables unless they are there."""

    def create(self, name: str, spec: str) -> StudyRow:
        """A new study, whose log begins with its specification; StudyExistsError."""

    def reading(self) -> AbstractContextManager[Reader]:
        """Read without keeping anybody from writing."""

    def transaction(self, *studies: int) -> AbstractContextManager[Transaction]:
        """Read and add to the logs of these studies alone; committed when the block has ended.

        After an exception, nothing was added. StorageError says what is wrong; where its `again`
        is true, the connection was lost and nothing was stored, and the whole may be retried.
        """

    def put_snapshot(self, study: int, snapshot: Snapshot) -> None:
        """Keep a snapshot; the last two of a study are kept."""

    def check(self) -> list[str]:
        """Look at everything; what is wrong, a sentence each."""

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy everything to a new file, while others write; the copy is checked."""

    def close(self) -> None:
        """Give back what the operating system lent."""


@runtime_checkable
class SideBySide(Protocol):
    """What else a storage can do, to which several servers add without waiting for each other."""

    def add(self, added: Sequence[tuple[int, Event]]) -> set[int]:
        """Add records and rewards to studies without their locks; the places of those it added.

        They have their numbers when the next transaction of their study begins. What isn't added
        has met another of the same unit, or of the same exposure.
        """

    def settle(self, study: int) -> None:
        """Number what was added, so that the log has it."""


def seal_of(study: int, snapshot: Snapshot) -> bytes:
    """By which damage to a snapshot is seen, and one that was put in another's place."""
    head = f"{study} {snapshot.seq} {snapshot.layout} ".encode()
    return hashlib.blake2b(head + snapshot.blob, digest_size=16).digest()


def several(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """`values` in portions that a statement can take."""
    for begin in range(0, len(values), 10_000):
        yield values[begin : begin + 10_000]
