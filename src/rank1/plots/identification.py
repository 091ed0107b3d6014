"""Plot how many pulls it took until the rule stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rank1.errors import InputError, InputTypeError
from rank1.plots.figures import new_figure, plain_axes
from rank1.plots.styles import line_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rank1.simulation.identification import Identification

__all__ = ["plot_identification"]


def plot_identification(
    found: Identification, *, bound: bool = True, ax: Axes | None = None
) -> Axes:
    """Plot the share of stopped runs over the number of pulls, one staircase per policy."""
    owned = ax is None
    if ax is None:
        _, ax = new_figure()
    styles = line_styles([each.label for each in found.searches])
    for each in found.searches:
        pulls = np.sort(each.pulls[each.stopped])
        at = np.concatenate([[0], pulls, [found.n]])
        share = np.concatenate([[0], np.arange(1, len(pulls) + 1), [len(pulls)]])
        ax.plot(
            at,
            share / len(each.pulls),
            drawstyle="steps-post",
            label=each.label,
            markevery=max(1, len(at) // 8),
            **styles[each.label],
        )
    if bound:
        _draw_bound(found, ax)
    if owned:
        last = max(int(each.pulls.max()) for each in found.searches)
        ax.set(xlabel="Pulls", ylabel="Runs that have stopped", xlim=(0, 1.03 * last))
        ax.set_ylim(0, 1.03)
        told = f"{found.problem.description['name']}, {found.problem.grid}"
        title = f"{told}, confidence {found.confidence:g}"
        ax.set_title(title, loc="left", fontsize=10)
        plain_axes(ax)
        ax.yaxis.set_major_formatter("{x:.0%}")
    ax.legend(frameon=False, fontsize=9)
    return ax


def _draw_bound(found: Identification, ax: Axes) -> None:
    from rank1 import theory

    try:
        pulls = theory.characteristic_time(found.problem).pulls(found.confidence)
    except (InputError, InputTypeError):  # not available for this problem
        return
    sides = len(found.problem.grid.sizes)
    near = "its row and column" if sides == 2 else "its neighbours"
    label = f"T*·log(1/α) of {near}: {pulls:,.0f}"
    ax.axvline(pulls, color="0.3", ls=":", lw=1, label=label)
