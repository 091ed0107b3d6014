"""Draw the figures of docs/gallery.md; `make docs-figures` runs this with all the others."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import EngFormatter, StrMethodFormatter

import rank1
from rank1 import theory
from rank1.paper import Options, artefact, scaling
from rank1.plots import colour_of, fills, line_styles, new_figure, save_figure
from rank1.policies import POLICIES
from rank1.statistics import mean_and_error

FOLDER = Path(__file__).parent / "figures"
PROBLEM = rank1.spike(K=8, L=8, p_u=0.7, p_v=0.7, delta_u=0.2, delta_v=0.2)


def all_policies(
    problem: rank1.Problem, n: int, runs: int, jobs: int = -1, shuffle: bool = True
) -> list[rank1.Result]:
    """Return a result for each policy, with default settings, that can play the problem."""
    marks = np.unique(np.geomspace(100, n, 60).astype(int))
    results = []
    for policy in POLICIES.values():
        try:
            result = rank1.simulate(
                policy(), problem, n, runs, 1, jobs, marks, progress=True, shuffle=shuffle
            )
        except rank1.Rank1Error as reason:  # the policy doesn't support these rewards
            print(f"{policy.name} is left out: {reason}")
            continue
        results.append(result)
    return results


def draw_ratios(results: list[rank1.Result]) -> Any:
    """Draw regret as a multiple of the lower bound: over time, and at the end."""
    problem, n, steps = results[0].problem, results[0].n, results[0].checkpoints
    bound = theory.lower_bound(problem) * np.log(steps)
    curves = {result.outcomes[0].label: result.outcomes[0].expected / bound for result in results}
    ratios = {label: runs.mean(axis=0) for label, runs in curves.items()}
    best_last = sorted(ratios, key=lambda label: -ratios[label][-1])

    figure, (left, right) = new_figure(10.0, 5.0, ncols=2, width_ratios=[3, 2])
    styles, areas = line_styles(ratios), fills(ratios)
    for label in best_last:
        if ratios[label][-1] > 0:  # a log axis can't show zero
            left.plot(steps, ratios[label], label=label, **styles[label])
    left.set(xscale="log", yscale="log", xlim=(steps[0], n))
    left.set(xlabel="Step t", ylabel="Regret / (Theorem 2 · log t)")
    left.axhline(1, color="0.2", ls="--", lw=1)

    least = min([1.0, *(values[-1] for values in ratios.values() if values[-1] > 0)])
    start = 10 ** math.floor(math.log10(least / 2))
    for place, label in enumerate(best_last):
        ratio = ratios[label][-1]
        if ratio > 0:
            colour, hatch = areas[label]
            look = {"color": colour, "hatch": hatch, "edgecolor": "w", "lw": 0}
            right.barh(place, ratio - start, left=start, height=0.6, **look)
        error = mean_and_error(curves[label][:, -1])["se"] or 0.0
        digits = 2 if ratio < 10 else 1 if ratio < 100 else 0
        right.annotate(
            f"{ratio:,.{digits}f} ± {error:,.{digits}f}" if ratio > 0 else "0",
            (max(ratio, start), place),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            bbox={"fc": "white", "lw": 0, "pad": 1},
        )
    right.set_yticks(range(len(best_last)), best_last)
    for tick, label in zip(right.get_yticklabels(), best_last, strict=True):
        tick.set_color(colour_of(label))
    right.set(xscale="log", xlim=(start, 20 * max(values[-1] for values in ratios.values())))
    right.set_ylim(-0.6, len(best_last) - 0.4)
    right.axvline(1, color="0.2", ls="--", lw=1, zorder=1.5)
    right.set_xlabel(f"The same at t = {n:,}, mean of {results[0].runs} runs")
    left.xaxis.set_major_formatter(EngFormatter(sep=""))
    for axis in (left.yaxis, right.xaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower left", ncols=5, frameon=False, fontsize=9)
    return figure


#: What varies in the searches, starting from the 8×8 spike with p = 0.5 and gaps of 0.2.
SEARCHES: dict[str, list[tuple[float, rank1.Problem]]] = {
    "K = L": [(K, rank1.spike(K, K, 0.5, 0.5, 0.2, 0.2)) for K in (2, 4, 8, 16, 32)],
    "gap": [(d, rank1.spike(8, 8, 0.5, 0.5, d, d)) for d in (0.4, 0.3, 0.2, 0.1, 0.05)],
    "μ": [
        (min(problem.u.mean(), problem.v.mean()), problem)
        for p in (0.7, 0.5, 0.3, 0.15, 0.05)
        for problem in [rank1.spike(8, 8, p, p, 0.2, 0.2)]
    ],
}
#: A run gives up after this multiple of the bound.
GIVE_UP = 300


def pulls_until_a_stop(runs: int, jobs: int = -1) -> dict[str, list[dict[str, Any]]]:
    """Return, for each cell of `SEARCHES`, each policy's pulls as multiples of T*·log(1/α)."""
    policies = [rank1.BetElim(), rank1.TopTwo(), rank1.UTS(), rank1.Uniform()]
    found: dict[str, list[dict[str, Any]]] = {}
    for what, cells in SEARCHES.items():
        for x, problem in cells:
            bound = theory.characteristic_time(problem).pulls(0.95)
            n = int(GIVE_UP * bound)
            played = rank1.identify(
                policies, problem, 0.95, n=n, runs=runs, jobs=jobs, shuffle=True
            )
            for each in played.searches:
                ratio = mean_and_error(each.pulls / bound)
                stopped = bool(each.stopped.all())
                entry = {"x": x, "policy": each.label, "stopped": stopped} | ratio
                found.setdefault(what, []).append(entry)
    return found


def draw_searches(found: dict[str, list[dict[str, Any]]], runs: int) -> Any:
    """Draw measured pulls over the bound, with arrows where some runs never stopped."""
    figure, axes = new_figure(10.0, 4.0, ncols=3, sharey=True)
    for ax, (what, cells) in zip(axes, found.items(), strict=True):
        labels = list(dict.fromkeys(cell["policy"] for cell in cells))
        for label, style in line_styles(labels).items():
            own = [cell for cell in cells if cell["policy"] == label]
            x, y = [cell["x"] for cell in own], [cell["mean"] for cell in own]
            bars = [2 * (cell["se"] or 0.0) for cell in own]
            ax.errorbar(x, y, bars, label=label, **style | {"marker": "."})
            late = [(a, b) for a, b, cell in zip(x, y, own, strict=True) if not cell["stopped"]]
            if late:
                ax.plot(*zip(*late, strict=True), "^", color=style["color"], ms=7)
        ax.axhline(1, color="0.2", ls="--", lw=1)
        ax.set(xscale="log", yscale="log", xlabel=what, ylim=(0.8, 2 * GIVE_UP))
        ticks = sorted({cell["x"] for cell in cells})
        ax.set_xticks(ticks, [f"{tick:.2g}" for tick in ticks])
        ax.minorticks_off()
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(f"Pulls / (T*·log(1/α)), mean of {runs} runs")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower left", ncols=5, frameon=False, fontsize=9)
    return figure


def main() -> None:
    """Draw all figures."""
    FOLDER.mkdir(exist_ok=True)
    result = rank1.simulate(rank1.Rank1Elim(), PROBLEM, n=2_000_000, runs=20, seed=1)
    save_figure(result.plot(bounds=True).figure, FOLDER / "bounds.png")
    for name, figure in scaling.draw(artefact.make("scaling", Options(progress=True))).items():
        save_figure(figure, FOLDER / f"{name}.png")
    ratios = draw_ratios(all_policies(PROBLEM, n=2_000_000, runs=5))
    save_figure(ratios, FOLDER / "ratios.png")
    save_figure(draw_searches(pulls_until_a_stop(runs=8), runs=8), FOLDER / "stopping-ratios.png")


if __name__ == "__main__":
    main()
