"""Regret of FactorTS and UTS on many kinds of grids, including its tails.

    python -m benchmarks.earn [RUNS]

Prints a line for each kind of grid. If a kind has several grids, their runs are pooled, after
dividing each by the mean regret of UTS on its grid.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

import rank1
from rank1 import datasets
from rank1.grids import TABLES, tables

POLICIES = ["factor_ts", "uts", "uts:first_round=false"]
N = 30_000

RANK_ONE = {
    "8×8 spike (.7/.5)": [[0.7] + [0.5] * 7] * 2,
    "16×16 spike (.75/.25)": [[0.75] + [0.25] * 15] * 2,
    "8×10 stairs (i/16, j/20)": [[i / 16 for i in range(1, 9)], [j / 20 for j in range(1, 11)]],
    "5×5×5 spike (.8/.6)": [[0.8] + [0.6] * 4] * 3,
    "4⁴ spike (.85/.65)": [[0.85] + [0.65] * 3] * 4,
    "12×8, lifts 20% (.24/.2, .3/.25)": [[0.24] + [0.2] * 11, [0.3] + [0.25] * 7],
    "5 sides of 2 (.9/.8)": [[0.9, 0.8]] * 5,
    "50 arms on one side (.6/.5)": [[0.6] + [0.5] * 49],
}
LATE: dict[str, dict[str, Any]] = {
    "8×8 spike, 1,000 steps late on average": {"delay": 1000},
    "8×8 spike, failures 2,000 late": {"delay": {"success": 0, "failure": 2000}},
    "8×8 spike, batches of 500": {"batch": 500},
    "8×8 spike, drifting to a tenth": {"drift": {"amplitude": 0.9, "period": 3000}},
}
TWO_PEAKS = [
    [[0.5, 0.1], [0.1, 0.52]],
    [[0.03, 0.015], [0.015, 0.033]],
    [[0.2, 0.15], [0.15, 0.21]],
    [[0.3, 0.1, 0.1], [0.1, 0.33, 0.1], [0.1, 0.1, 0.1]],
]
CROSSING = [
    [[0.5, 0.2], [0.45, 0.45]],
    [[0.13 if (row + column) % 3 == 0 else 0.1 for column in range(3)] for row in range(6)],
]


def cases() -> Iterable[tuple[str, list[rank1.Problem], dict[str, Any]]]:
    """Yield each kind of grid: its name, its problems, and how rewards arrive."""
    for name, factors in RANK_ONE.items():
        yield name, [rank1.Product(factors)], {}
    for name, how in LATE.items():
        yield name, [rank1.Product(RANK_ONE["8×8 spike (.7/.5)"])], how
    for name in TABLES:
        yield name, [datasets.grid_problem(table) for table in tables(name)], {}
    yield "two peaks, four grids", [rank1.Means(means) for means in TWO_PEAKS], {}
    yield "crossing, 2×2", [rank1.Means(CROSSING[0])], {}
    yield "crossing, 6×3", [rank1.Means(CROSSING[1])], {}


def main(runs: int = 60) -> None:
    head = [f"{policy} | 95% | largest" for policy in POLICIES]
    print(f"| {runs} runs, n = {N:,} | {' | '.join(head)} |")
    print("| --- |" + " --- | --- | --- |" * len(POLICIES))
    for name, problems, how in cases():
        fewer = runs if len(problems) < 10 else max(5, runs // 10)
        regrets = []
        for problem in problems:
            found = rank1.simulate(
                POLICIES, problem, N, fewer, seed=1, jobs=-1, checkpoints=1, shuffle=True, **how
            )
            each = np.array([outcome.expected[:, -1] for outcome in found.outcomes])
            unit = each[1].mean() if len(problems) > 1 else 1.0
            regrets.append(each / max(unit, 1e-9))
        cells = []
        digits = 2 if len(problems) > 1 else 0
        for each in np.concatenate(regrets, axis=1):
            error = each.std(ddof=1) / np.sqrt(len(each))
            high, most = np.quantile(each, 0.95), each.max()
            cells.append(
                f"{each.mean():,.{digits}f} ± {error:,.{digits}f} | {high:,.{digits}f} | "
                f"{most:,.{digits}f}"
            )
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
