"""Polars frames that print all rows and columns."""

from __future__ import annotations

import polars as pl

__all__ = ["WholeFrame"]


class WholeFrame(pl.DataFrame):
    """A frame that prints all its rows and columns; Polars would leave some out.

    It is an ordinary frame otherwise, and operations on it return ordinary frames.

    Examples
    --------
    >>> frame = WholeFrame({f"column{k}": [k / 3] for k in range(20)})
    >>> "…" in str(frame), "…" in str(pl.DataFrame(frame))
    (False, True)
    """

    def __str__(self) -> str:
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=-1, fmt_str_lengths=1000):
            return super().__str__()

    def __repr__(self) -> str:
        return str(self)
