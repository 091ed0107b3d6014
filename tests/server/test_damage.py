"""A damaged or forbidden file is rejected by name, at startup and while the service runs."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import rank1
from rank1.server.app import make_app
from rank1.server.config import read_config
from rank1.server.tokens import Tokens
from tests.server.support import GRID, PATIENCE, at, served

PAGE = 4096


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the bytes of a file with a study."""
    path = tmp_path_factory.mktemp("whole") / "rank1.db"
    with rank1.Study.create("spring", GRID["rows"], GRID["columns"], storage=path) as study:
        given = study.ask(count=2000)
        study.tell_many([(each.id, 1.0) for each in given[:1500]])
    return path.read_bytes()


def damaged(path: Path, whole: bytes, how: str) -> None:
    garbage = random.Random(1).randbytes(len(whole))
    if how == "directory":
        path.mkdir()
    elif how == "text":
        path.write_text("this is no database\n" * 1000)
    elif how == "nothing":
        path.touch()
    elif how == "cut":
        path.write_bytes(whole[: 3 * PAGE + 77])
    elif how == "cut by a page":
        path.write_bytes(whole[:-PAGE])
    elif how == "a page of garbage":  # in the table of studies
        path.write_bytes(whole[:PAGE] + garbage[:PAGE] + whole[2 * PAGE :])
    elif how == "the last page":
        path.write_bytes(whole[:-PAGE] + garbage[:PAGE])
    elif how == "all but the first page":
        path.write_bytes(whole[:PAGE] + garbage[PAGE:])
    else:
        path.write_bytes(whole)
        path.chmod(0o444)


@pytest.mark.parametrize(
    "how",
    [
        "directory", "text", "nothing", "cut", "cut by a page", "a page of garbage",
        "the last page", "all but the first page", "read-only",
    ],
)  # fmt: skip
def test_what_can_not_be_used_is_refused_at_the_start(
    tmp_path: Path, whole: bytes, how: str
) -> None:
    path = tmp_path / "rank1.db"
    damaged(path, whole, how)
    before = path.read_bytes() if path.is_file() else None
    config = read_config({"storage": str(path), "tokens": str(tmp_path / "tokens.json")})
    with pytest.raises(rank1.StorageError) as caught:
        make_app(config, Tokens(config.tokens))
    assert str(path) in str(caught.value)
    assert "rank1 study backup" in str(caught.value)
    assert isinstance(caught.value, rank1.DamagedError) == (how != "read-only")
    assert before is None or path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["rank1.db"]


STRANGER = """
import os
from rank1.__main__ import main
import rank1.cli
import rank1.server.run
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
main()
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Make a folder that every user can access."""
    folder = Path(tempfile.mkdtemp(prefix="rank1-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_no_permission(open_folder: Path, whole: bytes) -> None:
    path = open_folder / "rank1.db"
    path.write_bytes(whole)
    path.chmod(0o600 if os.getuid() == 0 else 0)
    failed = subprocess.run(
        [sys.executable, "-c", STRANGER, "serve", "--port", "0"],
        cwd=open_folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert "can't open 'rank1.db'" in failed.stderr
    assert "rank1 study backup" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_file_that_is_damaged_while_it_is_served(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "rank1.db"
    path.write_bytes(whole)
    new = {"name": "spring", **GRID}
    with served(tmp_path) as service:

        def refused(path: str, body: object = None) -> None:
            status, found = service.call(path, body)
            assert (status, found["type"]) == (500, "urn:rank1:problem:damaged"), path
            assert "backup" in found["remedy"]
            assert "rank1.db" not in str(found)
            assert "Traceback" not in str(found)

        assert service.call(at("spring", "/ask"), {})[0] == 201
        os.truncate(path, len(whole) - PAGE)  # the same file, which the service has open
        refused(at("spring", "/ask"), {})
        refused(at("spring", "/ask"), {})
        assert path.stat().st_size == len(whole) - PAGE  # nothing was written to it
        with path.open("ab") as end:
            end.write(whole[-PAGE:])
        assert service.call(at("spring", "/ask"), {})[0] == 201
        assert service.call(at("spring", "/verification"))[1]["ok"]
        with path.open("r+b") as file:
            file.seek(5 * PAGE)
            file.write(random.Random(1).randbytes(len(whole) - 5 * PAGE))
        for what in ("/export", "/verification", "/view", "/history"):
            refused(at("spring", what))
        os.truncate(path, 2 * PAGE)
        refused(at("spring", "/ask"), {})
        refused("/readyz")
        assert service.call("/v1/studies", new)[0] in (409, 500)
        os.truncate(path, 0)
        refused(at("spring", "/ask"), {})
        refused("/v1/studies", new)
        refused("/v1/studies", {**new, "name": "autumn"})
        assert path.stat().st_size == 0
        assert service.call("/healthz")[0] == 200
        with rank1.Client(service.url, service.token, PATIENCE) as client:
            study = rank1.client.RemoteStudy(client, "spring")
            with pytest.raises(rank1.DamagedError):
                study.ask()
            assert study.ask(fallback=("a", "x")).id == ""
    log = (tmp_path / "log.jsonl").read_text()
    assert "'rank1.db' is damaged" in log
    assert "rank1 study backup" in log
