"""Where the work of a study is done: transactions in which the memory is up to date."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from rank1.errors import Rank1Error, SnapshotError, StorageError
from rank1.studies.log import Event, Expiry, Kind, as_events
from rank1.studies.memory import Memory, layout_of
from rank1.studies.spec import ON_EXPIRY, Spec, read_spec
from rank1.studies.storage import Reader, Snapshot, Storage, StudyRow, Transaction

__all__ = ["Desk", "Work"]

T = TypeVar("T")

#: How often a transaction is tried anew when the connection was lost and nothing was stored.
TRIES = 3
#: Events after which a snapshot is kept, at least; on large grids as many as there are pairs.
SNAPSHOT_EVERY = 2000


class Desk:
    """A study in this process: its storage, and what was folded of its log.

    Threads take turns. After a failure in which the memory has run ahead of the log, it is thrown
    away and made anew, from the last snapshot on.
    """

    def __init__(self, storage: Storage, study: StudyRow) -> None:
        self.storage, self.study = storage, study
        with storage.reading() as log:
            self.spec: Spec = read_spec(self._texts(log)(1))
        self._memory: Memory | None = None
        #: Held by the thread that works on the study.
        self.turn = threading.RLock()

    @property
    def known(self) -> Memory | None:
        """What was folded so far, without a look at the storage."""
        return self._memory

    def transact(self, work: Callable[[Work], T]) -> T:
        """What `work` gives; it is stored when this returns, and not at all if it raises."""
        for left in reversed(range(TRIES)):
            try:
                with self.turn:
                    return self._transact(work)
            except StorageError as error:
                if not error.again or error.waited or left == 0:
                    raise
        raise AssertionError

    def _transact(self, work: Callable[[Work], T]) -> T:
        begun = Work(self, None, None)
        if self._memory is None:  # a long log should keep nobody from writing
            with self.storage.reading() as reader:
                self._caught_up(reader)
        try:
            with self.storage.transaction(self.study.id) as log:
                begun = Work(self, log, self._caught_up(log))
                begun.expire()
                result = work(begun)
        except BaseException as error:
            if begun.ahead or not isinstance(error, Rank1Error):
                self._memory = None
            raise
        if begun.ahead:
            self.snapshot_if_due(begun)
        return result

    def begin(self, log: Transaction) -> Work:
        """Work in a transaction of somebody who has the turn, and forgets all if it fails."""
        begun = Work(self, log, self._caught_up(log))
        begun.expire()
        return begun

    def look(self, reader: Callable[[Memory, Reader], T]) -> T:
        """What `reader` gives, from a memory that is up to date; nothing is written."""
        with self.turn, self.storage.reading() as log:
            return reader(self._caught_up(log), log)

    def _caught_up(self, log: Reader) -> Memory:
        if self._memory is None:
            self._memory = self.from_snapshot(log) or Memory(self.spec)
        memory = self._memory
        # One look at the end of the log is cheaper than asking for events that aren't there.
        last, _ = log.last(self.study.id)
        if last != memory.seq:
            try:
                memory.fold(log.read(self.study.id, after=memory.seq), self._texts(log))
            except BaseException:
                self._memory = None  # half of them may be folded
                raise
        return memory

    def from_snapshot(self, log: Reader) -> Memory | None:
        """The newest snapshot that can be read."""
        kept = log.snapshot(self.study.id, layout_of(self.spec))
        if kept is None:
            return None
        try:
            return Memory.from_bytes(self.spec, kept.blob)
        except SnapshotError:
            return None  # derived data: all of it is in the log

    def from_log(self, log: Reader, memory: Memory | None = None) -> Memory:
        """The memory that the log gives, without a look at what is known here."""
        memory = memory or Memory(self.spec)
        memory.fold(log.read(self.study.id, after=memory.seq), self._texts(log))
        return memory

    def _texts(self, log: Reader) -> Callable[[int], str | None]:
        def text_of(seq: int) -> str | None:
            for event in log.events(self.study.id, [seq]):
                return event.data
            raise log.damaged(f"event {seq} of {self.study.name!r} is missing")

        return text_of

    def snapshot_if_due(self, work: Work) -> None:
        """Keep a snapshot now and then: who passes a multiple of so many events does it."""
        memory = work.memory
        every = max(SNAPSHOT_EVERY, memory.book.counts.size)
        if work.begin // every != memory.seq // every:
            self.keep_snapshot()

    def forget(self) -> None:
        """Throw away what is known here; the next one makes it anew."""
        with self.turn:
            self._memory = None

    def close(self) -> None:
        """Close the storage."""
        with self.turn:
            self.storage.close()

    def keep_snapshot(self) -> bool:
        """Keep what is known, so that the study is opened sooner; nothing is lost without.

        Whether the storage took it.
        """
        with self.turn:
            if self._memory is not None:
                memory = self._memory
                kept = Snapshot(memory.seq, layout_of(self.spec), memory.to_bytes())
                # What was acknowledged is stored; the next snapshot may find room.
                try:
                    self.storage.put_snapshot(self.study.id, kept)
                except StorageError:
                    return False
            return True


class Work:
    """What can be done in a transaction."""

    def __init__(self, desk: Desk, log: Transaction | None, memory: Memory | None) -> None:
        self._desk = desk
        #: Whether the memory may be ahead of what is stored.
        self.ahead = False
        if log is not None and memory is not None:
            self.log, self.memory, self.begin = log, memory, memory.seq

    @property
    def study(self) -> StudyRow:
        """The study."""
        return self._desk.study

    @property
    def spec(self) -> Spec:
        """What the study is."""
        return self._desk.spec

    @property
    def now(self) -> float:
        """The storage's time, at which all of this happens."""
        return self.log.now(self.study.id)

    def append(self, events: Sequence[Event], chosen: bool = False) -> int:
        """Add events to the log and fold them; the seq of the first. Suggestions have nonces."""
        self.ahead = True
        first = self.log.append(self.study.id, events)
        self.memory.fold(
            as_events(events, first, self.now), lambda seq: events[seq - first].data, chosen
        )
        return first

    def expire(self) -> None:
        """Note which rewards are overdue."""
        spec = self._desk.spec
        if spec.reward_window is None:
            return
        done = ON_EXPIRY[spec.on_expiry]
        value = spec.default_reward if done == Expiry.DEFAULT else float("nan")
        late = self.memory.overdue(self.now)
        if late:
            self.append(
                [Event(Kind.EXPIRED, tag=int(done), suggestion=seq, value=value) for seq in late]
            )
