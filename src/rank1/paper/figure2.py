"""Figure 2: Rank1Elim against UCB1, LinUCB and GLM-UCB, and against later policies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rank1 import theory
from rank1.paper import Options
from rank1.paper.artefact import Computing
from rank1.paper.claims import claim
from rank1.plots import draw_curve, line_styles, new_figure, plain_axes
from rank1.policies import (
    GLMUCB,
    KLUCB,
    OSUB,
    UCB1,
    UTS,
    LinUCB,
    Policy,
    Rank1Elim,
    Rank1ElimKL,
    ThompsonSampling,
)
from rank1.problems import spike
from rank1.simulation import Series
from rank1.statistics import with_error
from rank1.tables import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["compute", "draw", "show"]

SIZES = (16, 32, 64)

#: The paper's four policies, in the upper row of panels.
PAPER: tuple[Policy, ...] = (Rank1Elim(), UCB1(), LinUCB(), GLMUCB())
#: The paper's two other readings of the confidence radius.
SCALED: tuple[Policy, ...] = (LinUCB(confidence_scale=1 / 3), GLMUCB(confidence_scale=1 / 100))
#: Another radius from LinUCB's authors, smaller at first.
OTHER: tuple[Policy, ...] = (LinUCB(radius="determinant"),)
#: Later policies, in the lower row.
LATER: tuple[Policy, ...] = (Rank1ElimKL(), KLUCB(), ThompsonSampling(), OSUB(), UTS())


def compute(options: Options) -> Computing:
    """Regret curves of every policy for K = L = 16, 32 and 64, and the paper's claims on them."""
    fewer = min(options.runs, max(2, options.runs // 4))  # the paper's four take long enough
    groups = (
        ("paper", PAPER, options.runs),
        ("scaled", SCALED, fewer),
        ("other", OTHER, min(2, fewer)),
        ("later", LATER, fewer),
    )
    wanted = [
        (
            K,
            group,
            Series.of(policy, spike(K, K, 0.7, 0.7, 0.2, 0.2), options.n, 100, options.seed),
            runs,
        )
        for K in SIZES
        for group, policies, runs in groups
        for policy in policies
    ]
    outcomes = yield [(one, runs) for _, _, one, runs in wanted]
    problems = []
    for K in SIZES:
        entries = [
            outcome.entry(one.checkpoints)
            | {"label": one.policy.label, "group": group, "runs": runs}
            for (size, group, one, runs), outcome in zip(wanted, outcomes, strict=True)
            if size == K
        ]
        slope = theory.lower_bound(spike(K, K, 0.7, 0.7, 0.2, 0.2))
        problems.append({"K": K, "L": K, "policies": entries, "lower_slope": slope})
    return {"problems": problems, "claims": claims(problems)}


def claims(problems: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The paper's sentences on Figure 2, each with the figures that test it, one per size."""
    by_label = [{entry["label"]: entry for entry in problem["policies"]} for problem in problems]

    def ends(policy: Policy) -> list[dict[str, Any]]:
        return [entries[policy.label]["expected_regret"] for entries in by_label]

    def ratios(policy: Policy, *others: Policy) -> list[float]:
        """Regret at the end divided by the smallest of the others'."""
        rows = zip(*map(ends, (policy, *others)), strict=True)
        return [own["mean"] / max(1e-9, min(end["mean"] for end in rest)) for own, *rest in rows]

    def errors(policy: Policy, other: Policy) -> str:
        """Standard errors of the ratios of two policies."""
        shown = []
        for ratio, *both in zip(ratios(policy, other), ends(policy), ends(other), strict=True):
            relative = [(each["se"] or 0.0) / max(1e-9, each["mean"]) for each in both]
            shown.append(f"{ratio * math.hypot(*relative):.2g}")
        return ", ".join(shown)

    late = [_late_slope(entries["rank1elim"]["expected_curve"]["mean"]) for entries in by_label]
    ucb1 = ratios(UCB1(), Rank1Elim())
    linucb, glm_ucb = (ratios(policy, Rank1Elim()) for policy in (LinUCB(), GLMUCB()))
    third, hundredth = (ratios(policy, Rank1Elim()) for policy in SCALED)
    other = ratios(OTHER[0], Rank1Elim())
    best = ratios(SCALED[1], Rank1Elim(), UCB1())
    reading = "regret over Rank1Elim's, for K = L = 16, 32, 64"
    return [
        claim("“the regret of Rank1Elim flattens in all three problems”",
              [slope < 0.05 for slope in late], late,
              "slope in the last tenth over slope in the first tenth, for K = L = 16, 32, 64"),
        claim(
            "“When K = 16, UCB1 has a lower regret than Rank1Elim. […] When K = 32, both "
            "algorithms already perform similarly; and when K = 64, Rank1Elim clearly outperforms "
            "UCB1.”",
            [ucb1[0] < 1, 2 / 3 < ucb1[1] < 3 / 2, ucb1[2] > 3 / 2],
            ucb1,
            f"UCB1's {reading}; similar means within a factor of 1.5",
        ),
        claim("“Neither LinUCB nor GLM-UCB are competitive on any of our problems”: LinUCB.",
              [ratio > 1 for ratio in (*linucb, *other)], [*linucb, *other],
              f"LinUCB's {reading}; with the fixed radius (radius=horizon), then with the one that "
              "grows with what was seen (radius=determinant). The paper doesn't say which it has",
              reading=min(linucb) > 1),
        claim("“Neither LinUCB nor GLM-UCB are competitive on any of our problems”: GLM-UCB.",
              [ratio > 1 for ratio in glm_ucb], glm_ucb, f"GLM-UCB's {reading}"),
        claim("“When the confidence radii of LinUCB are multiplied by 1/3, LinUCB becomes "
              "competitive on all problems.”", [ratio < 1 for ratio in third], third,
              f"LinUCB's {reading}"),
        claim("“When the confidence radii of GLM-UCB are multiplied by 1/100, GLM-UCB is still not "
              "competitive on any of our problems.”", [ratio > 1 for ratio in hundredth], hundredth,
              f"GLM-UCB's {reading}; standard errors {errors(SCALED[1], Rank1Elim())}. "
              "Read as a comparison with the better of Rank1Elim and UCB1: "
              + ", ".join(f"{ratio:.2f}" for ratio in best), reading=min(best) > 1),
    ]  # fmt: skip


def _late_slope(curve: list[float]) -> float:
    tenth = max(1, len(curve) // 10)
    first = curve[tenth - 1]
    return (curve[-1] - curve[-1 - tenth]) / first if len(curve) > tenth and first > 0 else 1.0


def show(document: dict[str, Any]) -> list[Any]:
    """Regret at the end."""
    sizes = [f"+K = L = {problem['K']}" for problem in document["problems"]]
    rows = []
    for row in zip(*(problem["policies"] for problem in document["problems"]), strict=True):
        regrets = [each["expected_regret"] for each in row]
        cells = [with_error(each["mean"], each["se"], 0) for each in regrets]
        rows.append((row[0]["label"], *cells, row[0]["runs"]))
    title = f"Expected regret in {document['n']:,} steps"
    return [table("policy", *sizes, "+runs", title=title, rows=rows)]


def draw(document: dict[str, Any]) -> dict[str, Figure]:
    """The paper's panels above; below, later policies and the slope of the lower bound."""
    figure, axes = new_figure(12, 8, nrows=2, ncols=3)
    styles = line_styles(entry["label"] for entry in document["problems"][0]["policies"])
    for column, problem in zip(axes.T, document["problems"], strict=True):
        column[1].set_yscale("log")
        for ax, groups in zip(
            column, (("paper",), ("paper", "scaled", "other", "later")), strict=True
        ):
            for entry in problem["policies"]:
                if entry["group"] in groups:
                    curve, label = entry["expected_curve"], entry["label"]
                    draw_curve(
                        ax, entry["steps"], curve["mean"], curve["se"], styles[label], label=label
                    )
            ax.set(xlim=(0, document["n"]), xlabel="Step")
            plain_axes(ax)
        steps = np.geomspace(10, document["n"], 200)
        column[1].plot(
            steps, problem["lower_slope"] * np.log(steps), "k:", lw=1, label="lower bound's slope"
        )
        column[1].set_ylim(100, None)
        top = next(e for e in problem["policies"] if e["policy"] == "glm_ucb")
        column[0].set_ylim(0, top["expected_regret"]["mean"] * 1.05)
        column[0].set_title(f"K = L = {problem['K']}", loc="left", fontsize=10)
    axes[0, 0].set_ylabel("Expected regret")
    axes[1, 0].set_ylabel("Expected regret (log scale)")
    # On the left, because a narrow screen shows that half of the figure.
    lines, labels = axes[1, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower left", ncols=2, frameon=False, fontsize=9)
    runs = f"{document['runs']} runs (others {document['problems'][0]['policies'][-1]['runs']})"
    figure.suptitle(f"Figure 2: n = {document['n']:,}, {runs}", x=0.01, ha="left", fontsize=11)
    return {"figure2": figure}
