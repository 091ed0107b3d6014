"""Helpers for tests of the service."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.forked import Command

#: Seconds after which a test stops waiting, enough for a busy machine.
PATIENCE = 300

GRID = {"rows": ["a", "b", "c"], "columns": ["x", "y"]}


def call(
    url: str,
    path: str,
    body: Any = None,
    token: str | None = None,
    method: str | None = None,
    **headers: str,
) -> tuple[int, Any]:
    """Send a request, and return its status and JSON."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        given["Authorization"] = f"Bearer {token}"
    data = None
    if body is not None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given.setdefault("Content-Type", "application/json")
    request = urllib.request.Request(url + path, data, given, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")


def at(name: str, rest: str = "") -> str:
    return f"/v1/studies/{quote(name, safe='')}{rest}"


def until(happened: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


class Served:
    """A service that runs in its own process."""

    def __init__(self, process: Any, url: str, token: str, log: Path) -> None:
        self.process, self.url, self.token, self.log = process, url, token, log

    def call(self, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        return call(self.url, path, body, options.pop("token", self.token), **options)


@contextlib.contextmanager
def served(
    folder: Path,
    *flags: str,
    token: str | None = None,
    code: str | None = None,
    compiled: bool = False,
    fresh: bool = False,
) -> Iterator[Served]:
    """Run `rank1 serve` on a free port.

    Parameters
    ----------
    code
        Run this instead, which starts the service.
    compiled
        Compile in the background, as always in real use: that takes longer than most tests.
    fresh
        Start a new interpreter instead of forking a process that has imported everything.
    """
    command = "serve", "--port", "0", *flags
    log = folder / "log.jsonl"
    process: Any
    if not fresh:
        more = {} if compiled else {"NUMBA_DISABLE_JIT": "1"}
        process = Command(*command, cwd=folder, stderr=log, code=code, environment=more)
    else:
        with log.open("a") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "rank1", *command],
                cwd=folder, text=True, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
    try:
        line = process.stdout.readline()
        assert "http://" in line, (line, log.read_text()[-3000:])
        url, _, rest = line.split("http://")[1].partition("/")
        lent = rest.removeprefix("#token=").split(" ")[0]
        yield Served(process, f"http://{url}", token or lent, log)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(PATIENCE)
        process.stdout.close()
