"""Late reports, limits, headers, and a failing storage, as answers show them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1.server import write_queue
from rank1.studies.group_commit import transact_group
from rank1.studies.storage.sqlite import SqliteReader
from tests.server.in_process import InProcess, in_process
from tests.server.support import GRID, PATIENCE, at

SECRET = "/srv/secret/rank1.db"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InProcess]:
    with in_process(tmp_path) as service:
        body = {"name": "spring", **GRID, "seed": 1, "reward_window": 60}
        assert service.call("/v1/studies", body).status == 201
        yield service


@pytest.mark.parametrize("route", ["/tell", "/tell/batch"])
def test_a_late_report_is_marked_late(
    service: InProcess, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    """In the answer, in that of a retry, in the history and the export, without a look before."""
    now = 2e9
    monkeypatch.setattr(SqliteReader, "clock", lambda self: now)
    early, late = (service.call(at("spring", "/ask"), {}).document["id"] for _ in range(2))

    def tell(id: str) -> Any:
        report = {"id": id, "reward": 1.0}
        if route == "/tell":
            return service.call(at("spring", route), report).document
        (found,) = service.call(at("spring", route), {"reports": [report]}).document["results"]
        return found["report"]

    now += 59
    assert not tell(early)["late"]
    now += 1
    told = tell(late)
    assert told["late"] is True
    assert tell(late) == told
    assert not tell(early)["late"]
    _, page, _ = service.call(at("spring", "/history?kind=reported"))
    assert [each["late"] for each in page["events"]] == [False, True]
    lines = service.call(at("spring", "/export")).document.splitlines()
    assert ['"late": true' in line for line in lines] == [False, True]
    assert service.call(at("spring")).document["totals"]["reports"] == 2


#: Errors that a storage may raise, the status, and how the answer begins.
ERRORS = [
    (rank1.StorageError, 503, "the storage can't be used now"),
    (rank1.DamagedError, 500, "the storage is damaged: nothing was stored"),
    (rank1.FormatError, 500, "the storage can't be used now"),
    (rank1.FileError, 500, "the service can't read one of its files"),
]


@pytest.mark.parametrize(("kind", "status", "detail"), ERRORS)
def test_no_answer_names_a_file(
    service: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: type[rank1.Rank1Error],
    status: int,
    detail: str,
) -> None:
    """For reading, writing and creating; the service's log has the details."""

    @contextmanager
    def fails(*_: Any) -> Iterator[None]:
        raise kind(f"can't use {SECRET!r}", f"look at {SECRET!r}", where=SECRET)
        yield

    service.call(at("spring", "/ask"), {})
    for name in ("reading", "transaction", "creation"):
        monkeypatch.setattr(service.registry.storage, name, fails)
    with caplog.at_level(logging.ERROR, "rank1.server"):
        for path, body in (
            (at("spring", "/ask"), {}),
            (at("spring", "/tell"), {"id": "k-1-0", "reward": 1}),
            (at("spring", "/best"), None),
            (at("spring", "/history"), None),
            ("/v1/studies", None),
            ("/v1/studies", {"name": "autumn", **GRID}),
        ):
            caplog.clear()
            found = service.call(path, body)
            assert found.status == found.document["status"] == status, path
            assert found.document["detail"].startswith(detail), path
            assert "secret" not in str(found), path
            assert ("retry-after" in found.headers) == (status == 503), path
            assert SECRET in caplog.text, path
            traced = any(each.exc_info for each in caplog.records)
            assert traced == (status == 500), path


def test_each_token_has_a_limit_of_its_own(tmp_path: Path) -> None:
    with in_process(tmp_path, rate=0.001) as service:
        other = service.tokens.create("reader")
        assert [service.call("/v1/studies").status for _ in range(3)] == [200, 429, 429]
        assert [service.call("/v1/studies", token=other).status for _ in range(2)] == [200, 429]
        found = service.call("/metrics")
        assert (found.status, found.headers["retry-after"]) == (429, "1")
        assert service.call("/healthz", token="").status == 200  # needs no token


def test_a_lower_rate_of_the_token_itself_applies(tmp_path: Path) -> None:
    with in_process(tmp_path, rate=100) as service:
        told: dict[str, Any] = {"origins": ["https://shop.example"]}
        for rate, statuses in ((0.001, [404, 429]), (1e6, [404, 404])):
            page = service.tokens.create("browser", ["spring"], rate=rate, **told)
            path = at("spring", "/shares")
            assert [service.call(path, token=page).status for _ in range(2)] == statuses


def test_nothing_of_a_study_is_kept_by_a_browser_or_a_proxy(service: InProcess) -> None:
    given = service.call(at("spring", "/ask"), {})
    report = {"id": given.document["id"], "reward": 1.0}
    answers = [
        given,
        service.call(at("spring", "/tell"), report),
        service.call(at("spring", "/tell"), {**report, "reward": 0.0}),
        *(service.call(path) for path in ("/v1/studies", at("spring"), at("nowhere"), "/metrics")),
        *(
            service.call(at("spring", path))
            for path in ("/best", "/history", "/revisions", "/export", "/verification")
        ),
        service.call("/v1/studies", token="wrong"),
        service.call("/healthz"),
    ]
    assert {each.headers["cache-control"] for each in answers} == {"no-store"}
    view = service.call(at("spring", "/view"))  # the page requests this all the time
    assert view.headers["cache-control"] == "private, no-cache"
    assert {each.status for each in answers} == {200, 201, 401, 404, 409}


@pytest.mark.parametrize(("kind", "status"), [each[:2] for each in ERRORS[:3]])
@pytest.mark.parametrize("route", ["/ask/batch", "/tell/batch"])
def test_a_batch_ends_at_a_failure_of_the_storage(
    service: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[rank1.Rank1Error],
    status: int,
    route: str,
) -> None:
    """Nothing of the batch is stored, so the client can retry all of it."""
    given = service.call(at("spring", "/ask/batch"), {"count": 3}).document["results"]
    ids = [each["suggestion"]["id"] for each in given]
    name, body = {
        "/ask/batch": ("of_unit", {"asks": [{"unit": unit} for unit in ("u", "", "v", "w")]}),
        "/tell/batch": ("outcomes", {"reports": [{"id": id, "reward": 1} for id in (*ids, "no")]}),
    }[route]
    for id in ids if route == "/tell/batch" else ():  # so that the service has to read the log
        service.call(at("spring", "/tell"), {"id": id, "reward": 1})
    before = service.call(at("spring")).document["totals"]
    real, calls = getattr(SqliteReader, name), list[Any]()

    def fails(self: Any, study: int, what: Any) -> Any:
        calls.append(what)
        if len(calls) >= 2:
            raise kind("gone")
        return real(self, study, what)

    with monkeypatch.context() as patch:
        patch.setattr(SqliteReader, name, fails)
        found = service.call(at("spring", route), body)
    assert found.status == found.document.get("status") == status
    assert service.call(at("spring")).document["totals"] == before
    found = service.call(at("spring", route), body)
    right = [201, 422, 201, 201] if route == "/ask/batch" else [200, 200, 200, 404]
    assert [each["status"] for each in found.document["results"]] == right


def test_only_commits_are_counted(service: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def commits() -> float:
        text = service.call("/metrics").document
        return float(text.partition("\nrank1_commits_total ")[2].split()[0])

    before = commits()
    assert service.call(at("spring", "/ask"), {}).status == 201
    assert commits() == before + 1

    def fails(jobs: Any) -> Any:
        raise rank1.StorageError("the disk is full")

    monkeypatch.setattr(service.registry.writes, "_in_group", fails)
    assert service.call(at("spring", "/ask"), {}).status == 503
    assert commits() == before + 1


def test_only_so_many_writes_may_wait(service: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Excess writes are rejected immediately; waiting ones are stored."""
    monkeypatch.setattr(write_queue, "MAX_WAITING", 3)
    begun, go_on = threading.Event(), threading.Event()

    def slow(jobs: Any) -> Any:
        begun.set()
        assert go_on.wait(PATIENCE)
        return transact_group(jobs)

    monkeypatch.setattr(service.registry.writes, "_in_group", slow)

    async def play() -> tuple[list[Any], list[Any]]:
        def ask() -> Any:
            return asyncio.ensure_future(service.request(at("spring", "/ask"), {}))

        asked = [ask()]
        while not begun.is_set():
            await asyncio.sleep(0.001)
        asked += [ask() for _ in range(3)]
        while service.registry.writes.waiting < 3:
            await asyncio.sleep(0.001)
        more = [ask() for _ in range(2)]
        while not all(each.done() for each in more) and service.registry.writes.waiting == 3:
            await asyncio.sleep(0.001)
        go_on.set()
        return await asyncio.gather(*asked), await asyncio.gather(*more)

    stored, refused = asyncio.run(play())
    assert [each.status for each in stored] == [201] * 4
    assert [each.status for each in refused] == [503] * 2
    assert refused[0].headers["retry-after"] == "1"
    assert refused[0].document["detail"] == "too many requests are waiting to be stored"
    assert service.call(at("spring")).document["totals"]["suggestions"] == 4


def test_the_framework_sees_only_what_is_unusual(
    service: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.call("/v1/studies", {"name": "hot", **GRID, "seed": 1})
    sides = {"headline": ["A", "B"]}
    service.call("/v1/studies", {"name": "hot find", "sides": sides, "goal": "find", "seed": 1})
    framework, seen = service.app.app._app, []

    async def spy(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["path"].rpartition("/")[2])
        await framework(scope, receive, send)

    monkeypatch.setattr(service.app.app, "_app", spy)
    asked = service.call("/v1/studies/hot/ask", {"unit": "u"})
    odd = {"content-type": "application/json; charset=utf-8"}
    assert service.call("/v1/studies/hot/ask", {"unit": "u"}, **odd).document == asked.document
    assert seen == ["ask"]
    tell = {"id": asked.document["id"], "reward": 1}
    key = {"idempotency-key": "k"}
    assert service.call("/v1/studies/hot/tell", tell, **key).status == 200
    assert service.call("/v1/studies/hot/tell", {**tell, "reward": 0}).status == 409
    record = {"unit": "u", "version": 0, "levels": {"headline": "A"}}
    assert service.call("/v1/studies/hot%20find/records", {"records": [record]}).status == 200
    reward = {"unit": "u", "reward": 1}
    assert service.call("/v1/studies/hot%20find/rewards", {"rewards": [reward]}).status == 200
    assert seen == ["ask"]
    assert service.call("/v1/studies/hot/tell", {**tell, "colour": "red"}).status == 422
    assert service.call("/v1/studies/hot/ask", {}, **{"idempotency-key": ""}).status == 422
    reader = service.tokens.create("reader")
    assert service.call("/v1/studies/hot/ask", {}, reader).status == 403
    assert seen == ["ask", "tell", "ask", "ask"]
    text = service.call("/metrics").document
    assert (
        'rank1_requests_total{method="POST",route="/v1/studies/{name}/tell",status="409"} 1.0'
        in text
    )
    assert "rank1_conflicts_total 1.0" in text
