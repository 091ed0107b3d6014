"""Real workers, some of which are killed: the result has the same bytes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

import rank1
from rank1.errors import extra
from rank1.simulation import Series
from rank1.simulation.backends import BACKENDS, Failure, Setup, backend, base, dask
from rank1.simulation.plan import Plan
from rank1.simulation.store import Store
from rank1.sweeps import read_grid, write_sweep
from rank1.sweeps.play import plan
from tests.simulation.support import (
    DRIVER,
    LONG,
    Deadly,
    assert_finds_the_same,
    cells,
    grid,
    started,
    wait_for,
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")


class Case:
    """A grid on disk, and the bytes of its result as one process gives them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.grid = folder / "grid.toml"
        self.grid.write_text(LONG)
        some = read_grid(self.grid)
        store = Store(folder / "alone")
        todo = plan(some, store, cell_seconds=0.1)
        self.cells = len(todo.cells)
        todo.play("local", 1)
        write_sweep(folder / "alone.parquet", some, todo)
        self.bytes = (folder / "alone.parquet").read_bytes()

    def sweep(self, name: str, backend: str, *address: str) -> Any:
        """Start a sweep in a process of its own."""
        store, out = self.folder / name, self.folder / f"{name}.parquet"
        return started("-c", DRIVER, self.grid, store, out, backend, *address)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("sweep"))


def runs_still(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def workers_of(pid: int, name: str) -> list[int]:
    """Processes that a sweep has started, by what stands in their command line."""
    every = psutil.Process(pid).children(recursive=True)
    return [child.pid for child in every if name in " ".join(child.cmdline())]


@pytest.mark.validate
def test_a_worker_of_this_machine_is_killed(case: Case) -> None:
    store = case.folder / "worker"
    with case.sweep("worker", "local") as process:
        wait_for(lambda: cells(store) >= 2)
        workers = workers_of(process.pid, "LokyProcess")
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        assert cells(store) < case.cells
        assert process.wait(300) == 0
    assert (case.folder / "worker.parquet").read_bytes() == case.bytes


@pytest.mark.validate
def test_the_sweep_itself_is_killed_and_resumed(case: Case) -> None:
    store = case.folder / "whole"
    with case.sweep("whole", "local") as process:
        wait_for(lambda: cells(store) >= 2)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finished = {path: path.stat().st_mtime_ns for path in store.rglob("*.cell")}
    assert 2 <= len(finished) < case.cells
    assert not (case.folder / "whole.parquet").exists()
    with case.sweep("whole", "local") as process:
        assert process.wait(300) == 0
    assert (case.folder / "whole.parquet").read_bytes() == case.bytes
    # What was finished has not been written again.
    assert {path: path.stat().st_mtime_ns for path in finished} == finished


@contextmanager
def dask_cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """A scheduler and two workers, each a process, on loopback."""
    place = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    worker: list[Any] = [
        "-m",
        "distributed.cli.dask_worker",
        "--scheduler-file",
        place,
        "--nthreads",
        "1",
    ]
    worker += ["--no-nanny", "--no-dashboard", "--local-directory", folder, "--death-timeout", "60"]
    with started(
        "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
        "--no-dashboard", "--scheduler-file", place, **quiet,
    ):  # fmt: skip
        address = wait_for(lambda: place.exists() and place.read_text())
        address = json.loads(address)["address"]
        with started(*worker, **quiet) as first, started(*worker, **quiet) as second:
            yield address, [first, second]


@pytest.mark.validate
def test_a_dask_cluster_loses_a_worker_half_way(case: Case, tmp_path: Path) -> None:
    store = case.folder / "dask"
    with dask_cluster(tmp_path) as (address, workers), case.sweep("dask", "dask", address) as sweep:
        wait_for(lambda: cells(store) >= case.cells // 4)
        workers[0].kill()
        assert cells(store) < case.cells
        assert sweep.wait(300) == 0
    assert (case.folder / "dask.parquet").read_bytes() == case.bytes


@pytest.mark.validate
def test_searches_and_the_bets_of_the_paper_run_on_dask(tmp_path: Path) -> None:
    assert_finds_the_same("dask", tmp_path)


def beside_an_innocent(policy: rank1.Policy, folder: Path, where: str) -> tuple[Any, int]:
    """Failures of a policy's two cells, and how many cells of another one are finished."""
    some = grid([policy, rank1.Uniform()], runs=2, problems=1)
    store = Store(folder / "cells")
    todo = plan(some, store, cell_seconds=1e-9)
    # Pretend that it takes long: else no process would be started.
    todo.tasks[:] = [[cell._replace(seconds=1.0)] for cell in todo.cells]
    failed = todo.play(where, 2)
    return failed, sum(map(len, todo.blocks))


@pytest.mark.validate
def test_a_cell_is_tried_again_after_its_process_died(tmp_path: Path) -> None:
    policy = Deadly(client=os.getpid(), folder=str(tmp_path), times=3)
    assert beside_an_innocent(policy, tmp_path, "local") == ([], 4)
    assert len(list(tmp_path.glob("death-*"))) == 3


@pytest.mark.parametrize(
    ("where", "message"),
    [
        pytest.param(
            "local", "its process died 4 times: out of memory?", marks=pytest.mark.validate
        ),
        pytest.param("dask", "KilledWorker: ", marks=pytest.mark.validate),
    ],
)
def test_a_cell_that_kills_is_given_up_and_the_others_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, message: str
) -> None:
    monkeypatch.setattr(base, "WINDOW", 2)  # so that some wait until others are done
    policy = Deadly(client=os.getpid(), folder=str(tmp_path), times=100)
    failed, finished = beside_an_innocent(policy, tmp_path, where)
    assert [cell.series.policy.name for cell, _ in failed] == ["deadly"] * 2
    assert finished == 2
    for _, why in failed:
        assert re.match(message, why.error)


@pytest.mark.parametrize(("address", "scaled"), [(None, [0, 2]), ("tcp://a:1", [])])
def test_a_cluster_without_workers_is_told_and_ours_is_filled_again(
    monkeypatch: pytest.MonkeyPatch, address: str | None, scaled: list[int]
) -> None:
    """Dask doesn't always start a worker again that died at once after its start."""
    monkeypatch.setattr(dask, "STALLED", 0.05)
    calls: list[int] = []
    notes: list[str] = []
    workers = {"tcp://b:2": 1}
    client = SimpleNamespace(
        nthreads=lambda: workers,
        cluster=SimpleNamespace(scale=lambda count: calls.append(count), workers={}),
    )
    look = dask._no_workers(client, Setup(2, address, notes.append))
    for _ in range(20):
        look()
        time.sleep(0.005)
    assert notes == []
    workers.clear()
    wait_for(lambda: look() or notes)
    assert notes == ["Dask: all workers are gone, waiting for new ones"]
    assert calls == scaled


@pytest.mark.validate
def test_workers_end_with_a_sweep_that_is_killed(case: Case) -> None:
    store = case.folder / "orphans"
    with case.sweep("orphans", "local") as process:
        wait_for(lambda: cells(store) >= 2)
        workers = workers_of(process.pid, "LokyProcess")
        assert len(workers) == 2
        process.kill()  # it alone, not its group
        process.wait()
        wait_for(lambda: not any(map(runs_still, workers)))


def test_an_address_where_nothing_is_says_so_at_once() -> None:
    for address in ("nonsense:x", "tcp://127.0.0.1:1", "127.0.0.1:1"):
        with pytest.raises(rank1.BackendError, match=rf"address must be .* got '{address}'"):
            next(dask.run_tasks([], Setup(1, address)))
    assert not [t for t in threading.enumerate() if "IO loop" in t.name]  # no client was left


def todo(*policies: rank1.Policy, runs: int = 6) -> Plan[Series]:
    """Cells of one run each."""
    return plan(grid(policies, runs=runs, problems=1), cell_seconds=1e-9)


@pytest.mark.parametrize("name", ["threads", "processes", "local"])
def test_every_backend_plays_every_task(name: str) -> None:
    some = todo(rank1.Uniform(), rank1.Rank1Elim())
    # Pretend that it takes long: else no process would be started.
    tasks = [[cell._replace(seconds=1.0)] for cell in some.cells]
    notes: list[str] = []
    played = dict(backend(name)(tasks, Setup(2, None, notes.append)))
    assert sorted(played) == list(range(12))
    for k, [block] in played.items():
        (cell,) = tasks[k]
        assert not isinstance(block, Failure)
        assert (block["curves"] == cell.series.play(cell.runs)["curves"]).all()
    where = "2 threads of this process" if name == "threads" else "2 processes on this machine"
    assert notes == [where]


def test_work_of_no_time_starts_no_process() -> None:
    notes: list[str] = []
    assert len(list(backend("processes")(todo(rank1.Uniform()).tasks, Setup(8, note=notes.append))))
    assert notes == ["this process"]


def test_a_backend_has_one_name() -> None:
    assert BACKENDS["local"] == BACKENDS["processes"]
    with pytest.raises(rank1.InputError, match=r"backend must be one of threads, .*got 'thread'"):
        backend("thread")


def test_threads_that_are_stopped_end_soon() -> None:
    """A run looks from time to time whether it should go on."""
    setup = Setup(2)
    some = plan(rank1.sweeps.SweepGrid([rank1.spike(4, 4, 0.4, 0.4, 0.5, 0.5)], [rank1.Uniform()],
                                  [10**11], 4, 1, 1), cell_seconds=1e-9)  # fmt: skip
    before = threading.active_count()
    results = backend("threads")(some.tasks, setup)
    setup.stop.set()
    with pytest.raises(KeyboardInterrupt):
        next(results)
    wait_for(lambda: threading.active_count() <= before)


def test_a_worker_with_other_code_does_not_play() -> None:
    (task,) = plan(grid([rank1.Uniform()], problems=1)).tasks
    (failure,) = base.run_task(task, ["of another version"])
    assert isinstance(failure, Failure)
    assert (
        "the worker has a different version of rank1, of a policy or of a package" in failure.error
    )
    (block,) = base.run_task(task, base.keys_of(task))
    assert not isinstance(block, Failure)


@pytest.mark.parametrize(("name", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_backend_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"backend {name} needs the package {package}: {re.escape(extra(name))}"
    with pytest.raises(rank1.BackendError, match=message):
        next(backend(name)([], Setup()))


def test_what_failed_travels_without_its_exception() -> None:
    """Not every exception can be pickled."""
    import pickle

    class LocalError(Exception):
        pass

    failure = Failure("LocalError: no luck", "Traceback", LocalError("no luck"))
    again = pickle.loads(pickle.dumps(failure))
    assert again == failure
    assert again.exception is None
