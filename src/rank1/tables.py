"""Tables for the terminal, which the report's page shows, too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["table"]


def table(
    *columns: str, title: str = "", caption: str = "", rows: Iterable[Iterable[Any]] = ()
) -> Table:
    """A table; columns whose names begin with + are aligned on the right.

    >>> shown = table("policy", "+runs", rows=[("ucb1", 20)])
    >>> [(column.header, column.justify, *column.cells) for column in shown.columns]
    [('policy', 'left', 'ucb1'), ('runs', 'right', '20')]
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(
        box=box.SIMPLE, title=title or None, title_justify="left",
        caption=caption or None, caption_justify="left",
    )  # fmt: skip
    for name in columns:
        made.add_column(name.removeprefix("+"), justify="right" if name[:1] == "+" else "left")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else str(cell) for cell in row))
    return made
