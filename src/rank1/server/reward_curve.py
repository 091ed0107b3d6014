"""The reward rate of a study over time, beside what an equal split would have brought."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.fit.pooled import mean_of_all
from rank1.studies.log import Events, Kind

__all__ = ["RewardCurve"]

#: The most points; beyond, every other one is dropped.
POINTS = 240


class RewardCurve:
    """Points of the average reward so far, made from the events of a log as they come.

    The equal split is an estimate: `rank1.fit.pooled` has how it is made.

    Examples
    --------
    >>> from rank1.studies.log import Event, as_events
    >>> curve = RewardCurve()
    >>> curve.take(as_events([Event(Kind.REPORTED, row=1, suggestion=1, value=0.5)], 2, 7.0))
    >>> curve.to_dict()
    {'reports': [1], 'at': [7.0], 'rate': [0.5], 'equal_split': [0.5]}
    """

    def __init__(self, low: float = 0.0, high: float = 1.0) -> None:
        self._low, self._width = low, high - low
        self.seq = 0
        self._every = 1
        self._count, self._sum = 0, 0.0
        self._counts: NDArray[np.float64] = np.zeros((1, 1))
        self._sums: NDArray[np.float64] = np.zeros((1, 1))
        self._points: list[tuple[int, float, float, float]] = []

    def take(self, events: Events) -> None:
        """Add the events that follow."""
        if not events.size:
            return
        self.seq = int(events.seq[-1])
        told = np.flatnonzero(events.kind == int(Kind.REPORTED))
        if not len(told):
            return
        rows, columns = events.row[told], events.column[told]
        values, at = events.value[told], events.at[told]
        self._make_room(int(rows.max()) + 1, int(columns.max()) + 1)
        while (self._count + len(told)) // self._every > POINTS:
            self._every *= 2
        self._points = [each for each in self._points if each[0] % self._every == 0]
        begin = 0
        while begin < len(told):
            end = min(len(told), begin + self._every - self._count % self._every)
            part = slice(begin, end)
            np.add.at(self._counts, (rows[part], columns[part]), 1.0)
            np.add.at(self._sums, (rows[part], columns[part]), values[part])
            self._count += end - begin
            self._sum += float(values[part].sum())
            if self._count % self._every == 0:
                self._add(float(at[end - 1]))
            begin = end

    def _add(self, at: float) -> None:
        won = np.clip((self._sums - self._low * self._counts) / self._width, 0, self._counts)
        equal = self._low + self._width * mean_of_all(won, self._counts - won)
        self._points.append((self._count, at, self._sum / self._count, equal))

    def _make_room(self, K: int, L: int) -> None:
        old = self._counts.shape
        if old[0] < K or old[1] < L:
            grown = ((0, max(0, K - old[0])), (0, max(0, L - old[1])))
            self._counts, self._sums = np.pad(self._counts, grown), np.pad(self._sums, grown)

    def to_dict(self) -> dict[str, Any]:
        """As plain values: reports so far, the time, the rate, and that of an equal split."""
        names = ("reports", "at", "rate", "equal_split")
        columns = zip(*self._points, strict=True) if self._points else ((),) * 4
        return {name: list(column) for name, column in zip(names, columns, strict=True)}
