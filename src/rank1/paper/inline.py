"""Figures and tables as they stand within a page."""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

__all__ = ["scrolling", "svg_of", "table_of"]


def svg_of(figure: Figure, name: str, description: str) -> str:
    """A figure as an SVG element: text as text, no background, dark greys as the page's colour.

    Parameters
    ----------
    figure
        What to draw.
    name
        Tells the ids of this figure from those of another on the same page.
    description
        For whoever doesn't see it.
    """
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(file, format="svg", dpi=160, transparent=True)
    drawn = file.getvalue()
    drawn = drawn[drawn.index("<svg") :].strip()
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r'\bid="', f'id="{name}-', drawn)
    drawn = re.sub(r'(url\(|href=")#', rf"\1#{name}-", drawn)
    drawn = re.sub(r"#([0-4][0-9a-f])\1\1\b", "currentColor", drawn)
    # It takes the room there is, but stays legible: the page scrolls where that is too little.
    width = figure.get_size_inches()[0]
    start, rest = drawn.split(">", 1)
    start = re.sub(r' (width|height)="[^"]*"', "", start)
    start += f' style="min-width: {58 * width:.0f}px; max-width: {115 * width:.0f}px"'
    return f'{start} role="img" aria-label="{escape(description)}">{rest}'


def table_of(table: Table) -> str:
    """A rich table as HTML.

    >>> from rich.table import Table
    >>> table = Table("K", "regret", title="Regret < 10")
    >>> table.add_row("8", "3")
    >>> html = table_of(table)
    >>> "<caption>Regret &lt; 10</caption>" in html, '<th scope="row"' in html
    (True, True)
    """
    caption = ". ".join(str(text) for text in (table.title, table.caption) if text)
    sides = [f' class="{column.justify}"' for column in table.columns]
    head = "".join(
        f'<th scope="col"{side}>{escape(str(column.header))}</th>'
        for side, column in zip(sides, table.columns, strict=True)
    )
    body = ""
    for row in zip(*(column.cells for column in table.columns), strict=True):
        first, *others = zip(sides, row, strict=True)
        body += f'<tr><th scope="row"{first[0]}>{escape(str(first[1]))}</th>'
        body += "".join(f"<td{side}>{escape(str(cell))}</td>" for side, cell in others) + "</tr>"
    return scrolling(
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>",
        caption,
    )


def scrolling(inside: str, name: str) -> str:
    """What scrolls by itself where the screen is too narrow for it, also by keyboard."""
    label = escape(name)
    return f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">{inside}</div>'
