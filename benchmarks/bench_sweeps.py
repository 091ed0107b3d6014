"""The overhead of sweeps: handing out cells, two processes, a large store.

python -m benchmarks.bench_sweeps
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rank1
from rank1.simulation.block import Block
from rank1.simulation.store import Store
from rank1.sweeps import SweepGrid, grid_of, write_sweep
from rank1.sweeps.play import plan

CELLS = 20


class Cost(NamedTuple):
    """Wall-clock seconds, and CPU seconds of this process."""

    wall: float
    cpu: float


def timed(work: Callable[[], Any]) -> tuple[Any, Cost]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, Cost(time.perf_counter() - wall, time.process_time() - cpu)


def seconds_cells() -> SweepGrid:
    """Make a grid of cells that take about a second: one run each, of uniform play."""
    problem = rank1.spike(8, 8, 0.7, 0.7, 0.2, 0.2)
    seconds, _ = rank1.Series.of(rank1.Uniform(), problem, 10**7, 20).probe()
    return SweepGrid([problem], [rank1.Uniform()], [int(10**7 / seconds)], CELLS, 1, 20)


def sweep(grid: SweepGrid, folder: Path, jobs: int) -> tuple[float, Cost]:
    """Run a whole sweep; return the seconds of its cells, and what it cost."""
    store = Store(folder / f"cells-{jobs}")

    def everything() -> Any:
        planned = plan(grid, store)
        assert planned.play("processes", jobs) == []
        write_sweep(folder / "result.parquet", grid, planned)
        return planned

    planned, cost = timed(everything)
    return planned.whole(0).seconds, cost


def hand_out(folder: Path) -> None:
    grid = seconds_cells()
    (one,) = grid.series()
    _, bare = timed(lambda: [one.play(range(k, k + 1)) for k in range(CELLS)])
    _, alone = sweep(grid, folder, jobs=1)
    print(f"{CELLS} cells of {bare.cpu / CELLS:.2f} s; the same runs without a sweep are 100%")
    print(f"  sweep in this process, CPU time:      {alone.cpu / bare.cpu:8.1%}   (at most 105%)")
    warm = SweepGrid(grid.problems, grid.policies, [grid.n[0] // 20], 80, 2, 20)
    sweep(warm, folder / "warm", jobs=2)  # starts the processes
    computed, two = sweep(grid, folder, jobs=2)
    print(f"  client of two processes, CPU a cell:  {two.cpu / CELLS * 1e3:8.1f} ms")
    print(f"  two processes were busy:              {computed / 2 / two.wall:8.1%}   of the time")
    print(f"  two processes, compared with one:     {alone.wall / two.wall:8.2f}×  (at least 1.8)")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    print(f"  (load {load:.1f} on {os.cpu_count()} cores: the last two need an idle machine)")


def large_store(folder: Path, problems: int, policies: int, cells: int) -> None:
    scale = {"from": 0.1, "to": 1.0, "count": policies}
    grid = grid_of(
        {
            "n": 10**6,
            "runs": 4 * cells,
            "checkpoints": 20,
            "problem": [
                {"name": "spike", "K": 16, "L": 16, "p_u": 0.5, "p_v": 0.5, "delta_u": 0.2,
                 "delta_v": {"from": 0.1, "to": 0.4, "count": problems}}
            ],
            "policy": [{"name": "rank1elim", "confidence_scale": scale}],
        }
    )  # fmt: skip
    store = Store(folder)
    curves, arms = np.random.default_rng(1).random((4, 20, 2)), np.zeros(4, np.int64)
    block = Block({"curves": curves, "best_arms": arms}, 1.0)
    keys = [key or "" for key in plan(grid, store).keys]

    def fill() -> None:
        for key in keys:
            for first in range(0, 4 * cells, 4):
                store.put(key, range(first, first + 4), block)

    _, put = timed(fill)
    plan(SweepGrid(grid.problems[:1], grid.policies[:1], grid.n, 1, 2, 20), None)  # compiles
    # Remove the last cell, as if the sweep had been stopped there.
    os.unlink(store.path(keys[-1], range(4 * cells - 4, 4 * cells)))
    planned, cost = timed(lambda: plan(grid, store))
    assert len(planned.cells) == 1
    total = len(keys) * cells
    print(f"{total:,} cells, {cells} of each of {len(keys):,} series")
    print(f"  kept, each:                           {put.cpu / total * 1e6:8.0f} µs of CPU")
    print(f"  listed, read and checked:             {cost.wall:8.2f} s   (at most 5)")
    print(f"  CPU time of that:                     {cost.cpu:8.2f} s")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "warm").mkdir()
        hand_out(folder)
        large_store(folder / "few", 10, 10, 1000)
        large_store(folder / "many", 1000, 20, 5)


if __name__ == "__main__":
    main()
