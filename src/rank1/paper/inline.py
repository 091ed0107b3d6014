"""Tables inside the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["table_of"]


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
