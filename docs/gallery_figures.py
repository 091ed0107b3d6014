"""Draw the figures of docs/gallery.md; `make docs-figures` runs it with all the others."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import EngFormatter, StrMethodFormatter

import rank1
from rank1 import theory
from rank1.paper import Options, scaling
from rank1.plots import colour_of, fills, line_styles, new_figure, save_figure
from rank1.policies import POLICIES
from rank1.simulation import mean_and_error

FOLDER = Path(__file__).parent / "figures"
PROBLEM = rank1.spike(K=8, L=8, p_u=0.7, p_v=0.7, delta_u=0.2, delta_v=0.2)


def all_policies(problem: rank1.Problem, n: int, runs: int, jobs: int = -1) -> list[rank1.Result]:
    """A result for each policy there is, with default settings, that can play the problem."""
    marks = np.unique(np.geomspace(100, n, 60).astype(int))
    results = []
    for policy in POLICIES.values():
        try:
            result = rank1.simulate(
                policy(), problem, n, runs, 1, jobs, marks, progress=True, shuffle=True
            )
        except ValueError as reason:  # not for these rewards
            print(f"{policy.name} is left out: {reason}")
            continue
        results.append(result)
    return results


def draw_ratios(results: list[rank1.Result]) -> Any:
    """Regret as a multiple of the lower bound: over time, and at the end."""
    problem, n, steps = results[0].problem, results[0].n, results[0].checkpoints
    bound = theory.lower_bound(problem) * np.log(steps)
    curves = {result.outcomes[0].label: result.outcomes[0].expected / bound for result in results}
    ratios = {label: runs.mean(axis=0) for label, runs in curves.items()}
    best_last = sorted(ratios, key=lambda label: -ratios[label][-1])

    figure, (left, right) = new_figure(10.0, 5.0, ncols=2, width_ratios=[3, 2])
    styles, areas = line_styles(ratios), fills(ratios)
    for label in best_last:
        if ratios[label][-1] > 0:  # zero has no place on a log axis
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


def main() -> None:
    """Draw them all."""
    FOLDER.mkdir(exist_ok=True)
    result = rank1.simulate(rank1.Rank1Elim(), PROBLEM, n=2_000_000, runs=20, seed=1)
    save_figure(result.plot(bounds=True).figure, FOLDER / "bounds.png")
    for name, figure in scaling.draw(scaling.compute(Options(progress=True))).items():
        save_figure(figure, FOLDER / f"{name}.png")
    ratios = draw_ratios(all_policies(PROBLEM, n=2_000_000, runs=5))
    save_figure(ratios, FOLDER / "ratios.png")


if __name__ == "__main__":
    main()
