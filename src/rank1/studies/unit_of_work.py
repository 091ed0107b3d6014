"""Access to a study: transactions on an up-to-date state."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from rank1.errors import ConflictError, Rank1Error, SnapshotError, StorageError, shown
from rank1.studies.events import WITH_DATA, Event, Events, Expiry, Kind, as_events, check_text
from rank1.studies.fold import Book
from rank1.studies.planning import is_due, next_text
from rank1.studies.spec import ON_EXPIRY, Spec, read_spec
from rank1.studies.state import StudyState, layout_of
from rank1.studies.storage import Reader, Snapshot, Storage, StudyRow, Transaction
from rank1.studies.storage.base import SideBySide

__all__ = ["StudyAccess", "UnitOfWork", "key_used", "largest_part", "under_key"]

T = TypeVar("T")

#: How often a transaction is retried when the connection was lost and nothing was stored.
TRIES = 3
#: Minimum number of events between snapshots; large grids wait for as many events as arms.
SNAPSHOT_EVERY = 2000
#: Closing a study stores a snapshot after this many events: folding fewer takes no time.
SNAPSHOT_ON_CLOSE = 100
#: Maximum number of events to fold inside a transaction: more would keep others waiting.
FAR_BEHIND = 200
_WITH_REWARD = frozenset((Kind.REPORTED, Kind.RECORDED, Kind.EXPIRED))


class StudyAccess:
    """A study in this process: its storage, and the state folded from its log.

    Threads take turns. If a failure leaves the state ahead of the log, the state is discarded and
    rebuilt from the last snapshot.
    """

    def __init__(self, storage: Storage, study: StudyRow) -> None:
        self.storage, self.study = storage, study
        with storage.reading() as log:
            created = log.events(study.id, [1])
            if not created:
                raise log.damaged(f"event 1 of {study.name!r} is missing")
            self.spec: Spec = read_spec(created[0].data)
        self._state: StudyState | None = None
        #: Cache of the arms that stored versions draw: see `records.DrawnArms`.
        self.drawn: dict[Any, Any] = {}
        #: The seq of the last snapshot known to be stored.
        self._snapshot_seq = 0
        #: Held by the thread that works on the study.
        self.turn = threading.RLock()

    @property
    def known(self) -> StudyState | None:
        """The state folded so far, without reading the storage."""
        return self._state

    def transact(self, work: Callable[[UnitOfWork], T]) -> T:
        """Run `work` in a transaction and return its result; if it raises, nothing is stored."""
        for left in reversed(range(TRIES)):
            try:
                with self.turn:
                    return self._transact(work)
            except ConflictError as error:  # with events added without the lock
                if not error.again or left == 0:
                    raise
            except StorageError as error:
                if not error.again or error.waited or left == 0:
                    raise
        raise AssertionError

    def _transact(self, work: Callable[[UnitOfWork], T]) -> T:
        far = self._state is None
        for left in (2, 1, 0):
            if far:
                self.catch_up()
            begun = None
            try:
                with self.storage.transaction(self.study.id) as log:
                    far = left > 0 and self.is_far_behind(log)
                    if not far:
                        begun = self.begin(log)
                        result = work(begun)
            except BaseException as error:
                if (begun is not None and begun.ahead) or not isinstance(error, Rank1Error):
                    self._state = None
                raise
            if begun is not None:
                self.committed(begun)
                return result
        raise AssertionError

    def is_far_behind(self, log: Reader) -> bool:
        """Return whether there are too many new events for a transaction: `catch_up` first."""
        known = 0 if self._state is None else self._state.seq
        return log.last(self.study.id)[0] > known + FAR_BEHIND

    def begin(self, log: Transaction) -> UnitOfWork:
        """Begin a unit of work in the transaction of a caller that holds `turn`.

        If the transaction fails, the caller must call `forget`.
        """
        known = self._state.seq if self._state else 0
        begun = UnitOfWork(self, log, self._caught_up(log))
        # The transaction may have numbered some of these events itself, which isn't committed yet.
        begun.ahead = begun.begin != known and isinstance(self.storage, SideBySide)
        try:
            begun.expire()
            begun.renew()  # events from other processes may have made it due
        except BaseException:
            self._state = None
            raise
        return begun

    def look(self, reader: Callable[[StudyState, Reader], T]) -> T:
        """Return what `reader` returns for an up-to-date state and its log; nothing is written.

        The read transaction stays open meanwhile; use `compute` if the state alone is enough.
        """
        with self.turn:
            self.catch_up()
            with self.storage.reading() as log:
                return reader(self._caught_up(log), log)

    def compute(self, function: Callable[[StudyState, float], T]) -> T:
        """Return what `function` returns for an up-to-date state and the storage's time.

        No transaction is open while it runs, however long it takes; nothing is written.
        """
        with self.turn:
            state, now = self.catch_up()
            return function(state, now)

    def catch_up(self) -> tuple[StudyState, float]:
        """Read new events, then fold them; return the state and the storage's time."""
        with self.turn:
            if isinstance(self.storage, SideBySide):
                self.storage.settle(self.study.id)
            state, kept = self._state, None
            with self.storage.reading() as log:
                now = log.now(self.study.id)
                if state is None:
                    kept = log.snapshot(self.study.id, layout_of(self.spec))
                after = kept.seq if kept else state.seq if state else 0
                new = self.read(log, after) if log.last(self.study.id)[0] != after else None
            if state is None:
                state = StudyState(self.spec) if kept is None else self._restored(kept)
                if state.seq != after:  # read the log from the start
                    with self.storage.reading() as log:
                        new = self.read(log)
                self._snapshot_seq = state.seq
            if new is not None:
                self._state = None  # until everything is folded
                state.fold(*new)
            self._state = state
            return state, now

    def _caught_up(self, log: Reader) -> StudyState:
        """Do the same inside a transaction, for a few new events."""
        state = self._state or StudyState(self.spec)
        self._state = None  # until everything is folded
        # Checking where the log ends is cheaper than querying for events that don't exist.
        if log.last(self.study.id)[0] != state.seq:
            state.fold(*self.read(log, state.seq))
        self._state = state
        return state

    def read(self, log: Reader, after: int = 0) -> tuple[Events, dict[int, str | None]]:
        """Return the events after a seq, and the data to fold, by seq: the input of a fold."""
        events = log.read(self.study.id, after)
        told = events.seq[np.isin(events.kind, WITH_DATA)].tolist()
        return events, {event.seq: event.data for event in log.events(self.study.id, told)}

    def _restored(self, kept: Snapshot) -> StudyState:
        """Restore the state from a snapshot, or return an empty state if it can't be read."""
        try:
            return StudyState.from_bytes(self.spec, kept.blob)
        except SnapshotError:
            return StudyState(self.spec)  # nothing is lost: the log has it all

    def committed(self, work: UnitOfWork) -> None:
        """Keep what a unit of work found, and a snapshot if it passed `SNAPSHOT_EVERY` events."""
        self.drawn = work.drawn
        if work.ahead:
            every = max(SNAPSHOT_EVERY, work.state.grid.arms)
            if work.begin // every != work.state.seq // every:
                self.keep_snapshot()

    def forget(self) -> None:
        """Discard the state; it is rebuilt when it is next needed."""
        with self.turn:
            self._state = None

    def close(self) -> None:
        """Close the storage, after storing a snapshot if much has changed since the last one."""
        with self.turn:
            if (
                self._state is not None
                and self._state.seq >= self._snapshot_seq + SNAPSHOT_ON_CLOSE
            ):
                self.keep_snapshot()
            self.storage.close()

    def keep_snapshot(self) -> bool:
        """Store a snapshot to make opening faster; without it nothing is lost.

        Returns whether the storage accepted it.
        """
        with self.turn:
            if self._state is not None and self._state.seq > self._snapshot_seq:
                state = self._state
                kept = Snapshot(state.seq, layout_of(self.spec), state.to_bytes())
                # Acknowledged events are safe anyway; the next snapshot may find enough space.
                try:
                    self.storage.put_snapshot(self.study.id, kept)
                except StorageError:
                    return False
                self._snapshot_seq = state.seq
            return True


class UnitOfWork:
    """The operations available inside a transaction."""

    def __init__(self, access: StudyAccess, log: Transaction, state: StudyState) -> None:
        self.study, self.spec = access.study, access.spec
        self.log, self.state, self.begin = log, state, state.seq
        #: A copy, because what isn't committed may be rolled back.
        self.drawn = dict(access.drawn)
        #: Whether the state may be ahead of the stored log.
        self.ahead = False

    @property
    def now(self) -> float:
        """The time of this transaction, by the storage's clock."""
        return self.log.now(self.study.id)

    def append(self, events: Sequence[Event], issued: bool = False, renew: bool = True) -> int:
        """Add events to the log, fold them, and return the first seq. Suggestions must have nonces.

        Many rewards are folded in parts, with new versions in between, because a reward can be bet
        on only after a version has determined which levels lead.
        """
        self.ahead = True
        first, begin = 0, 0
        while True:
            part = events[begin : self._end(events, begin)]
            seq = self.log.append(self.study.id, part)
            texts = {seq + k: event.data for k, event in enumerate(part) if event.data}
            self.state.fold(as_events(part, seq, self.now), texts, issued)
            if renew:
                self.renew()
            first, begin = first or seq, begin + len(part)
            if begin >= len(events):
                return first

    def _end(self, events: Sequence[Event], begin: int) -> int:
        """Return the end of the part of these events to fold at once."""
        if self.state.design is None or len(events) - begin == 1:
            return len(events)
        rewards, most = 0, largest_part(self.state.book)
        if len(events) - begin <= most:
            return len(events)
        for k in range(begin, len(events)):
            kind = events[k].kind
            # The guardrails of a reward directly follow it.
            if rewards >= most and kind != Kind.GUARDRAIL:
                return k
            rewards += kind in _WITH_REWARD and not math.isnan(events[k].value)
        return len(events)

    def renew(self) -> None:
        """Begin the next version of the design if it is due."""
        design, book = self.state.design, self.state.book
        if design is not None and is_due(design, book, self.now):
            text = next_text(design, book)
            self.append([Event(Kind.VERSION, tag=design.number + 1, data=text)])

    def attempt(self, job: Callable[[UnitOfWork], T]) -> T | Rank1Error:
        """Run a job; return its result, or the error if it was refused before it changed anything.

        A later error is raised, because the whole transaction must then be rolled back. So is a
        storage error, because it affects more than this job.
        """
        before, was_ahead, self.ahead = self.state.seq, self.ahead, False
        try:
            return job(self)
        except Rank1Error as error:
            if self.ahead or self.state.seq != before or isinstance(error, StorageError):
                raise
            return error
        finally:
            self.ahead = self.ahead or was_ahead

    def expire(self) -> None:
        """Record which rewards are overdue."""
        if self.spec.reward_window is None:
            return
        done = ON_EXPIRY[self.spec.on_expiry]
        value = self.spec.default_reward if done == Expiry.DEFAULT else float("nan")
        late = self.state.overdue(self.now)
        if late:
            self.append(
                [Event(Kind.EXPIRED, tag=int(done), suggestion=seq, value=value) for seq in late]
            )


def largest_part(book: Book) -> int:
    """Return the most rewards a study with shares folds at once without a new version."""
    return max(50, int(book.at[0].evidence) // 10)


def under_key(work: UnitOfWork, key: str | None, kind: Kind) -> list[Event]:
    """Return what an earlier try of a request stored under its idempotency key.

    Raises ConflictError if the key has events of another kind.
    """
    if key is None:
        return []
    check_text("key", key)
    given = work.log.with_key(work.study.id, key)
    if any(each.kind != kind for each in given):
        raise key_used(key)
    return given


def key_used(key: str | None) -> ConflictError:
    """Return the error for a key that another request has already used."""
    return ConflictError(
        f"key {shown(key)} was used for something else", "use a new key for a different request",
        key=key,
    )  # fmt: skip
