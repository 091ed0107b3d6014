"""The open studies of one storage, and the threads that read and write them."""

from __future__ import annotations

import asyncio
import contextlib
import math
import queue
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import Any, TypeVar, cast

import numpy as np

from rank1.errors import Rank1Error
from rank1.server.problem_details import RefusedError
from rank1.server.study_view import StudyView
from rank1.server.write_queue import SHUTDOWN, WriteQueue
from rank1.studies import Study
from rank1.studies.appending import append_group
from rank1.studies.events import Event
from rank1.studies.storage import Storage, StudyRow
from rank1.studies.storage.base import SideBySide
from rank1.studies.storage.sqlite import SqliteStorage
from rank1.studies.unit_of_work import StudyAccess, UnitOfWork

__all__ = ["StudyRegistry"]

T = TypeVar("T")

#: Studies kept in memory, for writing and for reading; others are loaded again when needed.
MAX_OPEN = 256
#: Bytes of the studies kept in memory, for writing and for reading; at least one is always kept.
MAX_BYTES = 2**28
#: Reader threads.
READERS = 3
#: The most slow reads pending or running; further ones are refused.
MAX_SLOW = 16
#: The largest file, in bytes, that is checked at startup; the check takes a second at most.
MAX_CHECKED = 2**26
#: Seconds until records that were added without a lock are folded into the state, at the latest.
#: Reads, asks and tells fold them immediately.
SETTLE_AFTER = 0.25
#: Seconds within which the storage must answer to be ready.
READY_WITHIN = 2.0


class StudyRegistry:
    """A storage, the thread that writes to it, and the open studies.

    Each study is opened twice, for writing and for reading, so a long read never delays an ask.
    """

    def __init__(self, storage: Storage, committed: Callable[[], Any] = lambda: None) -> None:
        self.storage = storage
        storage.prepare()
        with storage.transaction() as log:  # fail now if the storage can't be read or written
            log.studies()
            small = (
                isinstance(storage, SqliteStorage) and storage.path.stat().st_size <= MAX_CHECKED
            )
            if small and (found := log.damage()):
                raise log.damaged("; ".join(found[:3]))
        # One queue for all studies: the more requests wait together, the more share a commit.
        # PostgreSQL answered fewer requests with several writers.
        self.writes = WriteQueue(
            committed, is_contended=lambda: isinstance(storage, SideBySide) and storage.contended
        )
        #: The queue for records and rewards that don't need a study's lock.
        self._appends: WriteQueue | None = None
        if isinstance(storage, SideBySide):
            self._appends = WriteQueue(committed, append_group)
        #: For each study's name, the task that will soon fold what was appended to it.
        self._settling: dict[str, asyncio.Task[None]] = {}
        self._pool = _Threads(READERS, "rank1-reader")
        self._probe = _Threads(1, "rank1-probe")
        self._slow_thread = _Threads(1, "rank1-slow")
        self._one_slow = asyncio.Semaphore()
        #: Pending and running slow reads, with a function of each request that says if it's gone.
        self._slow: dict[tuple[Any, ...], tuple[asyncio.Task[Any], list[Any]]] = {}
        self._writing: OrderedDict[str, Study] = OrderedDict()
        self._reading: OrderedDict[str, Study] = OrderedDict()
        self._views: OrderedDict[str, StudyView] = OrderedDict()
        self._lock = threading.Lock()

    # Writing

    async def write(self, name: str, work: Callable[[UnitOfWork], T]) -> T:
        """Run `work` in a transaction that other requests may share; returns its result."""
        found: T = await self.writes.write((await self._to_write(name)).access, work)
        return found

    async def _to_write(self, name: str) -> Study:
        """Open a study for writing."""
        study = self._writing.get(name)
        return await self.read(self._opened, self._writing, name) if study is None else study

    async def append(
        self,
        name: str,
        items: Sequence[Any],
        take: Callable[[UnitOfWork, Sequence[Any]], Sequence[T]],
        new: Callable[[StudyAccess, Sequence[Any]], list[Event | None]],
        stored: T,
    ) -> list[T]:
        """Store records or rewards, without a lock where possible; returns a result for each.

        `new` makes the events of items that don't need the study's lock (None for the others),
        whose result is `stored`; `take` stores the others under the lock.
        """
        if self._appends is None:
            return list(await self.write(name, lambda work: take(work, items)))
        access = (await self._to_write(name)).access
        done = await self._appends.write(access, lambda access: new(access, items))
        self._settle_soon(name)
        left = [item for item, is_stored in zip(items, done, strict=True) if not is_stored]
        taken: Iterator[T] = iter(())
        if left:
            taken = iter(await self.writes.write(access, lambda work: take(work, left)))
        return [stored if is_stored else next(taken) for is_stored in done]

    def _settle_soon(self, name: str) -> None:
        """Fold appended events soon, many at once, and begin the next version if it is due."""

        async def settle() -> None:
            try:
                await asyncio.sleep(SETTLE_AFTER)
            finally:
                del self._settling[name]
            with contextlib.suppress(Rank1Error):  # the next write will do it
                await self.write(name, lambda work: None)

        if name not in self._settling:
            self._settling[name] = asyncio.create_task(settle())

    def _opened(self, studies: OrderedDict[str, Study], name: str) -> Study:
        """Return a study from one of the caches, opening it if necessary."""
        return self._cached(studies, name, lambda: self.separate(name))

    def _cached(self, cache: OrderedDict[str, T], name: str, make: Callable[[], T]) -> T:
        with self._lock:
            if name in cache:
                cache.move_to_end(name)
                return cache[name]
        made = make()
        with self._lock:
            return _kept(cache, name, made)

    # Reading

    async def read(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in a reader thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    async def ready(self) -> None:
        """Check in a separate thread that the storage answers; raises RefusedError if it's slow."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(READY_WITHIN):
                await loop.run_in_executor(self._probe, self.rows)
        except TimeoutError:
            raise RefusedError(
                503, f"the storage hasn't answered for {READY_WITHIN:g} seconds", "try again later"
            ) from None

    async def read_slowly(
        self,
        key: tuple[Any, ...],
        function: Callable[[], T],
        gone: Callable[[], Awaitable[bool]],
    ) -> T:
        """Call a slow function in a separate thread, one at a time.

        Requests with the same key share a result. If all of them were abandoned before its turn,
        it isn't computed. A shutdown doesn't wait for it.
        """
        job = self._slow.get(key)
        if job is None:
            if len(self._slow) >= MAX_SLOW:
                raise RefusedError(
                    503, "too many slow requests are waiting", "try again later", Retry_After="10"
                )
            waiting: list[Callable[[], Awaitable[bool]]] = []
            job = self._slow[key] = asyncio.create_task(self._run(key, function, waiting)), waiting
        task, waiting = job
        waiting.append(gone)
        found: T = await asyncio.shield(task)
        return found

    async def read_separately(
        self,
        gone: Callable[[], Awaitable[bool]],
        name: str,
        look: Callable[..., T],
        *arguments: Any,
    ) -> T:
        """Call a slow function with a separate copy of a study; see `read_slowly`."""
        key = look.__name__, name, *arguments
        return await self.read_slowly(key, lambda: look(self.separate(name), *arguments), gone)

    async def _run(self, key: tuple[Any, ...], function: Callable[[], T], waiting: list[Any]) -> T:
        try:
            async with self._one_slow:
                if all([await gone() for gone in waiting]):
                    raise RefusedError(503, "the request was abandoned", "send it again")
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._slow_thread, function)
        finally:
            del self._slow[key]

    def cancel_slow(self) -> None:
        """Cancel the slow reads, because the service is about to stop."""
        for task, _ in self._slow.values():
            task.cancel()

    def row(self, name: str) -> StudyRow:
        """Return a study's row in the storage."""
        with self.storage.reading() as log:
            return log.study(name)

    def rows(self) -> list[StudyRow]:
        """Return the rows of all studies."""
        with self.storage.reading() as log:
            return log.studies()

    def study(self, name: str) -> Study:
        """Open a study for reading."""
        return self._opened(self._reading, name)

    def separate(self, name: str) -> Study:
        """Open a separate copy of a study for a slow read, which then blocks no other reader."""
        return Study.open(name, self.storage)

    def view(self, name: str) -> StudyView:
        """Return the cached view of a study for the web page."""
        return self._cached(self._views, name, lambda: StudyView(self.study(name)))

    def create(self, name: str, **settings: Any) -> Study:
        """Create a study."""
        study = Study.create(name, storage=self.storage, **settings)
        with self._lock:
            _kept(self._reading, name, study)
        return study

    def delete(self, name: str, confirm: str) -> None:
        """Delete a study permanently."""
        Study.delete(name, self.storage, confirm=confirm)
        with self._lock:
            for cache in (self._writing, self._reading, self._views):
                cache.pop(name, None)

    # Counting

    def gauges(self) -> dict[str, int]:
        """Count pending and expired suggestions of studies open for writing, and pending jobs."""
        with self._lock:
            known = [study.access.known for study in self._writing.values()]
        counts = [state.counts() for state in known if state is not None]
        return {
            "pending": sum(each["pending"] for each in counts),
            "expired": sum(each["expired"] for each in counts),
            "waiting": self.writes.waiting + (self._appends.waiting if self._appends else 0),
        }

    def close(self) -> None:
        """Finish pending writes, save snapshots and close the storage, within ten seconds."""
        ended = self.writes.close()
        if self._appends is not None:
            ended &= self._appends.close()

        def finish() -> None:
            self._slow_thread.shutdown(wait=False)
            for pool in (self._probe, self._pool):
                pool.shutdown()
            if ended:  # else each would wait for the storage; stop at the first failure
                all(study.access.keep_snapshot() for study in self._writing.values())
            self.storage.close()

        # With an unreachable storage this would take longer than systemd's timeout.
        last = threading.Thread(target=finish, name="rank1-end", daemon=True)
        last.start()
        last.join(SHUTDOWN)


class _Threads(Executor):
    """A pool of daemon threads: unlike a ThreadPoolExecutor's, they don't delay an exit."""

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
        """Call a function as soon as a thread is free."""
        future: Future[T] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function(*arguments, **named))
            except BaseException as error:  # passed on to the caller
                future.set_exception(error)

        self._jobs.put(job)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Finish the queued calls and end the threads."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads if wait else ():
            thread.join()


def _kept(cache: OrderedDict[str, T], name: str, value: T) -> T:
    """Return the cached value of this name, or add this value if there is none.

    The least recently used values are dropped when there are too many or they take too much memory.
    """
    value = cache.setdefault(name, value)
    cache.move_to_end(name)
    while len(cache) > MAX_OPEN or (len(cache) > 1 and sum(map(_size, cache.values())) > MAX_BYTES):
        cache.popitem(last=False)
    return value


def _size(kept: Any) -> int:
    """Return the bytes of a study's tables, which make up most of its memory."""
    study: Study = kept if isinstance(kept, Study) else kept.study
    known = study.access.known
    if known is None:  # not folded yet; an arm takes 40 to 130 bytes
        return 100 * math.prod(map(len, study.spec.sides.values()))
    parts: list[Any] = [*known.book, *cast("tuple[Any, ...]", known.state)]
    return sum(each.nbytes for each in parts if isinstance(each, np.ndarray))
