"""A PostgreSQL server that is killed, or cut off during a commit, while the service runs."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1.client import RemoteStudy
from tests.server.storm import Storm, check, stormy
from tests.server.support import GRID, PATIENCE, Served, at, served, until
from tests.studies.conftest import kill, new_schema, proxy_to, start
from tests.studies.conftest import server as server  # our own PostgreSQL server
from tests.studies.proxy import Proxy, cut_at_commit, through


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.validate)])
@pytest.mark.uncompiled
def test_the_database_is_killed_under_load(tmp_path: Path, server: Any, kills: int) -> None:
    place = new_schema(server)
    with stormy(tmp_path, "--storage", place) as service:
        storm = Storm([(service.url, service.token)], 4, PATIENCE)
        for _ in range(kills):
            storm.more()
            kill(server)
            try:
                status, found = service.call("/readyz")
                assert (status, found["type"]) == (503, "urn:rank1:problem:busy")
                assert service.call("/healthz")[0] == 200
            finally:
                start(server)
            storm.more()  # without restarting the service
            until(lambda: service.call("/readyz")[0] == 200)
        storm.stop()
        assert storm.failed == 0  # waiting requests were answered when the database was back
        assert service.process.poll() is None
    check(storm, place)


@pytest.mark.validate
def test_a_database_that_stays_away(tmp_path: Path, server: Any) -> None:
    place = new_schema(server)
    with stormy(tmp_path, "--storage", place) as service:
        path = at("storm", "/ask")
        assert service.call(path, {}, Idempotency_Key="one")[0] == 201
        kill(server)
        try:
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(
                    urllib.request.Request(
                        service.url + path, b"{}", {
                            "Authorization": f"Bearer {service.token}", "Idempotency-Key": "two",
                            "Content-Type": "application/json",
                        },
                    ),
                    timeout=PATIENCE,
                )  # fmt: skip
            with caught.value as error:
                found = str(error.read(), "utf-8")
            assert error.code == 503
            assert error.headers["Retry-After"] == "1"
            assert "urn:rank1:problem:storage" in found
            assert "Traceback" not in found
        finally:
            start(server)
        two = service.call(path, {}, Idempotency_Key="two")
        assert two[0] == 201
        assert service.call(path, {}, Idempotency_Key="two") == two
        assert service.call(at("storm"))[1]["totals"]["suggestions"] == 2


class Line:
    """A service whose connections to the database go through a proxy."""

    def __init__(self, service: Served, proxy: Proxy) -> None:
        self.service, self.proxy, self.study = service, proxy, ""

    def begin(self, name: str, **fields: Any) -> None:
        """Create a study with new connections: see `cut_at_commit`."""
        self.study = name
        assert self.service.call("/v1/studies", {"name": name, **GRID, **fields})[0] == 201
        assert self.call("/ask", {})[0] == 201

        def cut(data: bytes) -> str:
            self.proxy.cut = lambda data: None
            return "before"

        self.proxy.cut, self.proxy.cuts = cut, 0
        until(lambda: self.service.call("/readyz")[0] == 200)
        assert self.proxy.cuts == 1

    def call(self, what: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        return self.service.call(at(self.study, what), body, **options)


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory, server: Any) -> Iterator[Line]:
    proxy = proxy_to(server)
    place = through(proxy, new_schema(server))
    with served(tmp_path_factory.mktemp("line"), "--storage", place) as service:
        yield Line(service, proxy)
    proxy.close()


@pytest.mark.parametrize(
    "what",
    # The last one leaves a session that locks the study until the database ends it.
    ["before", "after", pytest.param("client", marks=pytest.mark.validate)],
)
def test_a_connection_that_is_cut_in_mid_commit(line: Line, what: str) -> None:
    """The service finds out whether the commit succeeded, so clients don't notice."""
    line.begin(f"cut {what}")
    cut_at_commit(line.proxy, what)
    status, asked = line.call("/ask", {}, Idempotency_Key="k")
    assert status == 201
    assert line.call("/ask", {}, Idempotency_Key="k") == (201, asked)
    cut_at_commit(line.proxy, what)
    report = {"id": asked["id"], "reward": 1.0}
    status, told = line.call("/tell", report)
    assert (status, told["reward"]) == (200, 1.0)
    assert line.call("/tell", report) == (200, told)
    assert line.call("/tell", {**report, "reward": 0.0})[0] == 409
    cut_at_commit(line.proxy, what)
    status, many = line.call("/ask/batch", {"count": 5})
    assert (status, len(many["results"])) == (201, 5)
    cut_at_commit(line.proxy, what)
    assert line.call("/cancel", {"id": many["results"][0]["suggestion"]["id"]})[0] == 200
    assert line.proxy.cuts == 5
    assert line.call("")[1]["totals"] == {
        "suggestions": 7, "reports": 1, "pending": 5, "expired": 0, "cancelled": 1,
    }  # fmt: skip
    assert line.call("/verification")[1]["ok"]


@pytest.mark.parametrize("what", ["before", "after"])
def test_a_connection_that_is_cut_while_records_are_added(line: Line, what: str) -> None:
    """They are sent again: nothing is lost, and nothing counts twice."""
    line.begin(f"added {what}", goal="find")

    def send(kind: str, *items: Any) -> list[int]:
        return [each["status"] for each in line.call(f"/{kind}", {kind: items})[1]["results"]]

    def cut(data: bytes) -> str | None:
        if b"nextval('rank1_unnumbered')" not in data:
            return None
        line.proxy.cut = lambda data: None
        return what

    shares = line.call("/shares")[1]
    items = [
        {"unit": unit, "version": shares["version"], "levels": rank1.assign(shares, unit)}
        for unit in ("u1", "u2")
    ]
    line.proxy.cut, line.proxy.cuts = cut, 0
    # If it was the answer that was lost, the second try finds the records.
    assert send("records", *items) == [201 if what == "before" else 200] * 2
    assert send("records", *items) == [200, 200]
    assert line.proxy.cuts == 1
    line.proxy.cut = cut
    assert send("rewards", {"unit": "u1", "reward": 1}) == [200]
    assert line.proxy.cuts == 2
    assert send("rewards", {"unit": "u1", "reward": 1}, {"unit": "u1", "reward": 0}) == [200, 409]
    totals = line.call("")[1]["totals"]
    assert (totals["suggestions"], totals["reports"]) == (3, 1)
    assert line.call("/verification")[1]["ok"]


@pytest.mark.parametrize("what", ["before", "after"])
def test_a_commit_of_which_nobody_heard(line: Line, what: str) -> None:
    """The client gives up before the database is back; retrying the key and the id resolves it."""
    line.begin(f"unheard {what}")

    def away(data: bytes) -> str | None:
        return what if b"COMMIT" in data else "before" if b"user" in data else None

    def back(data: bytes) -> None:
        return None

    def given_up(work: Callable[[RemoteStudy], Any]) -> None:
        line.proxy.cut, line.proxy.cuts = away, 0
        hasty = rank1.Client(line.service.url, line.service.token, 0.5)
        with hasty, pytest.raises(rank1.StorageError, match="no answer"):
            work(RemoteStudy(hasty, line.study))
        until(lambda: line.proxy.cuts >= 2)  # a commit, and the attempts to reconnect
        line.proxy.cut = back

    with rank1.Client(line.service.url, line.service.token, PATIENCE) as client:
        study = RemoteStudy(client, line.study)
        given_up(lambda study: study.ask(key="lost"))
        asked = study.ask(key="lost")
        given_up(lambda study: study.tell(asked.id, 1.0))
        told = study.tell(asked.id, 1.0)
        assert told is not None
        assert told.reward == 1.0
        with pytest.raises(rank1.ConflictError):
            study.tell(asked.id, 0.0)
        totals = study.counts()
        assert (totals["suggestions"], totals["reports"]) == (2, 1)
        assert study.verify().ok
