"""Servers that are killed, share a storage, or are stopped: acknowledged data is kept."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest

import rank1
from tests.server.storm import Storm, check, lines_of_study, stormy
from tests.server.support import GRID, PATIENCE, Served, at, served, until
from tests.studies.conftest import new_schema
from tests.studies.conftest import server as server  # our own PostgreSQL server
from tests.studies.support import small_disk


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.mark.compiled
def test_eight_clients_at_once(tmp_path: Path) -> None:
    with stormy(tmp_path, compiled=True) as service:
        storm = Storm([(service.url, service.token)], 8, PATIENCE)
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
    assert float(values["rank1_asks_total"]) == len(storm.asked)
    # Requests that wait at the same time share a commit.
    assert float(values["rank1_commits_total"]) < 0.8 * (len(storm.asked) / 1.5 + len(storm.told))


def test_a_server_that_is_killed_under_load(tmp_path: Path) -> None:
    port = free_port()
    with stormy(tmp_path, "--port", port, compiled=True) as service:
        storm = Storm([(service.url, service.token)], 8, PATIENCE)
        for _ in range(2):
            storm.more()
            service.process.send_signal(signal.SIGKILL)
            service.process.wait(PATIENCE)
            service.process = stack(tmp_path, port, service)
        storm.more()
        storm.stop()
    check(storm, str(tmp_path / "rank1.db"))


def stack(folder: Path, port: str, service: Served) -> Any:
    """Start another process in place of one that was killed."""
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
        storm = Storm([(one.url, one.token), (two.url, one.token)], 6, PATIENCE)
        storm.more()
        storm.stop()
    check(storm, str(tmp_path / "rank1.db"), exact=True)


def test_two_servers_on_one_postgresql_and_one_is_killed(tmp_path: Path, server: Any) -> None:
    place = new_schema(server)
    flags = "--storage", place
    with stormy(tmp_path, *flags) as one, served(tmp_path, *flags, token=one.token) as two:
        storm = Storm([(one.url, one.token), (two.url, one.token)], 6, 3)
        storm.more()
        two.process.send_signal(signal.SIGKILL)
        storm.more()  # the other server continues
        until(lambda: storm.failed > 0)
        storm.stop()
    check(storm, place)


@pytest.mark.parametrize(
    ("times", "servers"), [(10, 1), pytest.param(1000, 2, marks=pytest.mark.validate)]
)
def test_the_same_report_from_eight_clients(tmp_path: Path, times: int, servers: int) -> None:
    """Half send another value: one report counts, equal ones get the same answer, others don't."""
    with stormy(tmp_path) as one, contextlib.ExitStack() as more:
        others = [more.enter_context(served(tmp_path, token=one.token)) for _ in range(servers - 1)]
        _, given = one.call(at("storm", "/ask/batch"), {"count": times})
        ids = [each["suggestion"]["id"] for each in given["results"]]
        together = threading.Barrier(8)

        def tell(number: int) -> list[tuple[int, Any]]:
            service = [one, *others][number % servers]
            answers = []
            for id in ids:
                together.wait(PATIENCE)
                report = {"id": id, "reward": float(number // 4)}
                answers.append(service.call(at("storm", "/tell"), report))
            return answers

        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(tell, range(8)))
        assert one.call(at("storm"))[1]["totals"]["reports"] == times
    with rank1.Study.open("storm", tmp_path / "rank1.db") as study:
        assert study.verify().ok
        stored = {line["id"]: line["reward"] for line in lines_of_study(study)}
    for id, *answers in zip(ids, *found, strict=True):
        halves = answers[:4], answers[4:]
        told = [half for half in halves if half[0][0] == 200]
        assert len(told) == 1
        assert told[0] == [told[0][0]] * 4
        assert (told[0][0][1]["id"], told[0][0][1]["reward"]) == (id, stored[id])
        (refused,) = [half for half in halves if half[0][0] != 200]
        assert {(status, body["title"]) for status, body in refused} == {(409, "Conflict")}


CLOCK = """
import time
from pathlib import Path
from rank1.__main__ import main
real = time.time
time.time = lambda: real() + float(Path("ahead").read_text())
main()
"""


def test_the_clock_jumps_by_a_day(tmp_path: Path) -> None:
    day = 86_400
    ahead = tmp_path / "ahead"

    def jump(seconds: int) -> None:  # in one step, because the service reads the clock all the time
        (tmp_path / "next").write_text(f"{seconds}")
        (tmp_path / "next").replace(ahead)

    jump(0)
    with served(tmp_path, code=CLOCK) as service:

        def ask() -> list[str]:
            _, given = service.call(at("jumps", "/ask/batch"), {"count": 5})
            return [each["suggestion"]["id"] for each in given["results"]]

        def tell(ids: list[str]) -> list[Any]:
            reports = [{"id": id, "reward": 1.0} for id in ids]
            _, found = service.call(at("jumps", "/tell/batch"), {"reports": reports})
            assert {each["status"] for each in found["results"]} == {200}
            return [each["report"]["late"] for each in found["results"]]

        def totals(**expected: int) -> None:
            found = service.call(at("jumps"))[1]["totals"]
            assert {name: found[name] for name in expected} == expected

        body = {"name": "jumps", **GRID, "reward_window": 3600}
        assert service.call("/v1/studies", body)[0] == 201
        first = ask()
        jump(day)
        totals(suggestions=5, expired=5, pending=0)
        jump(-day)
        second = ask()
        totals(suggestions=10, expired=5, pending=5)
        jump(0)
        totals(suggestions=10, expired=5, pending=5)
        third = ask()
        assert tell(first + second) == [True] * 5 + [False] * 5
        jump(3 * day)
        totals(suggestions=15, reports=10, expired=5, pending=0)
        jump(0)
        assert tell(third[:2] + first[:2]) == [True] * 4
        totals(suggestions=15, reports=12, expired=3, pending=0)
        _, found = service.call(at("jumps", "/history?limit=1000"))
        assert [each["at"] for each in found["events"]] == sorted(
            each["at"] for each in found["events"]
        )
        expired = [each["id"] for each in found["events"] if each["kind"] == "expired"]
        assert sorted(expired) == sorted(first + third)
        assert service.call(at("jumps", "/verification"))[1]["ok"]


def test_the_end_comes_after_what_has_begun(tmp_path: Path) -> None:
    with stormy(tmp_path) as service:
        storm = Storm([(service.url, service.token)], 6, 3)
        storm.more()
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(PATIENCE) == 0
        storm.stop()
    check(storm, str(tmp_path / "rank1.db"))
    assert not os.path.exists(tmp_path / "rank1.db-wal")  # it was closed properly


#: A service whose storage waits forever, and which reports when it starts to write.
PATIENT = """
from pathlib import Path
from rank1.server.write_queue import WriteQueue
from rank1.studies.storage import open_storage
from rank1.__main__ import main

write, is_contended = WriteQueue.__init__.__defaults__

def writes(jobs):
    Path("writes").write_text(f"{jobs}")
    return write(jobs)

WriteQueue.__init__.__defaults__ = writes, is_contended
open_storage.__defaults__ = (1e6,)
main()
"""


@pytest.mark.parametrize("under_way", [False, pytest.param(True, marks=pytest.mark.validate)])
def test_the_end_does_not_wait_for_a_storage_that_is_held(tmp_path: Path, under_way: bool) -> None:
    """Neither a request nor storing snapshots delays the shutdown."""
    with stormy(tmp_path, "--drain", "1", code=PATIENT) as service:
        assert service.call(at("storm", "/ask"), {}, Idempotency_Key="one")[0] == 201
        other = apsw.Connection(str(tmp_path / "rank1.db"))
        other.execute("BEGIN IMMEDIATE")
        (tmp_path / "writes").unlink()
        with ThreadPoolExecutor(1) as thread:
            if under_way:
                asked = thread.submit(service.call, at("storm", "/ask"), {}, Idempotency_Key="two")
                until((tmp_path / "writes").exists)
            service.process.send_signal(signal.SIGTERM)
            if under_way:
                status, found = asked.result(PATIENCE)
                assert (status, found["detail"]) == (503, "the service is shutting down")
            assert service.process.wait(PATIENCE) == 0
        other.close()
    with rank1.Study.open("storm", tmp_path / "rank1.db") as study:
        assert study.verify().ok
        assert study.counts()["suggestions"] == 1
    assert "traceback" not in (tmp_path / "log.jsonl").read_text()


def test_a_file_that_is_moved_away_is_a_503(tmp_path: Path) -> None:
    with stormy(tmp_path) as service:
        asked = service.call(at("storm", "/ask"), {}, Idempotency_Key="k")
        assert asked[0] == 201
        names = [path.name for path in tmp_path.glob("rank1.db*")]
        (tmp_path / "away").mkdir()
        for name in names:
            (tmp_path / name).rename(tmp_path / "away" / name)
        new = {"name": "storm", **GRID}
        for path, body in ((at("storm", "/ask"), {}), ("/v1/studies", new), ("/readyz", None)):
            status, found = service.call(path, body)
            assert (status, found["type"]) == (503, "urn:rank1:problem:storage")
            assert "rank1.db" not in str(found)
        assert service.call("/healthz")[0] == 200
        assert not list(tmp_path.glob("rank1.db*"))
        for name in names:
            (tmp_path / "away" / name).rename(tmp_path / name)
        assert service.call(at("storm", "/ask"), {}, Idempotency_Key="k") == asked


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
            assert study.counts()["reports"] == len(kept)
