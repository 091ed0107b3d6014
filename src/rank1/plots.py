"""Pictures of results and traces, with matplotlib."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.atomic import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from rank1.simulation.result import Result
    from rank1.simulation.trace import Side, Trace

__all__ = [
    "checked_ending",
    "colour_of",
    "new_figure",
    "plain_axes",
    "plot_result",
    "plot_trace",
    "save_figure",
]

#: Distinguishable to the colour-blind too (Okabe and Ito); a policy keeps its colour everywhere.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#8B5A2B")
_OF_POLICY = {
    "rank1elim": "#0072B2",
    "ucb1": "#D55E00",
    "linucb": "#009E73",
    "glm_ucb": "#CC79A7",
    "kl_ucb": "#E69F00",
    "thompson": "#56B4E9",
    "uniform": "#7F7F7F",
    "rank1elim_kl": "#8B5A2B",
    "uts": "#000000",
    "osub": "#B8A000",
    "oracle": "#BBBBBB",
}


def colour_of(policy: str) -> str:
    """The colour of a policy, whatever its settings."""
    name = policy.split(":")[0]
    return _OF_POLICY.get(name) or _COLOURS[sum(name.encode()) % len(_COLOURS)]


def new_figure(width: float = 7.0, height: float = 4.2, **layout: Any) -> tuple[Figure, Any]:
    """A figure that belongs to nobody: no window, no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(**layout)


def checked_ending(path: str | os.PathLike[str]) -> str:
    """The format that a figure's name asks for."""
    ending = os.path.splitext(os.fspath(path))[1].lstrip(".").lower()
    return checks.one_of("the ending of a figure's name", ending, ("png", "svg", "pdf"))


def save_figure(figure: Figure | SubFigure, path: str | os.PathLike[str]) -> None:
    """Write a figure; the format follows from the name's ending (.png, .svg, .pdf)."""
    ending = checked_ending(path)
    root: Any = figure.get_figure(root=True) or figure
    with whole_file(path) as temporary:
        root.savefig(temporary, format=ending, dpi=160)


def plot_result(
    result: Result, *, regret: str = "expected", bounds: bool = False, ax: Axes | None = None
) -> Axes:
    """Mean regret of each policy over the steps, with bands of one standard error.

    With `bounds`, also Theorem 2 or 3 as a dashed line, and Theorem 1 as a dotted one where
    Rank1Elim is among the policies; what can't be drawn is said in the legend.
    """
    checks.one_of("regret", regret, ("expected", "realised"))
    if ax is None:
        _, ax = new_figure()
    dashes = ("-", "--", ":", "-.")
    lowest = 0.0
    seen: dict[str, int] = {}
    for outcome in result.outcomes:
        curves: NDArray[np.float64] = getattr(outcome, regret)
        mean = np.concatenate([[0.0], curves.mean(axis=0)])
        steps = np.concatenate([[0], result.checkpoints])
        style = dashes[seen.get(outcome.policy, 0) % len(dashes)]
        seen[outcome.policy] = seen.get(outcome.policy, 0) + 1
        colour = colour_of(outcome.policy)
        ax.plot(steps, mean, style, color=colour, label=outcome.label)
        lowest = min(lowest, mean.min())
        if len(curves) > 1:
            error = curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
            error = np.concatenate([[0.0], error])
            ax.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.2, lw=0)
    K, L = result.about["K"], result.about["L"]
    runs = f"{result.runs} runs" if result.runs > 1 else "one run"
    ax.set(xlabel="Step", ylabel=f"{regret.capitalize()} regret", xlim=(0, result.n))
    ax.set_ylim(1.05 * lowest, None)  # realised regret may be negative
    ax.set_title(f"{result.about['name']}, {K}×{L}, mean of {runs}", loc="left", fontsize=10)
    plain_axes(ax)
    if bounds:
        _draw_bounds(result, ax)
    ax.legend(frameon=False, fontsize=9)
    return ax


def plain_axes(ax: Axes) -> None:
    """Short numbers (2M, not 2000000), and no frame where there is nothing to read."""
    ax.xaxis.set_major_formatter(_short_numbers())
    ax.yaxis.set_major_formatter(_short_numbers())
    ax.spines[["top", "right"]].set_visible(False)


def _draw_bounds(result: Result, ax: Axes) -> None:
    """Lines where they fit into the frame that the curves have made, and words where they don't."""
    from rank1 import theory
    from rank1.problems import Gaussian

    problem, n = result.problem, result.n
    if problem is None:
        _note(ax, f"no bounds: {result.about['name']} can't be built from a file")
        return
    try:
        slope = theory.lower_bound(problem)
    except (TypeError, ValueError) as reason:
        _note(ax, f"no lower bound: {str(reason).partition(', got ')[0]}")
    else:
        name = "Theorem 3" if isinstance(problem, Gaussian) else "Theorem 2"
        t = np.geomspace(1, n, 500)
        label = f"{name}: {slope:.3g}·log t, for t → ∞"
        ax.plot(t, slope * np.log(t), color="0.2", ls="--", lw=1, label=label)
        ax.set_ylim(ax.get_ylim()[0], max(ax.get_ylim()[1], 1.05 * slope * np.log(n)))
    # Theorem 1 is about Rank1Elim as the paper has it.
    if "rank1elim" not in (outcome.label for outcome in result.outcomes):
        return
    try:
        most = theory.upper_bound(problem, n)
    except TypeError as reason:
        _note(ax, f"no upper bound: {str(reason).partition(', got ')[0]}")
        return
    # What bounds the regret of the whole run also bounds that of its beginning.
    label = f"Theorem 1: rank1elim at most {most:,.0f}".replace("inf", "∞")
    if most <= ax.get_ylim()[1]:
        ax.axhline(most, color=colour_of("rank1elim"), ls=":", lw=1, label=label)
    else:
        _note(ax, f"{label}, above the frame")


def _note(ax: Axes, text: str) -> None:
    """Words in the legend, without a line."""
    import textwrap

    ax.plot([], [], ls="", label=textwrap.fill(text, 56))


def _short_numbers() -> Any:
    from matplotlib.ticker import EngFormatter

    return EngFormatter(sep="")


def _whole_numbers() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True)


def plot_trace(trace: Trace) -> Figure:
    """Rows and columns disappearing over time, and the last intervals that decided it."""
    figure, axes = new_figure(9.0, 6.2, nrows=2, ncols=2, width_ratios=[3, 2])
    _plot_side(axes[0], "row", trace, [stage.rows for stage in trace.stages], trace.rows, trace.K)
    _plot_side(
        axes[1], "column", trace, [stage.columns for stage in trace.stages], trace.columns, trace.L
    )
    held = "every interval held" if trace.held else "an interval failed"
    figure.suptitle(f"{trace.policy}, run {trace.run}: {held}", x=0.02, ha="left", fontsize=11)
    return figure


def _plot_side(
    axes: Any, name: str, trace: Trace, sides: list[Side], remaining: list[int], size: int
) -> None:
    life, intervals = axes
    ends = [stage.step for stage in trace.stages]
    best = trace.best_pair[0 if name == "row" else 1]
    first = max(1, ends[0] // 4) if ends else 1
    until = dict.fromkeys(remaining, trace.n)
    killer: dict[int, int] = {}
    for side, end in zip(sides, ends, strict=True):
        until |= dict.fromkeys(side.eliminated, end)
        killer |= side.eliminated
    for line in range(size):
        colour = _COLOURS[1] if line == best else _COLOURS[0]
        life.plot(
            [first, until[line]],
            [line, line],
            color=colour,
            lw=max(1, min(5, 120 / size)),
            solid_capstyle="butt",
        )
        if line in killer and size <= 40:
            label = f"by {killer[line]}"
            life.annotate(label, (until[line], line), (3, -3), textcoords="offset points", size=7)
    for end in ends:
        life.axvline(end, color="0.85", lw=0.8, zorder=0)
    life.set(xscale="log", xlim=(first, trace.n), ylim=(size - 0.5, -0.5))
    life.set(xlabel="Step (grey: a stage ends)", ylabel=f"{name.capitalize()} (best: {best})")
    life.yaxis.set_major_locator(_whole_numbers())
    intervals.xaxis.set_major_locator(_whole_numbers())
    life.xaxis.set_major_formatter(_short_numbers())
    if sides:
        # The stage that eliminated most says most.
        k = max(range(len(sides)), key=lambda k: len(sides[k].eliminated))
        side = sides[k]
        middle = (side.lower + side.upper) / 2
        colours = ["0.6" if line in side.eliminated else _COLOURS[0] for line in side.lines]
        for x, lower, upper, colour in zip(
            side.lines, side.lower, side.upper, colours, strict=True
        ):
            intervals.plot([x, x], [lower, upper], color=colour, lw=2, solid_capstyle="butt")
        intervals.scatter(side.lines, middle, c=colours, s=14, zorder=3)
        intervals.scatter(side.lines, side.expected, marker="x", c="k", s=18, lw=0.9, zorder=4)
        intervals.axhline(side.lower.max(), color=_COLOURS[1], lw=0.8, ls="--")
        intervals.set(xlabel=name.capitalize(), ylabel="Interval on the mean reward")
        intervals.set_title(
            f"Stage {k}: below the dashed line is out (× the truth)", fontsize=8, loc="left"
        )
    else:
        intervals.set_axis_off()
        intervals.text(0.5, 0.5, "no stage ended", ha="center", va="center")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
