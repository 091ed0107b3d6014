"""The reward rate of a study over time, beside what an equal split would have brought."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.fit.pooled import mean_of_all
from rank1.studies.events import Events, Kind

__all__ = ["RewardCurve"]

#: The most points; beyond, every other one is dropped.
POINTS = 240


class RewardCurve:
    """Points of the average reward so far, from the events of a log as they come.

    The equal split is an estimate, see `rank1.fit.pooled`.

    Parameters
    ----------
    room
        The sizes of the grid on which the log numbers its arms.
    low, high
        The range of the rewards.

    Examples
    --------
    >>> from rank1.studies.events import Event, as_events
    >>> curve = RewardCurve((2, 2))
    >>> curve.take(as_events([Event(Kind.REPORTED, arm=3, suggestion=1, value=0.5)], 2, 7.0))
    >>> told = curve.to_dict()
    >>> told["reports"], told["at"], told["rate"], round(told["equal_split"][0], 6)
    ([1], [7.0], [0.5], 0.5)
    """

    def __init__(self, room: tuple[int, ...], low: float = 0.0, high: float = 1.0) -> None:
        self._room, self._low, self._width = room, low, high - low
        self.seq = 0
        self._every = 1
        self._count, self._sum = 0, 0.0
        # Over all levels seen so far; they grow with them.
        self._counts: NDArray[np.float64] = np.zeros((1,) * len(room))
        self._sums: NDArray[np.float64] = np.zeros((1,) * len(room))
        self._points: list[tuple[int, float, float, float]] = []

    def take(self, events: Events) -> None:
        """Add the events that follow."""
        if not events.size:
            return
        self.seq = int(events.seq[-1])
        some = np.isin(events.kind, (Kind.REPORTED, Kind.RECORDED))
        told = np.flatnonzero(some & ~np.isnan(events.value))
        if not len(told):
            return
        levels = np.unravel_index(events.arm[told], self._room)
        values, at = events.value[told], events.at[told]
        self._grow([int(side.max()) + 1 for side in levels])
        while (self._count + len(told)) // self._every > POINTS:
            self._every *= 2
        self._points = [each for each in self._points if each[0] % self._every == 0]
        begin = 0
        while begin < len(told):
            end = min(len(told), begin + self._every - self._count % self._every)
            arms = tuple(side[begin:end] for side in levels)
            np.add.at(self._counts, arms, 1.0)
            np.add.at(self._sums, arms, values[begin:end])
            self._count += end - begin
            self._sum += float(values[begin:end].sum())
            if self._count % self._every == 0:
                self._add(float(at[end - 1]))
            begin = end

    def _add(self, at: float) -> None:
        won = np.clip((self._sums - self._low * self._counts) / self._width, 0, self._counts)
        equal = self._low + self._width * mean_of_all(won, self._counts - won)
        self._points.append((self._count, at, self._sum / self._count, equal))

    def _grow(self, sizes: list[int]) -> None:
        wider = [
            (0, max(0, size - old)) for size, old in zip(sizes, self._counts.shape, strict=True)
        ]
        if any(more for _, more in wider):
            self._counts, self._sums = np.pad(self._counts, wider), np.pad(self._sums, wider)

    def to_dict(self) -> dict[str, Any]:
        """As plain values: reports so far, the time, the rate, and the rate of an equal split."""
        names = ("reports", "at", "rate", "equal_split")
        columns = zip(*self._points, strict=True) if self._points else ((),) * 4
        return {name: list(column) for name, column in zip(names, columns, strict=True)}
