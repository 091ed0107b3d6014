"""Rank1Elim: the compiled loop, whole stages at once, Table 1, and startup."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rank1
from benchmarks.timing import cpu_seconds
from rank1.paper import Options
from rank1.paper.artefact import make

N = 2_000_000


def seconds_a_run(K: int, method: str, runs: int, checkpoints: int = 1) -> float:
    problem = rank1.spike(K, K, 0.7, 0.7, 0.2, 0.2)

    def work() -> None:
        rank1.simulate(
            rank1.Rank1Elim(), problem, N, runs, seed=1, checkpoints=checkpoints, method=method
        )

    return cpu_seconds(work) / runs


def wall(*command: str) -> float:
    """Return the minimum wall time of five processes; a final --out gets a new folder each time."""
    times = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            out = [folder] if command[-1] == "--out" else []
            begin = time.perf_counter()
            subprocess.run([sys.executable, *command, *out], check=True, capture_output=True)
            times.append(time.perf_counter() - begin)
    return min(times)


def table1() -> float:
    """Return the seconds that Table 1 takes, including its cells."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        make("table1", Options(out=Path(folder)))
        return time.perf_counter() - begin


def main() -> None:
    by_steps = {K: seconds_a_run(K, "steps", 2) for K in (8, 32)}
    print(f"compiled loop, K = L = 32:     {by_steps[32] / N * 1e9:7.1f} ns a step (at most 25)")
    by_stages = seconds_a_run(8, "stages", 200)
    print(f"compiled loop, K = L = 8:      {by_steps[8] / N * 1e9:7.1f} ns a step")
    print(
        f"whole stages, K = L = 8:       {by_stages * 1e6:7.1f} µs for {N:,} steps, "
        f"{by_steps[8] / by_stages:.0f} times the loop (at least 100)"
    )
    split = seconds_a_run(8, "stages", 200, checkpoints=100)
    print(f"the same with 100 checkpoints: {split * 1e6:7.1f} µs")
    seconds = min(table1() for _ in range(3))
    print(f"Table 1, 27 cells × 20 runs:   {seconds:7.2f} s within a process (at most 2)")
    command = wall("-m", "rank1", "paper", "table1", "--out")
    print(f"`rank1 paper table1`:          {command:7.2f} s with start and files")
    print(f"import rank1:                  {wall('-c', 'import rank1'):7.2f} s (at most 0.3)")
    print(f"rank1 --help:                  {wall('-m', 'rank1', '--help'):7.2f} s (at most 0.5)")
    first = wall(
        "-c",
        "import rank1; "
        "rank1.simulate(rank1.Rank1Elim(), rank1.spike(8, 8, .7, .7, .2, .2), 1000, 1)",
    )
    print(f"first call in a new process:   {first:7.2f} s, imports included (at most 1)")
    begin = time.perf_counter()
    big = rank1.spike(4096, 4096, 0.7, 0.7, 0.2, 0.2)
    rank1.simulate(rank1.Rank1Elim(), big, 10**9, 1, seed=1)
    print(f"K = L = 4096, n = 10⁹:         {time.perf_counter() - begin:7.2f} s")


if __name__ == "__main__":
    main()
