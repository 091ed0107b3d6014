"""A client that puts load on a service: plain HTTP on asyncio, so that it takes little time."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from typing import Any


class Connection:
    """A connection that stays open."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self.place, self.token = (host, port), token

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection(*self.place)

    async def post(self, path: str, body: Any) -> Any:
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        self.writer.write(head.encode() + data)
        got = await self.reader.readuntil(b"\r\n\r\n")
        size = int(got.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = json.loads(await self.reader.readexactly(size))
        status = int(got[9:12])
        if status >= 300:
            raise RuntimeError(f"{status}: {answer}")
        return answer

    def close(self) -> None:
        self.writer.close()


async def pairs(
    host: str, port: int, token: str, paths: Callable[[int], str], connections: int, seconds: float,
    batch: int | None = None, limit: float = float("inf"), units: bool = False,
) -> tuple[float, list[float]]:  # fmt: skip
    """Return ask/tell pairs per second and the time of each request; `units` asks for new units."""
    took: list[float] = []
    done = 0
    mark, numbers = f"{time.time_ns():x}", itertools.count()
    began = time.perf_counter()

    async def one(number: int) -> None:
        nonlocal done
        link = Connection(host, port, token)
        await link.open()
        path = paths(number)
        while time.perf_counter() - began < seconds and done < limit:
            start = time.perf_counter()
            if batch is None:
                unit = {"unit": f"{mark}-{next(numbers)}"} if units else {}
                asked = await link.post(f"{path}/ask", unit)
                middle = time.perf_counter()
                await link.post(f"{path}/tell", {"id": asked["id"], "reward": done % 2})
            else:
                given = (await link.post(f"{path}/ask/batch", {"count": batch}))["results"]
                middle = time.perf_counter()
                told = [{"id": one["suggestion"]["id"], "reward": done % 2} for one in given]
                await link.post(f"{path}/tell/batch", {"reports": told})
            took.append(middle - start)
            took.append(time.perf_counter() - middle)
            done += batch or 1
        link.close()

    await asyncio.gather(*(one(k) for k in range(connections)))
    return done / (time.perf_counter() - began), took


async def records(
    host: str, port: int, token: str, path: str, arms: list[dict[str, str]], connections: int,
    seconds: float, batch: int = 1,
) -> tuple[float, list[float]]:  # fmt: skip
    """Return records of new units per second, and the time of each request."""
    took: list[float] = []
    numbers = itertools.count()
    mark = f"{time.time_ns():x}"
    began = time.perf_counter()

    async def one() -> None:
        link = Connection(host, port, token)
        await link.open()
        while time.perf_counter() - began < seconds:
            some = [
                {
                    "unit": f"{mark}-{k}",
                    "version": 0,
                    "levels": arms[k % len(arms)],
                    "reward": k % 2,
                }
                for k in itertools.islice(numbers, batch)
            ]
            start = time.perf_counter()
            found = await link.post(f"{path}/records", {"records": some})
            took.append(time.perf_counter() - start)
            assert all(each["status"] == 201 for each in found["results"]), found
        link.close()

    await asyncio.gather(*(one() for _ in range(connections)))
    return len(took) * batch / (time.perf_counter() - began), took
