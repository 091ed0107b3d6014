"""Exposures and rewards by the hour, counted from the events of a log as they arrive."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.studies.events import EXPOSURES, Events, Kind

__all__ = ["Day", "Traffic"]

HOUR, DAY = 3600, 86400
#: The age up to which a study is shown by hour, then by day; and the most days shown.
BY_HOUR, MAX_DAYS = 3 * DAY, 400
#: The longest and the shortest time over which traffic is averaged, in seconds.
LONGEST, SHORTEST = 7 * DAY, HOUR


#: Events to count together: counting a few takes as long as counting thousands.
TOGETHER = 4096


class Day(NamedTuple):
    """One day, in UTC."""

    date: str
    #: The number of suggestions and records.
    shown: int
    reports: int
    #: The average of the day's rewards; None without reports.
    rate: float | None


class Traffic:
    """Counts by the hour, and when each version of the shares began.

    Examples
    --------
    >>> from rank1.studies.events import Event, as_events
    >>> traffic = Traffic()
    >>> log = [Event(Kind.SUGGESTED), Event(Kind.REPORTED, suggestion=1, value=0.5)]
    >>> traffic.add(as_events(log, first=1, at=7200.0))
    >>> traffic.bins(now=7300.0)
    [{'at': '1970-01-01T02:00', 'shown': 1, 'reports': 1, 'rate': 0.5}]
    >>> traffic.days()
    [Day(date='1970-01-01', shown=1, reports=1, rate=0.5)]
    """

    def __init__(self) -> None:
        #: The times of the first exposure and the last event, in seconds since 1970.
        self._first, self._last = np.nan, np.nan
        #: By hour since 1970: exposures, reports, and the sum of their rewards.
        self._hours: dict[int, NDArray[np.float64]] = {}
        self._versions: list[tuple[int, float]] = []
        self._notes: list[int] = []
        #: Events that aren't counted yet.
        self._new: list[Events] = []
        self._size = 0

    def add(self, events: Events) -> None:
        """Add the events that follow."""
        self._new.append(events)
        self._size += events.size
        if self._size >= TOGETHER:
            self._count()

    @property
    def versions(self) -> list[tuple[int, float]]:
        """Return the number of each version, and when it began."""
        self._count()
        return self._versions

    @property
    def notes(self) -> list[int]:
        """Return the seq of each note and revision."""
        self._count()
        return self._notes

    def _count(self) -> None:
        new, self._new, size, self._size = self._new, [], self._size, 0
        if not size:
            return
        events = Events(*map(np.concatenate, zip(*new, strict=True)))
        begun = events.kind == int(Kind.VERSION)
        self._versions += zip(events.tag[begun].tolist(), events.at[begun].tolist(), strict=True)
        noted = np.isin(events.kind, (int(Kind.NOTED), int(Kind.REVISED)))
        self._notes += events.seq[noted].tolist()
        exposed = np.isin(events.kind, [int(kind) for kind in EXPOSURES])
        told = np.isin(events.kind, (int(Kind.REPORTED), int(Kind.RECORDED)))
        told &= ~np.isnan(events.value)
        if np.isnan(self._first) and exposed.any():
            self._first = float(events.at[exposed.argmax()])
        self._last = float(events.at[-1])
        hours = (events.at // HOUR).astype(np.int64)
        first = int(hours.min())
        places, size = hours - first, int(hours.max()) - first + 1
        table = np.stack(
            [
                np.bincount(places[exposed], minlength=size),
                np.bincount(places[told], minlength=size),
                np.bincount(places[told], events.value[told], size),
            ],
            axis=1,
        )
        for k in np.flatnonzero(table.any(axis=1)).tolist():
            self._hours[first + k] = self._hours.get(first + k, np.zeros(3)) + table[k]

    def _by(
        self, width: int, last: float, most: int
    ) -> Iterator[tuple[int, int, int, float | None]]:
        """Yield the start of each period, its exposures and reports, and the average reward."""
        self._count()
        if np.isnan(self._first):
            return
        latest = max(int(last // width), max(self._hours) * HOUR // width)
        first = max(int(self._first // width), latest - most + 1)
        table = np.zeros((latest - first + 1, 3))
        for hour, row in self._hours.items():
            if (place := hour * HOUR // width - first) >= 0:
                table[place] += row
        for k, (shown, reports, total) in enumerate(table.tolist()):
            rate = total / reports if reports else None
            yield width * (first + k), int(shown), int(reports), rate

    def days(self) -> list[Day]:
        """Return the days from the first exposure to the last event, including empty ones."""
        self._count()
        found = self._by(DAY, self._last, 10**6)
        return [Day(_text(at, DAY), shown, told, rate) for at, shown, told, rate in found]

    def bins(self, now: float) -> list[dict[str, Any]]:
        """Return exposures, reports and their average by day in UTC; by hour for a young study."""
        self._count()
        width = HOUR if now - self._first < BY_HOUR else DAY
        return [
            {"at": _text(at, width), "shown": shown, "reports": reports, "rate": rate}
            for at, shown, reports, rate in self._by(width, now, MAX_DAYS)
        ]

    def per_day(self, now: float) -> float | None:
        """Return reports per day, over the last week or since the start; None in the first hour."""
        self._count()
        if not now - self._first >= SHORTEST:
            return None
        since = max(self._first, now - LONGEST)
        reports = sum(row[1] for hour, row in self._hours.items() if (hour + 1) * HOUR > since)
        return float(reports / (now - since) * DAY) or None

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Serialize the counts for `from_arrays`."""
        self._count()
        table = [[hour, *row] for hour, row in self._hours.items()]
        return {
            "traffic_ends": np.array([self._first, self._last]),
            "traffic_hours": np.array(table, np.float64).reshape(-1, 4),
            "traffic_versions": np.array(self._versions, np.float64).reshape(-1, 2),
            "traffic_notes": np.array(self._notes, np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Traffic:
        """Restore the counts from `to_arrays`."""
        made = cls()
        made._first, made._last = arrays["traffic_ends"].tolist()
        made._hours = {int(row[0]): row[1:].copy() for row in arrays["traffic_hours"]}
        made._versions = [(int(n), at) for n, at in arrays["traffic_versions"].tolist()]
        made._notes = arrays["traffic_notes"].tolist()
        return made


def _text(at: int, width: int) -> str:
    form = "%Y-%m-%dT%H:%M" if width == HOUR else "%Y-%m-%d"
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime(form)
