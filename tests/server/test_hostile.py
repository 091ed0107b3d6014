"""Labels full of HTML, names full of slashes, endless bodies, and slow clients."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.support import GRID, PATIENCE, Served, at, call, served, until

NAMES = [
    "../../etc/passwd", "a/b", "a%2Fb", "..%2f", "?x=1", "#frag", "a b", "ü×漢", "<script>",
    "'; DROP TABLE rank1_studies; --", "-", "a\\b", "\r\nX-Evil: 1", "v1", "ask",
]  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    flags = "--max-body", "100000", "--patience", "1"
    with served(tmp_path_factory.mktemp("hostile"), *flags) as found:
        yield found


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_a_name(service: Served, name: str) -> None:
    assert service.call("/v1/studies", {"name": name, **GRID})[0] == 201
    status, asked = service.call(at(name, "/ask"), {})
    assert status == 201
    assert service.call(at(name, "/tell"), {"id": asked["id"], "reward": 1})[0] == 200
    assert service.call(at(name))[1]["name"] == name


@pytest.mark.parametrize("name", [".", "..", "", "a\0b", "x" * 257, "\ud800"])
def test_names_that_are_none(service: Served, name: str) -> None:
    status, found = service.call("/v1/studies", {"name": name, **GRID})
    assert (status, found["field"]) == (422, "name")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../etc/passwd", "/static/x/..%2f..%2f__init__.py", "/..%2f..%2fetc/passwd",
        "/static//", "/v1/studies/%00/ask", "/v1/studies/%ff%fe/best", "/v1//studies",
        "/v1/studies/a/b/c/d", "/v1/%2e%2e/metrics", "//etc/passwd",
    ],
)  # fmt: skip
def test_paths_that_lead_nowhere(service: Served, path: str) -> None:
    link = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=PATIENCE)
    link.request("GET", path, headers={"Authorization": f"Bearer {service.token}"})
    answer = link.getresponse()
    assert answer.status in (404, 405, 422)
    assert b"root:" not in answer.read()
    link.close()


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"id": 1, "reward": 1}', b'"x"', b"NaN",
        b'{"id": "x", "reward": 1e999}', b'{"id": "x", "reward": NaN}', b"[" * 50_000,
        b'{"id": "x", "reward": ' + b"9" * 5000 + b"}", b'{"id":"x","reward":1,"id":"y","more":1}',
    ],
)  # fmt: skip
def test_bodies_that_are_none(service: Served, body: bytes) -> None:
    service.call("/v1/studies", {"name": "bodies", **GRID})
    status, found = service.call(at("bodies", "/tell"), body)
    assert status in (400, 404, 422)
    assert found["status"] == status


def test_a_body_without_end(service: Served) -> None:
    """A gigabyte is rejected by its length or, without a length, when it has become too large."""
    assert service.call("/v1/studies", b" " * 200_000)[0] == 413
    host, port = service.url.removeprefix("http://").split(":")
    head = f"POST /v1/studies HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.token}\r\n"
    head += "Content-Type: application/json\r\n"
    with socket.create_connection((host, int(port)), PATIENCE) as link:
        link.sendall(f"{head}Content-Length: {2**30}\r\n\r\n".encode())
        assert b" 413 " in link.recv(65536).split(b"\r\n")[0]
    with socket.create_connection((host, int(port)), PATIENCE) as link:
        link.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        sent = 0
        try:
            while sent < 2**30:
                link.sendall(b"ffff\r\n" + b" " * 0xFFFF + b"\r\n")
                sent += 0xFFFF
        except OSError:
            pass
        assert sent < 2**26
    until(lambda: service.call("/readyz")[0] == 200)


def test_slow_clients_keep_nobody_waiting(service: Served) -> None:
    host, port = service.url.removeprefix("http://").split(":")
    head = f"POST /v1/studies HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.token}\r\n"
    slow = [socket.create_connection((host, int(port)), PATIENCE) for _ in range(60)]
    for k, link in enumerate(slow):
        link.sendall(head.encode() if k % 2 else f"{head}Content-Length: 100\r\n\r\n{{".encode())
    try:
        began = time.monotonic()
        until(lambda: service.call("/readyz")[0] == 200)
        assert time.monotonic() - began < 30  # one after the other would take 60
        assert b" 408 " in slow[0].recv(65536).split(b"\r\n")[0]
        assert slow[1].recv(65536) == b""  # half a header is no request
    finally:
        for link in slow:
            link.close()


@pytest.mark.parametrize("hard", [256, pytest.param(4096, marks=pytest.mark.validate)])
def test_idle_connections_leave_room_for_the_liveness_check(tmp_path: Path, hard: int) -> None:
    """Where the limit of open files can't be raised, new connections replace idle ones."""
    lower = f"resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}))"
    code = f"import resource; {lower}; from rank1.cli import main; main()"
    with served(tmp_path, "--patience", "300", code=code) as service:
        host, port = service.url.removeprefix("http://").split(":")
        idle = [socket.create_connection((host, int(port)), PATIENCE) for _ in range(300)]
        try:
            assert service.call("/healthz")[0] == 200
            until(lambda: service.call("/readyz")[0] == (503 if hard == 256 else 200))
        finally:
            for link in idle:
                link.close()
        assert ("room for 128 connections" in service.log.read_text()) == (hard == 256)


def test_a_connection_that_is_kept_open_is_good_for_long(service: Served) -> None:
    link = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=PATIENCE)
    for _ in range(2):
        link.request("GET", "/healthz")
        assert link.getresponse().read()
        socket_ = link.sock
        time.sleep(1.5)  # longer than the timeout of a request that has begun
    link.request("GET", "/healthz")
    assert link.getresponse().read()
    assert link.sock is socket_
    link.close()


def test_head_gets_the_headers_of_get(service: Served) -> None:
    service.call("/v1/studies", {"name": "head", **GRID})
    bearer = {"Authorization": f"Bearer {service.token}"}
    link = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=PATIENCE)
    link.connect()
    socket_ = link.sock
    for path in ("/healthz", "/v1/studies", at("head", "/export"), "/v1/studies/none"):
        lengths = []
        for method in ("HEAD", "GET"):
            link.request(method, path, headers=bearer)
            answer = link.getresponse()
            lengths.append((answer.status, answer.headers["Content-Length"]))
            assert (answer.read() == b"") == (method == "HEAD" or path.endswith("/export"))
        assert lengths[0] == lengths[1]
    assert link.sock is socket_
    link.close()
    assert "shorter" not in service.log.read_text()


def test_an_ask_needs_no_body(service: Served) -> None:
    service.call("/v1/studies", {"name": "bare", **GRID})
    assert service.call(at("bare", "/ask"), method="POST")[0] == 201
    assert service.call(at("bare", "/retire"), method="POST")[0] == 200


def test_labels_full_of_html_come_back_as_they_went(service: Served) -> None:
    evil = ["<script>alert(1)</script>", "</script>", "\u2028", "=1+1", "&lt;", "\u202eabc"]
    fields = {"name": "<b>html</b>", "rows": evil, "columns": ["x"]}
    assert service.call("/v1/studies", fields)[1]["rows"] == evil
    link = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=PATIENCE)
    link.request("GET", "/study?name=%3Cscript%3Ealert(1)%3C/script%3E")
    page = link.getresponse().read().decode()
    link.close()
    assert "alert(1)" not in page  # the page is a shell without any data of a study


def test_headers_are_not_split(service: Served) -> None:
    name = 'x"\r\nX-Evil: 1'
    service.call("/v1/studies", {"name": name, **GRID})
    link = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=PATIENCE)
    link.request("GET", at(name, "/export"), headers={"Authorization": f"Bearer {service.token}"})
    answer = link.getresponse()
    answer.read()
    assert answer.headers["X-Evil"] is None
    assert (
        answer.headers["Content-Disposition"] == 'attachment; filename="rank1-x---X-Evil--1.jsonl"'
    )
    link.close()


_HEAD = "POST /v1/studies/strict/ask HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "rest",
    [
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
        "Content-Length: 2\nX-Other: 1\r\n\r\n{}",
        "Content-Length: 2\r\n\n{}",
        "Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n",
        "Content-Length : 2\r\n\r\n{}",
        "X-Long: " + 20_000 * "x",
        500 * f"X-Many: {40 * 'x'}\r\n",
    ],
)
def test_what_a_proxy_could_read_otherwise_closes_the_connection(
    service: Served, rest: str
) -> None:
    service.call("/v1/studies", {"name": "strict", **GRID, "seed": 1})
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as link:
        link.sendall(f"{_HEAD}Authorization: Bearer {service.token}\r\n{rest}".encode())
        answer = b""
        while got := link.recv(2**16):  # until it is closed
            answer += got
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1") == 1
    head, body = answer.split(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert json.loads(body)["status"] == 400
    assert service.call(at("strict"))[1]["totals"]["suggestions"] == 0


def test_a_batch_has_a_limit(service: Served) -> None:
    service.call("/v1/studies", {"name": "limits", **GRID})
    assert service.call(at("limits", "/ask/batch"), {"count": 10_001})[0] == 422
    assert service.call(at("limits", "/ask/batch"), {"count": 0})[0] == 422
    for count in ("3", True):
        status, told = service.call(at("limits", "/ask/batch"), {"count": count})
        assert (status, told["type"]) == (422, "urn:rank1:problem:input-type")
    for records in (None, "x"):
        status, told = service.call(at("limits", "/records"), {"records": records})
        assert (status, told["type"]) == (422, "urn:rank1:problem:input-type")
    status, told = service.call("/v1/studies", {"name": "", "sides": {"a": ["x", "y"]}})
    assert (status, told["detail"]) == (422, "name must have at least 1 character, got ''")
    rows = {"name": "many", "rows": [f"{k}" for k in range(4097)], "columns": ["x"]}
    assert service.call("/v1/studies", rows)[0] == 422
    assert service.call(at("limits", "/ask"), {"unit": "u" * 300})[0] == 422
    assert service.call(at("limits", "/ask"), {}, Idempotency_Key="k" * 300)[0] == 422


def test_no_answer_has_a_traceback(service: Served, tmp_path: Path) -> None:
    status, found = call(service.url, "/nowhere")
    assert (status, found["title"]) == (404, "Unknown address")
    assert "Traceback" not in json.dumps(found)
