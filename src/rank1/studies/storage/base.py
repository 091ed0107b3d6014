"""The interface of every storage of studies."""

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

#: Default seconds to wait for a lock that is held elsewhere, or for a server to come back.
PATIENCE = 30.0


class StudyRow(NamedTuple):
    """A study, as the storage lists it."""

    id: int  # within this storage
    name: str
    uid: str  # the prefix of its suggestions' ids
    created: float
    retired: float | None
    archived: float | None  # when it was archived; archived studies aren't listed
    last_seq: int
    last_at: float


class Snapshot(NamedTuple):
    """A state folded up to `seq`. This is derived data: it can be deleted at any time."""

    seq: int
    layout: str
    blob: bytes


class Reader(Protocol):
    """Reads a consistent view of the storage. Studies are identified by `StudyRow.id`."""

    def studies(self) -> list[StudyRow]:
        """Return all studies, sorted by name."""

    def study(self, name: str) -> StudyRow:
        """Return the study with this name; raises UnknownStudyError."""

    def last(self, study: int) -> tuple[int, float]:
        """Return seq and time of the last event."""

    def now(self, study: int) -> float:
        """Return the storage's time, which never runs backwards within a study.

        A transaction reads the clock once: all events that `append` adds have this time.
        """

    def read(self, study: int, after: int = 0, limit: int | None = None) -> Events:
        """Return the events with a seq above `after`, in order, as columns."""

    def page(
        self,
        study: int,
        after: int | None = None,
        limit: int = 100,
        *,
        kinds: Sequence[Kind] = (),
        newest: bool = False,
    ) -> list[Event]:
        """Return a page of complete events, oldest or newest first.

        `after` is the seq of the last event on the previous page; `kinds` are the kinds to return
        (default: all).
        """

    def events(self, study: int, seqs: Sequence[int]) -> list[Event]:
        """Return the events with these seqs, in order; missing ones are left out."""

    def outcomes(self, study: int, suggestions: Sequence[int]) -> list[Event]:
        """Return the reports, cancellations and expiries of suggestions, in order."""

    def with_key(self, study: int, key: str, limit: int | None = None) -> list[Event]:
        """Return the events with this idempotency key, by position; `limit` keeps the first few."""

    def of_unit(self, study: int, unit: str) -> Event | None:
        """Return the last event of this unit."""

    def of_units(
        self, study: int, units: Sequence[str], recorded: bool = False
    ) -> dict[str, Event]:
        """Return the last event of each unit, by unit; units without events are left out.

        With `recorded`, a unit's record is returned instead, if it has one.
        """

    def pending(self, study: int) -> NDArray[np.int64]:
        """Return the seqs of pending suggestions, in order."""

    def snapshot(self, study: int, layout: str) -> Snapshot | None:
        """Return the newest snapshot of this layout that is intact and not ahead of the log."""

    def damage(self) -> list[str]:
        """Return the problems that the database itself finds in its files."""

    def damaged(self, what: str) -> Exception:
        """Return the DamagedError to raise if the log contains something impossible."""


class Transaction(Reader, Protocol):
    """Reads and appends; nothing else can append to the same studies meanwhile."""

    def append(self, study: int, events: Sequence[Event]) -> int:
        """Add events to the log; return the seq of the first. They are stored when the block ends.

        An event without a nonce gets one. Raises ConflictError, here or when the block ends, if the
        log already has an event of the same kind for the same suggestion, or one with the same key
        and position.
        """

    def retire(self, study: int) -> None:
        """Close the study; raises ConflictError if it is already closed."""

    def forget_unit(self, study: int, unit: str) -> int:
        """Remove a unit's name, its data, and keys that contain it; return how many events had it.

        The events stay, with everything that is folded from them.
        """

    def archive(self, study: int, archived: bool = True) -> None:
        """Hide a study from lists, or show it again."""

    def delete(self, study: int) -> None:
        """Delete a study and its log. Its number is never reused."""


@runtime_checkable
class Storage(Protocol):
    """Stores studies. Usable from many threads and processes, and after a fork."""

    #: Its name in messages.
    where: str

    def prepare(self) -> None:
        """Create the file or the tables if they don't exist."""

    def create(self, name: str, spec: str) -> StudyRow:
        """Create a study, whose log begins with its specification; raises StudyExistsError."""

    def reading(self) -> AbstractContextManager[Reader]:
        """Read without blocking writers."""

    def transaction(self, *studies: int) -> AbstractContextManager[Transaction]:
        """Read and append with these studies locked; commits when the block ends.

        After an exception, nothing was added. StorageError says what is wrong; if its `again` is
        true, the connection was lost and nothing was stored, so the whole transaction can be
        retried.
        """

    def put_snapshot(self, study: int, snapshot: Snapshot) -> None:
        """Store a snapshot; the last two of each study are kept."""

    def check(self) -> list[str]:
        """Check everything; return the problems, a sentence each."""

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy everything to a new file, while others may write, and check the copy."""

    def close(self) -> None:
        """Close connections and files."""


@runtime_checkable
class SideBySide(Protocol):
    """The additional interface of storages to which several servers append without waiting."""

    #: Whether others had added events between the last two transactions here on the same study.
    contended: bool

    def add(self, added: Sequence[tuple[int, Event]]) -> set[int]:
        """Add records and rewards to studies without locking; return the indices of those added.

        They get their numbers when the next transaction on their study begins. An item isn't added
        if there is already one for the same unit or the same exposure.
        """

    def settle(self, study: int) -> None:
        """Number the added events, so that they are in the log."""


def seal_of(study: int, snapshot: Snapshot) -> bytes:
    """Return a digest that reveals whether a snapshot was damaged or swapped."""
    head = f"{study} {snapshot.seq} {snapshot.layout} ".encode()
    return hashlib.blake2b(head + snapshot.blob, digest_size=16).digest()


def several(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split `values` into portions small enough for a statement."""
    for begin in range(0, len(values), 10_000):
        yield values[begin : begin + 10_000]
