"""One thread that writes: requests that wait together share a commit."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from rank1.errors import StorageError
from rank1.server.problem_details import RefusedError
from rank1.studies.desk import Desk, Work
from rank1.studies.together import transact_together

__all__ = ["WriteQueue"]

T = TypeVar("T")

#: The most jobs that share a commit: the more, the longer the first of them waits.
TOGETHER = 64
#: Jobs that may wait; who comes then is told to come again.
WAITING = 4096
#: Seconds for what has begun at the end, when all requests have been answered.
ENDING = 5.0

_Job = tuple[Desk, Callable[[Work], Any], "asyncio.Future[Any]"]


class WriteQueue:
    """Jobs in the order in which they came, many in one transaction."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="rank1-writer", daemon=True)
        self._thread.start()
        self._closed = False
        #: How many transactions there were.
        self.commits = 0

    @property
    def waiting(self) -> int:
        """Jobs that nobody has begun."""
        return self._jobs.qsize()

    async def write(self, desk: Desk, work: Callable[[Work], T]) -> T:
        """What `work` gives, once it is stored."""
        if self._closed or self._jobs.qsize() >= WAITING:
            raise RefusedError(503, "too many requests wait to be stored", "try again", Retry_After="1")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put((desk, work, future))
        return await future

    def close(self) -> bool:
        """Do what is waiting, and end; whether that is done.

        It isn't where the storage is away. Nobody waits any more then, so nothing is lost.
        """
        self._closed = True
        self._jobs.put(None)
        self._thread.join(ENDING)
        return not self._thread.is_alive()

    def _run(self) -> None:
        ended = False
        while not ended:
            batch: list[_Job] = []
            job = self._jobs.get()
            while job is not None:
                batch.append(job)
                if len(batch) == TOGETHER:
                    break
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
            ended = job is None
            # Whose request was given up at the end of the service is told nothing any more.
            if batch := [job for job in batch if not job[2].done()]:
                answers = self._write(batch)
                if all(isinstance(each, StorageError) and each.waited for each in answers):
                    ended |= self._refuse(answers[0])

    def _refuse(self, error: BaseException) -> bool:
        """The storage was waited for in vain: all who wait hear of it; whether it is the end."""
        with contextlib.suppress(queue.Empty):
            while (job := self._jobs.get_nowait()) is not None:
                self._tell([job], [error])
            return True
        return False

    def _write(self, batch: list[_Job]) -> list[Any]:
        try:
            answers = transact_together([(desk, work) for desk, work, _ in batch])
        except BaseException as error:  # whoever waits must hear of it
            answers = [error] * len(batch)
        self.commits += 1
        self._tell(batch, answers)
        return answers

    def _tell(self, batch: list[_Job], answers: list[Any]) -> None:
        futures = [future for _, _, future in batch]
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            futures[0].get_loop().call_soon_threadsafe(_resolve, futures, answers)


def _resolve(futures: list[asyncio.Future[Any]], answers: list[Any]) -> None:
    for future, answer in zip(futures, answers, strict=True):
        if future.done():
            continue  # who asked has gone
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
