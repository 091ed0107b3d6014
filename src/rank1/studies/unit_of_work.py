"""Access to a study: transactions in which its state is up to date."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from rank1.errors import Rank1Error, SnapshotError, StorageError
from rank1.studies.events import Event, Expiry, Kind, as_events
from rank1.studies.spec import ON_EXPIRY, Spec, read_spec
from rank1.studies.state import StudyState, layout_of
from rank1.studies.storage import Reader, Snapshot, Storage, StudyRow, Transaction

__all__ = ["StudyAccess", "UnitOfWork"]

T = TypeVar("T")

#: How often a transaction is tried anew when the connection was lost and nothing was stored.
TRIES = 3
#: Events after which a snapshot is kept, at least; on large grids as many as there are arms.
SNAPSHOT_EVERY = 2000
#: Events after which closing a study keeps a snapshot: folding fewer takes no time.
SNAPSHOT_ON_CLOSE = 100


class StudyAccess:
    """A study in this process: its storage, and what was folded of its log.

    Threads take turns. After a failure in which the state has run ahead of the log, it is thrown
    away and made anew, from the last snapshot on.
    """

    def __init__(self, storage: Storage, study: StudyRow) -> None:
        self.storage, self.study = storage, study
        with storage.reading() as log:
            self.spec: Spec = read_spec(self._texts(log)(1))
        self._state: StudyState | None = None
        #: The last event of which a snapshot is known to be kept.
        self._snapshot_seq = 0
        #: Held by the thread that works on the study.
        self.turn = threading.RLock()

    @property
    def known(self) -> StudyState | None:
        """What was folded so far, without a look at the storage."""
        return self._state

    def transact(self, work: Callable[[UnitOfWork], T]) -> T:
        """What `work` returns; it is stored when this returns, and not at all if it raises."""
        for left in reversed(range(TRIES)):
            try:
                with self.turn:
                    return self._transact(work)
            except StorageError as error:
                if not error.again or error.waited or left == 0:
                    raise
        raise AssertionError

    def _transact(self, work: Callable[[UnitOfWork], T]) -> T:
        begun = None
        if self._state is None:  # so that folding a long log keeps no other process from writing
            with self.storage.reading() as reader:
                self._caught_up(reader)
        try:
            with self.storage.transaction(self.study.id) as log:
                begun = self.begin(log)
                result = work(begun)
        except BaseException as error:
            if (begun is not None and begun.ahead) or not isinstance(error, Rank1Error):
                self._state = None
            raise
        self.snapshot_if_due(begun)
        return result

    def begin(self, log: Transaction) -> UnitOfWork:
        """A unit of work in a transaction of a caller that has the turn.

        If the transaction fails, the caller has to `forget`.
        """
        begun = UnitOfWork(self, log, self._caught_up(log))
        try:
            begun.expire()
        except BaseException:
            self._state = None
            raise
        return begun

    def look(self, reader: Callable[[StudyState, Reader], T]) -> T:
        """What `reader` returns, from a state that is up to date; nothing is written."""
        with self.turn, self.storage.reading() as log:
            return reader(self._caught_up(log), log)

    def _caught_up(self, log: Reader) -> StudyState:
        if self._state is None:
            self._state = self.from_snapshot(log) or StudyState(self.spec)
            self._snapshot_seq = self._state.seq
        state = self._state
        # One look at the end of the log is cheaper than asking for events that aren't there.
        last, _ = log.last(self.study.id)
        if last != state.seq:
            try:
                state.fold(log.read(self.study.id, after=state.seq), self._texts(log))
            except BaseException:
                self._state = None  # half of them may be folded
                raise
        return state

    def from_snapshot(self, log: Reader) -> StudyState | None:
        """The newest snapshot that can be read."""
        kept = log.snapshot(self.study.id, layout_of(self.spec))
        if kept is None:
            return None
        try:
            return StudyState.from_bytes(self.spec, kept.blob)
        except SnapshotError:
            return None  # derived data: all of it is in the log

    def from_log(self, log: Reader, state: StudyState | None = None) -> StudyState:
        """The state that the log gives, without a look at what is known here."""
        state = state or StudyState(self.spec)
        state.fold(log.read(self.study.id, after=state.seq), self._texts(log))
        return state

    def _texts(self, log: Reader) -> Callable[[int], str | None]:
        def text_of(seq: int) -> str | None:
            for event in log.events(self.study.id, [seq]):
                return event.data
            raise log.damaged(f"event {seq} of {self.study.name!r} is missing")

        return text_of

    def snapshot_if_due(self, work: UnitOfWork) -> None:
        """Keep a snapshot when a unit of work has passed a multiple of `SNAPSHOT_EVERY` events."""
        if work.ahead:
            every = max(SNAPSHOT_EVERY, work.state.grid.arms)
            if work.begin // every != work.state.seq // every:
                self.keep_snapshot()

    def forget(self) -> None:
        """Throw away what is known here; it is made anew when it is next needed."""
        with self.turn:
            self._state = None

    def close(self) -> None:
        """Keep a snapshot if much has happened since the last, and close the storage."""
        with self.turn:
            if (
                self._state is not None
                and self._state.seq >= self._snapshot_seq + SNAPSHOT_ON_CLOSE
            ):
                self.keep_snapshot()
            self.storage.close()

    def keep_snapshot(self) -> bool:
        """Keep what is known, so that the study is opened sooner; nothing is lost without.

        Whether the storage took it.
        """
        with self.turn:
            if self._state is not None and self._state.seq > self._snapshot_seq:
                state = self._state
                kept = Snapshot(state.seq, layout_of(self.spec), state.to_bytes())
                # What was acknowledged is stored; the next snapshot may find room.
                try:
                    self.storage.put_snapshot(self.study.id, kept)
                except StorageError:
                    return False
                self._snapshot_seq = state.seq
            return True


class UnitOfWork:
    """What can be done in a transaction."""

    def __init__(self, access: StudyAccess, log: Transaction, state: StudyState) -> None:
        self.study, self.spec = access.study, access.spec
        self.log, self.state, self.begin = log, state, state.seq
        #: Whether the state may be ahead of what is stored.
        self.ahead = False

    @property
    def now(self) -> float:
        """The storage's time, at which all of this happens."""
        return self.log.now(self.study.id)

    def append(self, events: Sequence[Event], issued: bool = False) -> int:
        """Add events to the log and fold them; the seq of the first. Suggestions have nonces."""
        self.ahead = True
        first = self.log.append(self.study.id, events)
        self.state.fold(
            as_events(events, first, self.now), lambda seq: events[seq - first].data, issued
        )
        return first

    def attempt(self, job: Callable[[UnitOfWork], T]) -> T | Rank1Error:
        """What a job returns, or the error with which it was refused before it changed anything.

        An error after that is raised: then the whole transaction has to be undone.
        """
        before, was_ahead, self.ahead = self.state.seq, self.ahead, False
        try:
            return job(self)
        except Rank1Error as error:
            if self.ahead or self.state.seq != before:
                raise
            return error
        finally:
            self.ahead = self.ahead or was_ahead

    def expire(self) -> None:
        """Note which rewards are overdue."""
        if self.spec.reward_window is None:
            return
        done = ON_EXPIRY[self.spec.on_expiry]
        value = self.spec.default_reward if done == Expiry.DEFAULT else float("nan")
        late = self.state.overdue(self.now)
        if late:
            self.append(
                [Event(Kind.EXPIRED, tag=int(done), suggestion=seq, value=value) for seq in late]
            )
