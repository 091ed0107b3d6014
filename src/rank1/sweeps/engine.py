"""Where tasks are played: processes on this machine, a Dask cluster or a Ray cluster.

Each engine takes the tasks and gives back what came of them, in the order in which they finish.
Scheduling, and trying again after a worker has died, is the business of joblib, Dask and Ray.

Dask and Ray are called directly and not through joblib. Its backend for Ray can't give results back
before all are there; its backend for Dask waits forever once a task has taken several workers down
with it, and plays everything in the client if the cluster has only one core.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import math
import os
import socket
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from rank1.compiled import package_digest
from rank1.errors import BackendError
from rank1.simulation.runs import play_block
from rank1.simulation.store import Block
from rank1.sweeps.grid import Series

__all__ = ["ENGINES", "Cell", "Failure", "Setup", "Task", "play_task"]

#: Tasks that a cluster is given ahead: enough for thousands of workers.
WINDOW = 4096
#: How often a task is tried if the process that plays it dies.
ATTEMPTS = 4
#: Seconds without any worker after which Dask is looked after.
STALLED = 10.0


class Cell(NamedTuple):
    """Some runs of a series: what is kept as one file."""

    series: Series
    runs: range
    #: What the probe says it takes on one core.
    seconds: float

    @property
    def steps(self) -> int:
        """Steps of all its runs."""
        return self.series.n * len(self.runs)


#: Cells that are sent to a worker together: one, or several that take no time.
Task = list[Cell]


@dataclass(frozen=True)
class Failure:
    """Why a cell has no result."""

    error: str
    trace: str = ""


#: The number of a task, and a block or a failure for each of its cells.
Played = tuple[int, list[Block | Failure]]


@dataclass(frozen=True)
class Setup:
    """What engines are told beside the tasks."""

    seed: int
    #: Processes on this machine.
    jobs: int
    #: Of a cluster that runs already.
    address: str | None = None
    #: Called with a line that says where tasks are played.
    note: Callable[[str], None] = lambda line: None


def play_task(task: Task, seed: int, digest: bytes) -> list[Block | Failure]:
    """Play a task's cells: this is what runs in the workers."""
    if digest != package_digest():
        raise RuntimeError(
            "the worker has another version of rank1 than the client, so its numbers could "
            "differ: install the same on both"
        )
    return [_play(cell, seed) for cell in task]


def _play(cell: Cell, seed: int) -> Block | Failure:
    one = cell.series
    try:
        return play_block(one.policy, one.problem, one.n, one.steps, seed, cell.runs)
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}", traceback.format_exc())


def _lost(task: Task, reason: str) -> list[Block | Failure]:
    return [Failure(reason)] * len(task)


def _fetched(
    fetch: Callable[[], list[Block | Failure]], task: Task, but: Any = ()
) -> list[Block | Failure]:
    """What there is for a task; an error that isn't a cell's own counts against all of them."""
    try:
        return fetch()
    except but:
        raise
    except Exception as error:
        return _lost(task, f"{type(error).__name__}: {error}")


def local(tasks: list[Task], setup: Setup) -> Generator[Played, None, None]:
    """Processes on this machine; with one job, this process."""
    import joblib

    # A process takes a second to start: it should have that much to do.
    work = sum(cell.seconds for task in tasks for cell in task)
    jobs = min(setup.jobs, len(tasks), math.ceil(work))
    setup.note(f"{jobs} processes on this machine" if jobs > 1 else "this process")
    if jobs <= 1:
        for k, task in enumerate(tasks):
            yield k, play_task(task, setup.seed, package_digest())
        return
    deaths: Counter[int] = Counter()
    left = dict.fromkeys(range(len(tasks)))
    while left:
        # A process that dies takes the pool with it. A task that saw it twice then plays alone.
        batch = [k for k in left if deaths[k] < 2] or [next(iter(left))]
        sent: list[int] = []
        pool = joblib.Parallel(
            jobs,
            backend="loky",
            return_as="generator_unordered",
            batch_size=1,
            max_nbytes=None,
        )
        results = pool(_calls(batch, tasks, setup.seed, sent))
        try:
            for k, played in results:
                del left[k]
                yield k, played
        except BrokenExecutor:
            for k in left.keys() & sent:
                deaths[k] += 1
                if deaths[k] == ATTEMPTS:
                    del left[k]
                    yield k, _lost(tasks[k], f"its process died {ATTEMPTS} times: out of memory?")
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "tasks have been cancelled": that was meant
                results.close()


def _calls(batch: list[int], tasks: list[Task], seed: int, sent: list[int]) -> Iterator[Any]:
    import joblib

    for k in batch:
        sent.append(k)
        yield joblib.delayed(_numbered)(k, tasks[k], seed, package_digest(), os.getpid())


def _numbered(k: int, task: Task, seed: int, digest: bytes, client: int) -> Played:
    _end_with(client)
    return k, _fetched(partial(play_task, task, seed, digest), task)


@functools.cache
def _end_with(client: int) -> None:
    """A worker whose sweep was killed goes, too; else it would wait for work for minutes."""

    def watch() -> None:
        while os.getppid() == client:
            time.sleep(1)
        os._exit(1)

    if os.getpid() != client:  # joblib plays in the client itself where it can't start processes
        threading.Thread(target=watch, daemon=True).start()


def dask(tasks: list[Task], setup: Setup) -> Generator[Played, None, None]:
    """A Dask cluster; without an address, one of our own on this machine."""
    try:
        from distributed import Client, KilledWorker, as_completed
        from distributed.comm import get_address_host_port
    except ImportError:
        raise _missing("dask", "distributed") from None
    where: dict[str, Any] = {"address": setup.address, "timeout": 20}
    if setup.address is None:
        where = {"n_workers": setup.jobs, "threads_per_worker": 1}
        where["dashboard_address"] = "127.0.0.1:0"  # any port that is free
    try:
        if setup.address and "://" not in setup.address.removeprefix("tcp://"):
            # A client that can't reach its cluster would try for long after it has said so.
            host, port = get_address_host_port(setup.address)
            socket.create_connection((host, port), timeout=20).close()
        client = Client(**where, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise _unreachable("dask", "tcp://10.0.0.1:8786", setup, error) from None
    with client:
        threads = client.nthreads()
        setup.note(
            f"Dask at {client.scheduler.address}: {len(threads)} workers with "
            f"{sum(threads.values())} threads" + ("" if threads else ", waiting for some to come")
        )
        waiting = iter(range(len(tasks)))
        numbers: dict[str, int] = {}

        def submit(k: int) -> Any:
            call = partial(play_task, tasks[k], setup.seed, package_digest())
            future = client.submit(call, pure=False)
            numbers[future.key] = k
            return future

        look = _no_workers(client, setup)
        done = as_completed(map(submit, itertools.islice(waiting, WINDOW)), loop=client.loop)
        suspects: list[int] = []
        for future in _finished(done, look):
            k = numbers.pop(future.key)
            done.update(map(submit, itertools.islice(waiting, 1)))
            try:
                played = _fetched(partial(_result, future, look), tasks[k], but=KilledWorker)
            except KilledWorker:
                suspects.append(k)
            else:
                yield k, played
        # Dask holds a worker's death against all that waited there: now each shows itself alone.
        for k in suspects:
            for future in _finished(as_completed([submit(k)], loop=client.loop), look):
                yield k, _fetched(partial(_result, future, look), tasks[k])


def _finished(done: Any, look: Callable[[], None]) -> Iterator[Any]:
    """Futures of Dask in the order in which they finish, with a look around while none does."""
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
        except TimeoutError:  # it was lost with its worker, and is played again
            look()


def _no_workers(client: Any, setup: Setup) -> Callable[[], None]:
    """Something to call while nothing happens; it acts if there has been no worker for long.

    A worker that dies at once after its start is not always started again by Dask.
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
                    time.sleep(0.05)  # else the dead ones would count as those asked for
                client.cluster.scale(setup.jobs)

    return look


def ray(tasks: list[Task], setup: Setup) -> Generator[Played, None, None]:
    """A Ray cluster; without an address, one of our own on this machine."""
    try:
        import ray as cluster
    except ImportError:
        raise _missing("ray", "ray") from None
    where: dict[str, Any] = {"address": setup.address}
    if setup.address is None:
        where = {"num_cpus": setup.jobs, "include_dashboard": False}
    # Ray writes about dead workers to standard output, which is for results.
    with contextlib.redirect_stdout(sys.stderr), contextlib.ExitStack() as stack:
        try:
            cluster.init(**where, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError, RuntimeError) as error:
            raise _unreachable("ray", "auto or 10.0.0.1:6379", setup, error) from None
        stack.callback(cluster.shutdown)
        cores = cluster.cluster_resources().get("CPU", 0)
        setup.note(f"Ray at {setup.address or 'this machine'}: {cores:.0f} cores")
        play = cluster.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(play_task)
        waiting = iter(enumerate(tasks))
        numbers: dict[Any, int] = {}

        def submit(count: int) -> None:
            for k, task in itertools.islice(waiting, count):
                numbers[play.remote(task, setup.seed, package_digest())] = k

        submit(WINDOW)
        while numbers:
            (done,), _ = cluster.wait(list(numbers))
            k = numbers.pop(done)
            submit(1)
            yield k, _fetched(partial(cluster.get, done), tasks[k])


def _missing(engine: str, package: str) -> BackendError:
    return BackendError(
        f"--engine {engine} needs the package {package}: pip install 'rank1[{engine}]'"
    )


def _unreachable(engine: str, example: str, setup: Setup, error: Exception) -> BackendError:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    if setup.address is None:
        return BackendError(f"--engine {engine} could not start on this machine: {reason}")
    return BackendError(
        f"--address must be that of a {engine} cluster, such as {example}, "
        f"got {setup.address!r}: {reason}"
    )


#: Every engine by its name on the command line.
ENGINES: dict[str, Callable[[list[Task], Setup], Generator[Played, None, None]]] = {
    "local": local,
    "dask": dask,
    "ray": ray,
}
