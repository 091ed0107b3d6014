"""The studies of one storage, as the service has them open."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from rank1.server.problem_details import RefusedError
from rank1.server.study_view import StudyView
from rank1.server.write_queue import ENDING, WriteQueue
from rank1.studies import Study
from rank1.studies.desk import Desk, Work
from rank1.studies.storage import Storage, StudyRow
from rank1.studies.storage.sqlite import SqliteStorage

__all__ = ["StudyRegistry"]

T = TypeVar("T")

#: Studies that are kept in memory, for writing and for reading; others are folded anew.
OPEN = 256
#: Threads that read.
READERS = 3
#: Bytes of a file that is read through at the start; it takes a second at most.
SMALL = 2**26
#: Seconds within which a storage that is ready answers.
PROMPT = 2.0


class StudyRegistry:
    """A storage, the thread that writes to it, and the studies that are open.

    A study is open twice: for the writer, and for those who look. So a long look keeps nobody
    from asking.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        storage.prepare()
        with storage.transaction() as log:  # what can't be read or written is refused at once
            log.studies()
            small = isinstance(storage, SqliteStorage) and storage.path.stat().st_size <= SMALL
            if small and (found := log.damage()):
                raise log.damaged("; ".join(found[:3]))
        # One for all studies: the more wait together, the more share a commit. With
        # several writers, PostgreSQL answered fewer requests.
        self.writer = WriteQueue()
        self._pool = _Threads(READERS, "rank1-reader")
        self._probe = _Threads(1, "rank1-probe")
        #: Held by what takes long.
        self._slow = threading.Lock()
        self._ending = threading.Event()
        self._waiting: set[asyncio.Future[Any]] = set()
        self._writing: OrderedDict[str, Desk] = OrderedDict()
        self._reading: OrderedDict[str, Study] = OrderedDict()
        self._views: OrderedDict[str, StudyView] = OrderedDict()
        self._lock = threading.Lock()

    # Writing

    async def write(self, name: str, work: Callable[[Work], T]) -> T:
        """What `work` gives, once it is stored, together with what others wrote meanwhile."""
        desk = self._writing.get(name)
        if desk is None:
            desk = await self.read(self._desk, name)
        return await self.writer.write(desk, work)

    def _desk(self, name: str) -> Desk:
        with self._lock:
            if name in self._writing:
                self._writing.move_to_end(name)
                return self._writing[name]
        desk = Desk(self.storage, self.row(name))
        with self._lock:
            return _kept(self._writing, name, desk)

    # Reading

    async def read(self, function: Callable[..., T], *arguments: Any) -> T:
        """What a function gives, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    async def ready(self) -> None:
        """Look at the storage; RefusedError where that takes long. Who reads isn't waited for."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(PROMPT):
                await loop.run_in_executor(self._probe, self.rows)
        except TimeoutError:
            raise RefusedError(
                503, f"the storage hasn't answered for {PROMPT:g} seconds", "try again later"
            ) from None

    async def read_slowly(self, function: Callable[[], T]) -> T:
        """The same for what takes long; one at a time, and the end doesn't wait for it."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(value: Any, error: BaseException | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(value)
            else:
                done.set_exception(error)

        def run() -> None:
            value, failure = None, None
            with self._slow:
                try:
                    if not self._ending.is_set():
                        value = function()
                except Exception as error:
                    failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, value, failure)

        threading.Thread(target=run, name="rank1-slow", daemon=True).start()
        self._waiting.add(done)
        try:
            return await done
        finally:
            self._waiting.discard(done)

    def end_slow(self) -> None:
        """The service is about to end: who waits for what takes long is told so."""
        self._ending.set()
        for each in self._waiting:
            if not each.done():
                each.set_exception(RefusedError(503, "the service is ending", "try again later"))

    def row(self, name: str) -> StudyRow:
        """The study as the storage lists it."""
        with self.storage.reading() as log:
            return log.study(name)

    def rows(self) -> list[StudyRow]:
        """All studies."""
        with self.storage.reading() as log:
            return log.studies()

    def study(self, name: str) -> Study:
        """A study to look at."""
        with self._lock:
            if name in self._reading:
                self._reading.move_to_end(name)
                return self._reading[name]
        study = self.apart(name)
        with self._lock:
            return _kept(self._reading, name, study)

    def apart(self, name: str) -> Study:
        """A study to look at for long: nobody else waits for it."""
        return Study(Desk(self.storage, self.row(name)))

    def view(self, name: str) -> StudyView:
        """What the page shows of a study."""
        with self._lock:
            if name in self._views:
                self._views.move_to_end(name)
                return self._views[name]
        views = StudyView(self.study(name))
        with self._lock:
            return _kept(self._views, name, views)

    def create(self, name: str, **settings: Any) -> Study:
        """A new study."""
        study = Study.create(name, storage=self.storage, **settings)
        with self._lock:
            _kept(self._reading, name, study)
        return study

    # Counting

    def totals(self) -> dict[str, int]:
        """Pending and expired suggestions of the studies that were written to lately, and more."""
        with self._lock:
            known = [desk.known for desk in self._writing.values()]
        books = [memory.book.at[0] for memory in known if memory is not None]
        pending = sum(int(at.suggested - at.reported - at.expired - at.cancelled) for at in books)
        return {
            "pending": pending,
            "expired": sum(int(at.expired) for at in books),
            "waiting": self.writer.waiting,
            "commits": self.writer.commits,
        }

    def close(self) -> None:
        """Write what waits, keep snapshots, and give back the storage; within ten seconds."""
        ended = self.writer.close()

        def leave() -> None:
            for pool in (self._probe, self._pool):
                pool.shutdown()
            if ended:  # else each would wait for the storage; so would those after one that failed
                all(desk.keep_snapshot() for desk in self._writing.values())
            self.storage.close()

        # Where the storage is away this would take longer than systemd waits.
        last = threading.Thread(target=leave, name="rank1-end", daemon=True)
        last.start()
        last.join(ENDING)


class _Threads(Executor):
    """Threads that the end of the process doesn't wait for, as it does for a pool of Python's."""

    def __init__(self, count: int, name: str) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=name, daemon=True) for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def submit(self, function: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        """Call it when a thread is free."""
        future: Future[T] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function(*arguments, **named))
            except BaseException as error:  # whoever waits must hear of it
                future.set_exception(error)

        self._jobs.put(job)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do what was begun or waits, and end."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads if wait else ():
            thread.join()


def _kept(cache: OrderedDict[str, T], name: str, value: T) -> T:
    """The value of this name: the one that is there already, or else this one."""
    value = cache.setdefault(name, value)
    cache.move_to_end(name)
    if len(cache) > OPEN:
        cache.popitem(last=False)
    return value
