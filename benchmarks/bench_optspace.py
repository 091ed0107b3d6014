"""OptSpace's time on a grid the size of MovieLens, against gemelli's in the same run.

    python benchmarks/bench_optspace.py [--rival-python PATH] [--repeats 2] [--json]

gemelli is no dependency of the project. It needs `pip install gemelli`, or, since its OptSpace uses
NumPy and SciPy only, `pip install --no-deps gemelli` in an environment that has those two. Name
that environment's Python with `--rival-python` or in RANK1_RIVAL_PYTHON. Without it only our own
time is printed. Both run on one core, in processes of their own, turn about.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROWS, COLUMNS, SEEN, RANK, ITERATIONS = 241, 3706, 0.3, 5, 50
SECONDS_LIMIT, RATIO_LIMIT = 3.0, 10.0
ONE_CORE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

Floats = NDArray[np.float64]


def grid(seed: int = 1) -> Floats:
    """Noisy stars of rank five; popular columns and busy rows are seen more often."""
    rng = np.random.default_rng(seed)
    stars = 3.3 + 0.25 * rng.normal(size=(ROWS, 1)) + 0.6 * rng.normal(size=(1, COLUMNS))
    stars += 0.25 * rng.normal(size=(ROWS, RANK - 2)) @ rng.normal(size=(RANK - 2, COLUMNS))
    stars = np.clip(stars + 0.9 * rng.normal(size=stars.shape), 1, 5)
    chance = 1.2 * rng.normal(size=(ROWS, 1)) + 1.6 * rng.normal(size=(1, COLUMNS))
    chance = chance + rng.logistic(size=stars.shape)
    stars[chance < np.quantile(chance, 1 - SEEN)] = np.nan
    return stars


def complete(contestant: str, matrix: Floats) -> tuple[float, Floats]:
    """Seconds without the import, and the completed matrix."""
    if contestant == "rank1":
        from rank1.completion import optspace

        start = time.perf_counter()
        completed = optspace(matrix, RANK, iterations=ITERATIONS).matrix
        return time.perf_counter() - start, completed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gemelli = importlib.import_module("gemelli.optspace")
    start = time.perf_counter()
    U, S, V = gemelli.OptSpace(RANK, ITERATIONS, 1e-6).solve(matrix.copy())
    completed = U @ S @ V.T
    return time.perf_counter() - start, completed


def ask(python: str, contestant: str, matrix_file: Path) -> tuple[float, float] | str:
    """Seconds and residual from a process of its own, or why there are none."""
    command = [python, __file__, "--contestant", contestant, "--matrix", str(matrix_file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ONE_CORE)
    except OSError as error:
        return str(error)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["no message"])[-1]
    seconds, residual = json.loads(done.stdout)
    return seconds, residual


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    rival_python = os.environ.get("RANK1_RIVAL_PYTHON", sys.executable)
    parser.add_argument("--rival-python", default=rival_python, help="has gemelli")
    parser.add_argument("--repeats", type=int, default=2, help="the fastest run counts")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of text")
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    parser.add_argument("--matrix", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        matrix = np.load(options.matrix)
        seconds, completed = complete(options.contestant, matrix)
        print(json.dumps([seconds, float(np.sqrt(np.nanmean((completed - matrix) ** 2)))]))
        return 0

    pythons = {"rank1": sys.executable, "gemelli": options.rival_python}
    answers: dict[str, list[tuple[float, float]]] = {"rank1": [], "gemelli": []}
    missing = None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "matrix.npy"
        np.save(file, grid())
        for _ in range(options.repeats):
            for contestant, python in pythons.items():
                if contestant == "gemelli" and missing:
                    continue
                answer = ask(python, contestant, file)
                if not isinstance(answer, str):
                    answers[contestant].append(answer)
                elif contestant == "gemelli":
                    missing = answer
                else:
                    print(f"bench_optspace: {answer}", file=sys.stderr)
                    return 2

    seconds, residual = min(answers["rank1"])
    rival_seconds, rival_residual = min(answers["gemelli"], default=(None, None))
    ratio = rival_seconds / seconds if rival_seconds else None
    if options.json:
        facts = {
            "rows": ROWS,
            "columns": COLUMNS,
            "seen": SEEN,
            "rank": RANK,
            "iterations": ITERATIONS,
            "rank1": {"seconds": seconds, "residual": residual, "limit": SECONDS_LIMIT},
            "gemelli": {"seconds": rival_seconds, "residual": rival_residual, "missing": missing},
            "ratio": ratio,
            "ratio_wanted": RATIO_LIMIT,
        }
        print(json.dumps(facts))
    else:
        print(f"{ROWS}×{COLUMNS}, {SEEN:.0%} seen, rank {RANK}, {ITERATIONS} iterations, one core")
        print(f"rank1    {seconds:7.3f} s   residual {residual:.4f}   (limit {SECONDS_LIMIT:g} s)")
        if ratio:
            print(f"gemelli  {rival_seconds:7.3f} s   residual {rival_residual:.4f}")
            print(f"ratio    {ratio:7.1f}     (at least {RATIO_LIMIT:g} wanted)")
        else:
            print(f"gemelli  skipped: {missing}; no ratio (see the top of this file)")
    return 0 if seconds < SECONDS_LIMIT and (ratio is None or ratio >= RATIO_LIMIT) else 1


if __name__ == "__main__":
    sys.exit(main())
