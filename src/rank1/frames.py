"""Polars frames that are printed whole."""

from __future__ import annotations

import polars as pl

__all__ = ["WholeFrame"]


class WholeFrame(pl.DataFrame):
    """A frame of which all rows and columns are printed; Polars leaves some out in the middle.

    It is an ordinary frame otherwise, and so is what is made of it.

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
