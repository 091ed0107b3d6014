"""Records and rewards while servers are killed and storages fail; the history is checked after."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import rank1
from rank1.server import registry
from rank1.server.tokens import Tokens
from rank1.studies.storage.sqlite import SqliteTransaction
from tests.server.in_process import InProcess, in_process
from tests.server.support import PATIENCE, at, call, served, until
from tests.server.test_faults import free_port
from tests.studies.conftest import kill, new_schema, start
from tests.studies.conftest import server as server  # our own PostgreSQL server

SIDES = {"headline": ["A", "B"], "image": ["x", "y", "z"]}
STUDY = {"name": "storm", "sides": SIDES, "goal": "find", "seed": 1}
ARMS = [dict(zip(SIDES, arm, strict=True)) for arm in itertools.product(*SIDES.values())]


class Clients:
    """Eight clients that record and reward units, some the same, and note each answer."""

    def __init__(self, urls: list[str], token: str) -> None:
        self.token, self.failed = token, 0
        #: Answers that no client may get: they end all clients.
        self.unexpected: list[Any] = []
        #: The answers: the item that was sent, and its status.
        self.records: list[tuple[dict[str, Any], int]] = []
        self.rewards: list[tuple[dict[str, Any], int]] = []
        self._end = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(urls[k % len(urls)], k), daemon=True)
            for k in range(8)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, url: str, number: int) -> None:
        rng = random.Random(number)
        for step in itertools.count():
            if self._end.is_set():
                return
            # Two clients send each unit, possibly with different values, and each of them retries.
            items = [
                {"unit": f"{number // 2}-{step}-{k}", "version": 0, "levels": rng.choice(ARMS[:2])}
                for k in range(3)
            ]
            for item in items[:2]:
                item["reward"] = rng.choice([0.0, 1.0])
            self._send(url, "records", items, self.records)
            told = [{"unit": item["unit"], "reward": rng.choice([0.0, 1.0])} for item in items]
            self._send(url, "rewards", told, self.rewards)

    def _send(self, url: str, what: str, items: list[Any], noted: list[Any]) -> None:
        while not self._end.is_set():
            with contextlib.suppress(OSError, ValueError):
                status, found = call(url, at("storm", f"/{what}"), {what: items}, self.token)
                if status == 200:
                    answers = [each["status"] for each in found["results"]]
                    noted += zip(items, answers, strict=True)
                    return
                if status != 503:
                    self.unexpected.append(found)
                    self._end.set()
            self.failed += 1
            self._end.wait(0.01)

    def more(self, answers: int = 60) -> None:
        enough = len(self.rewards) + answers
        until(lambda: len(self.rewards) >= enough or self._end.is_set())

    def stop(self, *logs: Path) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(PATIENCE)
        assert not self.unexpected, (self.unexpected, [log.read_text()[-9000:] for log in logs])

    def check(self, place: Any) -> None:
        """Everything acknowledged is in the log once; everything rejected contradicts the log."""
        with rank1.Study.open("storm", place) as study:
            assert study.verify().ok
            lines = study.lines(limit=10**6)[0]
        log = {line["unit"]: line for line in lines}
        assert len(log) == len(lines), "a unit was recorded twice"
        assert {code for _, code in self.records} <= {200, 201, 409}
        assert {code for _, code in self.rewards} <= {200, 404, 409}
        new = [item["unit"] for item, code in self.records if code == 201]
        assert len(set(new)) == len(new), "a unit was new twice"
        for item, code in self.records:
            line = log[item["unit"]]
            same = line["levels"] == item["levels"]
            if code in (200, 201):
                assert same
                assert line["reward"] == item.get("reward", line["reward"])
            else:
                assert not same or line["reward"] != item.get("reward")
        for item, code in self.rewards:
            if code == 200:
                assert log[item["unit"]]["reward"] == item["reward"]
            elif code == 409:
                assert log[item["unit"]]["reward"] != item["reward"]
        assert any(code == 409 for _, code in self.records)
        assert any(code == 409 for _, code in self.rewards)


@pytest.mark.validate
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_history_of_eight_clients_with_kills(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    """With PostgreSQL, two servers run in parallel, and one of them is killed."""
    place = str(tmp_path / "rank1.db")
    if kind == "postgres":
        place = new_schema(request.getfixturevalue("server"))
    token = Tokens(tmp_path / "rank1-tokens.json").create("admin")
    flags, port = ("--storage", place), free_port()
    with contextlib.ExitStack() as stack:

        def serve(*more: str) -> Any:
            return stack.enter_context(served(tmp_path, *flags, *more, token=token))

        victim = serve("--port", port)
        assert victim.call("/v1/studies", STUDY)[0] == 201
        urls = [victim.url] + ([serve().url] if kind == "postgres" else [])
        clients = Clients(urls, token)
        for _ in range(5):
            clients.more()
            victim.process.send_signal(signal.SIGKILL)
            victim.process.wait(PATIENCE)
            victim = serve("--port", port)
        clients.more()
        clients.stop(victim.log)
    assert clients.failed > 0
    clients.check(place)


def test_the_database_is_killed_under_records(tmp_path: Path, server: Any) -> None:
    """Clients retry, and nothing that was acknowledged is lost or counted twice."""
    place = new_schema(server)
    with served(tmp_path, "--storage", place) as service:
        assert service.call("/v1/studies", STUDY)[0] == 201
        clients = Clients([service.url], service.token)
        clients.more()
        kill(server)
        start(server)
        clients.more()
        clients.stop(service.log)
    clients.check(place)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InProcess]:
    with in_process(tmp_path) as service:
        assert service.call("/v1/studies", STUDY).status == 201
        yield service


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
@pytest.mark.parametrize("what", ["records", "rewards"])
def test_what_the_storage_did_not_take_is_sent_again(
    service: InProcess, monkeypatch: pytest.MonkeyPatch, what: str, error: type[Exception]
) -> None:
    items = [{"unit": f"u{k}", "version": 0, "levels": ARMS[k]} for k in range(3)]
    sent: list[dict[str, Any]] = items
    if what == "rewards":
        service.call("/v1/studies/storm/records", {"records": items})
        sent = [{"unit": each["unit"], "reward": 1.0} for each in items]
    before = service.call("/v1/studies/storm").document

    def insert(self: SqliteTransaction, rows: Any) -> None:
        raise error("no")

    with monkeypatch.context() as broken:
        broken.setattr(SqliteTransaction, "insert", insert)
        answer = service.call(f"/v1/studies/storm/{what}", {what: sent})
        assert (answer.status, answer.document["title"]) == (503, "Storage")
    assert service.call("/v1/studies/storm").document == before
    answer = service.call(f"/v1/studies/storm/{what}", {what: sent})
    assert {each["status"] for each in answer.document["results"]} == {
        201 if what == "records" else 200
    }
    totals = service.call("/v1/studies/storm").document["totals"]
    assert totals["reports"] == (3 if what == "rewards" else 0)


def test_records_wait_for_no_lock(
    tmp_path: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another server holds the study's lock, and folds for as long as it likes."""
    monkeypatch.setattr(registry, "SETTLE_AFTER", 0.0)
    items = [{"unit": f"u{k}", "version": 0, "levels": ARMS[k]} for k in range(3)]
    with in_process(tmp_path, storage=new_schema(server)) as service:

        def send(what: str, items: list[Any]) -> list[int]:
            answer = service.call(at("storm", f"/{what}"), {what: items})
            return [each["status"] for each in answer.document["results"]]

        assert service.call("/v1/studies", STUDY).status == 201
        assert send("records", items[:1]) == [201]  # this begins the first version
        with service.registry.storage.transaction(1):
            assert send("records", items[1:]) == [201, 201]
            assert send("rewards", [{"unit": "u0", "reward": 1.0}]) == [200]
        wrong = [{**items[2], "levels": ARMS[0]}, {**items[0], "unit": "u4", "version": 9}]
        assert send("records", [items[1], *wrong]) == [200, 409, 422]
        assert send("rewards", [{"unit": "u0", "reward": 0.0}, {"unit": "x", "reward": 1.0}]) == [
            409, 404,
        ]  # fmt: skip
        totals = service.call(at("storm")).document["totals"]
        assert (totals["suggestions"], totals["reports"]) == (3, 1)
        assert send("records", [{**items[0], "unit": "u5"}]) == [201]

        async def folded() -> None:  # by the server itself, without a request
            await service.request(
                at("storm", "/records"), {"records": [{**items[0], "unit": "u6"}]}
            )
            while _unnumbered(service):
                await asyncio.sleep(0.001)

        asyncio.run(asyncio.wait_for(folded(), PATIENCE))


def _unnumbered(service: InProcess) -> bool:
    with service.registry.storage.reading() as log:
        return bool(log.rows("SELECT 1 FROM rank1_events WHERE seq < 0"))  # type: ignore[attr-defined]
