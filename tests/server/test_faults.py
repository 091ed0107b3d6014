"""Servers that are killed, share a storage, or are told to end: what was acknowledged stays."""

from __future__ import annotations

import os
import signal
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rank1
from tests.server.storm import Storm, check, stormy
from tests.server.support import Served, at, served
from tests.studies.conftest import new_schema
from tests.studies.conftest import server as server  # a PostgreSQL server of our own
from tests.studies.support import small_disk


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def test_eight_clients_at_once(tmp_path: Path) -> None:
    with stormy(tmp_path) as service:
        storm = Storm([(service.url, service.token)], 8, 30)
        storm.more()
        storm.stop()
        request = urllib.request.Request(
            f"{service.url}/metrics", headers={"Authorization": f"Bearer {service.token}"}
        )
        with urllib.request.urlopen(request) as answer:
            lines = str(answer.read(), "utf-8").splitlines()
    check(storm, str(tmp_path / "rank1.db"), exact=True)
    values = dict(
        line.split(" ") for line in lines if line.startswith("rank1_") and "{" not in line
    )
    assert int(values["rank1_asks_total"]) == len(storm.asked)
    # Requests that wait together share a commit.
    assert int(values["rank1_commits"]) < 0.8 * (len(storm.asked) / 1.5 + len(storm.told))


def test_a_server_that_is_killed_under_load(tmp_path: Path) -> None:
    port = free_port()
    with stormy(tmp_path, "--port", port) as service:
        storm = Storm([(service.url, service.token)], 8, 30)
        for _ in range(2):
            storm.more()
            service.process.send_signal(signal.SIGKILL)
            service.process.wait(30)
            service.process = stack(tmp_path, port, service)
        storm.more()
        storm.stop()
    check(storm, str(tmp_path / "rank1.db"))


def stack(folder: Path, port: str, service: Served) -> Any:
    """Another process in the place of one that was killed."""
    assert service.process.stdout is not None
    service.process.stdout.close()
    keeper = served(folder, "--port", port, token=service.token)
    again = keeper.__enter__()
    _keepers.append(keeper)
    return again.process


_keepers: list[Any] = []


@pytest.fixture(autouse=True)
def _end_keepers() -> Iterator[None]:
    yield
    while _keepers:
        _keepers.pop().__exit__(None, None, None)


def test_two_servers_on_one_file(tmp_path: Path) -> None:
    with stormy(tmp_path) as one, served(tmp_path, token=one.token) as two:
        storm = Storm([(one.url, one.token), (two.url, one.token)], 6, 30)
        storm.more()
        storm.stop()
    check(storm, str(tmp_path / "rank1.db"), exact=True)


def test_two_servers_on_one_postgresql_and_one_is_killed(tmp_path: Path, server: Any) -> None:
    place = new_schema(server)
    flags = "--storage", place
    with stormy(tmp_path, *flags) as one, served(tmp_path, *flags, token=one.token) as two:
        storm = Storm([(one.url, one.token), (two.url, one.token)], 6, 0.5)
        storm.more()
        two.process.send_signal(signal.SIGKILL)
        storm.more()  # the other goes on
        storm.until(lambda: storm.failed > 0)
        storm.stop()
    check(storm, place)


def test_the_end_comes_after_what_has_begun(tmp_path: Path) -> None:
    with stormy(tmp_path) as service:
        storm = Storm([(service.url, service.token)], 6, 0.5)
        storm.more()
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(20) == 0
        storm.stop()
    check(storm, str(tmp_path / "rank1.db"))
    assert not os.path.exists(tmp_path / "rank1.db-wal")  # it was closed in good order


def test_a_storage_that_fails_is_a_503(tmp_path: Path) -> None:
    with stormy(tmp_path) as service:
        assert service.call(at("storm", "/ask"), {})[0] == 201
        (tmp_path / "rank1.db").rename(tmp_path / "gone.db")
        (tmp_path / "rank1.db").write_text("not a database")
        status, found = service.call(at("storm", "/ask"), {})
        assert (status, found["title"]) == (503, "Storage")
        assert str(tmp_path) not in str(found)
        assert service.call("/readyz")[0] == 503
        assert service.call("/healthz")[0] == 200
        (tmp_path / "gone.db").rename(tmp_path / "rank1.db")
        assert service.call(at("storm", "/ask"), {})[0] == 201


def test_the_disk_is_full_and_then_is_not(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 6) as disk:
        ballast = disk / "ballast"
        flags = "--storage", str(disk / "rank1.db")
        with stormy(tmp_path, *flags) as service:
            ballast.write_bytes(bytes(4_500_000))
            kept: list[str] = []
            status = 201
            while status == 201:
                status, found = service.call(at("storm", "/ask/batch"), {"count": 100})
                kept += [each["suggestion"]["id"] for each in found.get("results", [])]
            assert (status, found["title"]) == (503, "Storage")
            assert kept
            reports = [{"id": id, "reward": 1.0} for id in kept]
            ballast.unlink()
            for first in range(0, len(kept), 500):
                part = {"reports": reports[first : first + 500]}
                status, found = service.call(at("storm", "/tell/batch"), part)
                assert status == 200
                assert {each["status"] for each in found["results"]} == {200}
            assert service.call(at("storm"))[1]["totals"]["suggestions"] == len(kept)
        with rank1.Study.open("storm", disk / "rank1.db") as study:
            assert study.verify().ok
            assert study.totals()["reports"] == len(kept)
