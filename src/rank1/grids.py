"""Whether real grids have rank one, and how policies do on them; what `rank1 grids` prints."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rank1 import checks, datasets, fit
from rank1.datasets import Table
from rank1.documents import to_document
from rank1.errors import FileError, InputError, reason
from rank1.policies.base import Policy
from rank1.problems import Problem
from rank1.progress import Progress
from rank1.simulation import identify, simulate
from rank1.statistics import mean_and_error

__all__ = ["TABLES", "about_fit", "about_play", "local_maxima", "read_table", "tables"]

#: Grids by their names on the command line; `upworthy` is 46 of them.
TABLES: dict[str, Callable[[], list[Table]]] = {
    "hillstrom_history": lambda: [datasets.hillstrom("history")],
    "hillstrom_recency": lambda: [datasets.hillstrom("recency")],
    "facebook_ads": lambda: [datasets.facebook_ads()],
    "upworthy": datasets.upworthy,
}


def tables(name: str) -> list[Table]:
    """The grids with this name, or the grid in a CSV file; see `read_table`."""
    if name.lower().endswith(".csv"):
        return [read_table(name)]
    return TABLES[checks.one_of("grid", name, list(TABLES))]()


def read_table(path: str) -> Table:
    """Read a grid from a CSV file with the columns row, column, trials and successes."""
    needed = ("row", "column", "trials", "successes")
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error) as error:
        raise FileError(f"{path!r} can't be read: {reason(error)}", where=path) from None
    missing = [name for name in needed if not lines or name not in lines[0]]
    if missing:
        found = f"got {', '.join(lines[0])}" if lines else "got no lines"
        problem = f"{path!r} must have lines with the columns {', '.join(needed)}, {found}"
        raise FileError(f"{problem}; missing: {', '.join(missing)}", where=path)
    rows, columns = (tuple(dict.fromkeys(line[name] for line in lines)) for name in needed[:2])
    cells = np.full((2, len(rows), len(columns)), -1)
    for number, line in enumerate(lines, 1):
        at = rows.index(line["row"]), columns.index(line["column"])
        try:
            trials, successes = (int(line[name]) for name in needed[2:])
            valid = 0 <= successes <= trials > 0 and cells[0][at] < 0
        except (TypeError, ValueError):
            valid = False
        if not valid:
            expected = "a new pair, with at least 1 trial and 0 to that number of successes"
            raise InputError(f"row {number} of {path}", list(line.values()), expected)
        cells[:, *at] = trials, successes
    if cells.min() < 0:
        row, column = np.argwhere(cells[0] < 0)[0]
        pair = f"{rows[row]} × {columns[column]}"
        raise InputError(path, pair, "a file with a line for every pair", got=f"none for {pair}")
    if min(cells.shape[1:]) < 2:
        raise InputError(path, cells.shape[1:], "a grid of at least 2×2")
    return Table(Path(path).stem, rows, columns, cells[0], cells[1], path, "yours")


def local_maxima(problem: Problem) -> list[tuple[int, ...]]:
    """The levels of all arms that no neighbour beats, including the best arm.

    On a grid of rank one there is only one, except for ties and means of 0.

    >>> from rank1 import datasets
    >>> local_maxima(datasets.grid_problem(datasets.hillstrom()))
    [(6, 0)]
    """
    means = problem.means
    lines = (means >= means.max(axis=side, keepdims=True) for side in range(means.ndim))
    top = np.logical_and.reduce(list(lines))
    return [tuple(map(int, levels)) for levels in np.argwhere(top)]


def about_fit(table: Table, replays: int = 199, seed: int = 1) -> dict[str, Any]:
    """The rank-one fit of a grid as plain values: deviance, p-values, effects, deviating pairs.

    Parameters
    ----------
    table
        A grid of counts.
    replays
        The number of simulated fits for the bootstrap p-value; 0: no p-value.
    seed
        The seed of the simulated counts.

    Examples
    --------
    >>> from rank1 import datasets
    >>> told = about_fit(datasets.hillstrom(), replays=0)
    >>> round(told["deviance"], 1), told["degrees_of_freedom"], told["best_pair"]
    (16.5, 12, ['$1,000 +', 'Mens E-Mail'])
    """
    found = fit.fit(table.successes, table.failures)
    problem = datasets.grid_problem(table)
    observed = np.unravel_index(int(table.rates.argmax()), table.rates.shape)
    fitted = np.unravel_index(int(found.means.argmax()), found.means.shape)
    p = fit.p_value(found, fit.fixed_design(table.trials), replays, seed) if replays else None
    return {
        "grid": table.name,
        "K": problem.K,
        "L": problem.L,
        "trials": int(table.trials.sum()),
        "successes": int(table.successes.sum()),
        "source": table.source,
        "licence": table.licence,
        "note": table.note,
        "deviance": found.deviance,
        "degrees_of_freedom": found.degrees_of_freedom,
        "chi2_p": found.chi2_p,
        "bootstrap_p": p,
        "explained": found.explained,
        "best_pair": _names(table, observed),
        "best_pair_of_fit": _names(table, fitted),
        "local_maxima": [_names(table, levels) for levels in local_maxima(problem)],
        "row_effects": _effects(table.rows, found.row_effects),
        "column_effects": _effects(table.columns, found.column_effects),
        "deviating": [
            {"pair": _names(table, each.levels), "rate": each.rate, "fitted": each.fitted}
            | {"residual": each.residual}
            for each in found.deviating(3)
        ],
    }


def about_play(
    problem: Problem,
    earn: Sequence[Policy],
    find: Sequence[Policy],
    n: int = 100_000,
    pulls: int = 1_000_000,
    runs: int = 20,
    seed: int = 1,
    jobs: int = 1,
    progress: bool | Progress = False,
) -> dict[str, Any]:
    """Regret of policies on a problem, and how many pulls they need until they may stop.

    Parameters
    ----------
    problem
        The problem to play.
    earn
        Policies whose regret after n steps is reported, with how many runs end at a best arm.
    find
        Policies that are played until the rule stops: once with the rule that assumes rank one, and
        once with the rule that doesn't.
    n
        Steps for regret.
    pulls
        The number of pulls after which a run ends without a stop.
    runs, seed, jobs, progress
        As for `simulate`.
    """
    result = simulate(list(earn), problem, n, runs, seed, jobs, 1, shuffle=True, progress=progress)
    regret = [
        {
            "policy": outcome.label,
            "expected_regret": mean_and_error(outcome.expected[:, -1]),
            "found": sum(map(problem.is_best, outcome.arms)),
        }
        for outcome in result.outcomes
    ]
    stopping = []
    for rank_one in (True, False):
        searched = identify(
            list(find), problem, 0.95, 0.0, pulls, runs, seed, jobs,
            rank_one=rank_one, shuffle=True, progress=progress,
        )  # fmt: skip
        for each in searched.searches:
            entry = {"policy": each.label, "rank_one": rank_one, **each.entry()}
            for name in ("best_arm", "best_pair", "settings", "seconds"):
                entry.pop(name, None)
            stopping.append(entry)
    return {"n": n, "runs": runs, "seed": seed, "regret": regret, "stopping": stopping}


def _names(table: Table, pair: Sequence[Any]) -> list[str]:
    return [table.rows[int(pair[0])], table.columns[int(pair[1])]]


def _effects(names: Sequence[str], effects: Any) -> list[dict[str, Any]]:
    """Factors relative to the best line; an unknown error is null."""
    return [
        {"name": name, "factor": float(factor), "log_se": to_document(float(se))}
        for name, (factor, se) in zip(names, effects, strict=True)
    ]
