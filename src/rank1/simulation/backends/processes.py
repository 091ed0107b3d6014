"""Processes on this machine, run by joblib's loky."""

from __future__ import annotations

import functools
import math
import os
import threading
import time
import warnings
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import BrokenExecutor
from functools import partial
from typing import Any

from rank1.simulation.backends import threads
from rank1.simulation.backends.base import (
    ATTEMPTS,
    Played,
    Setup,
    Task,
    fetched,
    lost,
    run_task,
    workers_start,
)

__all__ = ["run_tasks"]


def run_tasks(tasks: list[Task], setup: Setup) -> Generator[Played, None, None]:
    """Play tasks in processes, or in this process if starting others isn't worth it."""
    import joblib

    # A process takes a second to start, so it should have at least a second of work.
    work = sum(cell.seconds for task in tasks for cell in task)
    jobs = min(setup.jobs, len(tasks), math.ceil(work))
    if jobs <= 1:
        yield from threads.run_tasks(tasks, Setup(1, None, setup.note, setup.stop))
        return
    setup.note(f"{jobs} processes on this machine")
    deaths: Counter[int] = Counter()
    left = dict.fromkeys(range(len(tasks)))
    while left:
        # A dying process breaks the whole pool. A task that was running twice then plays alone.
        batch = [k for k in left if deaths[k] < 2] or [next(iter(left))]
        sent: list[int] = []
        pool = joblib.Parallel(
            jobs,
            backend="loky",
            return_as="generator_unordered",
            batch_size=1,
            max_nbytes=None,
        )
        results: Any = None
        try:
            with workers_start():
                results = pool(_calls(batch, tasks, sent))
            for k, played in results:
                del left[k]
                yield k, played
        except BrokenExecutor:
            for k in left.keys() & sent:
                deaths[k] += 1
                if deaths[k] == ATTEMPTS:
                    del left[k]
                    yield k, lost(tasks[k], f"its process died {ATTEMPTS} times: out of memory?")
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "tasks have been cancelled" is intended
                if results is not None:
                    results.close()


def _calls(batch: list[int], tasks: list[Task], sent: list[int]) -> Iterator[Any]:
    import joblib

    for k in batch:
        sent.append(k)
        yield joblib.delayed(_numbered)(k, tasks[k], os.getpid())


def _numbered(k: int, task: Task, client: int) -> Played:
    _end_with(client)
    return k, fetched(partial(run_task, task), task)


@functools.cache
def _end_with(client: int) -> None:
    """End this worker when its client is gone; otherwise it would wait for work for minutes."""

    def watch() -> None:
        while os.getppid() == client:
            time.sleep(1)
        os._exit(1)

    if os.getpid() != client:  # joblib plays in the client if it can't start processes
        threading.Thread(target=watch, daemon=True).start()
