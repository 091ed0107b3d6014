from __future__ import annotations

from typing import Any

import numpy as np

from rank1.fit.pooled import mean_of_all
from rank1.server.reward_curve import POINTS, RewardCurve
from rank1.studies.events import Event, Events, Kind, as_events
from rank1.studies.timeline import Days, by_day


def events(first: int, rows: list[int], values: list[float]) -> Events:
    made = [
        Event(Kind.REPORTED, arm=64 * row + row % 2, suggestion=1, value=value)
        for row, value in zip(rows, values, strict=True)
    ]
    return as_events(made, first, float(first))


def test_the_points_are_those_of_a_plain_count() -> None:
    rng = np.random.default_rng(1)
    rows, values = rng.integers(0, 5, 5000).tolist(), rng.random(5000).tolist()
    whole, parts = RewardCurve((64, 64), -1, 2), RewardCurve((64, 64), -1, 2)
    whole.take(events(1, rows, values))
    place = 0
    while place < 5000:
        size = int(rng.integers(1, 400))
        parts.take(events(place + 1, rows[place : place + size], values[place : place + size]))
        place += size
    found = whole.to_dict()
    for name in ("reports", "rate", "equal_split"):
        np.testing.assert_allclose(found[name], parts.to_dict()[name])
    assert POINTS / 2 <= len(found["reports"]) <= POINTS
    for count, rate, equal in zip(
        found["reports"], found["rate"], found["equal_split"], strict=True
    ):
        np.testing.assert_allclose(rate, np.mean(values[:count]))
        won, counts = np.zeros((2, 5, 2))
        for row, value in zip(rows[:count], values[:count], strict=True):
            counts[row, row % 2] += 1
            won[row, row % 2] += (value + 1) / 3
        np.testing.assert_allclose(equal, 3 * mean_of_all(won, counts - won) - 1, rtol=1e-3)


def test_an_empty_curve() -> None:
    assert RewardCurve((2, 2)).to_dict() == {"reports": [], "at": [], "rate": [], "equal_split": []}


def test_days_are_the_same_in_parts() -> None:
    rng = np.random.default_rng(1)
    kinds = [Kind.CREATED, *rng.choice([Kind.SUGGESTED, Kind.RECORDED, Kind.REPORTED], 200)]
    values = np.where(rng.random(201) < 0.3, np.nan, rng.random(201))
    log = as_events([Event(int(k), value=v) for k, v in zip(kinds, values, strict=True)], 1, 0.0)
    log = log._replace(at=np.sort(rng.uniform(0, 20 * 86400, 201)))
    days = Days()
    for end in range(0, 201, 67):
        part: Any = [column[end : end + 67] for column in log]
        days.take(Events(*part))
    assert days.list() == by_day(log)
    assert sum(day.shown for day in days.list()) == sum(k != 3 for k in kinds[1:])
