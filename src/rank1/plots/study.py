"""Plot what a study knows about its levels."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from rank1.documents import above
from rank1.plots.figures import new_figure
from rank1.plots.styles import colour_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rank1.documents import Best

__all__ = ["plot_best"]


def plot_best(best: Best, title: str = "") -> Figure:
    """Plot each level's lift over the control's level, or the leader's; one panel per side."""
    figure, axes = new_figure(4.0 * len(best.sides), 3.6, ncols=len(best.sides), squeeze=False)
    lift = best.lift or {}
    first, base = dict(zip(best.sides, best.leader or (), strict=False)), {}
    if lift.get("is_control"):
        base = dict(zip(best.sides, lift["over"], strict=True))
    for ax, (side, labels) in zip(axes[0], best.sides.items(), strict=True):
        levels = {level["label"]: level for level in best.levels[side]}
        ends = [(levels[k].get("estimate"), *(levels[k]["lift"] or (None, None))) for k in labels]
        lifts = np.array(ends, np.float64)
        # Without a design, levels are always compared with the leader's.
        own = side not in base or (
            base[side] != first[side] and levels[first[side]]["lift"] == [0, 0]
        )
        known = np.isfinite(lifts[:, 0])
        most = float(np.abs(lifts[np.isfinite(lifts)]).max(initial=0.1))
        places = np.arange(len(labels))
        low, high = (np.nan_to_num(lifts[:, k], nan=end, posinf=2 * most, neginf=-1.0)
                     for k, end in ((1, -1.0), (2, 2 * most)))  # fmt: skip
        ax.hlines(places, low, high, color=colour_of("rank1elim"), lw=2)
        ax.plot(lifts[known, 0], places[known], "o", color=colour_of("rank1elim"))
        ax.axvline(0, color="0.5", lw=1)
        ax.set_yticks(places, labels)
        ax.set_ylim(len(labels) - 0.5, -0.5)
        ax.set_xlim(max(-1.05, -2 * most), 2 * most)
        ax.xaxis.set_major_formatter("{x:+.0%}")
        over = "the leader's level" if own else "the control"
        ax.set_xlabel(f"Lift over {over}{above(lift.get('above', 0.0))}")
        ax.set_title(side, loc="left", fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    said = f"{title}: {best.statement}" if title else best.statement
    figure.suptitle(textwrap.fill(said, 62 * len(best.sides)), fontsize=9)
    return figure
