"""Shared by all backends: cells, tasks, and failures."""

from __future__ import annotations

import contextlib
import os
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from rank1.errors import BackendError, NoDigest, extra
from rank1.interrupts import held_back
from rank1.simulation.block import Block

__all__ = [
    "ATTEMPTS",
    "WINDOW",
    "Failure",
    "Playable",
    "Played",
    "RunCell",
    "Setup",
    "Task",
    "fetched",
    "keys_of",
    "lost",
    "missing",
    "run_task",
    "unreachable",
    "workers_start",
]

#: The number of tasks sent to a cluster in advance: enough for thousands of workers.
WINDOW = 4096
#: How often a task is tried if the process that plays it dies.
ATTEMPTS = 4


class Playable(Protocol):
    """Something that can be planned and played, such as a `Series`."""

    @property
    def n(self) -> int:
        """The largest number of steps of a run."""

    @property
    def key(self) -> str:
        """A digest of everything its runs depend on; raises `NoDigest` if that is impossible."""

    @property
    def kind(self) -> tuple[Any, ...]:
        """Series of one kind take about the same time per step."""

    def guess(self) -> float:
        """A rough estimate of the seconds that a run takes, without playing."""

    def probe(self) -> tuple[float, float]:
        """The seconds that a run takes, measured by playing a little; and the time this took."""

    def play(self, runs: Iterable[int], stopped: Callable[[], bool] = ...) -> Block:
        """Play some runs."""


class RunCell(NamedTuple):
    """Some runs of a series, stored as one file."""

    series: Playable
    runs: range
    #: The expected time on one core.
    seconds: float

    @property
    def steps(self) -> int:
        """Steps of all its runs."""
        return self.series.n * len(self.runs)


#: Cells sent to a worker together: one, or several short ones.
Task = list[RunCell]


@dataclass(frozen=True)
class Failure:
    """Why a cell has no result."""

    error: str
    trace: str = ""
    #: The exception itself, if the cell was played in this process.
    exception: Exception | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Failure, (self.error, self.trace)  # not every exception can be pickled


#: The number of a task, and a block or a failure for each of its cells.
Played = tuple[int, list[Block | Failure]]


@dataclass(frozen=True)
class Setup:
    """What backends need besides the tasks."""

    #: Threads or processes on this machine.
    jobs: int = 1
    #: The address of a running cluster.
    address: str | None = None
    #: Called with a line that says where tasks are played.
    note: Callable[[str], None] = lambda line: None
    #: Set when the user interrupts: everything played in this process ends soon.
    stop: threading.Event = field(default_factory=threading.Event)


def keys_of(task: Task) -> list[str | None]:
    """The client's key of each cell; None if it has no digest."""
    return [_key(cell) for cell in task]


def _key(cell: RunCell) -> str | None:
    try:
        return cell.series.key
    except NoDigest:
        return None


def run_task(
    task: Task,
    keys: Sequence[str | None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> list[Block | Failure]:
    """Play a task's cells. If `keys` are given, this process must have the client's code."""
    if keys is not None and list(keys) != keys_of(task):
        reason = (
            "the worker has a different version of rank1, of a policy or of a package than the "
            "client, so its numbers could differ: install the same versions on both"
        )
        return lost(task, reason)
    return [_run_cell(cell, stopped) for cell in task]


def _run_cell(cell: RunCell, stopped: Callable[[], bool]) -> Block | Failure:
    try:
        return cell.series.play(cell.runs, stopped)
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}", traceback.format_exc(), error)


def lost(task: Task, reason: str) -> list[Block | Failure]:
    """The same failure for every cell of a task."""
    return [Failure(reason)] * len(task)


def fetched(
    fetch: Callable[[], list[Block | Failure]], task: Task, but: Any = ()
) -> list[Block | Failure]:
    """The results of a task; an error outside a single cell becomes a failure of every cell."""
    try:
        return fetch()
    except but:
        raise
    except Exception as error:
        return lost(task, f"{type(error).__name__}: {error}")


def missing(backend: str, package: str) -> BackendError:
    """The error for a backend whose package isn't installed."""
    return BackendError(f"backend {backend} needs the package {package}", extra(backend))


def unreachable(backend: str, example: str, setup: Setup, error: Exception) -> BackendError:
    """The error for a backend whose cluster can't be reached or started."""
    reason = (str(error) or type(error).__name__).splitlines()[0]
    if setup.address is None:
        return BackendError(f"backend {backend} could not start on this machine", reason)
    asked = f"address must be that of a {backend} cluster, such as {example}"
    return BackendError(f"{asked}, got {setup.address!r}", reason)


@contextlib.contextmanager
def workers_start() -> Iterator[None]:
    """Hold back Ctrl-C while worker processes start; the workers themselves never see it."""
    from multiprocessing import resource_tracker

    # Start the trackers that clean up after other processes now: later, Ctrl-C would reach them.
    resource_tracker.ensure_running()
    with contextlib.suppress(ImportError, AttributeError):
        from joblib.externals.loky.backend import resource_tracker as another

        # Ctrl-C can arrive between creating a semaphore and recording it. The tracker then removes
        # it and should not warn: it reads its warning filters from the environment at start.
        before = os.environ.get("PYTHONWARNINGS")
        quiet = f"ignore::UserWarning:{another.__name__}"
        os.environ["PYTHONWARNINGS"] = f"{before},{quiet}" if before else quiet
        try:
            another.ensure_running()
        finally:
            if before is None:
                del os.environ["PYTHONWARNINGS"]
            else:
                os.environ["PYTHONWARNINGS"] = before
    with held_back(children=True):
        yield
