"""Plans and plays: the numbers of `simulate`, and nothing is ever played twice."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import rank1
from rank1.simulation import runs as runs_module
from rank1.simulation.store import Store
from rank1.sweeps import (
    ENGINES,
    Cell,
    Failure,
    Grid,
    Setup,
    plan,
    play,
    read_grid,
    read_sweep,
    write_sweep,
)
from rank1.sweeps import engine as engine_module
from rank1.sweeps import output as output_module
from rank1.sweeps import sweep as sweep_module
from tests.sweeps.support import PROBLEMS, ROOT, Broken, grid, simulated

BOTH = [rank1.Rank1Elim(), rank1.Uniform()]
NUMBERS = ["run", "step", "expected_regret", "realised_regret"]


def sweep(
    some: Grid, store: Path, cell_seconds: float = 1.0, engine: str = "local", jobs: int = 1
) -> tuple[bytes, list[tuple[Cell, Failure]]]:
    """The bytes of the result's file, and what failed."""
    kept = Store(store)
    todo = plan(some, kept, cell_seconds)
    setup = Setup(some.seed, jobs)
    failed = play(todo, kept, engine, setup) if todo.tasks else []
    out = store.parent / "result.parquet"
    write_sweep(out, some, todo.series, todo.blocks)
    return out.read_bytes(), failed


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float, range]]:
    """What the engine plays, and nothing that the probe does."""
    seen: list[tuple[str, float, range]] = []
    original = runs_module.play_block

    def counted(policy: Any, problem: Any, n: int, steps: Any, seed: int, runs: range) -> Any:
        seen.append((policy.label, problem.u[0], runs))
        return original(policy, problem, n, steps, seed, runs)

    monkeypatch.setattr(engine_module, "play_block", counted)
    return seen


def runs_of(played: list[tuple[str, float, range]]) -> list[tuple[str, float, int]]:
    return sorted((label, problem, run) for label, problem, runs in played for run in runs)


def test_same_bits_as_simulate(tmp_path: Path) -> None:
    some = grid([*BOTH, rank1.Rank1Elim(0.5)])
    sweep(some, tmp_path / "cells")
    frame = pl.read_parquet(tmp_path / "result.parquet")
    assert frame.select(NUMBERS).equals(simulated(some))


def test_same_bytes_however_it_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_module, "probe", lambda series, progress: lambda one: 0.001)
    some = grid(BOTH)
    whole, _ = sweep(some, tmp_path / "0")
    for seconds, cells in ((0.001, 6), (0.002, 3), (0.004, 2), (0.008, 1)):
        folder = tmp_path / str(seconds)
        assert sweep(some, folder, seconds)[0] == whole
        assert len(list(folder.rglob("*.cell"))) == 4 * cells
    # Nor does it matter in which order the cells came.
    todo = plan(some, Store(tmp_path / "0.001"))
    late = {key: dict(reversed(blocks.items())) for key, blocks in todo.blocks.items()}
    write_sweep(tmp_path / "late.parquet", some, todo.series, late)
    assert (tmp_path / "late.parquet").read_bytes() == whole


def test_a_sweep_goes_on_where_it_stopped(
    tmp_path: Path, played: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = grid(BOTH)
    put, count = Store.put, 0

    def interrupted(self: Store, *arguments: Any) -> None:
        nonlocal count
        if count == 5:
            raise KeyboardInterrupt
        count += 1
        put(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sweep(some, tmp_path / "cells", 1e-9)
    assert len(plan(some, Store(tmp_path / "cells")).cells) > 0
    finished = played[:5]
    played.clear()
    # Cut another way, and still nothing twice.
    whole, _ = sweep(some, tmp_path / "cells", 1.0)
    again = runs_of(finished) + runs_of(played)
    assert len(again) == len(set(again)) == 24
    played.clear()
    assert sweep(some, tmp_path / "cells", 1e-9)[0] == whole
    assert not played
    assert sweep(some, tmp_path / "fresh")[0] == whole


def test_more_runs_play_only_those(tmp_path: Path, played: list[Any]) -> None:
    sweep(grid(BOTH, runs=6), tmp_path / "cells")
    played.clear()
    more, _ = sweep(grid(BOTH, runs=9), tmp_path / "cells")
    assert {run for _, _, run in runs_of(played)} == {6, 7, 8}
    assert sweep(grid(BOTH, runs=9), tmp_path / "fresh")[0] == more
    played.clear()
    fewer, _ = sweep(grid(BOTH, runs=4), tmp_path / "cells")
    assert not played
    assert sweep(grid(BOTH, runs=4), tmp_path / "fresh2")[0] == fewer


def test_simulate_and_sweeps_share_a_store(tmp_path: Path, played: list[Any]) -> None:
    some = grid(BOTH)
    rank1.simulate(BOTH, PROBLEMS[0], 2000, 6, 5, checkpoints=4, store=tmp_path / "cells")
    played.clear()
    whole, _ = sweep(some, tmp_path / "cells")
    assert {problem for _, problem, _ in played} == {PROBLEMS[1].u[0]}
    assert sweep(some, tmp_path / "fresh")[0] == whole


def test_a_damaged_cell_is_played_again(tmp_path: Path, played: list[Any]) -> None:
    some = grid(BOTH)
    whole, _ = sweep(some, tmp_path / "cells")
    played.clear()
    cell = sorted((tmp_path / "cells").rglob("*.cell"))[0]
    cell.write_bytes(cell.read_bytes()[:-8])
    assert sweep(some, tmp_path / "cells")[0] == whole
    assert len(played) == 1


@pytest.mark.parametrize("change", [{"seed": 6}, {"n": [2001]}, {"checkpoints": 5}])
def test_whatever_matters_has_cells_of_its_own(
    tmp_path: Path, played: list[Any], change: dict[str, Any]
) -> None:
    some = grid(BOTH)
    sweep(some, tmp_path / "cells")
    played.clear()
    other = Grid(**(vars(some) | change))
    sweep(other, tmp_path / "cells")
    assert len(runs_of(played)) == 24
    assert pl.read_parquet(tmp_path / "result.parquet").select(NUMBERS).equals(simulated(other))


def test_a_cell_that_raises_does_not_stop_the_others(tmp_path: Path) -> None:
    some = grid([*BOTH, Broken()])
    _, failed = sweep(some, tmp_path / "cells")
    assert [(cell.series.policy.name, cell.runs, why.error) for cell, why in failed] == [
        ("broken", range(6), "ArithmeticError: no luck with 4 rows")
    ] * 2
    assert "in start" in failed[0][1].trace
    frame = read_sweep(tmp_path / "result.parquet").frame.collect()
    assert frame["policy"].unique(maintain_order=True).to_list() == ["rank1elim", "uniform"]
    assert frame.select(NUMBERS).equals(simulated(grid(BOTH)))


def test_cheap_cells_travel_together() -> None:
    todo = plan(grid(BOTH), None)
    assert len(todo.cells) == 4
    assert len(todo.tasks) == 1
    # Long cells go alone, and before the others.
    long = plan(Grid(PROBLEMS, BOTH, [10**9], 6, 5, 4), None)
    assert [len(task) for task in long.tasks] == [1] * 12 + [2]
    costs = [sum(cell.seconds for cell in task) for task in long.tasks]
    assert costs[-1] < 1 < costs[-2]
    assert long.seconds == pytest.approx(sum(costs))


def test_two_sweeps_share_a_store_at_once(tmp_path: Path) -> None:
    import threading

    some = grid(BOTH, runs=16)
    alone, _ = sweep(some, tmp_path / "alone" / "cells", 1e-9)
    results: list[bytes] = []

    def one(name: str) -> None:
        store = Store(tmp_path / "shared")
        todo = plan(some, store, 1e-9 if name == "a" else 1e-4)
        play(todo, store, "local", Setup(some.seed, 1))
        write_sweep(tmp_path / name, some, todo.series, todo.blocks)
        results.append((tmp_path / name).read_bytes())

    threads = [threading.Thread(target=one, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [alone] * 2
    assert sweep(some, tmp_path / "shared")[0] == alone
    assert not [name for name in os.listdir(tmp_path / "shared") if name.startswith(".")]


def test_a_worker_with_other_sources_does_not_play() -> None:
    (task,) = plan(grid([rank1.Uniform()], problems=1), None).tasks
    _, (failure,) = engine_module._numbered(0, task, 5, b"of another version", os.getpid())
    assert isinstance(failure, Failure)
    assert "another version of rank1" in failure.error


@pytest.mark.parametrize(("engine", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_an_engine_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, engine: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"--engine {engine} needs the package {package}: pip install 'rank1\[{engine}\]'"
    with pytest.raises(ValueError, match=message):
        next(ENGINES[engine]([], Setup(0, 1)))


def test_the_grid_of_the_page_on_sweeps() -> None:
    some = read_grid(ROOT / "docs" / "phase.toml")
    assert len(some.problems) == 64
    assert all(problem.K == problem.L for problem in some.problems)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (None, "nothing came back"),
        (OSError("no scheduler"), "the engine failed: OSError: no scheduler"),
        (ValueError("no such cluster"), ""),
    ],
)
def test_cells_that_an_engine_loses_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None, why: str
) -> None:
    local = ENGINES["local"]

    def lossy(tasks: Any, setup: Setup) -> Any:
        yield next(local(tasks, setup))
        if error is not None:
            raise error

    monkeypatch.setitem(ENGINES, "local", lossy)
    if not why:
        with pytest.raises(ValueError, match="no such cluster"):
            sweep(grid(BOTH), tmp_path / "cells", cell_seconds=1e-9)
        return
    _, failed = sweep(grid(BOTH), tmp_path / "cells", cell_seconds=1e-9)
    assert len(failed) > 1
    assert {failure.error for _, failure in failed} == {why}


def test_rows_come_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = grid(BOTH)
    sweep(some, tmp_path / "whole")
    whole = pl.read_parquet(tmp_path / "result.parquet")
    monkeypatch.setattr(output_module, "BATCH", 7)
    sweep(some, tmp_path / "batches", cell_seconds=1e-9)
    assert pl.read_parquet(tmp_path / "result.parquet").equals(whole)


def test_a_full_disk_under_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise pl.exceptions.ComputeError("No space left on device (os error 28)")

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", full)
    with pytest.raises(OSError, match=r"can't write '.*result.parquet': No space left on device"):
        sweep(grid(BOTH), tmp_path / "cells")
