"""Table 1: how Rank1Elim's regret grows with the size, the means and the gaps."""

from __future__ import annotations

import math
import time
from typing import Any

from rank1.paper import Options
from rank1.paper.published import RUNS, TABLE_1, Cell, N
from rank1.policies import Rank1Elim
from rank1.problems import spike
from rank1.progress import Progress
from rank1.simulation import mean_and_error, simulate

__all__ = ["compute", "draw", "show", "within"]

#: What each sub-table varies, and what it says underneath.
CAPTIONS = {
    1: (("K", "L"), "p_u = p_v = 0.7, Δ_u = Δ_v = 0.2"),
    2: (("p_u", "p_v"), "K = L = 8, Δ_u = Δ_v = 0.2"),
    3: (("delta_u", "delta_v"), "K = L = 8, p_u = p_v = 0.7"),
}


def compute(options: Options) -> dict[str, Any]:
    """All 27 cells beside the paper's.

    z is the difference to the paper's figure in its standard errors. Both are means of a skewed
    law, ours of `runs` runs and the paper's of 20; the standard deviation is ours for both,
    because one that is estimated from 20 runs of such a law says little.
    """
    begin = time.perf_counter()
    cells = []
    with Progress(options.progress, "cells", len(TABLE_1)) as bar:
        for cell in TABLE_1:
            cells.append(_cell(cell, options))
            bar.advance(1, f"Table 1, K={cell.K}, L={cell.L}")
    document: dict[str, Any] = {"cells": cells, "seconds": time.perf_counter() - begin}
    return document | {"n": options.n, "runs": options.runs, "seed": options.seed}


def _cell(cell: Cell, options: Options) -> dict[str, Any]:
    runs, n = options.runs, options.n
    settings = cell._asdict()
    table, paper = settings.pop("table"), settings.pop("regret")
    paper_se = settings.pop("se")
    jobs = options.jobs if runs >= 100 else 1  # else a cell takes less time than a thread's start
    problem = spike(**settings)
    result = simulate(Rank1Elim(), problem, n, runs, options.seed, jobs, checkpoints=1)
    regret = mean_and_error(result.outcomes[0].realised[:, -1])
    z = None
    if regret["std"] and regret["mean"] and n == N:
        z = (regret["mean"] - paper) / (regret["std"] * math.sqrt(1 / runs + 1 / RUNS))
    return {
        "table": table,
        **settings,
        "regret": regret,
        "paper": {"mean": paper, "se": paper_se},
        "z": z,
    }


def within(document: dict[str, Any], limit: float) -> int:
    """How many cells lie within so many standard errors of the paper's."""
    return sum(cell["z"] is not None and abs(cell["z"]) <= limit for cell in document["cells"])


def show(document: dict[str, Any]) -> list[Any]:
    """The three sub-tables as the paper lays them out, and one line that sums them up."""
    from rich import box
    from rich.table import Table

    parts: list[Any] = []
    for number, (names, caption) in CAPTIONS.items():
        table = Table(box=box.SIMPLE, caption=caption, caption_justify="left")
        for name in (*names, "regret", "paper", "z"):
            table.add_column(name.replace("delta", "Δ"), justify="right")
        for cell in document["cells"]:
            if cell["table"] == number:
                table.add_row(
                    *(str(cell[name]) for name in names),
                    _figures(cell["regret"]),
                    _figures(cell["paper"]),
                    "" if cell["z"] is None else f"{cell['z']:+.2f}",
                )
        parts.append(table)
    parts.append(_summary(document))
    return parts


def _figures(regret: dict[str, Any]) -> str:
    error = "" if regret["se"] is None else f" ± {regret['se']:,.0f}"
    return f"{regret['mean']:,.0f}{error}"


def _summary(document: dict[str, Any]) -> str:
    runs = f"{document['runs']} runs of {document['n']:,} steps, {document['seconds']:.1f} s"
    if not any(cell["z"] is not None for cell in document["cells"]):
        return f"{runs}. The paper has n = {N:,}, so there is nothing to compare."
    total = len(document["cells"])
    return (
        f"{runs}. {within(document, 2)} of {total} cells lie within 2 standard errors of the "
        f"paper's figure, {within(document, 3)} within 3."
        + ("" if document["runs"] >= 100 else " (The law is skewed: --runs 400 gives a fairer z.)")
    )


def draw(document: dict[str, Any]) -> dict[str, Any]:
    """A table needs no figure."""
    return {}
