"""The rewards that a study's bets have seen: rows that are alike added up, and those too young."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.design import Counts, Design
from rank1.grid import Grid
from rank1.studies.fold import Book

__all__ = ["Evidence", "as_counts", "renumbered"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Rows = NDArray[Any]

#: What rewards may be alike in: see `fold.NOTE`.
COLUMNS = ("version", "under", "arm", "metric", "value")
#: Rewards that are alike, and how many there were.
ROW = np.dtype([(name, "f8" if name == "value" else "i8") for name in (*COLUMNS, "count")])
#: Rewards that count for the fit later: see `Evidence.matured`.
UNRIPE = np.dtype([("arm", "i8"), ("x", "f8"), ("asked", "f8")])


class Evidence:
    """Rows of rewards (`ROW`), and the rewards whose windows are open."""

    def __init__(self, window: float | None) -> None:
        self.window = window
        self.unripe = np.zeros(0, UNRIPE)
        self._parts: list[Rows] = []

    def take(self, book: Book, design: Design) -> Rows:
        """Move what the journal has into rows; the new ones."""
        at = book.at[0]
        notes = book.journal[: at.noted].view(np.ndarray)
        at.noted = 0
        rows = np.ones(len(notes), ROW)
        for name in COLUMNS:
            rows[name] = notes[name]
        rows = _added_up(rows)
        if len(rows):
            self._parts.append(rows)
        if self.window is not None:
            young = notes[(notes["metric"] == 0) & (notes["asked"] + self.window > at.time)]
            more = np.zeros(len(young), UNRIPE)
            more["arm"], more["asked"] = young["arm"], young["asked"]
            more["x"] = design.scaled(young["value"])
            self.unripe = np.concatenate([self.unripe, more])
        return rows

    def rows(self) -> Rows:
        """All rows, in order."""
        if len(self._parts) != 1:
            self._parts = [_added_up(np.concatenate([np.zeros(0, ROW), *self._parts]))]
        return self._parts[0]

    def counts(self, metric: int = 0) -> Counts:
        """The rows of a metric, for the design's functions; 0 is the reward."""
        rows = self.rows()
        return as_counts(rows[rows["metric"] == metric])

    def matured(self, book: Book) -> tuple[Floats, Floats]:
        """Counts and sums of rewards whose windows have closed: what the fit uses.

        Else, where successes come before failures, they would push it up.
        """
        counts, sums = book.counts, book.sums
        if self.window is not None:
            young = self.unripe[self.unripe["asked"] + self.window > book.at[0].time]
            counts = counts - np.bincount(young["arm"], minlength=len(counts))
            sums = np.maximum(sums - np.bincount(young["arm"], young["x"], len(sums)), 0.0)
            self.unripe = young
        return counts, sums

    def renumber(self, before: Grid, after: Grid) -> None:
        """Levels were added."""
        for records in (*self._parts, self.unripe):
            records["arm"] = renumbered(records["arm"], before, after)

    def to_arrays(self) -> dict[str, Rows]:
        """All of it, for `load`."""
        return {"design_rows": self.rows(), "design_unripe": self.unripe}

    def load(self, arrays: Mapping[str, Rows]) -> None:
        """What `to_arrays` kept."""
        self._parts, self.unripe = [arrays["design_rows"]], arrays["design_unripe"]


def renumbered(arms: Ints, of: Grid, to: Grid) -> Ints:
    """The numbers that arms of a grid have on a larger one."""
    found: Ints = np.zeros_like(arms)
    for stride, size, other in zip(of.strides, of.sizes, to.strides, strict=True):
        found += arms // stride % size * other
    return found


def as_counts(rows: Rows) -> Counts:
    """Rows for the design's functions."""
    names = "version", "arm", "value", "count", "under"
    return Counts(*(rows[name] for name in names))


def _added_up(rows: Rows) -> Rows:
    """One row for those that are alike, in order."""
    order = np.lexsort([rows[name] for name in reversed(COLUMNS)])
    rows = rows[order]
    if not len(rows):
        return rows
    new = np.ones(len(rows), np.bool_)
    new[1:] = np.any([rows[name][1:] != rows[name][:-1] for name in COLUMNS], axis=0)
    starts = np.flatnonzero(new)
    found = rows[starts]
    found["count"] = np.add.reduceat(rows["count"], starts)
    return found
