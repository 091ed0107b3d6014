"""What was shown and what it brought, by the hour, from the events of a log as they come."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.studies.events import EXPOSURES, Events, Kind

__all__ = ["Traffic"]

HOUR, DAY = 3600, 86400
#: Up to this age a study is shown by the hour, later by the day; days that are shown at most.
BY_HOUR, MAX_DAYS = 3 * DAY, 400
#: The longest time over which traffic is averaged, and the shortest, in seconds.
LONGEST, SHORTEST = 7 * DAY, HOUR


class Traffic:
    """Counts by the hour, and when each version of the shares began.

    Examples
    --------
    >>> from rank1.studies.events import Event, as_events
    >>> traffic = Traffic()
    >>> log = [Event(Kind.SUGGESTED), Event(Kind.REPORTED, suggestion=1, value=0.5)]
    >>> traffic.take(as_events(log, first=1, at=7200.0))
    >>> traffic.bins(now=7300.0)
    [{'at': '1970-01-01T02:00', 'shown': 1, 'reports': 1, 'rate': 0.5}]
    """

    def __init__(self) -> None:
        self.seq = 0
        #: Of the first exposure and of the last event, in seconds since 1970.
        self._first: float | None = None
        #: By hour since 1970: shown, reports, and the sum of their rewards.
        self._hours: dict[int, NDArray[np.float64]] = {}
        #: The number of each version, and when it began.
        self.versions: list[tuple[int, float]] = []
        #: The seq of each note and revision.
        self.notes: list[int] = []

    def take(self, events: Events) -> None:
        """Add the events that follow."""
        if not events.size:
            return
        self.seq = int(events.seq[-1])
        begun = events.kind == int(Kind.VERSION)
        self.versions += zip(events.tag[begun].tolist(), events.at[begun].tolist(), strict=True)
        noted = np.isin(events.kind, (int(Kind.NOTED), int(Kind.REVISED)))
        self.notes += events.seq[noted].tolist()
        exposed = np.isin(events.kind, [int(kind) for kind in EXPOSURES])
        told = np.isin(events.kind, (int(Kind.REPORTED), int(Kind.RECORDED)))
        told &= ~np.isnan(events.value)
        if self._first is None and exposed.any():
            self._first = float(events.at[exposed.argmax()])
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

    def bins(self, now: float) -> list[dict[str, Any]]:
        """Shown, reports and their average, by the day in UTC, or by the hour while it is young."""
        if self._first is None:
            return []
        width = HOUR if now - self._first < BY_HOUR else DAY
        first, last = (
            int(self._first // width),
            max(int(now // width), max(self._hours) * HOUR // width),
        )
        first = max(first, last - MAX_DAYS + 1)
        table = np.zeros((last - first + 1, 3))
        for hour, row in self._hours.items():
            if (place := hour * HOUR // width - first) >= 0:
                table[place] += row
        form = "%Y-%m-%dT%H:%M" if width == HOUR else "%Y-%m-%d"
        return [
            {
                "at": datetime.datetime.fromtimestamp(width * (first + k), datetime.UTC).strftime(
                    form
                ),
                "shown": int(shown),
                "reports": int(reports),
                "rate": float(total / reports) if reports else None,
            }
            for k, (shown, reports, total) in enumerate(table)
        ]

    def per_day(self, now: float) -> float | None:
        """Reports a day, over the last week or since it began; None in the first hour."""
        if self._first is None or now - self._first < SHORTEST:
            return None
        since = max(self._first, now - LONGEST)
        reports = sum(row[1] for hour, row in self._hours.items() if (hour + 1) * HOUR > since)
        return float(reports / (now - since) * DAY) or None
