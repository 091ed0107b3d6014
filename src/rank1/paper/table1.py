"""Table 1: how Rank1Elim's regret grows with the size, the means and the gaps."""

from __future__ import annotations

import math
from typing import Any

from rank1.paper import Options
from rank1.paper.artefact import Computing
from rank1.paper.claims import DOUBLES, NOT_QUADRATIC, claim, z_of
from rank1.paper.published import RUNS, TABLE_1, Cell, N
from rank1.policies import Rank1Elim
from rank1.problems import spike
from rank1.simulation import Outcome, Series
from rank1.statistics import mean_and_error, with_error
from rank1.tables import table

__all__ = ["compute", "show", "within"]

#: The settings that each sub-table varies, and its caption.
CAPTIONS = {
    1: (("K", "L"), "p_u = p_v = 0.7, Δ_u = Δ_v = 0.2"),
    2: (("p_u", "p_v"), "K = L = 8, Δ_u = Δ_v = 0.2"),
    3: (("delta_u", "delta_v"), "K = L = 8, p_u = p_v = 0.7"),
}

#: Larger |z| are marked.
FAR = 3


def compute(options: Options) -> Computing:
    """All 27 cells beside the paper's.

    z is the difference from the paper's figure in standard errors. Both are means of a skewed law,
    ours of `runs` runs and the paper's of 20; the standard deviation is ours for both, because an
    estimate from 20 runs of such a law says little.
    """
    series = [
        Series.of(Rank1Elim(), spike(*cell[1:7]), options.n, 1, options.seed) for cell in TABLE_1
    ]
    outcomes = yield [(one, options.runs) for one in series]
    cells = [_cell(cell, outcome, options) for cell, outcome in zip(TABLE_1, outcomes, strict=True)]
    return {"cells": cells, "claims": claims(cells)}


def _cell(cell: Cell, outcome: Outcome, options: Options) -> dict[str, Any]:
    facts = cell._asdict()
    paper = {"mean": facts.pop("regret"), "se": facts.pop("se")}
    regret = mean_and_error(outcome.realised[:, -1])
    z = z_of(regret, cell.regret, options.runs, RUNS) if options.n == N else None
    return facts | {"regret": regret, "paper": paper, "z": z}


def claims(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The paper's sentences on Table 1, each with the figures that test it."""
    sizes, means, gaps = (
        {
            (cell[first], cell[second]): cell["regret"]["mean"]
            for cell in cells
            if cell["table"] == table
        }
        for table, ((first, second), _) in CAPTIONS.items()
    )
    if min((*sizes.values(), *means.values(), *gaps.values())) <= 0:
        return []  # a few steps, decided by chance

    def least(regret: dict[Any, float], factor: float) -> float:
        """The smallest ratio from a cell to one whose first or second setting is multiplied."""
        return min(
            regret[other] / regret[a, b]
            for a, b in regret
            for other in ((a * factor, b), (a, b * factor))
            if other in regret
        )

    grows = [least(sizes, 2), least(gaps, 0.5)]
    doubled = [sizes[16, 16] / sizes[8, 8], sizes[32, 32] / sizes[16, 16]]
    doubled += [gaps[0.1, 0.1] / gaps[0.2, 0.2], gaps[0.05, 0.05] / gaps[0.1, 0.1]]
    power = math.log(means[0.175, 0.175] / means[0.7, 0.7]) / math.log(4)
    return [
        claim("“the regret increases as K and L increase, and Δᵁ and Δⱽ decrease”",
              [ratio > 1 for ratio in grows], grows,
              "the smallest ratio of two cells, one of which has K or L doubled, or a gap halved; "
              "above 1 counts"),
        claim(DOUBLES, [1.5 <= ratio <= 2.5 for ratio in doubled], doubled,
              "ratios from K = L = 8 to 16 and on to 32, then from Δ = 0.2 to 0.1 and on to 0.05; "
              "1.5 to 2.5 counts"),
        claim(NOT_QUADRATIC, [power < 1.5], [power],
              "power of 1/p with which it grows from p = 0.7 to 0.175, where 2 is quadratic; below "
              "1.5 counts"),
    ]  # fmt: skip


def within(document: dict[str, Any], limit: float) -> int:
    """The number of cells within `limit` standard errors of the paper's."""
    return sum(cell["z"] is not None and abs(cell["z"]) <= limit for cell in document["cells"])


def show(document: dict[str, Any]) -> list[Any]:
    """The three sub-tables as the paper lays them out, and a summary."""
    parts: list[Any] = []
    for number, (names, caption) in CAPTIONS.items():
        columns = [f"+{name}".replace("delta", "Δ") for name in (*names, "regret", "paper", "z")]
        rows = [
            (
                *(cell[name] for name in names),
                *(with_error(cell[k]["mean"], cell[k]["se"], 0) for k in ("regret", "paper")),
                _z(cell["z"]),
            )
            for cell in document["cells"]
            if cell["table"] == number
        ]
        parts.append(table(*columns, caption=caption, rows=rows))
    parts.append(_summary(document))
    return parts


def _z(z: float | None) -> Any:
    """z, with a mark if the two figures are far apart."""
    from rich.text import Text

    if z is None:
        return ""
    return Text(f"* {z:+.2f}", "bold red") if abs(z) > FAR else f"{z:+.2f}"


def _summary(document: dict[str, Any]) -> str:
    runs = f"{document['runs']} runs of {document['n']:,} steps, {document['seconds']:.1f} s"
    if not any(cell["z"] is not None for cell in document["cells"]):
        return f"{runs}. There is nothing to compare: that takes two runs or more, and n = {N:,}."
    total = len(document["cells"])
    marked = "" if within(document, FAR) == total else " (the others are marked *)"
    return (
        f"{runs}. {within(document, 2)} of {total} cells lie within 2 standard errors of the "
        f"paper's figure, {within(document, FAR)} within {FAR}{marked}. z is the difference over "
        f"our standard deviation times √(1/{document['runs']} + 1/{RUNS}): the ± that the paper "
        f"prints are from {RUNS} runs of a skewed law, and too noisy to divide by."
        + ("" if document["runs"] >= 100 else " (The law is skewed: --runs 400 gives a fairer z.)")
    )
