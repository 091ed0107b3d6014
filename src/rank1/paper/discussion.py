"""The last remark of the paper's discussion: where Rank1Elim is worse than UCB1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rank1.paper import Options
from rank1.paper.artefact import Computing
from rank1.paper.claims import claim
from rank1.paper.curves import power_law
from rank1.paper.published import N
from rank1.plots import line_styles, new_figure, plain_axes
from rank1.policies import UCB1, UTS, Policy, Rank1Elim, Rank1ElimKL
from rank1.problems import spike
from rank1.simulation import Series
from rank1.statistics import mean_and_error, with_error
from rank1.tables import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["compute", "draw", "show"]

#: A spike of 0.5 over zeros: K = L, p = 0, Δ = 0.5; see REASON for n. Stages quadruple, so the
#: regret of elimination grows in jumps: many sizes smooth them out.
DENSE = (8, 12, 16, 24, 32, 48, 64, 96, 128)
CASES: tuple[tuple[Policy, int, tuple[int, ...]], ...] = (
    (Rank1Elim(), 10**12, DENSE),
    (Rank1ElimKL(), 10**12, DENSE),
    (UCB1(), 2 * 10**7, (8, 16, 32, 64)),
    (UTS(), 2 * 10**6, (8, 16, 32, 64)),
)
REASON = (
    "Each policy has an n far beyond what it needs, so its regret has almost stopped growing: the "
    "last column is the largest share of regret from the second half of the steps. "
    "A row seen over random columns has a gap of 1/(4K), which takes Rank1Elim about 64·K²·log n "
    "sweeps of 2K pulls to see: 7·10⁹ steps for K = 128 and n = 10¹². UCB1 pulls each of K² pairs "
    "about 32·log n times: 2·10⁶ steps for K = 64."
)
SHORT = (
    "A short run: all horizons are cut, and regret may still be growing. The last column is the "
    "largest share of regret from the second half of the steps."
)
SHOWN = (8, 16, 32, 64, 128)
#: The paper's exponent of K.
EXPECTED = {"rank1elim": 3, "ucb1": 2}
SAYS = {
    "rank1elim": "For p = 0 and Δ = 0.5, “the regret of Rank1Elim is O(K³ log n)”.",
    "ucb1": "There, the regret of “a naive solution by UCB1 […] would be O(K² log n)”.",
}


def compute(options: Options) -> Computing:
    """Regret over K for each policy, and the exponent of K with its standard error."""
    # A quick run shortens all horizons equally.
    share = min(1.0, options.n / N)
    horizons = [(policy, max(1000, int(n * share)), sizes) for policy, n, sizes in CASES]
    wanted = [
        (
            Series.of(policy, spike(K, K, 0.0, 0.0, 0.5, 0.5), n, 2, options.seed),
            _runs(policy, options),
        )
        for policy, n, sizes in horizons
        for K in sizes
    ]
    outcomes = yield wanted
    cells = []
    for (one, runs), outcome in zip(wanted, outcomes, strict=True):
        half, end = outcome.expected.mean(axis=0)
        cells.append(
            {
                "policy": one.policy.name,
                "K": one.problem.K,
                "n": one.n,
                "runs": runs,
                "regret": mean_and_error(outcome.expected[:, -1]),
                "late": float((end - half) / max(end, 1e-9)),
                "found": sum(map(one.problem.is_best, outcome.arms)) / runs,
            }
        )
    fits = {
        policy.name: fit([c for c in cells if c["policy"] == policy.name]) for policy, _, _ in CASES
    }
    return {
        "cells": cells,
        "fits": fits,
        "claims": [
            claim(
                SAYS[name],
                [abs(fits[name]["exponent"] - exponent) < 0.25],
                [fits[name]["exponent"]],
                f"fitted exponent, standard error {fits[name]['se']:.2g}; within 0.25 agrees",
            )
            for name, exponent in EXPECTED.items()
        ],
        "n": {policy.name: n for policy, n, _ in horizons},
    }


def _runs(policy: Policy, options: Options) -> int:
    """Elimination takes no time but is noisy; for the others it is the reverse."""
    return 5 * options.runs if policy.leaps else max(2, options.runs // 4)


def fit(cells: list[dict[str, Any]]) -> dict[str, float]:
    """Fit log regret to log K by least squares; the error is that of the residuals."""
    law = power_law([cell["K"] for cell in cells], [cell["regret"]["mean"] for cell in cells])
    return {"exponent": law.exponent, "se": law.se, "constant": law.constant}


def show(document: dict[str, Any]) -> list[Any]:
    """A table over K, and the exponents."""
    rows = []
    for name, fitted in document["fits"].items():
        cells = [cell for cell in document["cells"] if cell["policy"] == name]
        regret = {cell["K"]: cell["regret"]["mean"] for cell in cells}
        rows.append((
            name, f"{cells[0]['n']:.0e}",
            *(f"{regret[K]:,.0f}" if K in regret else "" for K in SHOWN),
            with_error(fitted["exponent"], fitted["se"], 2),
            f"{max(cell['late'] for cell in cells):.1%}",
        ))  # fmt: skip
    columns = "policy", "+n", *(f"+K = {K}" for K in SHOWN), "+exponent of K", "+last half"
    shown = table(*columns, title="Expected regret, p = 0, Δ = 0.5", rows=rows)
    return [shown, REASON if document["n"]["rank1elim"] == CASES[0][1] else SHORT]


def draw(document: dict[str, Any]) -> dict[str, Figure]:
    """Regret over K on logarithmic axes, with the fitted lines."""
    figure, ax = new_figure(6, 4.2)
    styles = line_styles(document["fits"])
    for name, fitted in document["fits"].items():
        cells = [cell for cell in document["cells"] if cell["policy"] == name]
        sizes = np.array([cell["K"] for cell in cells])
        means = [cell["regret"]["mean"] for cell in cells]
        label = f"{name}: K^{fitted['exponent']:.2f}"
        ax.plot(sizes, means, "o", color=styles[name]["color"])
        line = np.exp(fitted["constant"]) * sizes ** fitted["exponent"]
        ax.plot(sizes, line, label=label, **styles[name] | {"marker": ""})
    ax.set(xscale="log", yscale="log", xlabel="K = L", ylabel="Expected regret")
    plain_axes(ax)
    ax.set_xticks(SHOWN, [str(K) for K in SHOWN])
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=8)
    ax.set_title("A spike of 0.5 over zeros", loc="left", fontsize=10)
    return {"discussion": figure}
