"""Figures and tables as they stand within a page."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

__all__ = ["svg_of", "table_of"]


def svg_of(figure: Figure, name: str, description: str) -> Markup:
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
    return Markup(f'{start} role="img" aria-label="{escape(description)}">{rest}')


def table_of(table: Table) -> dict[str, Any]:
    """A rich table as plain values for the page's template; cells with a style are marked.

    >>> from rich.table import Table
    >>> table = Table("K", "regret", title="Regret < 10")
    >>> table.add_row("8", "3")
    >>> facts = table_of(table)
    >>> facts["caption"], facts["rows"][0][1]
    ('Regret < 10', {'text': '3', 'marked': False})
    """
    rows = zip(*(column.cells for column in table.columns), strict=True)
    return {
        "caption": ". ".join(str(text) for text in (table.title, table.caption) if text),
        "columns": [
            {"name": str(column.header), "side": column.justify} for column in table.columns
        ],
        "rows": [
            [{"text": str(cell), "marked": bool(getattr(cell, "style", ""))} for cell in row]
            for row in rows
        ],
    }
