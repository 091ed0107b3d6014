"""What every storage of studies can do, and what both of ours share."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rank1.errors import StorageError
from rank1.studies.log import Event, Events, Kind

__all__ = ["PATIENCE", "Connections", "Reader", "Snapshot", "Storage", "StudyRow", "Transaction"]

#: Seconds that a storage waits for a lock that somebody else holds, or for a server to come back.
PATIENCE = 30.0

C = TypeVar("C")


class StudyRow(NamedTuple):
    """A study, as the storage lists it."""

    id: int  # within this storage
    name: str
    uid: str  # with which the ids of its suggestions begin
    created: float
    retired: float | None
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

        `after` is the seq of the last event of the page before, `kinds` those to show (all of
        them unless told).
        """

    def events(self, study: int, seqs: Sequence[int]) -> list[Event]:
        """The events with these numbers, in order; what isn't there is left out."""

    def outcomes(self, study: int, suggestions: Sequence[int]) -> list[Event]:
        """What became of suggestions: their reports, cancellations and expiries, in order."""

    def with_key(self, study: int, key: str) -> list[Event]:
        """The events with this idempotency key, by position."""

    def of_unit(self, study: int, unit: str) -> Event | None:
        """The last suggestion that this unit was given."""

    def pending(self, study: int) -> NDArray[np.int64]:
        """The suggestions of which nothing became yet, in order."""

    def snapshot(self, study: int, layout: str) -> Snapshot | None:
        """The newest snapshot of this layout that is whole and not ahead of the log."""


class Transaction(Reader, Protocol):
    """Reads what is there, and adds to it; nobody else adds to the same studies meanwhile."""

    def append(self, study: int, events: Sequence[Event]) -> int:
        """Add events to the log; the seq of the first. They are there when the block has ended.

        An event without a nonce is given one. ConflictError where the log has an event of the
        same kind for the same suggestion, or one with the same key and position.
        """

    def retire(self, study: int) -> None:
        """Close the study, once."""


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
        is true, nothing was stored for want of a connection, and the whole may be tried again.
        """

    def put_snapshot(self, study: int, snapshot: Snapshot) -> None:
        """Keep a snapshot; the last two of a study are kept."""

    def check(self) -> list[str]:
        """Look at everything; what is wrong, a sentence each."""

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy everything to a new file, while others write; the copy is checked."""

    def close(self) -> None:
        """Give back what the operating system lent."""


class Connections(Generic[C]):
    """Open connections that wait for use; one is used by one thread at a time.

    None goes through a fork: a child must neither use nor close a connection of its parent's.
    Before a fork, those that wait are closed; those in use are waited for, where `alone` says so.
    What is still open then stays the parent's.

    Parameters
    ----------
    connect, close
        Open and close one.
    alone
        Whether a file that is open at the fork is lost for the child: SQLite keeps a list of its
        locks, which the child would inherit, but not the locks.
    """

    def __init__(self, connect: Callable[[], C], close: Callable[[C], Any], alone: bool) -> None:
        self._connect, self._close, self._alone = connect, close, alone
        self._idle: list[C] = []
        self._users: list[int] = []  # threads
        self._renew()
        _pools.add(self)

    def _renew(self) -> None:
        self._gate = threading.Condition(threading.Lock())
        #: The threads of a process can queue up here.
        self.writing = threading.Lock()

    def take(self) -> C:
        """A connection, to be given back or dropped."""
        with self._gate:
            self._users.append(threading.get_ident())
            if self._idle:
                return self._idle.pop()
        try:
            return self._connect()
        except BaseException:
            self._leave()
            raise

    def give(self, connection: C) -> None:
        """Keep a connection for the next use."""
        self._leave(connection)

    def drop(self, connection: C) -> None:
        """Close a connection that is of no more use."""
        try:
            self._close(connection)
        finally:
            self._leave()

    def _leave(self, *kept: C) -> None:
        with self._gate:
            self._idle += kept
            me = threading.get_ident()
            self._users.remove(me if me in self._users else self._users[0])
            self._gate.notify_all()

    def check_not_forked(self, pid: int, connection: C) -> None:
        """Refuse to go on with what the parent began."""
        if os.getpid() != pid:
            # The last reference would close the connection, here and for the parent.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
            raise StorageError(
                "a child that was forked within a transaction can't go on with it: it is its "
                "parent's; fork before or after"
            )

    def close(self) -> None:
        """Close all that wait."""
        with self._gate:
            while self._idle:
                self._close(self._idle.pop())

    def before_fork(self) -> None:
        """Nobody begins to use a connection from here on; those that wait are closed."""
        self._gate.acquire()
        if self._alone and threading.get_ident() not in self._users:
            self._gate.wait_for(lambda: not self._users, FORK_PATIENCE)
        while self._idle:
            with contextlib.suppress(Exception):  # a server that is gone, for one
                self._close(self._idle.pop())

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._gate.release()

    def after_fork_in_child(self) -> None:
        """Begin anew."""
        global _inherited
        _inherited = _inherited or (self._alone and bool(self._users))
        self._users = []
        self._renew()


#: Seconds that a fork waits for the transactions of other threads.
FORK_PATIENCE = 10.0
_pools: weakref.WeakSet[Connections[Any]] = weakref.WeakSet()
_forking: list[Connections[Any]] = []
_inherited = False


def inherited() -> bool:
    """Whether this process was forked while its parent used a connection that leaves traces."""
    return _inherited


def _before_fork() -> None:
    _forking[:] = _pools
    for pool in _forking:
        pool.before_fork()


def _after_fork_in_parent() -> None:
    for pool in _forking:
        pool.after_fork_in_parent()
    _forking.clear()


def _after_fork_in_child() -> None:
    for pool in _forking:
        pool.after_fork_in_child()
    _forking.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )


def digest(study: int, snapshot: Snapshot) -> bytes:
    """By which damage to a snapshot is seen, and one that was put in another's place."""
    head = f"{study} {snapshot.seq} {snapshot.layout} ".encode()
    return hashlib.blake2b(head + snapshot.blob, digest_size=16).digest()


def several(values: Sequence[int]) -> Iterator[Sequence[int]]:
    """`values` in portions that a statement can take."""
    for begin in range(0, len(values), 10_000):
        yield values[begin : begin + 10_000]
