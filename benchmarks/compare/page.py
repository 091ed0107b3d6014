"""Make the tables of docs/compare.md from the output of the packages' runs."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.compare.game import CHECKPOINT
from benchmarks.compare.run import GRIDS

__all__ = ["Outcome", "mean_and_error", "read", "reason", "tables", "with_tables"]

BEGIN, END = "<!-- make compare: begin -->", "<!-- make compare: end -->"


@dataclass
class Outcome:
    """The result of one package."""

    title: str
    version: str = ""
    #: Why the package, or its newest version, is missing.
    error: str = ""
    cells: list[dict[str, Any]] = field(default_factory=list)


def read(title: str, printed: str, error: str = "") -> Outcome:
    """Read the lines of JSON that a run printed, and ignore what the package itself printed."""
    outcome = Outcome(title, error=error)
    for line in printed.splitlines():
        if line.startswith("{"):
            found = json.loads(line)
            if "version" in found:
                outcome.version = found["version"]
            else:
                outcome.cells.append(found)
    return outcome


def reason(stderr: str) -> str:
    """Return the most informative line: the last one with an error's name, without paths."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"(ERROR|\w*Error|\w*Exception):", line)]
    text = (named or lines or ["no message"])[-1]
    return re.sub(r"(\w+://|/)\S*/\S*", "…", text)[:200]


def mean_and_error(values: Sequence[float]) -> str:
    """Format the mean and its standard error, as in "1,234 ± 5".

    >>> mean_and_error([1000, 1010, 990, 1000])
    '1,000 ± 4'
    """
    mean = statistics.fmean(values)
    if math.isnan(mean):
        return "–"
    if len(values) == 1:
        return f"{mean:,.0f}"
    return f"{mean:,.0f} ± {statistics.stdev(values) / math.sqrt(len(values)):,.0f}"


def _row(cells: Iterable[Any]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _players(outcomes: Iterable[Outcome], kind: str) -> list[list[Any]]:
    """Return the title, the player and the cells of its grids."""
    found: dict[tuple[str, str], list[Any]] = {}
    for outcome in outcomes:
        for cell in outcome.cells:
            if cell["kind"] == kind:
                key = f"{outcome.title} {outcome.version}", cell["player"]
                found.setdefault(key, [*key, {}])[2][cell["grid"]] = cell
    return list(found.values())


def tables(outcomes: Sequence[Outcome], n: int, machine: str, command: str) -> str:
    """Return the generated part of the page."""
    steady = [grid for grid, (_, drift) in GRIDS.items() if not drift]
    earn = [
        [
            title,
            player,
            *(mean_and_error(cells[grid]["early"]) for grid in steady),
            *(_late(cells[grid], n) for grid in GRIDS),
            *(sum(cells[grid]["leads"]) for grid in GRIDS),
            len(cells[steady[0]]["regret"]),
            *(f"{cells[grid]['microseconds']:,.0f}" for grid in steady),
            cells[steady[0]]["lines"],
        ]
        for title, player, cells in _players(outcomes, "earn")
    ]
    find = [
        [
            title,
            player,
            *(mean_and_error(cells[grid]["steps"]) for grid in GRIDS),
            *("{} and {}".format(*_failures(cells[grid])) for grid in GRIDS),
            len(cells[steady[0]]["steps"]),
            cells[steady[0]]["lines"],
        ]
        for title, player, cells in _players(outcomes, "find")
    ]
    head = ["package", "policy"]
    lines = [
        f"Made by `{command}` on {machine}.",
        "",
        "## Pulls until the best pair is known at 95%",
        "",
        *_table(
            [
                *head,
                *(f"pulls, {grid}" for grid in GRIDS),
                *(f"wrong and undecided, {grid}" for grid in GRIDS),
                "runs",
                "lines",
            ],
            find,
        ),
        "",
        "## Regret, and the pair played most",
        "",
        *_table(
            [
                *head,
                *(f"regret after {CHECKPOINT:,} steps, {grid}" for grid in steady),
                *(f"after {n:,} steps, {grid}" for grid in GRIDS),
                *(f"right at the end, {grid}" for grid in GRIDS),
                "runs",
                *(f"µs a step, {grid}" for grid in steady),
                "lines",
            ],
            earn,
        ),
        "",
        "## What could not be installed or run",
        "",
    ]
    missing = [f"- {it.title}{_instead(it)}: `{it.error}`" for it in outcomes if it.error]
    return "\n".join(lines + (missing or ["Nothing."]))


def _instead(outcome: Outcome) -> str:
    return f", first attempt; the tables have {outcome.version}" if outcome.cells else ""


def _late(cell: dict[str, Any], n: int) -> str:
    return mean_and_error(cell["regret"]) if cell["steps"][0] == n else "–"


def _failures(cell: dict[str, Any]) -> tuple[int, int]:
    undecided = sum(cell["none"])
    return len(cell["right"]) - sum(cell["right"]) - undecided, undecided


def with_tables(page: str, part: str) -> str:
    """Replace the generated part of the page."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{part}\n\n{END}{after}"
