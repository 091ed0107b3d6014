"""Shared by all plots: figures and their files, axes, and curves with bands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rank1 import checks
from rank1.atomic import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

__all__ = [
    "checked_ending",
    "draw_curve",
    "new_figure",
    "plain_axes",
    "save_figure",
    "short_numbers",
]

#: The approximate number of markers on a curve, if it has any.
_MARKS = 6


def new_figure(width: float = 7.0, height: float = 4.2, **layout: Any) -> tuple[Figure, Any]:
    """A figure with its axes, without a window or global state.

    A notebook shows it if it, or one of its axes, is the last value of a cell.
    """
    from rank1.plots.pictures import Picture, PictureAxes

    figure = Picture(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(subplot_kw={"axes_class": PictureAxes}, **layout)


def checked_ending(path: str | os.PathLike[str], what: str = "a figure's name") -> str:
    """The format given by the extension of a figure's file name; messages call the name `what`."""
    ending = os.path.splitext(os.fspath(path))[1].lstrip(".").lower()
    return checks.one_of(f"the ending of {what}", ending, ("png", "svg", "pdf"))


def save_figure(figure: Figure | SubFigure, path: str | os.PathLike[str]) -> None:
    """Write a figure; the extension of the name sets the format (.png, .svg, .pdf)."""
    ending = checked_ending(path)
    root: Any = figure.get_figure(root=True) or figure
    with whole_file(path) as temporary:
        root.savefig(temporary, format=ending, dpi=160)


def draw_curve(
    ax: Axes,
    x: ArrayLike,
    mean: ArrayLike,
    error: ArrayLike,
    style: dict[str, Any],
    *,
    label: str,
    origin: bool = True,
) -> Line2D:
    """Draw a curve with a band of `error` on either side; NaN: no band.

    The style is one of `line_styles`. With `origin` the curve starts with regret 0 at step 0,
    unless an axis is logarithmic.
    """
    x, mean, error = (np.asarray(values, np.float64) for values in (x, mean, error))
    if origin and ax.get_xscale() == ax.get_yscale() == "linear":
        x, mean, error = (np.concatenate([[0.0], values]) for values in (x, mean, error))
    marks = {"markersize": 4, "markevery": max(1, len(x) // _MARKS)}
    (line,) = ax.plot(x, mean, label=label, **marks | style)
    error = np.nan_to_num(error)
    if error.any():
        ax.fill_between(x, mean - error, mean + error, color=style["color"], alpha=0.2, lw=0)
    return line


def plain_axes(ax: Axes) -> None:
    """Short numbers (2M, not 2000000), and no frame at the top and on the right."""
    ax.xaxis.set_major_formatter(short_numbers())
    ax.yaxis.set_major_formatter(short_numbers())
    ax.spines[["top", "right"]].set_visible(False)


def short_numbers() -> Any:
    """A formatter for ticks such as 2M."""
    from matplotlib.ticker import EngFormatter

    return EngFormatter(sep="")
