"""The effect of stopping a completion early on fit and held-out error, also for MovieLens.

    python docs/early_stopping.py [--data-dir FOLDER] [--rank RANK]

FOLDER has the files of MovieLens 1M; without it, ratings are generated. A tenth of the rated pairs
is held out, with seed 1. The last column is the average completed rating of movies that at most
three groups have rated.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.paper.completion import optspace
from rank1.paper.movielens import group_ratings, obtain

Floats = NDArray[np.float64]

DESCENT: list[dict[str, Any]] = [{"iterations": k} for k in (50, 200, 1000, 5000)]
ALTERNATING: list[dict[str, Any]] = [
    {"iterations": 1000, "method": "alternating", "penalty": penalty}
    for penalty in (0.0, 1e-4, 1e-3, 1e-2)
]


def split(averages: Floats, seed: int = 1) -> tuple[Floats, Floats]:
    """Split into what is fitted, without lines that would be empty, and what is held out."""
    out = np.isfinite(averages) & (np.random.default_rng(seed).random(averages.shape) < 0.1)
    fitted = np.where(out, np.nan, averages)
    rows, columns = np.isfinite(fitted).any(axis=1), np.isfinite(fitted).any(axis=0)
    kept = np.ix_(rows, columns)
    return fitted[kept], np.where(out, averages, np.nan)[kept]


def additive(matrix: Floats) -> Floats:
    """Fit a group effect plus a movie effect, by least squares."""
    row, column = np.zeros((len(matrix), 1)), np.zeros((1, matrix.shape[1]))
    for _ in range(100):
        row = np.nanmean(matrix - column, axis=1, keepdims=True)
        column = np.nanmean(matrix - row, axis=0, keepdims=True)
    return row + column


def root_mean_square(difference: Floats) -> float:
    """Return the root mean square of the values that aren't NaN."""
    return float(np.sqrt(np.nanmean(difference**2)))


def main(folder: str | None, rank: int | None) -> None:
    """Print the table."""
    fitted, held_out = split(group_ratings(obtain(folder)).averages)
    few = np.isfinite(fitted).sum(axis=0) <= 3
    print("| completion | iterations | gradient | residual | held out | largest | few ratings |")
    print("| --- | --- | --- | --- | --- | --- | --- |")

    def row(name: str, matrix: Floats, *figures: str) -> None:
        errors = root_mean_square(matrix - fitted), root_mean_square(matrix - held_out)
        cells = [name, *figures, *(f"{error:.4f}" for error in errors)]
        cells += [f"{np.abs(matrix).max():,.1f}", f"{matrix[:, few].mean():.2f}"]
        print("|", " | ".join(cells), "|", flush=True)

    for how in DESCENT + ALTERNATING:
        completion = optspace(fitted, rank, **how)
        name = f"{completion.method}, rank {completion.rank}"
        name += f", penalty {completion.penalty:g}" if "penalty" in how else ""
        steps = f"{completion.iterations}{', converged' if completion.converged else ''}"
        row(name, completion.matrix, steps, f"{completion.gradient:.1e}")
    row("group + movie", additive(fitted), "–", "–")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir")
    parser.add_argument("--rank", type=int)
    asked = parser.parse_args()
    main(asked.data_dir, asked.rank)
