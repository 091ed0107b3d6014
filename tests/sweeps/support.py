"""Grids for the tests, and policies that misbehave. Workers import this module, too."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import rank1
from rank1.policies.base import Known, Policy
from rank1.sweeps import Grid

ROOT = Path(__file__).parent.parent.parent
PROBLEMS = [rank1.spike(4, 3, 0.5, 0.4, delta, 0.5) for delta in (0.2, 0.4)]

#: Cells of a tenth of a second or so; all of it takes some seconds.
LONG = """
n = 3_000_000
runs = 24
checkpoints = 5
[[problem]]
name = "spike"
K = [4, 8]
L = 4
p_u = 0.5
p_v = 0.5
delta_u = 0.2
delta_v = 0.2
[[policy]]
name = "uniform"
[[policy]]
name = "rank1elim"
"""

#: rank1 sweep with smaller cells: GRID STORE OUT ENGINE [ADDRESS]
DRIVER = """
import sys
from rank1.simulation.store import Store
from rank1.sweeps import Setup, plan, play, read_grid, write_sweep

if __name__ == "__main__":
    path, folder, out, engine, *address = sys.argv[1:]
    grid, store = read_grid(path), Store(folder)
    todo = plan(grid, store, cell_seconds=0.1)
    setup = Setup(grid.seed, 2, *address)
    assert not play(todo, store, engine, setup)
    write_sweep(out, grid, todo.series, todo.blocks)
"""


def grid(policies: Sequence[Policy], runs: int = 6, problems: int = 2) -> Grid:
    return Grid(PROBLEMS[:problems], policies, [2000], runs, seed=5, checkpoints=4)


def simulated(some: Grid) -> pl.DataFrame:
    """What `simulate` says of the same grid: the numbers of its rows."""
    frames = [
        rank1.simulate(
            policy, problem, n, some.runs, some.seed, checkpoints=some.checkpoints
        ).to_frame()
        for problem in some.problems
        for policy in some.policies
        for n in some.n
    ]
    return pl.concat(frames).drop("policy")


@dataclass(frozen=True)
class Broken(Policy):
    """Can't play anything."""

    name = "broken"

    def start(self, known: Known) -> Any:
        raise ArithmeticError(f"no luck with {known.K} rows")


@dataclass(frozen=True)
class Deadly(rank1.Uniform):
    """Kills the process it is started in, unless that is the client: so many times in all."""

    name = "deadly"
    client: int = 0
    folder: str = ""
    times: int = 1

    def start(self, known: Known) -> Any:
        for k in range(self.times if os.getpid() != self.client else 0):
            try:
                (Path(self.folder) / f"death-{k}").touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)
        return super().start(known)


@dataclass(frozen=True)
class Named(rank1.Uniform):
    """Has settings that are called like columns of the result."""

    name = "named"
    step: float = 0.6
    K: str = "few"
    exact: bool = True
