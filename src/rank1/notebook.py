"""How values look in a notebook: small tables and pictures, as HTML.

Colours are the page's own, so they fit light and dark pages. If something can't be drawn, the
notebook shows the value's `repr` instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from html import escape
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["beside", "facts", "figure", "heat_map", "level_map", "never_fails", "table"]

T = TypeVar("T")
Lines = NDArray[np.int64]

#: The largest number of rows, and of columns, in a picture of a grid.
MAX_LINES = 32
#: Pictures with more cells than this have no titles on their cells.
MAX_TITLES = 400
#: The approximate length of the longer side, and limits on the size of a cell, in pixels.
_SIDE, _LEAST, _MOST = 240, 5, 28
#: Colours of the cells, and of the frame around the best one: legible on white and on black.
_COLOUR, _MARK = "#0066BB", "#DD5500"


def never_fails(make: Callable[[T], str]) -> Callable[[T], str | None]:
    """Decorate a `_repr_html_`: after any error it returns None, so that the `repr` is shown."""

    @wraps(make)
    def made(self: T) -> str | None:
        try:
            return make(self)
        except Exception:
            return None

    return made


def figure(value: Any) -> str:
    """A number in few characters, or any other value as escaped text.

    >>> figure(12345.678), figure(0.04567), figure(float("nan")), figure("<b>")
    ('12,346', '0.0457', '–', '&lt;b&gt;')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "–"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return escape(str(value))


def table(header: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A table: the first column is text, the others are numbers.

    >>> table(["policy", "regret"], [["a<b", 12.0]])
    '<table><thead><tr><th style="text-align:left">policy</th><th style="text-align:right">regret</th></tr></thead><tbody><tr><td style="text-align:left">a&lt;b</td><td style="text-align:right">12</td></tr></tbody></table>'
    """  # noqa: E501
    told = f'<caption style="text-align:left">{escape(caption)}</caption>' if caption else ""
    head = _line("th", header)
    body = "".join(_line("td", row) for row in rows)
    return f"<table>{told}<thead>{head}</thead><tbody>{body}</tbody></table>"


def facts(pairs: Iterable[tuple[str, Any]], caption: str = "") -> str:
    """A table of names and values."""
    told = f'<caption style="text-align:left">{escape(caption)}</caption>' if caption else ""
    left = 'style="text-align:left;white-space:normal;max-width:32em"'
    rows = "".join(
        f"<tr><th {left}>{escape(name)}</th><td {left}>{figure(value)}</td></tr>"
        for name, value in pairs
    )
    return f"<table>{told}<tbody>{rows}</tbody></table>"


def _line(tag: str, cells: Sequence[Any]) -> str:
    sides = ["left"] + ["right"] * (len(cells) - 1)
    made = (
        f'<{tag} style="text-align:{side}">{figure(cell)}</{tag}>'
        for side, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{''.join(made)}</tr>"


def beside(*parts: str) -> str:
    """HTML side by side if there is room, otherwise one below the other."""
    style = "display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start"
    return f'<div style="{style}">{"".join(f"<div>{part}</div>" for part in parts if part)}</div>'


def some_lines(size: int, keep: int) -> Lines:
    """The lines that a picture shows: all, or evenly spaced ones including `keep`.

    >>> some_lines(3, 1).tolist(), len(some_lines(1000, 17)), 17 in some_lines(1000, 17)
    ([0, 1, 2], 32, True)
    """
    if size <= MAX_LINES:
        return np.arange(size)
    chosen = np.linspace(0, size - 1, MAX_LINES).round().astype(np.int64)
    chosen[np.abs(chosen - keep).argmin()] = keep
    return chosen


def heat_map(
    means_of: Callable[[Lines, Lines], NDArray[np.float64]],
    rows: Sequence[object],
    columns: Sequence[object],
    best: tuple[int, ...] | None,
    label: str,
) -> str:
    """A grid as an SVG element: the larger a value, the stronger its colour; the best is framed.

    Parameters
    ----------
    means_of
        Returns the values of some rows and columns, by their numbers. NaN leaves a cell empty.
    rows, columns
        Names, shown with the value when the mouse is over a cell.
    best
        The pair to frame.
    label
        What the values are.
    """
    at = best or (0, 0)
    lines, across = some_lines(len(rows), at[0]), some_lines(len(columns), at[1])
    grid = means_of(lines, across)
    names = [[f"{rows[i]} × {columns[j]}" for j in across] for i in lines]
    framed = {(y, x) for y, i in enumerate(lines) for x, j in enumerate(across) if (i, j) == best}
    if grid.shape != (len(rows), len(columns)):
        label += f" of {len(lines)} × {len(across)} lines"
    return _cells(grid, names, framed, label)


def level_map(
    means: NDArray[np.float64],
    names: Sequence[Sequence[object]],
    best: Sequence[int] | None,
    label: str,
) -> str:
    """Averages of each side's levels over all other sides, as an SVG element.

    For grids with one side or more than two.

    Parameters
    ----------
    means
        Values by arm, with one axis per side. NaN is ignored.
    names
        The names of the levels, for each side.
    best
        The levels of the best arm, which are framed.
    label
        What the values are.
    """
    chosen = [some_lines(size, best[d] if best else 0) for d, size in enumerate(means.shape)]
    grid = np.full((means.ndim, max(map(len, chosen))), np.nan)
    titles = [[""] * grid.shape[1] for _ in chosen]
    framed = set()
    for d, levels in enumerate(chosen):
        for x, level in enumerate(levels.tolist()):
            line = means.take(level, axis=d)
            known = line[np.isfinite(line)]
            grid[d, x] = known.mean() if known.size else np.nan
            titles[d][x] = str(names[d][level])
            if best and level == best[d]:
                framed.add((d, x))
    return _cells(grid, titles, framed, label)


def _cells(
    grid: NDArray[np.float64],
    names: Sequence[Sequence[str]],
    framed: set[tuple[int, int]],
    label: str,
) -> str:
    """Values as coloured cells; a cell with neither a name nor a value is left out."""
    known = grid[np.isfinite(grid)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    size = round(min(max(_SIDE / max(grid.shape), _LEAST), _MOST))
    cells, frames = [], []
    for y, x in np.ndindex(*grid.shape):
        value, fill = float(grid[y, x]), 'fill="none"'
        if math.isfinite(value):
            share = (value - low) / (high - low) if high > low else 0.5
            fill = f'fill="{_COLOUR}" fill-opacity="{0.08 + 0.87 * share:.2f}"'
        elif not names[y][x]:
            continue
        title = ""
        if grid.size <= MAX_TITLES:
            title = f"<title>{escape(f'{names[y][x]}: {figure(value)}')}</title>"
        cells.append(
            f'<rect x="{x * size}" y="{y * size}" width="{size - 1}" height="{size - 1}" '
            f"{fill}>{title}</rect>"
        )
        if (y, x) in framed:
            frames.append(
                f'<rect x="{x * size - 0.5}" y="{y * size - 0.5}" width="{size}" '
                f'height="{size}" fill="none" stroke="{_MARK}" stroke-width="2" '
                'stroke-opacity="1"/>'
            )
    span = f"{figure(low)} (faint) to {figure(high)}" if known.size else "nothing known yet"
    width, height = grid.shape[1] * size + 2, grid.shape[0] * size + 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" '
        f'width="{width}" height="{height}" viewBox="-1 -1 {width} {height}" '
        f'stroke="currentColor" stroke-opacity="0.35" stroke-width="0.5">'
        f"{''.join([*cells, *frames])}</svg><br><small>{escape(label)}: {span}</small>"
    )
