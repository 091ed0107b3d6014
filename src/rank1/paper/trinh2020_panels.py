"""The figures of Trinh et al. 2020, redrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rank1.plots import draw_curve, line_styles, new_figure, plain_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["panels"]


def panels(problems: list[dict[str, Any]], title: str, n: int) -> Figure:
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
