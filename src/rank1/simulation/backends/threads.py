"""Threads of this process: compiled code runs without Python's lock."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from rank1.simulation.backends.base import Failure, Played, Setup, Task, run_task
from rank1.simulation.block import Block

__all__ = ["run_tasks"]


def run_tasks(tasks: list[Task], setup: Setup) -> Generator[Played, None, None]:
    """Play tasks in parallel; with one job, one after another in the calling thread."""
    jobs = min(setup.jobs, len(tasks))
    setup.note(f"{jobs} threads of this process" if jobs > 1 else "this process")
    stopped = setup.stop.is_set
    if jobs <= 1:
        for k, task in enumerate(tasks):
            yield k, run_task(task, stopped=stopped)
        return
    with ThreadPoolExecutor(jobs) as pool:
        waiting = iter(enumerate(tasks))
        numbers: dict[Future[list[Block | Failure]], int] = {}

        def submit(count: int) -> None:
            for k, task in islice(waiting, count):
                numbers[pool.submit(run_task, task, stopped=stopped)] = k

        try:
            submit(2 * jobs)
            while numbers:
                for future in wait(numbers, return_when=FIRST_COMPLETED).done:
                    k = numbers.pop(future)
                    submit(1)
                    yield k, future.result()
        except BaseException:
            setup.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
