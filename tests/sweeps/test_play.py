"""Sweeps: the numbers of `simulate`, and nothing is ever played twice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import rank1
from rank1.simulation import Series
from rank1.simulation import plan as plan_module
from rank1.simulation.backends import Failure, RunCell
from rank1.simulation.store import Store
from rank1.sweeps import SweepGrid, read_grid, read_sweep, write_sweep
from rank1.sweeps.grid import EXAMPLE
from rank1.sweeps.play import plan
from tests.simulation.support import BROKEN, NUMBERS, PROBLEMS, ROOT, Broken, cells, grid, simulated

BOTH = [rank1.Rank1Elim(), rank1.Uniform()]


def sweep(
    some: SweepGrid, store: Path, cell_seconds: float = 1.0
) -> tuple[bytes, list[tuple[RunCell, Failure]]]:
    """The bytes of the result's file, and what failed."""
    todo = plan(some, Store(store), cell_seconds=cell_seconds)
    failed = todo.play()
    out = store.parent / "result.parquet"
    write_sweep(out, some, todo)
    return out.read_bytes(), failed


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float, range]]:
    """What is played."""
    seen: list[tuple[str, float, range]] = []
    original = Series.play

    def counted(self: Series, runs: range, *rest: Any) -> Any:
        problem: Any = self.problem
        seen.append((self.policy.label, problem.u[0], runs))
        return original(self, runs, *rest)

    monkeypatch.setattr(Series, "play", counted)
    return seen


def runs_of(played: list[tuple[str, float, range]]) -> list[tuple[str, float, int]]:
    return sorted((label, problem, run) for label, problem, runs in played for run in runs)


def test_same_bits_as_simulate(tmp_path: Path) -> None:
    some = grid([*BOTH, rank1.Rank1Elim(0.5)])
    sweep(some, tmp_path / "cells")
    frame = pl.read_parquet(tmp_path / "result.parquet")
    assert frame.select(NUMBERS).equals(simulated(some))
    arms = frame.filter(pl.col("step") == 2000)["best_arm"].to_list()
    assert arms == [
        arm
        for problem in some.problems
        for policy in some.policies
        for arm in rank1.simulate(policy, problem, 2000, 6, 5, checkpoints=4).outcomes[0].arms
    ]
    assert set(frame["sides"]) == {"[4, 3]"}


def test_same_bytes_however_it_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "_costs", lambda *_: lambda one: 0.001)
    some = grid(BOTH)
    whole, _ = sweep(some, tmp_path / "0")
    for seconds, count in ((0.001, 6), (0.002, 3), (0.004, 2), (0.008, 1)):
        folder = tmp_path / str(seconds)
        assert sweep(some, folder, seconds)[0] == whole
        assert cells(folder) == 4 * count
    # Nor does it matter in which order the cells came.
    todo = plan(some, Store(tmp_path / "0.001"))
    todo.blocks[:] = [dict(reversed(blocks.items())) for blocks in todo.blocks]
    write_sweep(tmp_path / "late.parquet", some, todo)
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
    other = SweepGrid(**(vars(some) | change))
    sweep(other, tmp_path / "cells")
    assert len(runs_of(played)) == 24
    assert pl.read_parquet(tmp_path / "result.parquet").select(NUMBERS).equals(simulated(other))


def test_a_cell_that_raises_does_not_stop_the_others(tmp_path: Path) -> None:
    some = grid([*BOTH, Broken()])
    _, failed = sweep(some, tmp_path / "cells")
    assert [(str(cell.series)[:6], cell.runs, why.error) for cell, why in failed] == [
        ("broken", range(6), BROKEN)
    ] * 2
    result = read_sweep(tmp_path / "result.parquet")
    frame = result.frame.collect()
    assert frame["policy"].unique(maintain_order=True).to_list() == ["rank1elim", "uniform"]
    assert frame.select(NUMBERS).equals(simulated(grid(BOTH)))
    # Which runs are missing is in the file: the third and the sixth series.
    assert result.missing == [(2, 0, 6), (5, 0, 6)]
    assert result.gap == "12 of 36 runs are missing"


def test_two_sweeps_share_a_store_at_once(tmp_path: Path) -> None:
    import threading

    some = grid(BOTH, runs=16)
    alone, _ = sweep(some, tmp_path / "alone" / "cells", 1e-9)
    results: list[bytes] = []

    def one(name: str) -> None:
        todo = plan(some, Store(tmp_path / "shared"), cell_seconds=1e-9 if name == "a" else 1e-4)
        todo.play()
        write_sweep(tmp_path / name, some, todo)
        results.append((tmp_path / name).read_bytes())

    threads = [threading.Thread(target=one, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [alone] * 2
    assert sweep(some, tmp_path / "shared")[0] == alone
    assert not [name for name in os.listdir(tmp_path / "shared") if name.startswith(".")]


def test_the_grid_of_the_page_on_sweeps() -> None:
    some = read_grid(ROOT / "docs" / "phase.toml")
    assert len(some.problems) == 64
    problems: list[Any] = list(some.problems)
    assert all(problem.K == problem.L for problem in problems)


def test_one_call_from_python(tmp_path: Path) -> None:
    """A file, plain values or a grid; with a store and a file, or without."""
    import tomllib

    path = tmp_path / "grid.toml"
    path.write_text(EXAMPLE.replace("n = 20_000", "n = 2_000"))
    out = tmp_path / "out.parquet"
    first = rank1.sweep(path, tmp_path / "cells", out=out, jobs=1)
    assert first.failed == []
    assert (first.missing, first.gap) == ([], "")
    assert cells(tmp_path / "cells") == 18
    written = read_sweep(out)
    assert written.frame.collect().equals(first.frame.collect())
    assert rank1.load(out).summary().equals(first.summary())
    for other in (tomllib.loads(path.read_text()), read_grid(path)):
        again = rank1.sweep(other, jobs=2, backend="threads")
        assert again.frame.collect().equals(first.frame.collect())
    with pytest.raises(
        rank1.InputTypeError, match="grid must be a TOML file, a dict or a SweepGrid"
    ):
        rank1.sweep(18)  # type: ignore[arg-type]
    with pytest.raises(rank1.InputError, match="backend must be one of"):
        rank1.sweep(path, backend="cloud")


def parted(some: SweepGrid, store: Path, out: Path, kept: int) -> int:
    """A sweep that ends early: the rows that it wrote."""
    todo = plan(some, Store(store))
    todo.play()
    for blocks in todo.blocks[kept:]:
        blocks.clear()
    return write_sweep(out, some, todo)


def test_a_fuller_file_of_the_same_sweep_is_not_replaced(tmp_path: Path) -> None:
    some, out = grid(BOTH), tmp_path / "out.parquet"
    assert parted(some, tmp_path / "cells", out, 1) == 24
    assert read_sweep(out).gap == "18 of 24 runs are missing"
    assert parted(some, tmp_path / "cells", out, 3) == 72  # more of it
    part = out.read_bytes()
    assert parted(some, tmp_path / "cells", out, 2) == 0
    assert out.read_bytes() == part
    assert parted(some, tmp_path / "cells", out, 4) == 96
    assert read_sweep(out).gap == ""
    assert parted(some, tmp_path / "cells", out, 0) == 0
    # Another sweep may take its place, whole or not; and so may any of a damaged file.
    for change in ({"seed": 6}, {"runs": 7}, {"n": [2001]}, {"checkpoints": 5},
                   {"problems": PROBLEMS[:1]}, {"policies": BOTH[:1]}):  # fmt: skip
        parted(some, tmp_path / "cells", out, 4)
        other = SweepGrid(**(vars(some) | change))
        assert parted(other, tmp_path / "cells", out, 1) > 0
        assert read_sweep(out).missing or len(other.series()) == 1
    out.write_bytes(part[:-100])
    assert parted(some, tmp_path / "cells", out, 1) == 24
