"""Managing studies over HTTP: forecasts, notes, archiving, deleting."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from rank1 import Study
from rank1.studies.events import Event, Kind, as_events
from rank1.studies.state import StudyState
from rank1.studies.traffic import DAY, Traffic
from tests.server.in_process import in_process

SIDES = {"age": ["young", "old"], "channel": ["email", "push"]}


def names(answer: Any) -> list[str]:
    return [each["name"] for each in answer.document["studies"]]


def test_notes_archive_and_delete(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        home = "/v1/studies/a%2Fb"
        body = {"name": "a/b", "sides": SIDES, "given": ["age"], "goal": "find", "seed": 1}
        assert service.call("/v1/studies", body).status == 201
        assert service.call(f"{home}/summary").document["verdict"] == "none"
        assert service.call(f"{home}/forecast").status == 422  # there are no reports yet
        found = service.call(f"{home}/personalise?side=channel&by=age")
        assert found.status == 200
        assert "no results yet" in found.document["statement"]
        assert service.call(f"{home}/personalise?side=channel&by=colour").status == 422
        given = {"count": 40, "given": {"age": "old"}}
        asked = service.call(f"{home}/ask/batch", given).document["results"]
        told = [
            {
                "id": each["suggestion"]["id"],
                "reward": float(each["suggestion"]["levels"]["channel"] == "push"),
            }
            for each in asked
        ]
        assert service.call(f"{home}/tell/batch", {"reports": told}).status == 200
        found = service.call(f"{home}/summary").document
        assert (found["verdict"], found["leader"], found["reports"]) == ("go", ["push"], 40)
        spans = service.call(f"{home}/forecast?per_day=100").document
        assert spans["days"]["median"] == spans["visitors"]["median"] / 100
        assert service.call(f"{home}/notes", {"text": "new prices"}).status == 201
        view = service.call(f"{home}/view").document
        assert view["notes"][0]["data"] == {"text": "new prices"}
        push = view["sides"][1]["levels"][1]
        assert push["leads"]
        assert push["chance"] > 0.95
        assert service.call(f"{home}/verification").document["ok"]  # a note is part of the log

        assert service.call(f"{home}/archive", {}).status == 200
        assert names(service.call("/v1/studies")) == []
        assert names(service.call("/v1/studies?archived=true")) == ["a/b"]
        assert service.call(f"{home}/unarchive", {}).status == 200
        assert names(service.call("/v1/studies")) == ["a/b"]

        reader = service.tokens.create("reader")
        assert service.call("/v1/tokens/current", None, reader).document["role"] == "reader"
        assert service.call(f"{home}/notes", {"text": "no"}, reader).status == 403
        assert service.call(f"{home}/archive", {}, reader).status == 403
        remove = service.request(f"{home}?confirm=other", token=service.token, method="DELETE")
        assert asyncio.run(remove).status == 422
        remove = service.request(f"{home}?confirm=a%2Fb", token=service.token, method="DELETE")
        assert asyncio.run(remove).status == 200
        assert service.call(f"{home}/summary").status == 404
        assert service.call(f"{home}/ask", {}).status == 404


def test_no_forecast_while_no_reward_counts(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        body = {"name": "w", "sides": SIDES, "goal": "find", "reward_window": 3600, "seed": 1}
        assert service.call("/v1/studies", body).status == 201
        asked = service.call("/v1/studies/w/ask", {}).document
        told = {"id": asked["id"], "reward": 1.0}
        assert service.call("/v1/studies/w/tell", told).status == 200
        found = service.call("/v1/studies/w/forecast")
        assert (found.status, found.document["field"]) == (422, "reports")
        assert service.call("/v1/studies/w/view").status == 200


@pytest.mark.uncompiled
def test_the_length_of_a_study_that_has_not_begun(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        plan = {"levels": [2, 2], "rate": 0.2, "lift": 0.5, "per_day": 100}
        easy = service.call("/v1/forecasts", plan).document
        hard = service.call("/v1/forecasts", {**plan, "lift": 0.2}).document
        assert easy["visitors"]["low"] <= easy["visitors"]["median"] <= easy["visitors"]["high"]
        # Visitors grow with the square of 1/lift.
        ratio = hard["visitors"]["median"] / easy["visitors"]["median"]
        assert 3 < ratio < 12
        assert easy["days"]["median"] == easy["visitors"]["median"] / 100
        nothing = service.call("/v1/forecasts", {**plan, "levels": [1, 1]}).document
        assert nothing["visitors"]["high"] == 0
        for wrong in ('{"levels": [100, 100]}', '{"levels": []}', '{"rate": 0.9, "lift": 5}'):
            assert service.call("/v1/forecasts", {**plan, **json.loads(wrong)}).status == 422


def test_traffic_by_hour_then_by_day() -> None:
    traffic = Traffic()
    log = [Event(Kind.SUGGESTED), Event(Kind.RECORDED, value=1.0), Event(Kind.NOTED, data="{}")]
    traffic.add(as_events(log, first=1, at=10.5 * DAY))
    assert [each["shown"] for each in traffic.bins(10.6 * DAY)] == [2, 0, 0]  # hours
    traffic.add(as_events([Event(Kind.VERSION, tag=1), *log[:2]], first=4, at=14.5 * DAY))
    bins = traffic.bins(15.5 * DAY)
    assert [each["shown"] for each in bins] == [2, 0, 0, 0, 2, 0]
    assert (bins[0]["at"], bins[0]["rate"], bins[1]["rate"]) == ("1970-01-11", 1.0, None)
    assert traffic.versions == [(1, 14.5 * DAY)]
    assert traffic.notes == [3]
    assert traffic.per_day(10.5 * DAY + 60) is None
    assert traffic.per_day(15.5 * DAY) == pytest.approx(2 / 5)
    assert [day.shown for day in traffic.days()] == [2, 0, 0, 0, 2]
    kept = Traffic.from_arrays(traffic.to_arrays())
    assert (kept.bins(15.5 * DAY), kept.versions, kept.notes) == (bins, [(1, 14.5 * DAY)], [3])


def test_the_traffic_is_in_the_snapshot(tmp_path: Path) -> None:
    place = tmp_path / "r.db"
    with Study.create("x", rows=["a", "b"], columns=["c", "d"], storage=place) as study:
        for asked in study.ask(5):
            study.tell(asked.id, 1.0)
        study.note("new prices")
        days = study.days()
        assert (days[0].shown, days[0].reports, days[0].rate) == (5, 5, 1.0)
        assert study.snapshot()
    with Study.open("x", place) as study:
        read = study.look(lambda state, log: (state.traffic.days(), state.traffic.notes))
        assert read == (days, [12])
        kept = StudyState.from_bytes(study.spec, study.look(lambda state, log: state.to_bytes()))
        assert kept.traffic.days() == days
