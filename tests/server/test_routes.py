from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, cast

import pytest

import rank1
from rank1.server.problem_details import RefusedError, problem_of, status_of, validation_problem
from rank1.server.registry import MAX_SLOW, StudyRegistry
from rank1.server.write_queue import WriteQueue
from rank1.studies.storage import open_storage
from rank1.studies.unit_of_work import StudyAccess
from tests.server.support import GRID, PATIENCE, Served, at, call


def create(service: Served, name: str, **fields: object) -> None:
    status, found = service.call("/v1/studies", {"name": name, **GRID, "seed": 1, **fields})
    assert status == 201, found


def test_a_study_from_beginning_to_end(service: Served) -> None:
    create(service, "whole")
    status, asked = service.call(at("whole", "/ask"), {})
    assert status == 201
    assert (asked["row"], asked["column"]) == ("a", "x")
    status, told = service.call(at("whole", "/tell"), {"id": asked["id"], "reward": 1})
    assert (status, told["reward"], told["late"]) == (200, 1.0, False)
    status, best = service.call(at("whole", "/best"))
    assert (status, best["leader"], best["totals"]["reports"]) == (200, ["a", "x"], 1)
    status, shown = service.call(at("whole"))
    assert (shown["rows"], shown["goal"], shown["totals"]["pending"]) == (
        ["a", "b", "c"],
        "earn",
        0,
    )
    status, listed = service.call("/v1/studies")
    assert "whole" in [each["name"] for each in listed["studies"]]
    status, gone = service.call(at("whole", "/retire"), {})
    assert gone["retired"] is not None
    assert service.call(at("whole", "/retire"), {})[0] == 200
    status, problem = service.call(at("whole", "/ask"), {})
    assert (status, problem["title"]) == (409, "Ended")


def test_batches_answer_each_item_by_itself(service: Served) -> None:
    create(service, "batch")
    _, given = service.call(at("batch", "/ask/batch"), {"count": 5})
    ids = [each["suggestion"]["id"] for each in given["results"]]
    assert len(set(ids)) == 5
    reports = [{"id": ids[0], "reward": 1}, {"id": "no", "reward": 1}, {"id": ids[1], "reward": 7}]
    status, found = service.call(at("batch", "/tell/batch"), {"reports": reports})
    assert status == 200
    assert [each["status"] for each in found["results"]] == [200, 404, 422]
    assert found["results"][2]["problem"]["field"] == "reward"
    asks = [{"unit": "u"}, {"unit": "u"}, {"key": "k"}, {"unit": ""}]
    _, given = service.call(at("batch", "/ask/batch"), {"asks": asks})
    results = given["results"]
    assert [each["status"] for each in results] == [201, 201, 201, 422]
    assert results[0]["suggestion"]["id"] == results[1]["suggestion"]["id"]
    assert service.call(at("batch", "/ask/batch"), {})[0] == 422
    assert service.call(at("batch"))[1]["totals"]["suggestions"] == 7


SIDES = {"headline": ["A", "B"], "image": ["x", "y", "z"], "button": ["buy", "go"]}


def test_any_number_of_sides(service: Served) -> None:
    status, made = service.call("/v1/studies", {"name": "sides", "sides": SIDES, "seed": 1})
    assert (status, made["sides"]) == (201, SIDES)
    assert "rows" not in made
    _, asked = service.call(at("sides", "/ask"), {"data": {"page": 7}})
    assert asked["levels"] == {"headline": "A", "image": "x", "button": "buy"}
    assert asked["data"] == {"page": 7}
    assert "row" not in asked
    _, told = service.call(at("sides", "/tell"), {"id": asked["id"], "reward": 1})
    assert told["levels"] == asked["levels"]
    rewards = {"rewards": [["B", "y", "go", 1.0], ["B", "y", "go", 0.0], ["A", "z", "buy", 1.0]]}
    assert service.call(at("sides", "/imports"), rewards)[1]["rewards"] == 3
    _, best = service.call(at("sides", "/best"))
    assert list(best["effects"]) == list(SIDES)
    assert len(best["leader"]) == 3
    change = {"add": {"headline": ["C"]}, "retire": {"button": ["go"]}}
    assert service.call(at("sides", "/revisions"), change)[1] == {"revision": 1, **change}
    _, found = service.call(at("sides", "/revisions"))
    assert found["sides"] == {**SIDES, "headline": ["A", "B", "C"], "button": ["buy"]}
    assert found["revisions"][0]["add"] == {"headline": ["C"]}
    _, page = service.call(at("sides", "/history?side=headline&level=B"))
    assert [each["kind"] for each in page["events"]] == ["history", "history"]
    _, page = service.call(at("sides", "/history?kind=suggested"))
    assert page["events"][0]["data"] == {"page": 7}
    _, view = service.call(at("sides", "/view"))
    assert [len(side["levels"]) for side in view["sides"]] == [3, 3, 2]
    assert view["arms"][0]["mean"] == 1.0
    assert "means" not in view
    assert service.call(at("sides", "/fit?repetitions=19"))[0] == 200
    assert service.call(at("sides", "/verification"))[1]["ok"]


def test_one_side(service: Served) -> None:
    create(service, "one", rows=None, columns=None, sides={"headline": ["A", "B", "C"]})
    _, given = service.call(at("one", "/ask/batch"), {"count": 30})
    reports = [
        {
            "id": each["suggestion"]["id"],
            "reward": float(each["suggestion"]["levels"]["headline"] == "B"),
        }
        for each in given["results"]
    ]
    service.call(at("one", "/tell/batch"), {"reports": reports})
    _, best = service.call(at("one", "/best"))
    assert (best["leader"], len(best["means"])) == (["B"], 3)
    _, view = service.call(at("one", "/view"))
    assert view["arms"][0]["levels"] == ["B"]
    assert view["sides"][0]["levels"][1]["lift"] == [0, 0, 0]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"sides": {"image": ["x", "x"]}}, "sides.image"),
        ({"sides": {"image": []}}, "sides.image"),
        ({"sides": {}}, "sides"),
        ({"sides": {f"{k}": ["x"] for k in range(17)}}, "sides"),
        ({"sides": {"image": ["x"]}, **GRID}, "sides"),
        ({"sides": {f"{k}": list("0123456789") for k in range(9)}}, "sides"),
        ({"sides": {"a": ["x"], "b": ["y"], "c": ["z"]}, "policy": "rank1elim"}, "sides"),
    ],
)
def test_sides_that_are_none_are_refused(
    service: Served, fields: dict[str, Any], field: str
) -> None:
    status, found = service.call("/v1/studies", {"name": "none", **fields})
    assert (status, found["field"]) == (422, field), found
    assert found["remedy"]
    assert found["value"]


def test_data_is_a_small_object(service: Served) -> None:
    create(service, "data")
    status, found = service.call(at("data", "/ask"), {"data": {"text": "x" * 5000}})
    assert (status, found["field"]) == (422, "data")
    assert service.call(at("data", "/ask"), {"data": [1]})[0] == 422
    asks = {"asks": [{"data": {"a": 1}}, {"unit": "u"}]}
    _, given = service.call(at("data", "/ask/batch"), asks)
    assert [each["suggestion"]["data"] for each in given["results"]] == [{"a": 1}, None]


def test_the_same_key_gives_the_same_answer(service: Served) -> None:
    body = {"name": "keys", **GRID}
    first = service.call("/v1/studies", body, Idempotency_Key="make")
    assert first[0] == 201
    assert service.call("/v1/studies", body, Idempotency_Key="make") == first
    assert service.call("/v1/studies", body, Idempotency_Key="other")[0] == 409
    status, found = service.call("/v1/studies", body)
    assert (status, found["title"]) == (409, "Study exists")
    assert "rank1.db" not in str(found)
    one = service.call(at("keys", "/ask"), {}, Idempotency_Key="k")
    assert service.call(at("keys", "/ask"), {}, Idempotency_Key="k") == one
    report = {"id": one[1]["id"], "reward": 0}
    told = service.call(at("keys", "/tell"), report, Idempotency_Key="t")
    assert service.call(at("keys", "/tell"), report, Idempotency_Key="t") == told
    assert service.call(at("keys", "/tell"), {**report, "reward": 1})[0] == 409
    change = {"add_rows": ["d"]}
    revised = service.call(at("keys", "/revisions"), change, Idempotency_Key="r")
    assert revised[0] == 201
    assert service.call(at("keys", "/revisions"), change, Idempotency_Key="r") == revised
    assert service.call(at("keys", "/revisions"), change)[0] == 422
    assert (
        service.call(at("keys", "/revisions"), {"add_rows": ["e"]}, Idempotency_Key="r")[0] == 409
    )
    rewards = {"rewards": [["a", "x", 1.0]] * 3}
    for already in (False, True):
        found = service.call(at("keys", "/imports"), rewards)[1]
        assert found == {"rewards": 3, "skipped": 0, "already_imported": already}
    other = service.call(at("keys", "/ask"), {})[1]
    for _ in range(2):
        assert service.call(at("keys", "/cancel"), {"id": other["id"]})[0] == 200
    totals = service.call(at("keys"))[1]["totals"]
    assert totals == {"suggestions": 2, "reports": 1, "pending": 0, "expired": 0, "cancelled": 1}


def test_a_list_of_asks_may_be_sent_again(service: Served) -> None:
    create(service, "again")
    body = {"asks": [{"unit": "u"}, {}, {}, {"key": "own"}]}
    first = service.call(at("again", "/ask/batch"), body, Idempotency_Key="k")
    assert first[0] == 201
    assert len({each["suggestion"]["id"] for each in first[1]["results"]}) == 4
    assert service.call(at("again", "/ask/batch"), body, Idempotency_Key="k") == first
    other = service.call(at("again", "/ask/batch"), body, Idempotency_Key="other")[1]["results"]
    assert [one == two for one, two in zip(first[1]["results"], other, strict=True)] == [
        True, False, False, True
    ]  # fmt: skip
    assert service.call(at("again"))[1]["totals"]["suggestions"] == 6


def test_a_key_is_for_one_request(service: Served) -> None:
    assert service.call("/v1/studies", {"name": "once", **GRID})[0] == 201
    given = service.call(at("once", "/ask/batch"), {"count": 6})[1]["results"]
    ids = [each["suggestion"]["id"] for each in given]

    def post(what: str, body: dict[str, Any], key: str) -> int:
        return service.call(at("once", what), body, Idempotency_Key=key)[0]

    def reports(*which: int) -> dict[str, Any]:
        return {"reports": [{"id": ids[k], "reward": 1} for k in which]}

    assert post("/tell", {"id": ids[0], "reward": 1}, "tell") == 200
    assert post("/tell", {"id": ids[1], "reward": 1}, "tell") == 409
    assert post("/tell/batch", reports(2, 3), "batch") == 200
    assert post("/tell/batch", reports(3, 2), "batch") == 200
    assert post("/tell/batch", reports(2, 3, 4), "batch") == 409
    assert post("/tell/batch", reports(2), "batch") == 409
    assert post("/cancel", {"id": ids[5]}, "cancel") == 200
    assert post("/cancel", {"id": ids[5]}, "cancel") == 200
    assert post("/cancel", {"id": ids[4]}, "cancel") == 409
    for key in "tell", "batch", "cancel":
        assert post("/ask", {}, key) == 409
    assert post("/cancel", {"id": ids[4]}, "tell") == 409
    with_key = service.call(at("once"))[1]["totals"]
    assert (with_key["reports"], with_key["pending"], with_key["cancelled"]) == (3, 2, 1)


def test_problems_name_field_value_and_remedy(service: Served) -> None:
    create(service, "problems")
    status, found = service.call("/v1/studies", {"name": "p", **GRID, "goal": "earm"})
    assert status == 422
    assert found["field"] == "goal"
    assert found["value"] == "'earm'"
    assert "earn, find" in found["remedy"]
    status, found = service.call("/v1/studies", {"name": "p"})
    assert (status, found["field"], found["remedy"]) == (
        422,
        "sides",
        "sides must be given, or both rows and columns",
    )
    status, found = service.call("/v1/studies", GRID)
    assert (status, found["detail"].partition(",")[0]) == (422, "name is required")
    for body, detail in (
        ({"count": 10**8}, "count must be less than or equal to 10000, got 100000000"),
        ({"count": 0}, "count must be greater than or equal to 1, got 0"),
        ({"cont": 3}, "cont must be left out: this request has no such field (see /docs), got 3"),
    ):
        status, found = service.call(at("problems", "/ask/batch"), body)
        assert (status, found["detail"]) == (422, detail)
    untyped = [{"type": "model_attributes_type", "loc": ["body"], "msg": "", "input": b"{}"}]
    assert validation_problem(untyped, b"{}")["detail"] == (
        "body must be a JSON object, with the header Content-Type: application/json, got b'{}'"
    )
    status, found = service.call(at("problems", "/tell"), {"id": "k3fzqa-17-00z8", "reward": 1})
    assert (status, found["title"]) == (404, "Other study")
    status, found = service.call(at("nowhere", "/ask"), {})
    assert (status, found["title"]) == (404, "Unknown study")
    assert service.call(at("problems", "/ask"), b"{")[0] == 422
    assert service.call("/v1/nothing")[0] == 404
    for field in ("type", "title", "status", "detail"):
        assert field in found


@pytest.mark.parametrize(
    ("policy", "field", "value", "remedy"),
    [
        ("ucb1:confidence=-1", "policy.confidence", "-1", "confidence must be a number"),
        ("ucb1:confidenc=1", "policy.setting", "'confidenc'", "did you mean confidence?"),
        ("uniform:a=1", "policy.settings", "'a'", "settings must be none"),
        ("ucb1:confidence", "settings of ucb1", "'confidence'", "name=value"),
        ("usb1", "policy", "'usb1'", "did you mean ucb1?"),
    ],
)
def test_a_bad_policy_has_field_value_and_remedy(
    service: Served, policy: str, field: str, value: str, remedy: str
) -> None:
    status, found = service.call("/v1/studies", {"name": "p", **GRID, "policy": policy})
    assert (status, found["field"], found["value"]) == (422, field, value)
    assert remedy in found["remedy"]
    assert found["expected"] in found["detail"]


MANY = [f"{k}" for k in range(4097)]
NOT_A_REWARD = ("NaN", "Infinity", "-Infinity", "1e999", "3.5", "-1.001", "null", "[1]", '"much"')


def test_what_is_no_reward_is_refused_by_name(service: Served) -> None:
    create(service, "rewards", reward_range=[-1, 3])
    _, asked = service.call(at("rewards", "/ask"), {})
    for value in NOT_A_REWARD:
        report = f'{{"id": "{asked["id"]}", "reward": {value}}}'
        status, found = service.call(at("rewards", "/tell"), report.encode())
        kind = "input-type" if value in ("null", "[1]", '"much"') else "input"
        assert (status, found["type"], found["field"]) == (
            422, f"urn:rank1:problem:{kind}", "reward"
        )  # fmt: skip
        assert "number" in found["remedy"]
        assert found["value"]
        line = f'{{"rewards": [["a", "x", {value}]]}}'
        status, found = service.call(at("rewards", "/imports"), line.encode())
        assert (status, found["field"].split(".")[0][:6]) == (422, "reward")
    batch = f'{{"reports": [{{"id": "{asked["id"]}", "reward": NaN}}]}}'.encode()
    (result,) = service.call(at("rewards", "/tell/batch"), batch)[1]["results"]
    assert (result["status"], result["problem"]["field"]) == (422, "reward")
    assert service.call(at("rewards"))[1]["totals"]["pending"] == 1
    assert service.call(at("rewards", "/best"))[1]["totals"]["reports"] == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"confidence": NaN}', "confidence"),
        ('{"tolerance": Infinity}', "tolerance"),
        ('{"reward_window": 1e999}', "reward_window"),
        ('{"reward_window": 9, "on_expiry": "default", "default_reward": 2}', "default_reward"),
        ('{"horizon": NaN}', "horizon"),
        ('{"horizon": 5}', "horizon"),
        ('{"seed": -1}', "seed"),
        ('{"forgetting": -Infinity}', "forgetting"),
        ('{"reward_range": [NaN, 1]}', "reward_range[0]"),
        ('{"reward_range": [0, Infinity]}', "reward_range[1]"),
        ('{"reward_range": [1, 1]}', "reward_range"),
        (json.dumps({"rows": MANY}), "rows"),
        (json.dumps({"columns": MANY}), "columns"),
        (json.dumps({"rows": MANY[:4096], "columns": MANY[:4096]}), "sides"),
        (json.dumps({"rows": ["a", "x" * 257]}), "rows[1]"),
        (json.dumps({"columns": ["x" * 1_000_000]}), "columns[0]"),
        (json.dumps({"columns": ["x", "x"]}), "columns"),
        (json.dumps({"name": "x" * 1_000_000}), "name"),
    ],
)
def test_what_is_no_study_is_refused_by_name(service: Served, body: str, field: str) -> None:
    text = json.dumps({"name": "none", **GRID})[:-1] + ", " + body[1:]  # the later value counts
    status, found = service.call("/v1/studies", text.encode())
    assert (status, found["type"], found["field"]) == (422, "urn:rank1:problem:input", field)
    assert found["value"]
    assert found["remedy"]
    assert len(json.dumps(found)) < 3000
    assert service.call(at("none"))[0] == 404


def test_what_is_no_line_is_refused_by_name(service: Served) -> None:
    create(service, "lines")
    for change, field in (
        ({"add_rows": MANY[:4094]}, "add.row"),
        ({"add_columns": ["y" * 300]}, "add_columns[0]"),
        ({"retire_rows": ["nobody"]}, "retire.row"),
    ):
        status, found = service.call(at("lines", "/revisions"), change)
        assert (status, found["field"]) == (422, field)
    assert service.call(at("lines", "/imports"), {"rewards": [["a", "q", 1]]})[1]["field"] == (
        "column"
    )
    assert service.call(at("lines"))[1]["revision"] == 0


def test_ten_megabytes_are_refused_where_the_client_sees_it(service: Served) -> None:
    status, found = service.call("/v1/studies", {"name": "x" * 10_000_000, **GRID})
    assert (status, found["title"]) == (413, "Body too large")
    with (
        rank1.Client(service.url, service.token, PATIENCE) as client,
        pytest.raises(rank1.BackendError, match="the body is larger than 4,194,304 bytes"),
    ):
        client.create("large", ["x" * 10_000_000], ["y"])


def test_history_is_paged_and_filtered(service: Served) -> None:
    create(service, "log", reward_window=1000)
    _, given = service.call(at("log", "/ask/batch"), {"count": 6})
    reports = [
        {"id": each["suggestion"]["id"], "reward": k % 2} for k, each in enumerate(given["results"])
    ]
    service.call(at("log", "/tell/batch"), {"reports": reports})
    service.call(at("log", "/revisions"), {"retire_rows": ["c"]})
    seen, after = [], 0
    while after is not None:
        _, page = service.call(at("log", f"/history?limit=4&after={after}"))
        seen += page["events"]
        after = page["next"]
    assert [each["seq"] for each in seen] == list(range(1, 15))
    assert [each["kind"] for each in seen[:2]] == ["created", "suggested"]
    assert seen[7]["kind"] == "reported"
    assert seen[7]["id"] == reports[0]["id"]
    _, page = service.call(at("log", "/history?kind=reported&row=b&newest=true"))
    assert {each["row"] for each in page["events"]} == {"b"}
    assert len(page["events"]) == 2
    _, found = service.call(at("log", "/revisions"))
    assert found["revision"] == 1
    assert found["rows"] == ["a", "b"]
    assert found["revisions"][0]["retire_rows"] == ["c"]


def test_view_and_fit_and_verification(service: Served) -> None:
    create(service, "view")
    _, given = service.call(at("view", "/ask/batch"), {"count": 60})
    reports = [
        {"id": each["suggestion"]["id"], "reward": float(k % 3 == 0)}
        for k, each in enumerate(given["results"])
    ]
    service.call(at("view", "/tell/batch"), {"reports": reports[:50]})
    _, view = service.call(at("view", "/view"))
    assert sum(map(sum, view["counts"])) == 50
    assert abs(sum(map(sum, view["share"])) - 1) < 1e-3
    assert sum(each["shown"] for each in view["traffic"]) == 60
    assert sum(each["reports"] for each in view["traffic"]) == 50
    assert sum((each["rate"] or 0) * each["reports"] for each in view["traffic"]) == 17
    assert view["totals"]["pending"] == 10
    _, fit = service.call(at("view", "/fit?repetitions=19"))
    assert 0 < fit["p_value"] <= 1
    assert "rank one" in fit["advice"]
    assert service.call(at("view", "/verification"))[1]["ok"] is True
    assert service.call(at("view", "/replay?policy=uniform"))[1]["rewards"] == 50


def test_lines_that_are_out_or_retired_are_shown_as_such(service: Served) -> None:
    create(service, "out", goal="find")
    for _ in range(10):
        _, given = service.call(at("out", "/ask/batch"), {"count": 200})
        reports = [
            {"id": each["suggestion"]["id"], "reward": float(each["suggestion"]["row"] == "a")}
            for each in given["results"]
        ]
        service.call(at("out", "/tell/batch"), {"reports": reports})
    service.call(at("out", "/revisions"), {"retire_columns": ["y"]})
    _, view = service.call(at("out", "/view"))
    assert view["verdict"] == "stop"
    rows, columns = (side["levels"] for side in view["sides"])
    assert [(line["label"], line["why"]) for line in rows] == [
        ("a", None), ("b", "refuted"), ("c", "refuted")
    ]  # fmt: skip
    assert [line["why"] for line in columns] == [None, "retired"]
    assert view["notes"][0]["change"]["retire"] == {"column": ["y"]}
    assert view["out"] == [[0, 0], [1, 0], [1, 0]]


def test_exports_are_streams(service: Served) -> None:
    import urllib.request

    create(service, "=cmd", rows=["=1+1", "-b", "c"])
    _, given = service.call(at("=cmd", "/ask/batch"), {"count": 2500})
    ids = [each["suggestion"]["id"] for each in given["results"]]
    service.call(at("=cmd", "/tell"), {"id": ids[0], "reward": 1})

    def text(format: str) -> str:
        url = service.url + at("=cmd", f"/export?format={format}")
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {service.token}"})
        with urllib.request.urlopen(request) as answer:
            return str(answer.read(), "utf-8")

    lines = [json.loads(line) for line in text("jsonl").splitlines()]
    assert [line["id"] for line in lines] == ids
    assert lines[0]["row"] == "=1+1"
    assert [line["state"] for line in lines[:2]] == ["reported", "pending"]
    table = text("csv").splitlines()
    assert len(table) == 2501
    assert table[1].split(",")[1] == "'=1+1"
    assert not any(line.split(",")[1].startswith(("=", "-")) for line in table)


def test_health_readiness_and_metrics(service: Served) -> None:
    assert service.call("/healthz", token=None)[0] == 200
    assert service.call("/readyz", token=None)[0] == 200
    create(service, "metrics")
    service.call(at("metrics", "/ask"), {})
    import urllib.request

    request = urllib.request.Request(
        service.url + "/metrics", headers={"Authorization": f"Bearer {service.token}"}
    )
    with urllib.request.urlopen(request) as answer:
        text = str(answer.read(), "utf-8")
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(values["rank1_asks_total"]) >= 1
    assert float(values["rank1_pending"]) >= 1
    assert any("rank1_request_seconds_bucket" in name for name in values)
    assert call(service.url, "/metrics")[0] == 401


def test_a_format_of_a_later_version_is_nothing_to_try_again() -> None:
    error = rank1.FormatError("a later version wrote it")
    assert problem_of(error)["status"] == status_of(error) == 500
    assert "newer version" in problem_of(error)["remedy"]


def test_who_waits_hears_that_the_storage_was_waited_for_in_vain() -> None:
    """Otherwise each batch would wait for a timeout of its own."""
    calls: list[int] = []
    begun = threading.Event()

    def away(jobs: list[Any]) -> list[Any]:
        calls.append(len(jobs))
        begun.wait(PATIENCE)
        error = rank1.StorageError("away")
        error.waited = True
        return [error] * len(jobs)

    async def play() -> list[Any]:
        writer, desk = WriteQueue(lambda: None, away), cast(StudyAccess, None)
        first = asyncio.ensure_future(writer.write(desk, lambda work: None))
        while not calls:
            await asyncio.sleep(0.01)
        others = [asyncio.ensure_future(writer.write(desk, lambda work: None)) for _ in range(200)]
        await asyncio.sleep(0)
        begun.set()
        told = await asyncio.gather(first, *others, return_exceptions=True)
        assert writer.close()
        return told

    told = asyncio.run(play())
    assert [type(each) for each in told] == [rank1.StorageError] * 201
    assert calls == [1]


@pytest.mark.parametrize("contended", [True, False])
def test_jobs_wait_for_company_while_other_servers_write(
    monkeypatch: pytest.MonkeyPatch, contended: bool
) -> None:
    groups: list[int] = []

    def sizes(jobs: list[Any]) -> list[Any]:
        groups.append(len(jobs))
        return [None] * len(jobs)

    async def play() -> None:
        writer = WriteQueue(lambda: None, sizes, lambda: contended)
        loop, desk = asyncio.get_running_loop(), cast(StudyAccess, None)

        def linger(seconds: float) -> None:
            asyncio.run_coroutine_threadsafe(later(), loop).result(PATIENCE)

        async def later() -> None:
            others.append(asyncio.ensure_future(writer.write(desk, lambda work: None)))
            await asyncio.sleep(0)

        others: list[Any] = []
        monkeypatch.setattr("rank1.server.write_queue.time.sleep", linger)
        await writer.write(desk, lambda work: None)
        await asyncio.gather(*others)
        writer.close()

    asyncio.run(play())
    assert groups == ([2] if contended else [1])


def test_a_body_that_is_not_json_is_said_to_be_none(service: Served) -> None:
    request = urllib.request.Request(
        f"{service.url}/v1/studies",
        b'{"name": ',
        {"Authorization": f"Bearer {service.token}", "Content-Type": "application/json"},
    )
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=PATIENCE)
    with caught.value as answer:
        found = json.load(answer)
    assert (found["status"], found["field"]) == (422, "body")
    assert found["detail"].startswith("body must be JSON (")
    assert found["value"] == repr('{"name": ')


def test_rewards_whose_sums_would_overflow_are_refused(service: Served) -> None:
    body = {"name": "huge", **GRID, "reward_range": [0, 1e308]}
    status, found = service.call("/v1/studies", body)
    assert (status, found["field"]) == (422, "reward_range")
    create(service, "huge", reward_range=[0, 1e100])
    for _ in range(6):
        asked = service.call(at("huge", "/ask"), {})[1]
        assert service.call(at("huge", "/tell"), {"id": asked["id"], "reward": 1e100})[0] == 200
    assert service.call(at("huge", "/view"))[0] == 200
    assert service.call(at("huge", "/best"))[0] == 200


def test_each_item_of_a_batch_is_refused_by_itself(service: Served) -> None:
    create(service, "items")
    _, given = service.call(at("items", "/ask/batch"), {"asks": [{}, 7, {"unit": 3}, {}]})
    assert [each["status"] for each in given["results"]] == [201, 422, 422, 201]
    first, last = (given["results"][k]["suggestion"]["id"] for k in (0, 3))
    told = [
        {"id": first, "reward": True},
        "x",
        {"id": last, "reward": 1},
        {"id": first, "reward": "1"},
    ]
    _, found = service.call(at("items", "/tell/batch"), {"reports": told})
    assert [each["status"] for each in found["results"]] == [422, 422, 200, 422]
    for k in (0, 3):
        assert found["results"][k]["problem"]["field"] == "reward"
    assert service.call(at("items", "/tell"), {"id": first, "reward": True})[0] == 422


def test_slow_reads_are_shared_bounded_and_skipped_when_abandoned(tmp_path: Path) -> None:
    asyncio.run(_slow_reads(tmp_path))


async def _slow_reads(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    registry = StudyRegistry(open_storage(str(tmp_path / "rank1.db")))
    running, release, calls = threading.Event(), threading.Event(), []

    def slow() -> int:
        calls.append(1)
        running.set()
        assert release.wait(PATIENCE)
        return 7

    async def here() -> bool:
        return False

    async def left() -> bool:
        return True

    same = [asyncio.create_task(registry.read_slowly(("a",), slow, here)) for _ in range(50)]
    await asyncio.to_thread(running.wait, PATIENCE)
    gone = asyncio.create_task(registry.read_slowly(("b",), slow, left))
    others = [
        asyncio.create_task(registry.read_slowly((k,), lambda: 1, here)) for k in range(MAX_SLOW)
    ]
    await asyncio.sleep(0)
    release.set()
    found = await asyncio.gather(*same, gone, *others, return_exceptions=True)
    assert found[:50] == [7] * 50
    assert len(calls) == 1
    refused = [each for each in found[50:] if isinstance(each, RefusedError)]
    assert [str(each) for each in refused] == [
        "the request was abandoned: send it again",
        *["too many slow requests are waiting: try again later"] * 2,
    ]
    (thread,) = [each for each in {*threading.enumerate()} - before if each.name == "rank1-slow"]
    registry.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
