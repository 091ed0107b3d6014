"""Theorems 1 to 3: the upper bound, two lower bounds, and how close they are to each other.

The horizon is a setting of Rank1Elim, so its regret as a function of n takes one run for each n.
Stages are drawn at once, so horizons up to 10¹² take no time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rank1 import theory
from rank1.paper import Options
from rank1.paper.artefact import Computing
from rank1.paper.claims import claim
from rank1.paper.curves import power_law
from rank1.policies import Rank1Elim
from rank1.problems import Gaussian, Problem, spike
from rank1.simulation import Series
from rank1.statistics import mean_and_error, with_error
from rank1.tables import table

__all__ = ["compute", "show"]

#: From the first horizon on, elimination ends well before the run does.
HORIZONS = tuple(10**k for k in range(6, 13))
BERNOULLI = spike(8, 8, 0.7, 0.7, 0.2, 0.2)
#: The same means under Theorem 3's noise.
GAUSSIAN = Gaussian(BERNOULLI.u, BERNOULLI.v, sigma=0.5)
#: The paper's argument that its bounds match: p = 0.5 − Δ, so the best pair has a mean of 0.25.
SIZES, GAPS = (4, 16, 64, 256), (0.25, 0.1, 0.05, 0.02, 0.01)

UPPER = "Theorem 1: “R(n) ≤ (1/μ²)·(Σᵢ 384/Δ̄ᵁᵢ + Σⱼ 384/Δ̄ⱽⱼ)·log n + 3·(K + L)”"
LOG_N = "Its “regret is linear in K + L, 1/Δ, and log n”: log n"
LOWER = (
    "Theorem 2: “lim inf R(n)/log n ≥ Σᵢ (u(i*)v(j*) − u(i)v(j*))/d(u(i)v(j*), u(i*)v(j*)) + "
    "Σⱼ (u(i*)v(j*) − u(i*)v(j))/d(u(i*)v(j), u(i*)v(j*))”"
)
GAUSSIAN_LOWER = "Theorem 3: “lim inf R(n)/log n ≥ (2σ²/v(j*))·Σᵢ 1/Δᵁᵢ + (2σ²/u(i*))·Σⱼ 1/Δⱽⱼ”"
NEARLY = "“We also derive a nearly matching lower bound.”"
MATCH = "For p = 0.5 − Δ, “the bounds match in K, L, the gaps, and log n”"
DIVERGENCE = "“d(p, q) ≤ [q(1 − q)]⁻¹(p − q)² and q = 1 − q = 0.5”, for p = 0.5 − Δ"


def compute(options: Options) -> Computing:
    """Regret over the horizon beside the bounds, and the bounds beside each other."""
    kinds: dict[str, Problem] = {"Bernoulli": BERNOULLI, "Gaussian": GAUSSIAN}
    wanted = [(name, problem, n) for name, problem in kinds.items() for n in HORIZONS]
    series = [
        Series.of(Rank1Elim(), problem, n, [(n + 1) // 2], options.seed) for _, problem, n in wanted
    ]
    outcomes = yield [(one, options.runs) for one in series]
    cells = [
        {
            "rewards": name,
            "n": n,
            "regret": mean_and_error(outcome.expected[:, -1]),
            "theorem1": theory.upper_bound(problem, n) if name == "Bernoulli" else None,
            "lower_slope": theory.lower_bound(problem),
        }
        for (name, problem, n), outcome in zip(wanted, outcomes, strict=True)
    ]
    matches = [_match(K, gap) for K in SIZES for gap in GAPS]
    return {"cells": cells, "matches": matches, "claims": claims(cells, matches)}


def _match(K: int, gap: float) -> dict[str, Any]:
    """Both bounds' factors of log n in the case where the paper says that they match."""
    problem, q = spike(K, K, 0.5 - gap, 0.5 - gap, gap, gap), 0.25
    above = theory.upper_bound(problem, 10**6) - 3 * 2 * K
    p = 0.5 * (0.5 - gap)
    return {
        "K": K,
        "gap": gap,
        "theorem1": above / math.log(10**6),
        "theorem2": theory.lower_bound(problem),
        "divergence": float(theory.kl_bernoulli(p, q)) / (p - q) ** 2,
    }


def claims(cells: list[dict[str, Any]], matches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The theorems, and what the paper says about them."""
    of = {
        name: [cell for cell in cells if cell["rewards"] == name]
        for name in ("Bernoulli", "Gaussian")
    }
    part = [cell["regret"]["mean"] / cell["theorem1"] for cell in of["Bernoulli"]]
    powers = [
        power_law(np.log([it["n"] for it in own]), [it["regret"]["mean"] for it in own]).exponent
        for own in of.values()
    ]
    above = {name: _growth(own) / own[0]["lower_slope"] for name, own in of.items()}
    ratio = {(each["K"], each["gap"]): each["theorem1"] / each["theorem2"] for each in matches}
    in_K = math.log(ratio[256, 0.01] / ratio[64, 0.01]) / math.log(4)
    in_gap = math.log(ratio[256, 0.01] / ratio[256, 0.02]) / math.log(2)
    largest = max(each["divergence"] for each in matches)
    spread = f"{HORIZONS[0]:.0e} to {HORIZONS[-1]:.0e}".replace("+", "")
    lower = (
        f"growth of Rank1Elim's regret per unit of log n from n = {spread}, over the bound; 1 or "
        "more agrees. Playing can't prove a bound for n → ∞, only contradict it"
    )
    return [
        claim(UPPER, [max(part) <= 1], [max(part)],
              f"the largest share of the bound that the regret reaches, n = {spread}", any_n=True),
        claim(LOG_N, [abs(each - 1) < 0.25 for each in powers], powers,
              f"power of log n with which it grows, n = {spread}, Bernoulli and Gaussian; within "
              "0.25 of 1 agrees. K + L and 1/Δ: see Scaling", any_n=True),
        claim(LOWER, [above["Bernoulli"] >= 1], [above["Bernoulli"]], lower, any_n=True),
        claim(GAUSSIAN_LOWER, [above["Gaussian"] >= 1], [above["Gaussian"]], lower, any_n=True),
        claim(NEARLY, [max(ratio.values()) < 10], [min(ratio.values()), max(ratio.values())],
              f"Theorem 1's factor of log n over Theorem 2's, smallest and largest of {len(ratio)} "
              "grids with p = 0.5 − Δ; below 10 agrees. Read as a statement on orders: see the "
              "next claim", reading=max(abs(in_K), abs(in_gap)) < 0.1, any_n=True),
        claim(MATCH, [abs(in_K) < 0.1, abs(in_gap) < 0.1], [in_K, in_gap],
              "power of K, from 64 to 256, and of 1/Δ, from 50 to 100, with which the ratio of "
              "the bounds grows; within 0.1 of 0 agrees", any_n=True),
        claim(DIVERGENCE, [largest <= 4], [largest],
              "the largest d(p, q)/(p − q)² in Theorem 2 for these grids; at most 4 = 1/(0.5·0.5) "
              "agrees. The means in it are those of pairs: q is 0.25, not 0.5, and the inequality "
              "holds with either", any_n=True),
    ]  # fmt: skip


def _growth(cells: list[dict[str, Any]]) -> float:
    """The growth of the regret per unit of log n."""
    first, last = cells[0], cells[-1]
    return (last["regret"]["mean"] - first["regret"]["mean"]) / math.log(last["n"] / first["n"])


def show(document: dict[str, Any]) -> list[Any]:
    """Regret over the horizon, and the bounds."""
    title = "Rank1Elim on the 8×8 spike of 0.7 and 0.2, and the bounds"
    columns = "+n", "+regret", "+regret/log n", "+Theorem 1", "+lower bound · log n"
    rows = []
    for cell in document["cells"]:
        regret, log_n, above = cell["regret"], math.log(cell["n"]), cell["theorem1"]
        rows.append((
            cell["rewards"], f"{cell['n']:.0e}".replace("+", ""),
            with_error(regret["mean"], regret["se"], 0), f"{regret['mean'] / log_n:,.0f}",
            "–" if above is None else f"{above:,.0f}", f"{cell['lower_slope'] * log_n:,.0f}",
        ))  # fmt: skip
    matches = [
        (
            each["K"], f"{each['gap']:g}", f"{each['theorem1']:,.0f}",
            f"{each['theorem2']:,.1f}", f"{each['theorem1'] / each['theorem2']:,.0f}",
        )
        for each in document["matches"]
    ]  # fmt: skip
    factors = "+K = L", "+Δ", "+Theorem 1", "+Theorem 2", "+ratio"
    return [
        table("rewards", *columns, title=title, rows=rows),
        table(*factors, title="Factors of log n where p = 0.5 − Δ", rows=matches),
    ]
