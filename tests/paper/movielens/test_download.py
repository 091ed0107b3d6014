"""The download: only with a yes, only the right archive, all or nothing. No network is used."""

from __future__ import annotations

import hashlib
import http.server
import inspect
import io
import shutil
import sys
import threading
import types
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rank1.errors import InputError
from rank1.paper.movielens import LICENCE, DataError, download, read


@pytest.fixture
def archive(folder: Path) -> bytes:
    """A zip like the real one, with the few lines of the test files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for file in folder.glob("*.dat"):
            packed.write(file, f"ml-1m/{file.name}")
        packed.writestr("ml-1m/README", "the terms")
        packed.writestr("ml-1m/other.txt", "not needed")
    return buffer.getvalue()


def checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def use_double(monkeypatch: pytest.MonkeyPatch, retrieve: Callable[..., str]) -> None:
    """In the place of pooch, which need not be installed."""
    logger = types.SimpleNamespace(setLevel=lambda level: None)
    double = types.SimpleNamespace(retrieve=retrieve, get_logger=lambda: logger)
    monkeypatch.setitem(sys.modules, "pooch", double)


@pytest.fixture(params=["pooch", "double"])
def home(
    request: pytest.FixtureRequest, archive: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[str]:
    """Where the archive is served: for pooch, where installed, by a server on this machine."""
    if request.param == "double":
        source = tmp_path / "served.zip"
        source.write_bytes(archive)

        def retrieve(url: str, known_hash: str, path: str, fname: str) -> str:
            if url != "http://home/ml-1m.zip":
                raise ConnectionError("no such host")
            if known_hash != f"sha256:{checksum(archive)}":
                raise ValueError("hash does not match")
            return str(shutil.copy(source, str(Path(path) / fname)))

        use_double(monkeypatch, retrieve)
        yield "http://home/ml-1m.zip"
        return

    pytest.importorskip("pooch")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/ml-1m.zip" else 404)
            self.send_header("Content-Length", str(len(archive)))
            self.end_headers()
            self.wfile.write(archive)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/ml-1m.zip"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("answer", [False, None, "yes", 1])
def test_nothing_without_a_yes(tmp_path: Path, answer: bool) -> None:
    with pytest.raises(InputError, match="accept_licence must be True") as caught:
        download(tmp_path / "data", accept_licence=answer)
    assert LICENCE in str(caught.value)
    assert not (tmp_path / "data").exists()


def test_terms_name_what_matters() -> None:
    for word in ("research", "redistributed", "commercial", "acknowledge"):
        assert word in LICENCE


def test_fetches_and_unpacks(home: str, archive: bytes, tmp_path: Path) -> None:
    target = tmp_path / "new" / "data"
    found = download(target, accept_licence=True, url=home, sha256=checksum(archive))
    assert found == target / "ml-1m"
    assert sorted(f.name for f in found.iterdir()) == [
        "README",
        "movies.dat",
        "ratings.dat",
        "users.dat",
    ]
    assert [f.name for f in target.iterdir()] == ["ml-1m"]  # nothing else is left behind
    assert len(read(target).stars) == 7
    # A second time it is there already, so that nothing is asked of the network.
    assert download(target, accept_licence=True, url="http://127.0.0.1:9/no") == found


def test_another_checksum(home: str, archive: bytes, tmp_path: Path) -> None:
    target = tmp_path / "data"
    wrong = checksum(archive + b"!")
    with pytest.raises(DataError, match=f"ml-1m.zip: the archive must have the .* {wrong}"):
        download(target, accept_licence=True, url=home, sha256=wrong)
    assert list(target.iterdir()) == []


def test_no_network(home: str, tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/ml-1m.zip"
    with pytest.raises(ConnectionError, match=f"{url} couldn't be downloaded: .*data directory"):
        download(tmp_path / "data", accept_licence=True, url=url)
    assert list((tmp_path / "data").iterdir()) == []


def test_without_pooch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install 'rank1\[movielens\]'"):
        download(tmp_path, accept_licence=True)


def packed(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"ml-1m/{name}.dat", text)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (packed(users="1::F::1::10::48067\n"), r"no movies.dat and no ratings.dat"),
        (b"<html>", "not a zip archive"),
    ],
    ids=["archive", "page"],  # an archive holds the time, so tests would be named by the second
)
def test_an_archive_of_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str
) -> None:
    def retrieve(url: str, known_hash: str, path: str, fname: str) -> str:
        (Path(path) / fname).write_bytes(content)
        return str(Path(path) / fname)

    use_double(monkeypatch, retrieve)
    with pytest.raises(DataError, match=message):
        download(tmp_path / "data", accept_licence=True)
    assert list((tmp_path / "data").iterdir()) == []


def test_the_archive_is_that_of_2003() -> None:
    assert inspect.signature(download).parameters["url"].default == (
        "https://files.grouplens.org/datasets/movielens/ml-1m.zip"
    )
    assert inspect.signature(download).parameters["sha256"].default == (
        "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20"
    )
