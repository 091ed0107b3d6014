"""A Dask cluster.

This calls Dask directly, not through joblib, whose backend hangs forever once a task has killed
several workers, and plays everything in the client if the cluster has only one core.
"""

from __future__ import annotations

import itertools
import logging
import socket
import time
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

from rank1.simulation.backends import base
from rank1.simulation.backends.base import Played, Setup, Task

__all__ = ["run_tasks"]

#: Seconds without any worker before we act.
STALLED = 10.0


def run_tasks(tasks: list[Task], setup: Setup) -> Generator[Played, None, None]:
    """Play tasks on a Dask cluster; without an address, on a temporary one on this machine."""
    try:
        from distributed import Client, KilledWorker, as_completed
        from distributed.comm import get_address_host_port
    except ImportError:
        raise base.missing("dask", "distributed") from None
    where: dict[str, Any] = {"address": setup.address, "timeout": 20}
    if setup.address is None:
        where = {"n_workers": setup.jobs, "threads_per_worker": 1}
        where["dashboard_address"] = "127.0.0.1:0"  # any free port
        # Stopped workers log a lot; everything relevant comes back with the tasks.
        where["silence_logs"] = logging.CRITICAL
    try:
        if setup.address and "://" not in setup.address.removeprefix("tcp://"):
            # A client that can't reach its cluster would keep trying long after the error.
            host, port = get_address_host_port(setup.address)
            socket.create_connection((host, port), timeout=20).close()
        with base.workers_start():
            client = Client(**where, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise base.unreachable("dask", "tcp://10.0.0.1:8786", setup, error) from None
    with client:
        threads = client.nthreads()
        setup.note(
            f"Dask at {client.scheduler.address}: {len(threads)} workers with "
            f"{sum(threads.values())} threads" + ("" if threads else ", waiting for workers")
        )
        waiting = iter(range(len(tasks)))
        numbers: dict[str, int] = {}

        def submit(k: int) -> Any:
            call = partial(base.run_task, tasks[k], base.keys_of(tasks[k]))
            future = client.submit(call, pure=False)
            numbers[future.key] = k
            return future

        look = _no_workers(client, setup)
        done = as_completed(map(submit, itertools.islice(waiting, base.WINDOW)), loop=client.loop)
        suspects: list[int] = []
        for future in _finished(done, look):
            k = numbers.pop(future.key)
            done.update(map(submit, itertools.islice(waiting, 1)))
            try:
                played = base.fetched(partial(_result, future, look), tasks[k], but=KilledWorker)
            except KilledWorker:
                suspects.append(k)
            else:
                yield k, played
        # Dask blames every task that was queued on a worker for its death. Played one at a time,
        # only those that really kill their worker fail.
        for k in suspects:
            for future in _finished(as_completed([submit(k)], loop=client.loop), look):
                yield k, base.fetched(partial(_result, future, look), tasks[k])


def _finished(done: Any, look: Callable[[], None]) -> Iterator[Any]:
    """Dask's futures in the order in which they finish; calls `look` while waiting."""
    while not done.is_empty():
        if done.has_ready():
            yield next(done)
        else:
            look()
            time.sleep(0.02)


def _result(future: Any, look: Callable[[], None]) -> Any:
    while True:
        try:
            return future.result(timeout=STALLED)
        except TimeoutError:  # lost with its worker, and played again
            look()


def _no_workers(client: Any, setup: Setup) -> Callable[[], None]:
    """A function to call while waiting; it acts if there has been no worker for long.

    Dask doesn't always restart a worker that dies right after its start.
    """
    seen = asked = time.monotonic()

    def look() -> None:
        nonlocal seen, asked
        now = time.monotonic()
        if now - asked < STALLED / 10:
            return
        asked = now
        if client.nthreads():
            seen = now
        elif now - seen >= STALLED:
            seen = now
            setup.note("Dask: all workers are gone, waiting for new ones")
            if setup.address is None:
                client.cluster.scale(0)
                while client.cluster.workers and time.monotonic() < now + STALLED:
                    time.sleep(0.05)  # otherwise the dead ones would count as running
                client.cluster.scale(setup.jobs)

    return look
