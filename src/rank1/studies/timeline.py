"""A study day by day: what was shown, what was reported, what it gave."""

from __future__ import annotations

import datetime
from typing import NamedTuple

import numpy as np

from rank1.studies.events import Events, Kind

__all__ = ["Day", "Days", "by_day"]

SECONDS = 86400


class Day(NamedTuple):
    """One day, in UTC."""

    date: str
    #: Suggestions and records.
    shown: int
    reports: int
    #: The average of the day's rewards; None without reports.
    rate: float | None


class Days:
    """Counts of each day, from the events of a log as they come."""

    def __init__(self) -> None:
        self._first: int | None = None
        #: Shown, reports, and the sum of the rewards: a column a day.
        self._counts = np.zeros((3, 0))

    def take(self, events: Events) -> None:
        """Add the events that follow."""
        if not events.size:
            return
        exposed = np.isin(events.kind, (Kind.SUGGESTED, Kind.RECORDED))
        number = (events.at // SECONDS).astype(np.int64)
        if self._first is None:
            if not exposed.any():
                return
            self._first = int(number[exposed.argmax()])
        told = np.isin(events.kind, (Kind.REPORTED, Kind.RECORDED)) & ~np.isnan(events.value)
        place = number - self._first
        days = max(int(place[-1]) + 1, self._counts.shape[1])
        new = np.array(
            [
                np.bincount(place[exposed], minlength=days),
                np.bincount(place[told], minlength=days),
                np.bincount(place[told], events.value[told], days),
            ],
            np.float64,
        )
        new[:, : self._counts.shape[1]] += self._counts
        self._counts = new

    def list(self) -> list[Day]:
        """The days from the first exposure to the last event, those without traffic included."""
        start = datetime.date(1970, 1, 1) + datetime.timedelta(days=self._first or 0)
        return [
            Day(
                (start + datetime.timedelta(days=day)).isoformat(),
                int(shown),
                int(reports),
                float(total / reports) if reports else None,
            )
            for day, (shown, reports, total) in enumerate(self._counts.T)
        ]


def by_day(events: Events) -> list[Day]:
    """The days from the first exposure to the last event, those without traffic included.

    >>> from rank1.studies.events import Event, as_events
    >>> log = [Event(Kind.SUGGESTED), Event(Kind.REPORTED, suggestion=1, value=1.0)]
    >>> by_day(as_events(log, first=1, at=86400.0))
    [Day(date='1970-01-02', shown=1, reports=1, rate=1.0)]
    """
    days = Days()
    days.take(events)
    return days.list()
