"""The rewards behind a study's bets: grouped into rows, and those too recent for the fit."""

from __future__ import annotations

import copy
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

#: The columns by which rewards are grouped: see `fold.NOTE`.
COLUMNS = ("version", "under", "arm", "metric", "value")
#: A group of equal rewards, and their number.
ROW = np.dtype([(name, "f8" if name == "value" else "i8") for name in (*COLUMNS, "count")])
#: Rewards that don't count for the fit yet: see `Evidence.matured`.
UNRIPE = np.dtype([("arm", "i8"), ("x", "f8"), ("asked", "f8")])


class Evidence:
    """Rows of rewards (`ROW`), and the rewards whose windows are still open."""

    def __init__(self, window: float | None) -> None:
        self.window = window
        self.unripe = np.zeros(0, UNRIPE)
        self._parts: list[Rows] = []

    def take(self, book: Book, design: Design) -> Rows:
        """Move the journal into rows, and return the new rows."""
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

    def copied(self) -> Evidence:
        """Return a copy that takes rows of its own."""
        after = copy.copy(self)
        after._parts = list(self._parts)
        return after

    def rows(self) -> Rows:
        """All rows, in order."""
        if len(self._parts) != 1:
            self._parts = [_added_up(np.concatenate([np.zeros(0, ROW), *self._parts]))]
        return self._parts[0]

    def counts(self, metric: int = 0) -> Counts:
        """Return the rows of a metric for the functions of `design`; metric 0 is the reward."""
        rows = self.rows()
        return as_counts(rows[rows["metric"] == metric])

    def matured(self, book: Book) -> tuple[Floats, Floats]:
        """Return counts and sums of rewards whose windows have closed: the input of the fit.

        Otherwise the fit would be too high if successes are reported earlier than failures.
        """
        counts, sums = book.counts, book.sums
        if self.window is not None:
            young = self.unripe[self.unripe["asked"] + self.window > book.at[0].time]
            counts = counts - np.bincount(young["arm"], minlength=len(counts))
            sums = np.maximum(sums - np.bincount(young["arm"], young["x"], len(sums)), 0.0)
            self.unripe = young
        return counts, sums

    def renumber(self, before: Grid, after: Grid) -> None:
        """Renumber the arms after levels were added."""
        for records in (*self._parts, self.unripe):
            records["arm"] = renumbered(records["arm"], before, after)

    def to_arrays(self) -> dict[str, Rows]:
        """Serialize the evidence for `load`."""
        return {"design_rows": self.rows(), "design_unripe": self.unripe}

    def load(self, arrays: Mapping[str, Rows]) -> None:
        """Restore the evidence from `to_arrays`."""
        self._parts, self.unripe = [arrays["design_rows"]], arrays["design_unripe"]


def renumbered(arms: Ints, of: Grid, to: Grid) -> Ints:
    """Convert the numbers of arms on a grid to their numbers on a larger grid."""
    found: Ints = np.zeros_like(arms)
    for stride, size, other in zip(of.strides, of.sizes, to.strides, strict=True):
        found += arms // stride % size * other
    return found


def as_counts(rows: Rows) -> Counts:
    """Convert rows for the functions of `design`."""
    names = "version", "arm", "value", "count", "under"
    return Counts(*(rows[name] for name in names))


def _added_up(rows: Rows) -> Rows:
    """Merge equal rows, and sort them."""
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
