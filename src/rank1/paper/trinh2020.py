"""Trinh et al. 2020: UTS against OSUB, KL-UCB and Rank1ElimKL, and its lower bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rank1 import theory
from rank1.paper import Options, published
from rank1.paper.artefact import Computing
from rank1.paper.claims import claim, z_of
from rank1.plots import draw_curve, line_styles, new_figure, plain_axes
from rank1.policies import IMEDUB, KLUCB, OSUB, UTS, Policy, Rank1ElimKL
from rank1.problems import Bernoulli, spike
from rank1.simulation import Series
from rank1.statistics import with_error
from rank1.tables import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["compute", "draw", "drawn_slope", "show"]

#: Rank1ElimKL as printed, and the variant closest to the published curves.
PRINTED, NEAREST = Rank1ElimKL(), Rank1ElimKL(level="time")
#: The settings of another program with this name.
PROGRAM = Rank1ElimKL(level="scaled", shrink=1.5)
#: Published after the paper, and drawn beside the others.
AFTER = IMEDUB()
#: The published values are read off curves on paper, with about this accuracy.
READING = 0.1
MARKS = 60


class Part(NamedTuple):
    """Grids of one kind, the policies to play on them, and what the paper shows."""

    name: str
    title: str
    best: float  # the factor of the best line
    other: float  # that of all other lines
    n: int
    runs: int
    policies: tuple[Policy, ...]
    shown: Mapping[Any, Mapping[str, float]]


def _renamed(ends: dict[str, float], **nearest: Policy) -> dict[str, float]:
    """The paper's values, each under the label of the settings closest to it."""
    return {nearest[name].label if name in nearest else name: end for name, end in ends.items()}


_SIZES = published.TRINH_N, published.TRINH_RUNS
_APPENDIX = published.TRINH_APPENDIX_N, published.TRINH_APPENDIX_RUNS
PARTS = (
    Part("sizes", "Figures 2 to 4, u = v = (.75, .25, …)", 0.75, 0.25, *_SIZES,
         (UTS(), OSUB(), KLUCB(), PRINTED, PROGRAM, AFTER), published.TRINH_SIZES),
    Part("gammas", "UTS over γ, K = L = 4", 0.75, 0.25, *_SIZES,
         tuple(UTS(gamma=gamma) for gamma in published.TRINH_GAMMAS),
         {4: {UTS(gamma=gamma).label: end for gamma, end in published.TRINH_GAMMAS.items()}}),
    Part("large", "Appendix, large grids, u = v = (.75, .25, …)", 0.75, 0.25, *_APPENDIX,
         (UTS(), KLUCB(), PRINTED, NEAREST, PROGRAM),
         {K: _renamed(ends, rank1elim_kl=NEAREST) for K, ends in published.TRINH_LARGE.items()}),
    Part("close", "Appendix, small gaps, u = v = (.55, .5, …)", 0.55, 0.5, *_APPENDIX,
         (UTS(), OSUB(), OSUB(c=0)),
         {K: _renamed(ends, osub=OSUB(c=0)) for K, ends in published.TRINH_CLOSE.items()}),
)  # fmt: skip


def drawn_slope(problem: Bernoulli) -> float:
    """The factor of log T drawn in the paper: from the lines' own parameters, not products.

    >>> round(drawn_slope(spike(4, 4, 0.25, 0.25, 0.5, 0.5)), 2)
    5.46
    """
    total = 0.0
    for factors in (problem.u, problem.v):
        others = np.delete(factors, factors.argmax())
        total += float(
            ((factors.max() - others) / theory.kl_bernoulli(others, factors.max())).sum()
        )
    return total


def compute(options: Options) -> Computing:
    """Regret curves of all parts, beside what the paper shows, and the paper's claims."""
    wanted = [
        (part, K, _series(part, policy, K, options), _runs(part, policy, K, options))
        for part in PARTS
        for K in part.shown
        for policy in part.policies
    ]
    outcomes = yield [(one, runs) for *_, one, runs in wanted]
    problems: dict[str, list[dict[str, Any]]] = {part.name: [] for part in PARTS}
    for (part, K, one, runs), outcome in zip(wanted, outcomes, strict=True):
        entry = outcome.entry(one.checkpoints) | {"label": one.policy.label, "runs": runs}
        shown = part.shown[K].get(one.policy.label)
        z = None
        if shown is not None and one.n == part.n:
            z = z_of(entry["expected_regret"], shown, runs, part.runs)
        entry |= {"paper": shown, "z": z}
        of_part = problems[part.name]
        if not of_part or of_part[-1]["K"] != K:
            bounds = theory.lower_bound(one.problem), drawn_slope(_grid(part, K))
            of_part.append({"K": K, "n": one.n, "lower_slope": bounds[0], "drawn_slope": bounds[1]})
        of_part[-1].setdefault("policies", []).append(entry)
    return {"parts": problems, "claims": claims(problems)}


def _grid(part: Part, K: int) -> Bernoulli:
    return spike(K, K, part.other, part.other, part.best - part.other, part.best - part.other)


def _series(part: Part, policy: Policy, K: int, options: Options) -> Series:
    n = max(2, int(part.n * min(1.0, options.n / published.N)))  # a quick run shortens all equally
    marks = np.unique(np.geomspace(min(10, n), n, MARKS).astype(np.int64))
    return Series.of(policy, _grid(part, K), n, marks.tolist(), options.seed)


def _runs(part: Part, policy: Policy, K: int, options: Options) -> int:
    """In proportion to the first paper's 20; fewer for KL-UCB, slow but with little noise."""
    runs = max(2, round(part.runs * options.runs / published.RUNS)) if options.runs > 1 else 1
    return min(runs, max(2, runs // 5)) if isinstance(policy, KLUCB) and K >= 32 else runs


def claims(parts: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What the paper says and shows, each with the figures that test it."""

    def end(problem: dict[str, Any], label: str) -> float:
        entry = next(e for e in problem["policies"] if e["label"] == label)
        return max(1e-9, float(entry["expected_regret"]["mean"]))

    sizes = parts["sizes"]
    rivals = ("osub", "kl_ucb", PRINTED.label, PROGRAM.label)
    least = [min(end(p, name) for name in rivals) / end(p, "uts") for p in sizes]
    over_osub = [end(p, "osub") / end(p, "uts") for p in [*sizes, *parts["close"]]]
    slopes = [_log_slope(p) / p["lower_slope"] for p in sizes]
    gammas = [e["expected_regret"]["mean"] / end(parts["gammas"][0], "uts")
              for e in parts["gammas"][0]["policies"]]  # fmt: skip
    read = [
        (end(p, e["label"]) / e["paper"], e["label"].startswith("rank1elim_kl"))
        for part in parts.values() for p in part for e in p["policies"] if e["paper"]
    ]  # fmt: skip
    printed = [
        end(p, PRINTED.label) / published.TRINH_LARGE[p["K"]]["rank1elim_kl"]
        for p in parts["large"]
    ]
    return [
        claim(
            "“the significant improvement of our method compared to the state-of-the-art” "
            "(Trinh et al. 2020)",
            [ratio > 1.25 for ratio in least],
            least,
            "the smallest regret of OSUB, KL-UCB and Rank1ElimKL over that of UTS, for K = L = 4, "
            "8, 16; above 1.25 counts",
        ),
        claim(
            "In our words: OSUB, optimal too, has a higher regret than UTS (Trinh et al. 2020).",
            [ratio > 1 for ratio in over_osub],
            over_osub,
            "OSUB's regret over that of UTS, for .75 over .25 and K = L = 4, 8, 16, then for .55 "
            "over .5 and K = L = 8, 16, 32",
        ),
        claim(
            "“an asymptotically optimal regret bound on the frequentist regret of UTS” (Trinh et "
            "al. 2020)",
            [0.5 < slope < 1.5 for slope in slopes],
            slopes,
            "growth from a tenth of the steps to the end over log 10, over the lower bound's "
            "factor, for K = L = 4, 8, 16; 0.5 to 1.5 counts",
        ),
        claim(
            "In our words: UTS depends little on γ, and γ = 2 does best (Trinh et al. 2020).",
            [min(gammas) > 0.97, max(gammas) < 1.15],
            gammas,
            "regret for γ = 2, 5, 10, 15, 30, ∞ over that for γ = 2; above 0.97 and below 1.15 "
            "counts",
        ),
        claim(
            "In our words: the figures draw the lower bounds of Proposition 1 (Trinh et al. 2020).",
            [abs(p["drawn_slope"] / p["lower_slope"] - 1) < 0.01 for p in sizes],
            [x for p in sizes for x in (p["drawn_slope"], p["lower_slope"])],
            "factor of log T that is drawn, then that of Proposition 1, for K = L = 4, 8, 16. The "
            "drawn ones use the lines' parameters instead of the products",
            any_n=True,
        ),
        claim(
            "In our words: the curves of UTS, OSUB and KL-UCB end where the figures show (Trinh et "
            "al. 2020).",
            [abs(ratio - 1) <= READING for ratio, elimination in read if not elimination],
            [ratio for ratio, elimination in read if not elimination],
            f"regret here over that read off the figures; within {READING:.0%}, about what can be "
            "read, counts",
        ),
        claim(
            "In our words: the curves of Rank1ElimKL are those of the printed algorithm (Trinh et "
            "al. 2020).",
            [abs(ratio - 1) <= 0.25 for ratio in printed],
            [*printed, *(ratio for ratio, elimination in read if elimination)],
            "regret of the printed algorithm over that read off the figures, for K = L = 32, 64, "
            "128, where within 25% counts; then the same with level=time, which comes nearest",
        ),
    ]  # fmt: skip


def _log_slope(problem: dict[str, Any]) -> float:
    """Growth of the regret of UTS per unit of log n, over the last tenfold of the steps."""
    entry = next(e for e in problem["policies"] if e["label"] == "uts")
    steps, means = np.array(entry["steps"]), entry["expected_curve"]["mean"]
    k = min(int(np.searchsorted(steps, steps[-1] / 10)), max(0, len(steps) - 2))
    return float((means[-1] - means[k]) / max(1e-9, math.log(steps[-1] / steps[k])))


def show(document: dict[str, Any]) -> list[Any]:
    """Regret at the end beside the figures' values, part by part, and the lower bounds."""
    shown: list[Any] = []
    for part in PARTS:
        problems = document["parts"][part.name]
        title = f"{part.title}: expected regret in {problems[0]['n']:,} steps"
        rows = [
            ("" if k else problem["K"], entry["label"], *_cells(entry), entry["runs"])
            for problem in problems
            for k, entry in enumerate(problem["policies"])
        ]
        columns = "+K = L", "policy", "+regret", "+paper", "+z", "+runs"
        shown.append(table(*columns, title=title, rows=rows))
    slopes = "+drawn in the paper", "+line parameters", "+Proposition 1"
    bounds = [
        (
            problem["K"], f"{published.TRINH_DRAWN[problem['K']]:g}",
            f"{problem['drawn_slope']:.2f}", f"{problem['lower_slope']:.2f}",
        )
        for problem in document["parts"]["sizes"]
    ]  # fmt: skip
    return [
        *shown,
        table("+K = L", *slopes, title="Lower bounds, per unit of log n", rows=bounds),
        "The paper's values are read off its figures, to about a tenth at worst. z is the "
        "difference over our standard deviation times √(1/runs + 1/the paper's runs). The curves "
        "of Rank1ElimKL, and of OSUB for small gaps, are listed beside the settings closest to "
        "them: the latter has no term log log t.",
    ]


def _cells(entry: dict[str, Any]) -> tuple[str, str, str]:
    regret, paper, z = entry["expected_regret"], entry["paper"], entry["z"]
    return (
        with_error(regret["mean"], regret["se"], 1 if regret["mean"] < 100 else 0),
        "" if paper is None else f"{paper:g}" if paper < 1000 else f"{paper:,.0f}",
        "" if z is None else f"{z:+.1f}",
    )


def draw(document: dict[str, Any]) -> dict[str, Figure]:
    """Each part's curves, with both lower bounds and the paper's final values."""
    return {
        f"trinh2020-{part.name}": _panels(document["parts"][part.name], part.title, part.n)
        for part in PARTS
    }


def _panels(problems: list[dict[str, Any]], title: str, n: int) -> Figure:
    """One panel per grid, on logarithmic axes, because policies lie far apart.

    A single panel has curves that hardly differ, and a linear axis of regret. Rings are the paper's
    values after its n steps; a shorter run has none.
    """
    single = len(problems) == 1
    figure, axes = new_figure(5.5 if single else 12, 4.4, ncols=len(problems), squeeze=False)
    styles = line_styles(entry["label"] for entry in problems[0]["policies"])
    for ax, problem in zip(axes[0], problems, strict=True):
        ax.set_xscale("log")
        if not single:
            ax.set_yscale("log")
        for entry in problem["policies"]:
            curve, style = entry["expected_curve"], styles[entry["label"]]
            draw_curve(ax, entry["steps"], curve["mean"], curve["se"], style, label=entry["label"])
            if entry["paper"] and problem["n"] == n:
                ax.plot(
                    problem["n"], entry["paper"], "o", mfc="none", ms=7, color=style["color"],
                    clip_on=False,
                )  # fmt: skip
        steps = np.geomspace(10, max(11, problem["n"]), 100)
        for slope, dashes, label in (
            (problem["lower_slope"], ":", "lower bound's slope"),
            (problem["drawn_slope"], "--", "as drawn in the paper"),
        ):
            ax.plot(steps, slope * np.log(steps), "k", ls=dashes, lw=1, label=label)
        ax.set(xlim=(10, max(11, problem["n"])), xlabel="Step")
        plain_axes(ax)
        ax.set_title(f"K = L = {problem['K']}", loc="left", fontsize=10)
    axes[0, 0].set_ylabel("Expected regret")
    lines, labels = axes[0, 0].get_legend_handles_labels()
    columns = 2 if single else 4
    figure.legend(lines, labels, loc="outside lower left", ncols=columns, frameon=False, fontsize=9)
    rings = "; rings: the paper" if problems[0]["n"] == n else ""
    figure.suptitle(title + rings, x=0.01, ha="left", fontsize=11)
    return figure
