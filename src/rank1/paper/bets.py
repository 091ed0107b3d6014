"""Bets: Rank1Elim's idea, a random partner for every line, with evidence that needs no horizon."""

from __future__ import annotations

import time
from typing import Any

from rank1.paper import Options
from rank1.paper.played import played
from rank1.policies import BetElim, Rank1Elim
from rank1.problems import spike
from rank1.simulation import Series, identify
from rank1.statistics import mean_and_error

__all__ = ["compute", "draw", "show"]

#: K = L of Table 1's spikes, 0.7 with gaps of 0.2.
SIZES = (8, 16, 32)
CONFIDENCE = 0.95


def compute(options: Options) -> dict[str, Any]:
    """Pulls and regret until the bets stop, beside Rank1Elim's regret in n steps."""
    begin = time.perf_counter()
    problems = [spike(K, K, 0.7, 0.7, 0.2, 0.2) for K in SIZES]
    series = [Series.of(Rank1Elim(), each, options.n, 1, options.seed) for each in problems]
    outcomes = played(options, "Bets", [(one, options.runs) for one in series])
    cells = []
    for K, problem, outcome in zip(SIZES, problems, outcomes, strict=True):
        found = identify(
            BetElim(confidence=CONFIDENCE), problem, CONFIDENCE, n=options.n, runs=options.runs,
            seed=options.seed, jobs=options.jobs, store=options.store,
            backend=options.backend, address=options.address,
        ).document()["policies"][0]  # fmt: skip
        cells.append(
            {
                "K": K,
                "bets": {
                    name: found[name] for name in ("stopped", "wrong", "pulls", "expected_regret")
                },
                "rank1elim": mean_and_error(outcome.expected[:, -1]),
            }
        )
    return {
        "cells": cells,
        "confidence": CONFIDENCE,
        "n": options.n,
        "runs": options.runs,
        "seed": options.seed,
        "seconds": time.perf_counter() - begin,
    }


def show(document: dict[str, Any]) -> list[Any]:
    """Pulls until the bets stop, and their regret."""
    from rich import box
    from rich.table import Table

    title = f"BetElim at confidence {document['confidence']:.0%}, beside Rank1Elim"
    table = Table(box=box.SIMPLE, title=title, title_justify="left")
    columns = ("K = L", "pulls until it stops", "regret until then", "wrong", "Rank1Elim's regret")
    for name in columns:
        table.add_column(name, justify="right")
    for cell in document["cells"]:
        bets = cell["bets"]
        table.add_row(
            str(cell["K"]), _figures(bets["pulls"]), _figures(bets["expected_regret"]),
            f"{bets['wrong']} of {bets['stopped']}", _figures(cell["rank1elim"]),
        )  # fmt: skip
    return [
        table,
        f"{document['runs']} runs; Rank1Elim's regret is over {document['n']:,} steps, most of it "
        "before it has found the best pair. After the bets have stopped, the best pair is played: "
        f"they are wrong with probability at most {1 - document['confidence']:.0%}, and the table "
        "doesn't include what a wrong pair would cost afterwards.",
    ]


def _figures(each: dict[str, Any]) -> str:
    error = "" if each["se"] is None else f" ± {each['se']:,.0f}"
    return f"{each['mean']:,.0f}{error}"


def draw(document: dict[str, Any]) -> dict[str, Any]:
    """No figures: the table is enough."""
    return {}
