"""Assignment without a round trip: shares, records and rewards over HTTP."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1.server.tokens import Tokens
from tests.server.support import PATIENCE, Served, at, call, served

SIDES = {"headline": ["A", "B"], "image": ["x", "y", "z"]}


def find(service: Served, name: str, **more: Any) -> dict[str, Any]:
    """Create a study that draws by shares, and return its shares."""
    status, found = service.call(
        "/v1/studies", {"name": name, "sides": SIDES, "goal": "find", **more}
    )
    assert status == 201, found
    status, shares = service.call(at(name, "/shares"))
    assert status == 200
    assert isinstance(shares, dict)
    return shares


def recorded(service: Served, name: str, *records: Any) -> list[int]:
    status, found = service.call(at(name, "/records"), {"records": records})
    assert status == 200, found
    return [each["status"] for each in found["results"]]


def record(shares: dict[str, Any], unit: str, **more: Any) -> dict[str, Any]:
    levels = rank1.assign(shares, unit)
    return {"unit": unit, "version": shares["version"], "levels": levels, **more}


def test_units_are_recorded_once_and_rewarded_later(service: Served) -> None:
    shares = find(service, "once")
    one, two = record(shares, "u1", reward=1), record(shares, "u2")
    assert recorded(service, "once", one, two) == [201, 201]
    assert recorded(service, "once", two, one) == [200, 200]
    other = {**one, "reward": 0}
    assert recorded(service, "once", other) == [409]
    rewards = [
        {"unit": "u2", "reward": 1},
        {"unit": "u3", "reward": 1},
        {"unit": "u2", "reward": 0},
    ]
    _, found = service.call(at("once", "/rewards"), {"rewards": rewards})
    assert [each["status"] for each in found["results"]] == [200, 404, 409]
    _, best = service.call(at("once", "/best"))
    assert best["totals"]["reports"] == 2


def test_what_does_not_fit_is_refused_item_by_item(service: Served) -> None:
    shares = find(
        service, "items", guardrails={"left": {"worse_by": 0.1}},
        control={"headline": "A", "image": "x"},
    )  # fmt: skip
    good = record(shares, "u1")
    wrong: list[Any] = [
        {**good, "version": 99},
        {**good, "levels": {"headline": "C", "image": "x"}},
        {**good, "levels": {"headline": "A"}},
        {**good, "reward": True},
        {**good, "reward": 1, "guardrails": {"left": True}},
        {**good, "reward": "1e-1"},
        {**good, "reward": 2},
        {**good, "unit": 7},
        {**good, "colour": "red"},
        7,
    ]
    assert recorded(service, "items", *wrong, good) == [422] * len(wrong) + [201]
    bodies: list[Any] = [{}, {"records": []}, {"records": {}}, {"records": [good], "x": 1}, b"{"]
    for body in bodies:
        assert service.call(at("items", "/records"), body)[0] == 422
    policy = service.call("/v1/studies", {"name": "earns", "sides": SIDES, "goal": "earn"})
    assert policy[0] == 201
    assert service.call(at("earns", "/shares"))[0] == 409


def test_wrong_items_make_no_huge_answer(service: Served) -> None:
    """A page's key is public: no small request may make the service build a large answer."""
    sides = {"headline": [f"level {k}" for k in range(500)], "image": ["x", "y"]}
    shares = find(service, "wrong", sides=sides)
    wrong = {**record(shares, "u"), "levels": {"headline": "none", "image": "x"}}
    body = {"records": [{**wrong, "unit": f"u{k}"} for k in range(1000)]}
    status, found = service.call(at("wrong", "/records"), body)
    assert status == 200
    assert {each["status"] for each in found["results"]} == {422}
    assert {each["problem"]["field"] for each in found["results"]} == {"levels.headline"}
    assert "(500 in all)" in found["results"][0]["problem"]["expected"]
    assert len(json.dumps(found)) < 5 * len(json.dumps(body))
    body = {"reports": [{"id": "none", "reward": 1}] * 1000}
    _, found = service.call(at("wrong", "/tell/batch"), body)
    assert {each["status"] for each in found["results"]} == {404}
    assert [len(each["problem"]) for each in (found["results"][0], found["results"][-1])] == [5, 4]


def test_an_import_with_whole_rewards_is_known_again(service: Served) -> None:
    """Earlier versions read 1 as 1.0, so the same body must have the same digest."""
    find(service, "again")
    found = [
        service.call(at("again", "/imports"), {"rewards": [["A", "x", one], ["B", "y", 0.5]]})[1]
        for one in (1.0, 1)
    ]
    assert [each["already_imported"] for each in found] == [False, True]


def test_shares_can_be_cached(service: Served) -> None:
    find(service, "cached")
    host, port = service.url.removeprefix("http://").split(":")
    link = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
    bearer = {"Authorization": f"Bearer {service.token}"}
    link.request("GET", at("cached", "/shares"), headers=bearer)
    answer = link.getresponse()
    answer.read()
    assert answer.headers["Cache-Control"] == "public, max-age=60"
    assert answer.headers["Vary"] == "Origin"  # also for a request without one
    tag = answer.headers["ETag"]
    for known in (tag, f"W/{tag}"):
        link.request("GET", at("cached", "/shares"), headers={**bearer, "If-None-Match": known})
        answer = link.getresponse()
        assert (answer.status, answer.read()) == (304, b"")
    link.close()


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_a_page_records_with_a_browsers_token(tmp_path: Path, kind: str) -> None:
    tokens = Tokens(tmp_path / "rank1-tokens.json")
    admin = tokens.create("admin")
    page = tokens.create("browser", ["shop"], origins=["https://shop.example"])
    with served(tmp_path, token=admin) as service:
        shares, _ = find(service, "shop"), find(service, "other")
        body = json.dumps({"records": [record(shares, "u1", reward=1)]}).encode()
        origin = {"Origin": "https://shop.example", "Content-Type": kind}
        path = at("shop", f"/records?token={page}")  # as a beacon sends it
        assert call(service.url, path, body, **origin)[0] == 200
        assert call(service.url, at("other", "/shares"), token=page, **origin)[0] == 403
        assert call(service.url, at("other", "/records"), body, token=page, **origin)[0] == 403
        for path in ("", "/best", "/history", "/export", "/view", "/fit"):
            assert call(service.url, at("shop", path), token=page, **origin)[0] == 403
        assert call(service.url, at("shop", "/ask"), {}, token=page, **origin)[0] == 403
        assert call(service.url, "/v1/studies", token=page)[1] == {"studies": []}
        fallback = {"unit": "u9", "levels": {"headline": "A"}, "fallback": True}
        assert recorded(service, "shop", fallback) == [200]
        text = service.call("/v1/studies/shop")[1]["totals"]
        assert text["suggestions"] == 1


def test_given_sides_and_guardrails_over_http(service: Served) -> None:
    sides = {"segment": ["new", "old"], "channel": ["mail", "push"]}
    body = {
        "name": "mail", "sides": sides, "goal": "find", "given": ["segment"],
        "control": {"channel": "mail"}, "guardrails": {"unsubscribed": {"worse_by": 0.02}},
    }  # fmt: skip
    status, found = service.call("/v1/studies", body)
    assert status == 201, found
    status, asked = service.call(at("mail", "/ask"), {"given": {"segment": "new"}})
    assert (status, asked["levels"]["segment"]) == (201, "new")
    assert service.call(at("mail", "/ask"), {})[0] == 422
    told = {"id": asked["id"], "reward": 1, "guardrails": {"unsubscribed": 0}}
    assert service.call(at("mail", "/tell"), told)[0] == 200
    _, shares = service.call(at("mail", "/shares"))
    levels = rank1.assign(shares, "u1", {"segment": "old"})
    one = {"unit": "u1", "version": shares["version"], "levels": levels, "reward": 0,
           "guardrails": {"unsubscribed": 1}}  # fmt: skip
    other = {**one, "guardrails": {"unsubscribed": 0}}
    alone = {**one, "unit": "u2", "reward": None}
    assert recorded(service, "mail", one, one, other, alone) == [201, 200, 409, 422]
    for body, expected in ((told, 200), ({**told, "guardrails": {"unsubscribed": 1}}, 409)):
        assert service.call(at("mail", "/tell"), body)[0] == expected
    rewards = [{"unit": "u1", "reward": 0, "guardrails": {"unsubscribed": k}} for k in (1, 0)]
    _, found = service.call(at("mail", "/rewards"), {"rewards": rewards})
    assert [each["status"] for each in found["results"]] == [200, 409]
    assert "u1" in found["results"][1]["problem"]["detail"]
    with rank1.Client(service.url, service.token, PATIENCE) as client:
        study = client.open("mail")
        assert study.personalise("channel", by="segment").by == "segment"
        with pytest.raises(rank1.ConflictError, match="already has unsubscribed = 1"):
            study.reward("u1", 0, {"unsubscribed": 0})
