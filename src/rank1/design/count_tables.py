"""Read tables of counts, or of single exposures, for the bets; errors name the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rank1.design.counts import Counts
from rank1.design.share_document import SharesDocument
from rank1.errors import InputError, InputTypeError, Rank1Error

if TYPE_CHECKING:
    import polars as pl

__all__ = ["counts_of"]


def counts_of(shares: SharesDocument, table: Any) -> Counts:
    """Read the counts of a table with the columns version, one per side, reward and count.

    Without a `count` column, each row is an exposure and needs a `unit`. Each unit counts once, by
    its first exposure: the one with the earliest `time` or, without times, its first row. An
    exposure without a reward is pending.
    """
    import polars as pl

    frame = _frame(table)
    names = ["version", *shares.sides, "reward", "count" if "count" in frame.columns else "unit"]
    missing = [name for name in names if name not in frame.columns]
    if missing:
        sides = ", ".join(shares.sides)
        raise InputError(
            "columns", frame.columns,
            f"version, {sides}, reward and count (or unit, for single exposures)",
            got=f"{', '.join(frame.columns) or 'none'}; missing: {', '.join(missing)}",
        )  # fmt: skip
    version = _whole(frame, "version", 1)
    unknown = version > len(shares.versions)
    _refuse(frame, "version", unknown, f"a version that exists (1 to {len(shares.versions)})")
    arm, drawn = np.zeros(len(frame), np.int64), np.ones(len(frame), np.bool_)
    for k, (side, labels) in enumerate(shares.sides.items()):
        level = _levels(frame, side, labels)
        arm = arm * len(labels) + level
        if side not in shares.given:
            table_of = np.array([each.shares[k] for each in shares.versions.values()])
            undrawn = table_of[version - 1, level] == 0
            _refuse(frame, side, undrawn, "a level with a share above 0 in this version")
    reward = _rewards(frame, shares, pending="count" not in frame.columns)
    if "count" in frame.columns:
        pulls = _whole(frame, "count", 0).astype(np.float64)
    else:
        pulls = np.ones(len(frame))
        drawn = _first_exposures(frame) & ~np.isnan(reward)
    rows = pl.DataFrame({"version": version, "arm": arm, "reward": reward, "pulls": pulls})
    rows = rows.filter(pl.Series(drawn & (pulls > 0)))
    rows = rows.group_by("version", "arm", "reward").agg(pl.col("pulls").sum())
    return Counts(
        *(rows.sort("version", "reward", "arm")[name].to_numpy() for name in rows.columns)
    )


def _frame(table: Any) -> pl.DataFrame:
    """Return the table as a Polars frame."""
    import polars as pl

    if isinstance(table, pl.DataFrame):
        return table
    if not isinstance(table, Mapping | Sequence) and hasattr(table, "columns"):  # a pandas frame
        table = {str(name): table[name].to_list() for name in table.columns}
    try:
        return pl.DataFrame(table, strict=False, infer_schema_length=None)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputTypeError(
            "frame", table, "a frame, columns by name, or rows", str(error)
        ) from None


def _numbers(frame: pl.DataFrame, name: str) -> NDArray[np.float64]:
    """Return a column as numbers, with NaN where a value is missing."""
    import polars as pl

    column = frame[name]
    if column.dtype == pl.String:
        column = column.str.strip_chars()
    if column.dtype == pl.Object:
        column = pl.Series([str(each) for each in column])
    return column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def _whole(frame: pl.DataFrame, name: str, least: int) -> NDArray[np.int64]:
    found = _numbers(frame, name)
    bad = ~((found >= least) & (found < 2**53) & (found == np.floor(found)))
    _refuse(frame, name, bad, f"a whole number of at least {least}")
    return found.astype(np.int64)


def _levels(frame: pl.DataFrame, side: str, labels: Sequence[str]) -> NDArray[np.int64]:
    import polars as pl

    texts = frame[side].cast(pl.String)
    found = texts.replace_strict(labels, range(len(labels)), default=-1, return_dtype=pl.Int64)
    level = found.fill_null(-1).to_numpy()
    _refuse(frame, side, level < 0, f"one of {', '.join(labels)}")
    return level


def _rewards(frame: pl.DataFrame, shares: SharesDocument, pending: bool) -> NDArray[np.float64]:
    """Return the rewards, with NaN for pending ones."""
    import polars as pl

    reward, low, high = _numbers(frame, "reward"), shares.design.low, shares.design.high
    bad = ~((reward >= low) & (reward <= high))
    if pending:
        column = frame["reward"]
        empty = column.is_null()
        if column.dtype == pl.String:
            empty |= column.str.strip_chars() == ""
        bad &= ~empty.to_numpy()
    _refuse(frame, "reward", bad, f"a number in [{low:g}, {high:g}]")
    return reward


def _first_exposures(frame: pl.DataFrame) -> NDArray[np.bool_]:
    """Tell which rows are the first exposure of their unit."""
    import polars as pl

    unit = frame["unit"]
    empty = unit.is_null()
    if unit.dtype == pl.String:
        empty |= unit.str.strip_chars() == ""
    _refuse(frame, "unit", empty.to_numpy(), "an id in every row")
    rows = pl.DataFrame({"unit": unit, "row": np.arange(len(frame))})
    if "time" in frame.columns:
        time, numbers = frame["time"], _numbers(frame, "time")
        _refuse(frame, "time", time.is_null().to_numpy(), "a time in every row")
        if time.dtype == pl.String and not np.isnan(numbers).any():
            time = pl.Series(numbers)  # as numbers, so that "9" sorts before "10"
        rows = rows.with_columns(time.alias("time")).sort("time", "row")
    found = np.zeros(len(frame), np.bool_)
    found[rows.filter(pl.col("unit").is_first_distinct())["row"].to_numpy()] = True
    return found


def _refuse(frame: pl.DataFrame, name: str, bad: NDArray[np.bool_], expected: str) -> None:
    """Raise an error that names the first bad row, if there is one."""
    if bad.any():
        at = int(bad.argmax())
        error: Rank1Error = InputError(name, frame[name][at], expected)
        raise error.within(f"row {at + 1}")
