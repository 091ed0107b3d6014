"""Bets: Rank1Elim's idea, a random partner for every line, with evidence that needs no horizon."""

from __future__ import annotations

from typing import Any

from rank1.paper import Options
from rank1.paper.artefact import Computing
from rank1.policies import BetElim, Rank1Elim
from rank1.problems import spike
from rank1.simulation import Series, identify
from rank1.simulation.stop import OwnRule
from rank1.statistics import mean_and_error, with_error
from rank1.tables import table

__all__ = ["compute", "show"]

#: K = L of Table 1's spikes, 0.7 with gaps of 0.2.
SIZES = (8, 16, 32)
CONFIDENCE = 0.95
BETS = BetElim(confidence=CONFIDENCE)


def compute(options: Options) -> Computing:
    """Pulls and regret until the bets stop, beside Rank1Elim's regret in n steps."""
    problems = [spike(K, K, 0.7, 0.7, 0.2, 0.2) for K in SIZES]
    series = [Series.of(Rank1Elim(), each, options.n, 1, options.seed) for each in problems]
    # `identify` finds the bets in the store: they are played with all other series.
    bets = [Series.of(BETS, each, options.n, 1, options.seed, stop=OwnRule()) for each in problems]
    outcomes = yield [(one, options.runs) for one in (*bets, *series)]
    cells = []
    for K, problem, outcome in zip(SIZES, problems, outcomes[len(bets) :], strict=True):
        found = identify(
            BETS, problem, CONFIDENCE, n=options.n, runs=options.runs,
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
    return {"cells": cells, "confidence": CONFIDENCE}


def show(document: dict[str, Any]) -> list[Any]:
    """Pulls until the bets stop, and their regret."""
    title = f"BetElim at confidence {document['confidence']:.0%}, beside Rank1Elim"
    columns = "pulls until it stops", "regret until then", "wrong", "Rank1Elim's regret"
    rows = []
    for cell in document["cells"]:
        bets = cell["bets"]
        pulls, regret, other = (
            with_error(each["mean"], each["se"], 0)
            for each in (bets["pulls"], bets["expected_regret"], cell["rank1elim"])
        )
        rows.append((cell["K"], pulls, regret, f"{bets['wrong']} of {bets['stopped']}", other))
    return [
        table("+K = L", *(f"+{name}" for name in columns), title=title, rows=rows),
        f"{document['runs']} runs; Rank1Elim's regret is over {document['n']:,} steps, most of it "
        "before it has found the best pair. After the bets have stopped, the best pair is played: "
        f"they are wrong with probability at most {1 - document['confidence']:.0%}, and the table "
        "doesn't include what a wrong pair would cost afterwards.",
    ]
