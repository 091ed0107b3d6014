"""Plot what an elimination policy did in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rank1.plots.figures import new_figure, short_numbers
from rank1.plots.styles import STYLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rank1.simulation.trace import Side, Trace

__all__ = ["plot_trace"]

#: The colour of a line, and of the best line.
_COLOUR, _BEST = STYLES["rank1elim"].colour, STYLES["ucb1"].colour


def plot_trace(trace: Trace) -> Figure:
    """Plot how rows and columns disappear over time, and the intervals that eliminated most."""
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
    from matplotlib.ticker import MaxNLocator

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
        colour = _BEST if line == best else _COLOUR
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
    life.yaxis.set_major_locator(MaxNLocator(integer=True))
    intervals.xaxis.set_major_locator(MaxNLocator(integer=True))
    life.xaxis.set_major_formatter(short_numbers())
    if sides:
        # Show the stage that eliminated most.
        k = max(range(len(sides)), key=lambda k: len(sides[k].eliminated))
        side = sides[k]
        middle = (side.lower + side.upper) / 2
        colours = ["0.6" if line in side.eliminated else _COLOUR for line in side.lines]
        for x, lower, upper, colour in zip(
            side.lines, side.lower, side.upper, colours, strict=True
        ):
            intervals.plot([x, x], [lower, upper], color=colour, lw=2, solid_capstyle="butt")
        intervals.scatter(side.lines, middle, c=colours, s=14, zorder=3)
        intervals.scatter(side.lines, side.expected, marker="x", c="k", s=18, lw=0.9, zorder=4)
        intervals.axhline(side.lower.max(), color=_BEST, lw=0.8, ls="--")
        intervals.set(xlabel=name.capitalize(), ylabel="Interval on the mean reward")
        intervals.set_title(
            f"Stage {k}: eliminated if below the dashed line (×: the truth)", fontsize=8, loc="left"
        )
    else:
        intervals.set_axis_off()
        intervals.text(0.5, 0.5, "no stage ended", ha="center", va="center")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
