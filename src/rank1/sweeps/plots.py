"""Plots of a sweep: regret against a setting, and which policy wins where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from rank1 import checks
from rank1.errors import InputError
from rank1.plots import draw_curve, fills, line_styles, new_figure
from rank1.progress import short
from rank1.sweeps.output import Sweep
from rank1.sweeps.summary import CLEAR, check_points, summary, winners

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["plot_lines", "plot_winners"]

#: The number of panels in a row if there is one facet.
_ACROSS = 4
#: The largest number of values of a setting that get a tick each.
_TICKS = 8


def plot_lines(
    sweep: Sweep,
    x: str = "step",
    facets: Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
    regret: str = "expected",
    log_x: bool = False,
    log_y: bool = False,
) -> tuple[Figure, dict[str, Any]]:
    """Plot mean regret against a setting, or the step, with bands of one standard error.

    One panel for each value of the facets: the first goes across, the second down. A policy without
    the setting is a horizontal line. Returns the figure, and its contents as a document.
    """
    from matplotlib.ticker import NullLocator

    settings = [*sweep.problem_settings, *sweep.policy_settings, "n", "step"]
    schema = sweep.frame.collect_schema()
    checks.one_of("x", x, [name for name in settings if schema[name].is_numeric()])
    rows = _rows(sweep, [x], facets, where, regret)
    rows = rows.sort(x, nulls_last=True, maintain_order=True)
    figure, panels = _panels(rows, facets, sharey=True)
    styles = line_styles(rows["label"])
    handles: dict[str, Any] = {}
    document = []
    for ax, facet, own in panels:
        ax.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
        lines = []
        for (label,), line in own.group_by("label", maintain_order=True):
            name = str(label)
            at, mean, error = (line[column].to_numpy() for column in (x, "mean", "se"))
            level = line[x].null_count() > 0
            if level:
                at, mean, error = np.array(_span(rows[x])), mean.repeat(2), error.repeat(2)
            style = styles[name]
            if x != "step" and not level:  # mark each value
                style = style | {"marker": style["marker"] or ".", "markevery": 1}
            handles[name] = draw_curve(ax, at, mean, error, style, label=name, origin=x == "step")
            lines.append(
                {"policy": name, "x": line[x].to_list(), "mean": line["mean"].to_list()}
                | {"se": line["se"].to_list(), "runs": line["runs"].to_list()}
            )
        if x != "step" and rows[x].n_unique() <= _TICKS:
            ax.set_xticks(values := rows[x].unique().drop_nulls().to_list(), map(_text, values))
            ax.xaxis.set_minor_locator(NullLocator())
        ax.spines[["top", "right"]].set_visible(False)
        document.append({"facet": facet, "lines": lines})
    if not log_y:  # last, because the panels share the axis
        panels[0][0].set_ylim(bottom=0)
    _frame(figure, sweep, x, f"{regret.capitalize()} regret", list(handles.values()))
    return figure, {"x": x, "regret": regret, "panels": document}


def plot_winners(
    sweep: Sweep,
    x: str,
    y: str,
    facets: Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
    regret: str = "expected",
) -> tuple[Figure, dict[str, Any]]:
    """Plot the policy with the smallest mean regret for each pair of values of two settings.

    A square has the winner's colour and hatch. It is pale, with a ≈, if the second best is within
    two standard errors of the difference. Returns the figure, and its contents as a document.
    """
    from matplotlib.collections import PatchCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, Rectangle

    for name in (x, y, *facets):
        choices = ("problem", *sweep.problem_settings, "n")
        checks.one_of("with y, a setting of x, y and the facets", name, choices)
    rows = _rows(sweep, [x, y], facets, where, regret)
    best = winners(rows, [*facets, x, y], regret)
    figure, panels = _panels(best, facets, sharey=False)
    xs, ys = (best[name].unique().sort().to_list() for name in (x, y))
    won = set(best["winner"])
    looks: dict[str, dict[str, Any]] = {
        label: {"facecolor": colour, "hatch": hatch, "edgecolor": "w"}
        for label, (colour, hatch) in fills(rows["label"]).items()
        if label in won
    }
    document = []
    for ax, facet, own in panels:
        for (label, clear), cells in own.group_by("winner", "clear", maintain_order=True):
            at = [(xs.index(a), ys.index(b)) for a, b in cells.select(x, y).iter_rows()]
            squares = [Rectangle((j - 0.5, i - 0.5), 1, 1) for j, i in at]
            look = looks[str(label)] | {"alpha": 1.0 if clear else 0.5}
            ax.add_collection(PatchCollection(squares, linewidth=1, **look))
            for j, i in [] if clear else at:
                ax.text(j, i, "≈", ha="center", va="center", fontsize=8)
        ax.spines[:].set_visible(False)
        ax.set(xlim=(-0.5, len(xs) - 0.5), ylim=(-0.5, len(ys) - 0.5))
        ax.set_xticks(range(len(xs)), map(_text, xs))
        ax.set_yticks(range(len(ys)), map(_text, ys))
        document.append({"facet": facet, "cells": own.drop(*facets, "policy").to_dicts()})
    handles: list[Any] = [Patch(label=label, **look) for label, look in looks.items()]
    if not best["clear"].all():
        words = f"within {CLEAR:g} standard errors of the second best"
        handles.append(Line2D([], [], marker="$≈$", color="k", ls="", label=words))
    _frame(figure, sweep, x, y, handles)
    return figure, {"x": x, "y": y, "regret": regret, "panels": document}


def _frame(figure: Figure, sweep: Sweep, x: str, y: str, handles: list[Any]) -> None:
    """Add the axes' names, the legend, and what is missing."""
    figure.supxlabel(x, fontsize=10)
    figure.supylabel(y, fontsize=10)
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False)
    if sweep.gap:
        figure.suptitle(sweep.gap, fontsize=9, x=0.99, ha="right", weight="bold")


def _rows(
    sweep: Sweep,
    axes: list[str],
    facets: Sequence[str],
    where: Mapping[str, Any] | None,
    regret: str,
) -> pl.DataFrame:
    import polars as pl

    checks.one_of("regret", regret, ("expected", "realised"))
    shown = [*axes, *facets]
    if len(facets) > 2 or len(set(shown)) < len(shown):
        expected = "at most two, with each setting shown once"
        raise InputError("facets", facets, expected, got=", ".join(shown))
    rows = summary(sweep, shown, where)
    check_points(sweep, rows, shown)
    return rows.with_columns(
        pl.col(f"{regret}_mean").alias("mean"), pl.col(f"{regret}_se").alias("se")
    )


def _panels(
    rows: pl.DataFrame, facets: Sequence[str], sharey: bool
) -> tuple[Figure, list[tuple[Any, dict[str, Any], pl.DataFrame]]]:
    """Axes for each combination of facets, with its rows."""
    import polars as pl

    values = [rows[name].unique().sort().to_list() for name in facets]
    for name, known in zip(facets, values, strict=True):
        if None in known:
            raise InputError("a facet", name, "a setting that all policies have")
    across = len(values[0]) if values else 1
    down = len(values[1]) if len(values) > 1 else -(-across // _ACROSS)
    if len(values) < 2:
        across = min(across, _ACROSS)
    if across * down > 100:
        got = f"{across * down} panels"
        raise InputError("facets", facets, "few enough for 100 panels", got=got)
    size = (2.2 + 2.8 * across, 1.4 + 2.6 * down) if values else (7.0, 4.6)
    figure, grid = new_figure(
        *size, nrows=down, ncols=across, squeeze=False, sharey=sharey, sharex=sharey
    )
    panels = []
    # The first facet varies fastest.
    for ax, combination in zip(grid.ravel(), product(*reversed(values)), strict=False):
        facet = dict(zip(facets, reversed(combination), strict=True))
        own = rows.filter(
            pl.all_horizontal(pl.lit(True), *(pl.col(f) == v for f, v in facet.items()))
        )
        ax.set_title(", ".join(f"{f} = {v}" for f, v in facet.items()), fontsize=9)
        panels.append((ax, facet, own))
    for ax in grid.ravel()[len(panels) :]:
        ax.set_axis_off()
    return figure, panels


def _text(value: Any) -> str:
    """A value of a setting, in few characters but without rounding.

    >>> _text(200_000), _text(4096), _text(0.1234)
    ('200k', '4096', '0.1234')
    """
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    if isinstance(value, int) and value >= 10_000 and value % 10 ** (len(str(value)) - 3) == 0:
        return short(value)
    return str(value)


def _span(values: pl.Series) -> tuple[float, float]:
    known = values.drop_nulls().to_list() or [0, 1]
    return min(known), max(known)
