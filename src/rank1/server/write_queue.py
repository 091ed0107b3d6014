"""A queue of writes and the thread that runs them; pending jobs share a commit."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from rank1.errors import StorageError
from rank1.server.problem_details import RefusedError
from rank1.studies.group_commit import transact_group
from rank1.studies.unit_of_work import StudyAccess

__all__ = ["WriteQueue"]

T = TypeVar("T")

#: The most jobs in one commit. A higher limit makes the first job wait longer.
MAX_TOGETHER = 64
#: The most pending jobs; further ones are refused with a 503.
MAX_WAITING = 4096
#: Seconds to wait for more jobs while other servers write to the same study: transactions take
#: turns, and the more jobs share one, the fewer turns there are.
LINGER = 0.001
#: Seconds that a shutdown waits for the thread after all requests have been answered.
SHUTDOWN = 5.0

_Job = tuple[StudyAccess, Callable[[Any], Any], "asyncio.Future[Any]"]


class WriteQueue:
    """Runs jobs in the order they arrive, many in one transaction.

    `committed` is called after each transaction. `in_group` runs many jobs in one; it returns a
    result or an exception for each. `is_contended` says if other servers wrote to the last study.
    """

    def __init__(
        self,
        committed: Callable[[], Any],
        in_group: Callable[[list[Any]], list[Any]] = transact_group,
        is_contended: Callable[[], bool] = lambda: False,
    ) -> None:
        self._committed, self._in_group, self._is_contended = committed, in_group, is_contended
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="rank1-writer", daemon=True)
        self._closed = False
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of pending jobs."""
        return self._jobs.qsize()

    async def write(self, access: StudyAccess, work: Callable[[Any], T]) -> Any:
        """Run `work` in the queue's thread; returns its result after the commit."""
        if self._closed or self._jobs.qsize() >= MAX_WAITING:
            raise RefusedError(
                503, "too many requests are waiting to be stored", "try again", Retry_After="1"
            )
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.put((access, work, future))
        return await future

    def close(self) -> bool:
        """Finish the pending jobs and end the thread; returns whether it ended in time.

        It doesn't end in time if the storage is unreachable. No request is waiting by then, so
        nothing is lost.
        """
        self._closed = True
        self._jobs.put(None)
        self._thread.join(SHUTDOWN)
        return not self._thread.is_alive()

    def _run(self) -> None:
        ended = False
        while not ended:
            batch: list[_Job] = []
            job = self._jobs.get()
            if self._is_contended() and not self._closed:
                time.sleep(LINGER)
            while job is not None:
                batch.append(job)
                if len(batch) == MAX_TOGETHER:
                    break
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
            ended = job is None
            # A request that was cancelled during shutdown needs no answer.
            if batch := [job for job in batch if not job[2].done()]:
                answers = self._write(batch)
                if all(isinstance(each, StorageError) and each.waited for each in answers):
                    ended |= self._fail_all(answers[0])

    def _fail_all(self, error: BaseException) -> bool:
        """Fail all pending jobs after a storage timeout; returns whether the queue is closed.

        Otherwise each batch would wait for a timeout of its own.
        """
        with contextlib.suppress(queue.Empty):
            while (job := self._jobs.get_nowait()) is not None:
                self._answer([job], [error])
            return True
        return False

    def _write(self, batch: list[_Job]) -> list[Any]:
        try:
            answers = self._in_group([(access, work) for access, work, _ in batch])
        except BaseException as error:  # passed on to the request
            answers = [error] * len(batch)
        if not all(isinstance(each, BaseException) for each in answers):
            self._committed()
        self._answer(batch, answers)
        return answers

    def _answer(self, batch: list[_Job], answers: list[Any]) -> None:
        futures = [future for _, _, future in batch]
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            futures[0].get_loop().call_soon_threadsafe(_resolve, futures, answers)


def _resolve(futures: list[asyncio.Future[Any]], answers: list[Any]) -> None:
    for future, answer in zip(futures, answers, strict=True):
        if future.done():
            continue  # the request was cancelled
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
