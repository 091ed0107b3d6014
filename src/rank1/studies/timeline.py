"""A study day by day: what was shown, what was reported, what it gave."""

from __future__ import annotations

import datetime
from typing import NamedTuple

import numpy as np

from rank1.studies.events import Events, Kind

__all__ = ["Day", "by_day"]

SECONDS = 86400


class Day(NamedTuple):
    """One day, in UTC."""

    date: str
    #: Suggestions and records.
    shown: int
    reports: int
    #: The average of the day's rewards; None without reports.
    rate: float | None


def by_day(events: Events) -> list[Day]:
    """The days from the first exposure to the last event, those without traffic included.

    >>> from rank1.studies.events import Event, as_events
    >>> log = [Event(Kind.SUGGESTED), Event(Kind.REPORTED, suggestion=1, value=1.0)]
    >>> by_day(as_events(log, first=1, at=86400.0))
    [Day(date='1970-01-02', shown=1, reports=1, rate=1.0)]
    """
    exposed = np.isin(events.kind, (Kind.SUGGESTED, Kind.RECORDED))
    if not exposed.any():
        return []
    told = np.isin(events.kind, (Kind.REPORTED, Kind.RECORDED)) & ~np.isnan(events.value)
    number = (events.at // SECONDS).astype(np.int64)
    first = int(number[exposed.argmax()])
    place, days = number - first, int(number[-1]) - first + 1
    shown = np.bincount(place[exposed], minlength=days)
    reports = np.bincount(place[told], minlength=days)
    sums = np.bincount(place[told], events.value[told], days)
    start = datetime.date(1970, 1, 1) + datetime.timedelta(days=first)
    return [
        Day(
            (start + datetime.timedelta(days=day)).isoformat(),
            int(shown[day]),
            int(reports[day]),
            float(sums[day] / reports[day]) if reports[day] else None,
        )
        for day in range(days)
    ]
