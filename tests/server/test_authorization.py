from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from rank1.errors import FileError, InputError
from rank1.server.config import Config, read_config
from rank1.server.middleware import CSP
from rank1.server.tokens import Tokens
from rank1.studies.storage import open_storage
from tests.server.support import GRID, PATIENCE, Served, at, call, served, until
from tests.test_cli import Output


def rank1(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rank1", *arguments]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def test_nobody_comes_in_without_a_token(service: Served) -> None:
    for token in (None, "wrong", "r1_00000000_x", service.token[:-1], service.token + "x"):
        for path in ("/v1/studies", "/metrics", "/v1/nothing"):
            status, found = call(service.url, path, token=token)
            assert (status, found["title"]) == (401, "Not authenticated")
    assert call(service.url, "/v1/studies", b"{" * 10**4)[0] == 401


def test_roles_and_studies_of_tokens(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "rank1-tokens.json")
    admin, writer, reader = (tokens.create(role) for role in ("admin", "writer", "reader"))
    only, later = tokens.create("writer", ["spring"]), tokens.create("reader", ["winter"])
    with served(tmp_path, "--access-log", token=admin) as service:

        def status(token: str, path: str, body: object = None) -> int:
            return service.call(path, body, token=token)[0]

        for name in ("spring", "autumn"):
            assert status(admin, "/v1/studies", {"name": name, **GRID}) == 201
        assert status(writer, "/v1/studies", {"name": "x", **GRID}) == 403
        assert status(only, "/v1/studies", {"name": "spring2", **GRID}) == 403
        assert status(reader, at("spring", "/ask"), {}) == 403
        assert status(reader, at("spring", "/best")) == 200
        assert status(writer, at("spring", "/ask"), {}) == 201
        assert status(writer, at("spring", "/revisions"), {"add_rows": ["z"]}) == 403
        assert status(writer, at("spring", "/verification")) == 403
        assert status(only, at("spring", "/ask"), {}) == 201
        assert status(only, at("autumn", "/ask"), {}) == 403
        assert status(only, at("autumn", "/best")) == 403
        assert status(only, "/metrics") == 403
        replay = at("spring", "/replay?policy=rank1.policies:UCB1")  # the service would import it
        assert status(reader, replay) == 403
        assert service.call(replay, token=admin)[1]["field"] == "study"  # the study has no rewards
        missing, found = service.call(at("winter"), token=later)
        assert (missing, found["detail"]) == (404, "there is no study 'winter'")
        _, listed = service.call("/v1/studies", token=only)
        assert [each["name"] for each in listed["studies"]] == ["spring"]
        # a revoked token stops working within about a second
        tokens.revoke(only.split("_")[1])
        until(lambda: status(only, at("spring", "/best")) == 401)
        log = (tmp_path / "log.jsonl").read_text()
    requests = [json.loads(line) for line in log.splitlines()]
    assert any(each.get("path") == at("spring", "/ask") for each in requests)
    for text in (admin, writer, reader, only):
        secret = text.split("_", 2)[2]
        assert secret not in (tmp_path / "rank1-tokens.json").read_text()
        assert secret not in log


def test_the_file_of_tokens(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "t.json")
    tokens.create("reader", note="page")
    assert (tmp_path / "t.json").stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="role must be one of"):
        tokens.create("king")
    with pytest.raises(InputError, match="id must be one of"):
        tokens.revoke("nobody")
    (tmp_path / "t.json").write_text("{")
    with pytest.raises(FileError, match="can't be read"):
        Tokens(tmp_path / "t.json").list()


def unreadable(service: Served) -> float:
    """Return the gauge that says whether the file of tokens can't be read."""
    bearer = {"Authorization": f"Bearer {service.token}"}
    request = urllib.request.Request(service.url + "/metrics", headers=bearer)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return float(answer.read().decode().partition("\nrank1_tokens_unreadable ")[2].split()[0])


def test_tokens_that_were_read_last_stay_valid_while_the_file_is_broken(tmp_path: Path) -> None:
    file = tmp_path / "rank1-tokens.json"
    token = Tokens(file).create("admin")
    with served(tmp_path, token=token) as service:
        until(lambda: service.call("/readyz")[0] == 200)
        kept = file.read_text()
        file.write_text("{")
        until(lambda: unreadable(service) == 1)
        assert "rank1-tokens.json' can't be read" in service.log.read_text()
        file.unlink()
        for _ in range(2):
            until(lambda: service.call("/readyz")[0] == 200)  # a working service keeps its traffic
            assert service.call("/v1/studies")[0] == 200
            assert call(service.url, "/v1/studies", token=token + "x")[0] == 401
            file.write_text(kept)
            until(lambda: unreadable(service) == 0)
            file.unlink()
            until(lambda: unreadable(service) == 1)


def test_tokens_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def tokens(*arguments: str) -> Output:
        return Output(capsys, "serve", "token", *arguments)

    text = tokens("create", "--role", "writer", "--study", "spring").out.strip()
    token = Tokens(tmp_path / "rank1-tokens.json").find(text)
    assert token is not None
    assert (token.role, token.studies) == ("writer", ("spring",))
    listed = json.loads(tokens("list", "--json").out)
    assert [each["id"] for each in listed["tokens"]] == [token.id]
    assert text.split("_", 2)[2] not in str(listed)
    assert tokens("revoke", token.id).status == 0
    assert "none yet" not in tokens("list").out
    failed = tokens("revoke", token.id)
    assert failed.status == 2
    assert "Traceback" not in failed.err


@pytest.mark.parametrize("name", ["PROT", "HOSTS", "ACCESSLOG", "MAX_BODDY", "CONFG", "port"])
def test_a_slip_in_the_environment_is_told(name: str) -> None:
    with pytest.raises(InputError, match=rf"got RANK1_SERVE_{name}: did you mean RANK1_SERVE_"):
        read_config({}, environment={f"RANK1_SERVE_{name}": "1"})


def test_a_cluster_may_have_names_of_its_own() -> None:
    """Kubernetes sets these variables for everything next to a service called rank1-serve."""
    names = "SERVICE_HOST", "SERVICE_PORT", "PORT_8000_TCP", "PORT_8000_TCP_PROTO"
    found = read_config({}, environment={f"RANK1_SERVE_{name}": "tcp://10.0.0.1" for name in names})
    assert found == Config()


def test_an_open_address_needs_tokens(tmp_path: Path) -> None:
    failed = rank1("serve", "--host", "0.0.0.0", "--port", "0", cwd=tmp_path)
    assert failed.returncode == 2
    assert "loopback" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not (tmp_path / "rank1.db").exists()


def test_configuration_from_flags_environment_and_file(tmp_path: Path) -> None:
    (tmp_path / "rank1.toml").write_text('port = 1\nrate = 7\nstorage = "postgresql://u:p@h/d"\n')
    command = [sys.executable, "-m", "rank1", "serve", "--config", "rank1.toml", "--show-config"]
    import os

    environment = {**os.environ, "RANK1_SERVE_PORT": "2", "RANK1_SERVE_PATIENCE": "3"}
    found = subprocess.run(
        [*command, "--port", "4"], cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    shown = json.loads(found.stdout)
    assert (shown["port"], shown["patience"], shown["rate"]) == (4, 3.0, 7.0)
    assert shown["storage"] == "postgresql://u:***@h/d"
    (tmp_path / "rank1.toml").write_text("prot = 1\n")
    failed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert "rank1.toml: a setting must be one of host" in failed.stderr
    assert "max_body" in failed.stderr  # as the file has it, not as the flag
    assert "did you mean port?" in failed.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        failed = rank1("serve", "--port", port, cwd=tmp_path)
    assert failed.returncode == 2
    assert "choose another port" in failed.stderr


def test_headers_of_every_answer(service: Served) -> None:
    link = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=PATIENCE)
    for path in ("/", "/study?name=x", "/docs", "/v1/studies", "/nowhere", "/openapi.json"):
        link.request("GET", path)
        answer = link.getresponse()
        answer.read()
        assert answer.headers["Content-Security-Policy"] == CSP, path
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert "Server" not in answer.headers
        assert "Set-Cookie" not in answer.headers
    link.close()


def test_requests_of_one_token_and_connections_are_counted(tmp_path: Path) -> None:
    with served(tmp_path, "--rate", "0.01", "--connections", "3") as service:
        assert [service.call("/v1/studies")[0] for _ in range(2)] == [200, 429]
        assert service.call("/healthz")[0] == 200
        host, port = service.url.removeprefix("http://").split(":")
        others = [socket.create_connection((host, int(port)), PATIENCE) for _ in range(3)]
        until(lambda: service.call("/readyz")[0] == 503)  # accepting them takes a moment
        answer = service.call("/readyz")
        assert answer[1]["detail"] == "there are too many connections"
        assert service.call("/healthz")[0] == 200  # it is still alive
        for link in others:
            link.close()
        until(lambda: service.call("/readyz")[0] == 200)


def test_a_browsers_token_is_for_its_origins_and_expires(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "rank1-tokens.json")
    admin = tokens.create("admin")
    page = tokens.create("browser", ["spring"], origins=["https://shop.example"], rate=1e4)
    gone = tokens.create("reader", days=1e-9)
    shares = at("spring", "/shares")
    with served(tmp_path, token=admin) as service:
        host, port = service.url.removeprefix("http://").split(":")

        def asked(method: str, path: str, origin: str, **more: str) -> http.client.HTTPResponse:
            link = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
            link.request(method, path, headers={"Origin": origin, **more})
            answer = link.getresponse()
            answer.read()
            link.close()
            return answer

        service.call("/v1/studies", {"name": "spring", **GRID})
        preflight = {"Access-Control-Request-Method": "POST"}
        for origin, allowed in (("https://shop.example", True), ("https://evil.example", False)):
            answer = asked("OPTIONS", at("spring", "/records"), origin, **preflight)
            assert answer.status == 204
            found = answer.headers["Access-Control-Allow-Origin"]
            assert found == (origin if allowed else None)
        bearer = {"Authorization": f"Bearer {page}"}
        assert asked("GET", shares, "https://evil.example", **bearer).status == 403
        answer = asked("GET", at("spring", "/best"), "https://shop.example", **bearer)
        assert answer.status == 403
        # a beacon has no headers; other tokens are never accepted in an address
        answer = asked("GET", f"{shares}?token={admin}", "https://shop.example")
        assert answer.status == 401
        # a page of a known origin learns that its token is refused
        assert answer.headers["Access-Control-Allow-Origin"] == "https://shop.example"
        answer = asked("GET", shares, "https://shop.example", Authorization=f"Bearer {admin}")
        assert answer.headers["Access-Control-Allow-Origin"] is None
        assert service.call("/v1/studies", token=gone)[0] == 401
    for studies, origins, named in (
        (None, ["https://a"], "studies"),
        (["a"], [], "origins"),
        (["a"], ["shop.example"], "origins"),
    ):
        with pytest.raises(InputError, match=named):
            tokens.create("browser", studies, origins=origins)


def test_no_message_shows_a_password() -> None:
    shown = Config(storage="postgresql://ann@db/shop?sslmode=require&password=hush").shown()
    assert "hush" not in str(shown)
    assert "sslmode=require" in str(shown)
    pytest.importorskip("psycopg")
    for address in (
        "postgresql://ann:hush@db/shop?nonsense=1",
        "postgresql://ann:hush%zz@db/shop",
        "postgresql://ann:hu/sh@db/shop",
        "postgresql://ann:hu/s?h@db/shop",
        "postgresql://db/shop?nonsense=1&password=hush@home",
        "host=db password = hush dbname=home",
    ):
        with pytest.raises(InputError) as refused:
            open_storage(address)
        for secret in ("hush", "hu/s", "home"):
            assert secret not in str(refused.value)
            assert secret not in str(vars(refused.value))


def test_admins_create_list_and_revoke_tokens_over_http(service: Served) -> None:
    body = {"role": "browser", "studies": ["spring"], "origins": ["https://a.example"], "days": 30}
    status, made = service.call("/v1/tokens", body)
    assert (status, made["role"], made["origins"]) == (201, "browser", ["https://a.example"])
    assert made["expires"] > made["created"] + 29 * 86400
    _, listed = service.call("/v1/tokens")
    assert [each["id"] for each in listed["tokens"]] == [made["id"]]
    assert "digest" not in str(listed)
    assert made["token"] not in str(listed)
    link = service.call("/v1/tokens", {"role": "reader", "studies": ["spring"]})[1]["token"]
    for method, path in (("GET", "/v1/tokens"), ("DELETE", f"/v1/tokens/{made['id']}")):
        assert service.call(path, method=method, token=link)[0] == 403
    assert service.call(f"/v1/tokens/{made['id']}", method="DELETE")[0] == 200
    assert service.call(f"/v1/tokens/{made['id']}", method="DELETE")[1]["field"] == "id"
    status, found = service.call(
        "/v1/tokens", {"role": "browser", "origins": ["https://a.example"]}
    )
    assert (status, found["field"]) == (422, "studies")


def test_a_link_shows_no_unit(service: Served) -> None:
    """Anything that a link can read, even if added later, must not name a visitor."""
    sides = {"headline": ["A", "B"], "image": ["x", "y"]}
    assert service.call("/v1/studies", {"name": "mine", "sides": sides, "goal": "find"})[0] == 201
    _, asked = service.call(at("mine", "/ask"), {"unit": "visitor-17"})
    service.call(at("mine", "/tell"), {"id": asked["id"], "reward": 1})
    service.call(at("mine", "/notes"), {"text": "new prices"})
    link = service.call(at("mine", "/links"), {})[1]["token"]
    read = set()
    for path, methods in service.call("/openapi.json")[1]["paths"].items():
        if "get" not in methods or "{name}" not in path:
            continue
        needed = {"replay": "?policy=ucb1", "personalise": "?side=image&by=headline"}
        asking = urllib.request.Request(
            service.url + path.replace("{name}", "mine") + needed.get(path.rpartition("/")[2], ""),
            headers={"Authorization": f"Bearer {link}"},
        )
        try:
            with urllib.request.urlopen(asking, timeout=PATIENCE) as answer:
                status, found = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, found = error.code, error.read().decode()
        assert "visitor-17" not in found, path
        assert status in (200, 403), (path, found)
        if status == 200:
            read.add(path.partition("{name}")[2])
    assert {"", "/best", "/view", "/summary", "/report"} <= read
    assert not read & {"/history", "/export", "/links", "/verification"}
    reader = service.call("/v1/tokens", {"role": "reader", "studies": ["mine"]})[1]["token"]
    assert "visitor-17" in str(service.call(at("mine", "/history"), token=reader)[1])


def test_keys_for_pages_leave_the_owner_a_way_in(tmp_path: Path) -> None:
    """Also after a restart: if the file has no admin token, the service makes one."""
    Tokens(tmp_path / "rank1-tokens.json").create(
        "browser", ["shop"], origins=["https://shop.example"]
    )
    with served(tmp_path) as service:
        assert service.call("/v1/tokens")[0] == 200


def test_a_link_reads_one_study_until_it_is_revoked(service: Served) -> None:
    for name in ("shared / one", "other"):
        assert service.call("/v1/studies", {"name": name, **GRID})[0] == 201
    links = at("shared / one", "/links")
    status, made = service.call(links, {"note": "for the board", "days": 30})
    assert status == 201
    assert made["path"] == f"study?name=shared%20%2F%20one#token={made['token']}"
    _, listed = service.call(links)
    assert [each["note"] for each in listed["links"]] == ["for the board"]
    assert "token" not in listed["links"][0]
    assert service.call(at("other", "/links"))[1] == {"links": []}
    own = {"token": made["token"]}
    assert service.call(at("shared / one", "/view"), **own)[0] == 200
    assert [each["name"] for each in service.call("/v1/studies", **own)[1]["studies"]] == [
        "shared / one"
    ]
    assert service.call(at("other", "/view"), **own)[0] == 403
    assert service.call(at("shared / one", "/ask"), {}, **own)[0] == 403
    assert service.call(links, {}, **own)[0] == 403  # a link can't make links
    assert service.call(at("nowhere", "/links"), {})[0] == 404
    # Only this study's links can be revoked here, and no other token.
    one = f"{links}/{made['id']}"
    assert service.call(at("other", f"/links/{made['id']}"), method="DELETE")[0] == 422
    _, token = service.call("/v1/tokens", {"role": "reader", "studies": ["shared / one"]})
    assert service.call(f"{links}/{token['id']}", method="DELETE")[0] == 422
    assert service.call(one, method="DELETE") == (200, listed["links"][0])
    assert service.call(at("shared / one", "/view"), **own)[0] == 401
    assert service.call(one, method="DELETE")[0] == 422
    # A token that expires immediately can still be made.
    for path, body in ((links, {}), ("/v1/tokens", {"role": "reader"})):
        assert service.call(path, {**body, "days": 1e-300})[0] == 201
