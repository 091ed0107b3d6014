"""Grids for the tests, and policies that misbehave. Workers import this module, too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import rank1
from rank1.paper import Options, artefact
from rank1.policies.base import Known, Policy
from rank1.sweeps import SweepGrid

ROOT = Path(__file__).parent.parent.parent
PROBLEMS = [rank1.spike(4, 3, 0.5, 0.4, delta, 0.5) for delta in (0.2, 0.4)]
NUMBERS = ["run", "step", "expected_regret", "realised_regret"]

#: Cells of a tenth of a second or so; all of it takes some seconds: less is not worth processes.
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

#: The same, but nobody waits for its end.
ENDLESS = LONG.replace("n = 3_000_000", "n = 30_000_000")

#: rank1 sweep with smaller cells: GRID STORE OUT BACKEND [ADDRESS]
DRIVER = """
import sys
from pathlib import Path
from rank1.simulation.store import Store
from rank1.sweeps import read_grid, write_sweep
from rank1.sweeps.play import plan

if __name__ == "__main__":
    path, folder, out, backend, *address = sys.argv[1:]
    grid = read_grid(path)
    todo = plan(grid, Store(folder), cell_seconds=0.1)
    assert not todo.play(backend, 2, *address)
    write_sweep(Path(out), grid, todo)
"""

_PATHS = [str(ROOT / "src"), str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
#: For processes that import rank1 and the tests from here.
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, _PATHS))}


@contextmanager
def started(*command: str | Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process of our own, which ends with the block whatever happens."""
    process = subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=ENVIRONMENT, text=True, start_new_session=True, **options,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for(what: Any, seconds: float = 300.0) -> Any:
    """What a call gives as soon as it gives something."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
    return found


def cells(folder: Path) -> int:
    """How many a store has."""
    return len(list(folder.rglob("*.cell")))


def grid(policies: Sequence[Policy], runs: int = 6, problems: int = 2) -> SweepGrid:
    return SweepGrid(PROBLEMS[:problems], policies, [2000], runs, seed=5, checkpoints=4)


def simulated(some: SweepGrid) -> pl.DataFrame:
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


#: What a plan says of `Broken`: the policy, the method and the line.
BROKEN = "PolicyError: broken: start (support.py:127): ArithmeticError: no luck with 4 rows"


@dataclass(frozen=True)
class Broken(Policy):
    """Can't play anything."""

    name = "broken"

    def start(self, known: Known) -> Any:
        raise ArithmeticError(f"no luck with {known.K} rows")


@dataclass(frozen=True)
class Deadly(rank1.Uniform):
    """Kills the process it is started in, unless that is the client; at most this many times."""

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


def assert_finds_the_same(backend: str, folder: Path) -> None:
    """Searches, and the part on bets, have the same figures as in threads of this process."""
    policies, problem = [rank1.BetElim(), rank1.TopTwo()], PROBLEMS[1]
    here, there = (
        rank1.identify(policies, problem, runs=4, jobs=2, backend=where).document()["policies"]
        for where in ("threads", backend)
    )
    for one, other in zip(here, there, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    documents = [
        artefact.make("bets", Options(runs=2, n=20_000, jobs=2, backend=where, out=folder / where))
        for where in ("threads", backend)
    ]
    assert documents[0]["cells"] == documents[1]["cells"]
