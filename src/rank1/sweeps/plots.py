"""Pictures of a sweep: regret against a setting, and who wins where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rank1 import checks
from rank1.errors import InputError
from rank1.plots import colour_of, new_figure
from rank1.progress import short
from rank1.sweeps.output import Sweep
from rank1.sweeps.summary import check_points, summary, winners

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["plot_lines", "plot_winners"]

#: Settings of one policy share its colour.
_DASHES = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D", "x")
#: Panels side by side where there is one facet.
_ACROSS = 4
#: So many values of a setting have a tick each.
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
    """Mean regret against a setting, or the step, with bands of one standard error.

    A panel for each value of the facets: the first goes across, a second one down. A policy that
    doesn't have the setting is a level line. Returns the figure, and what it shows as one document.
    """
    from matplotlib.ticker import NullLocator

    settings = [*sweep.problem_settings, *sweep.policy_settings, "n", "step"]
    schema = sweep.frame.collect_schema()
    checks.one_of("--x", x, [name for name in settings if schema[name].is_numeric()])
    rows = _rows(sweep, [x], facets, where, regret)
    rows = rows.sort(x, nulls_last=True, maintain_order=True)
    figure, panels = _panels(rows, facets, sharey=True)
    handles: dict[str, Any] = {}
    seen: dict[str, list[str]] = {}
    document = []
    for ax, facet, own in panels:
        lines = []
        for (label, policy), line in own.group_by("label", "policy", maintain_order=True):
            name = str(label)
            variants = seen.setdefault(str(policy), [])
            if name not in variants:
                variants.append(name)
            number = variants.index(name)
            dash = _DASHES[number % len(_DASHES)]
            marker = _MARKERS[number // len(_DASHES) % len(_MARKERS)]
            every = 1
            at, mean = line[x].to_numpy(), line["mean"].to_numpy()
            error = line["se"].fill_null(0.0).to_numpy()
            if line[x].null_count():
                at, mean, error = np.array(_span(rows[x])), mean.repeat(2), error.repeat(2)
            elif x == "step" and not (log_x or log_y):
                at, mean, error = (np.concatenate([[0], values]) for values in (at, mean, error))
            colour = colour_of(str(policy))
            if x == "step" or line[x].null_count():  # a curve: marked where dashes don't suffice
                marker, every = "" if marker == "o" else marker, max(1, len(at) // 6)
            style = {"color": colour, "marker": marker, "ms": 3.5, "markevery": every}
            (handles[name],) = ax.plot(at, mean, dash, **style)
            ax.fill_between(at, mean - error, mean + error, color=colour, alpha=0.2, lw=0)
            lines.append(
                {"policy": name, "x": line[x].to_list(), "mean": line["mean"].to_list()}
                | {"se": line["se"].to_list(), "runs": line["runs"].to_list()}
            )
        ax.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
        if x != "step" and rows[x].n_unique() <= _TICKS:
            ax.set_xticks(values := rows[x].unique().drop_nulls().to_list(), map(_text, values))
            ax.xaxis.set_minor_locator(NullLocator())
        ax.spines[["top", "right"]].set_visible(False)
        document.append({"facet": facet, "lines": lines})
    if not log_y:  # when everything is drawn: panels share the axis
        panels[0][0].set_ylim(bottom=0)
    figure.supxlabel(x, fontsize=10)
    figure.supylabel(f"{regret.capitalize()} regret", fontsize=10)
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=3, frameon=False)
    figure.text(0.99, 0.01, sweep.gap, ha="right", fontsize=8, color="0.3")
    return figure, {"x": x, "regret": regret, "panels": document}


def plot_winners(
    sweep: Sweep,
    x: str,
    y: str,
    facets: Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
    regret: str = "expected",
) -> tuple[Figure, dict[str, Any]]:
    """The policy of least mean regret for each pair of values of two settings.

    It is pale, with a ≈, where the second best is within two standard errors. Returns the figure,
    and what it shows as one document.
    """
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    for name in (x, y, *facets):
        choices = ("problem", *sweep.problem_settings, "n")
        checks.one_of("with --y, a setting of --x, --y and --facet", name, choices)
    rows = _rows(sweep, [x, y], facets, where, regret)
    best = winners(rows, [*facets, x, y])
    colours = _colours(rows)
    figure, panels = _panels(best, facets, sharey=False)
    xs, ys = (best[name].unique().sort().to_list() for name in (x, y))
    document = []
    for ax, facet, own in panels:
        picture = np.ones((len(ys), len(xs), 3))
        for row in own.iter_rows(named=True):
            i, j = ys.index(row[y]), xs.index(row[x])
            colour = np.array(to_rgb(colours[row["winner"]]))
            picture[i, j] = colour if row["clear"] else 1 - (1 - colour) / 2
            if not row["clear"]:
                ax.text(j, i, "≈", ha="center", va="center", fontsize=8)
        ax.imshow(picture, origin="lower", aspect="auto")
        ax.spines[:].set_visible(False)
        ax.vlines(np.arange(1, len(xs)) - 0.5, -0.5, len(ys) - 0.5, color="w", lw=1)
        ax.hlines(np.arange(1, len(ys)) - 0.5, -0.5, len(xs) - 0.5, color="w", lw=1)
        ax.set_xticks(range(len(xs)), map(_text, xs))
        ax.set_yticks(range(len(ys)), map(_text, ys))
        document.append({"facet": facet, "cells": own.drop(*facets, "policy").to_dicts()})
    figure.supxlabel(x, fontsize=10)
    figure.supylabel(y, fontsize=10)
    won = [label for label in colours if label in set(best["winner"])]
    patches = [Patch(color=colours[label], label=label) for label in won]
    figure.legend(handles=patches, loc="outside upper center", ncols=3, frameon=False)
    figure.text(0.99, 0.01, sweep.gap, ha="right", fontsize=8, color="0.3")
    return figure, {"x": x, "y": y, "regret": regret, "panels": document}


def _rows(
    sweep: Sweep,
    axes: list[str],
    facets: Sequence[str],
    where: Mapping[str, Any] | None,
    regret: str,
) -> pl.DataFrame:
    import polars as pl

    checks.one_of("--regret", regret, ("expected", "realised"))
    shown = [*axes, *facets]
    if len(facets) > 2 or len(set(shown)) < len(shown):
        raise InputError(
            f"a picture has two facets at most, and shows a setting once, got {', '.join(shown)}"
        )
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
            raise InputError(f"--facet must be a setting that all have, got {name!r}")
    across = len(values[0]) if values else 1
    down = len(values[1]) if len(values) > 1 else -(-across // _ACROSS)
    if len(values) < 2:
        across = min(across, _ACROSS)
    if across * down > 100:
        raise InputError(f"--facet makes {across * down} panels; at most 100 can be read")
    size = (2.2 + 2.8 * across, 1.4 + 2.6 * down) if values else (7.0, 4.6)
    figure, grid = new_figure(
        *size, nrows=down, ncols=across, squeeze=False, sharey=sharey, sharex=sharey
    )
    panels = []
    combinations: list[tuple[Any, ...]] = [()]
    for known in reversed(values):
        combinations = [(value, *rest) for rest in combinations for value in known]
    for ax, combination in zip(grid.ravel(), combinations, strict=False):
        facet = dict(zip(facets, combination, strict=True))
        own = rows.filter(
            pl.all_horizontal(pl.lit(True), *(pl.col(f) == v for f, v in facet.items()))
        )
        ax.set_title(", ".join(f"{f} = {v}" for f, v in facet.items()), fontsize=9)
        panels.append((ax, facet, own))
    for ax in grid.ravel()[len(panels) :]:
        ax.set_axis_off()
    return figure, panels


def _text(value: Any) -> str:
    """A value of a setting, in few characters, of which none that tells it from others is lost.

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


def _colours(rows: pl.DataFrame) -> dict[str, Any]:
    """A colour for each label: that of its policy, paler for each further choice of settings."""
    from matplotlib.colors import to_rgb

    colours: dict[str, Any] = {}
    seen: dict[str, int] = {}
    for label, policy in rows.select("label", "policy").unique(maintain_order=True).iter_rows():
        strength = 0.65 ** seen.get(policy, 0)
        seen[policy] = seen.get(policy, 0) + 1
        colours[label] = tuple(1 - (1 - part) * strength for part in to_rgb(colour_of(policy)))
    return colours
