"""OptSpace's time on a grid the size of MovieLens, against gemelli's, and to reach a minimum.

gemelli's OptSpace needs only NumPy and SciPy, but the rest of gemelli needs much more. So it gets
its own environment, in which this file runs as a script. Both run on one core, alternately and in
separate processes; the fastest run of each counts, in CPU time.
"""

from __future__ import annotations

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
REPEATS = 3
ONE_CORE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

Floats = NDArray[np.float64]


def grid(seed: int = 1) -> Floats:
    """Make noisy stars of rank five; popular columns and busy rows are observed more often."""
    rng = np.random.default_rng(seed)
    stars = 3.3 + 0.25 * rng.normal(size=(ROWS, 1)) + 0.6 * rng.normal(size=(1, COLUMNS))
    stars += 0.25 * rng.normal(size=(ROWS, RANK - 2)) @ rng.normal(size=(RANK - 2, COLUMNS))
    stars = np.clip(stars + 0.9 * rng.normal(size=stars.shape), 1, 5)
    chance = 1.2 * rng.normal(size=(ROWS, 1)) + 1.6 * rng.normal(size=(1, COLUMNS))
    chance = chance + rng.logistic(size=stars.shape)
    stars[chance < np.quantile(chance, 1 - SEEN)] = np.nan
    return stars


def by_rank1(matrix: Floats) -> tuple[float, Floats]:
    """Return the seconds, without the import, and the completed matrix."""
    from rank1.paper.completion import optspace

    begin = time.process_time()
    completed = optspace(matrix, RANK, iterations=ITERATIONS).matrix
    return time.process_time() - begin, completed


def to_a_minimum(matrix: Floats) -> tuple[float, Floats]:
    """Use alternating least squares until the gradient is 10⁻⁶ of the residuals."""
    from rank1.paper.completion import optspace

    begin = time.process_time()
    completion = optspace(matrix, RANK, iterations=1000, method="alternating")
    completed = completion.matrix
    seconds = time.process_time() - begin
    if not completion.converged:
        raise SystemExit(f"no minimum after {completion.iterations} iterations")
    return seconds, completed


def by_gemelli(matrix: Floats) -> tuple[float, Floats]:
    """Do the same as `by_rank1` in gemelli's environment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gemelli = importlib.import_module("gemelli.optspace")
    begin = time.process_time()
    U, S, V = gemelli.OptSpace(RANK, ITERATIONS, 1e-6).solve(matrix.copy())  # modifies its input
    completed = U @ S @ V.T
    return time.process_time() - begin, completed


CONTESTANTS = {"rank1": by_rank1, "minimum": to_a_minimum, "gemelli": by_gemelli}


def measured(python: Path | str, contestant: str, file: Path) -> list[float]:
    """Run a contestant in its own process, and return its seconds and residual."""
    run = subprocess.run(
        [str(python), __file__, contestant, str(file)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | ONE_CORE,
    )
    answer: list[float] = json.loads(run.stdout)
    return answer


def main() -> None:
    from benchmarks import rivals

    ours, theirs, minima = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "matrix.npy"
        np.save(file, grid())
        ours.append(measured(sys.executable, "rank1", file))
        minima += [measured(sys.executable, "minimum", file) for _ in range(REPEATS)]
        try:
            rival = rivals.environment("gemelli", ("numpy", "scipy"), ("--no-deps", "gemelli"))
            for _ in range(REPEATS):
                theirs.append(measured(rival, "gemelli", file))
                ours.append(measured(sys.executable, "rank1", file))
        except (subprocess.SubprocessError, OSError) as error:
            print(rivals.why_skipped("gemelli", error))
    (seconds, residual), size = min(ours), f"{ROWS}×{COLUMNS}, rank {RANK}"
    print(f"OptSpace, {size}:  {seconds:7.2f} s, residual {residual:.3f} (at most 3, one core)")
    if theirs:
        slow, residual = min(theirs)
        print(
            f"gemelli's:                    {slow:7.2f} s, residual {residual:.3f}; "
            f"ours is {slow / seconds:.0f} times as fast (at least 10)"
        )
    long, residual = min(minima)
    print(
        f"alternating, to a minimum:    {long:7.2f} s, residual {residual:.3f}; "
        f"{long / seconds:.1f} times the {ITERATIONS} steps of the descent (at most 10)"
    )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        numbers = np.load(sys.argv[2])
        spent, whole = CONTESTANTS[sys.argv[1]](numbers)
        print(json.dumps([spent, float(np.sqrt(np.nanmean((whole - numbers) ** 2)))]))
    else:
        main()
