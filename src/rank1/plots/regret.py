"""Curves of regret, and the theoretical bounds on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.errors import InputError, InputTypeError
from rank1.grid import product_text
from rank1.plots.figures import draw_curve, new_figure, plain_axes
from rank1.plots.styles import colour_of, line_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rank1.simulation.result import Result

__all__ = ["plot_result"]


def plot_result(
    result: Result,
    *,
    regret: str = "expected",
    bounds: bool = False,
    log_x: bool = False,
    log_y: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Plot the mean regret of each policy, with bands of one standard error; see `Result.plot`."""
    checks.one_of("regret", regret, ("expected", "realised"))
    if ax is None:
        _, ax = new_figure()
        runs = f"{result.runs} runs" if result.runs > 1 else "one run"
        size = product_text(result.about["sides"])
        title = f"{result.about['name']}, {size}, mean of {runs}"
        ax.set_title(title, loc="left", fontsize=10)
        plain_axes(ax)
    if log_x:
        ax.set_xscale("log")
    if log_y:
        ax.set_yscale("log")
    styles = line_styles(outcome.label for outcome in result.outcomes)
    for outcome in result.outcomes:
        curves: NDArray[np.float64] = getattr(outcome, regret)
        error = np.zeros(len(result.checkpoints))
        if len(curves) > 1:
            error = curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
        style = styles[outcome.label]
        line = draw_curve(
            ax, result.checkpoints, curves.mean(axis=0), error, style, label=outcome.label
        )
        # The frame begins and ends with the curves, without setting the axes' limits.
        line.sticky_edges.x[:] = [0.0, float(result.checkpoints[0]), float(result.n)]
        line.sticky_edges.y[:] = [0.0]
    if not ax.get_xlabel():
        ax.set_xlabel("Step")
    if not ax.get_ylabel():
        ax.set_ylabel(f"{regret.capitalize()} regret")
    if bounds:
        _draw_bounds(result, ax)
    ax.legend(frameon=False, fontsize=9)
    return ax


def _draw_bounds(result: Result, ax: Axes) -> None:
    """Draw bounds that fit into the curves' frame, and mention the others in the legend."""
    from rank1 import theory
    from rank1.problems import Gaussian

    problem, n = result.problem, result.n
    if problem is None:
        _note(ax, f"no bounds: {result.about['name']} can't be rebuilt from a file")
        return
    try:
        slope = theory.unimodal_bound(problem)
    except (InputError, InputTypeError) as reason:
        _note(ax, f"no lower bound: {reason.requirement}")
    else:
        name = "Theorem 3" if isinstance(problem, Gaussian) else "Theorem 2"
        if len(problem.grid.sizes) != 2:
            name = "Lower bound over neighbours"
        t = np.geomspace(1 if ax.get_xscale() == "linear" else result.checkpoints[0], n, 500)
        label = f"{name}: {slope:.3g}·log t, for t → ∞"
        ax.plot(t, slope * np.log(t), color="0.2", ls="--", lw=1, label=label)
    # Theorem 1 is about Rank1Elim as in the paper.
    if "rank1elim" not in (outcome.label for outcome in result.outcomes):
        return
    try:
        most = theory.upper_bound(problem, n)
    except (InputError, InputTypeError) as reason:
        _note(ax, f"no upper bound: {reason.requirement}")
        return
    # A bound on the regret of the whole run also bounds that of its beginning.
    label = f"Theorem 1: rank1elim at most {most:,.0f}".replace("inf", "∞")
    if most <= ax.get_ylim()[1]:
        ax.axhline(most, color=colour_of("rank1elim"), ls=":", lw=1, label=label)
    else:
        _note(ax, f"{label}, above the frame")


def _note(ax: Axes, text: str) -> None:
    """Add text to the legend, without a line."""
    import textwrap

    ax.plot([], [], ls="", label=textwrap.fill(text, 56))
