"""Webhooks, with a scripted receiver."""

from __future__ import annotations

import hashlib
import hmac
import http.server
import json
import queue
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rank1.errors import FileError, InputError
from rank1.server import webhooks
from rank1.server.config import read_config
from rank1.server.metrics import Metrics
from rank1.server.webhooks import Webhooks
from tests.server.in_process import Answer, InProcess, in_process
from tests.server.support import PATIENCE, Served, served, until

SECRET = "whsec_" + b64encode(b"a key of 24 bytes or more").decode()


class Receiver(http.server.ThreadingHTTPServer):
    """Note incoming messages, and answer by a script, then with 204."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.came: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()
        self.script: list[int] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook"

    def next(self) -> tuple[str, dict[str, Any]]:
        """Return id and content of the next message, and check its signature."""
        headers, body = self.came.get(timeout=PATIENCE)
        id, at = headers["webhook-id"], headers["webhook-timestamp"]
        key = b64decode(SECRET.removeprefix("whsec_"))
        signed = hmac.new(key, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
        assert headers["webhook-signature"] == "v1," + b64encode(signed).decode()
        return id, json.loads(body)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.send_response(self.server.script.pop(0) if self.server.script else 204)
        self.send_header("Location", self.server.url + "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()
        assert self.path == "/hook"
        self.server.came.put((headers, body))

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as found:
        yield found
        found.shutdown()


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcess]:
    for name in ("EVERY", "PAUSE", "SHARE"):
        monkeypatch.setattr(webhooks, name, 0.001)
    with in_process(tmp_path) as service:
        yield service


def start(service: InProcess, receiver: Receiver, folder: Path) -> Webhooks:
    return Webhooks(service.registry, Metrics(), receiver.url, SECRET, str(folder / "hooks.json"))


def decide(service: Any, name: str, **more: Any) -> None:
    """Play a study in which A always pays, B never, and C pays but makes everyone leave."""
    sides = {"headline": ["A", "B", "C"]}
    rules = {"control": {"headline": "A"}, "guardrails": {"left": {"worse_by": 0.05}}}
    body = {"name": name, "sides": sides, "goal": "find", "seed": 1, **rules, **more}
    assert service.call("/v1/studies", body).status == 201


def play(service: Any, name: str, part: int) -> None:
    shares = service.call(f"/v1/studies/{name}/shares").document
    drawn = list(shares["sides"]["headline"])
    records = [
        {
            "unit": f"{part}-{k}", "version": shares["version"], "levels": {"headline": label},
            "reward": float(label == "A" or (label == "C" and k % 8 == 0)),
            "guardrails": {"left": float(label == "C")},
        }
        for k in range(150)
        for label in [drawn[k % len(drawn)]]
    ]  # fmt: skip
    answer = service.call(f"/v1/studies/{name}/records", {"records": records})
    assert {each["status"] for each in answer.document["results"]} == {201}


def test_drops_guardrails_and_verdicts_are_told_once(
    service: InProcess, receiver: Receiver, tmp_path: Path
) -> None:
    decide(service, "old")
    for part in range(10):
        play(service, "old", part)
    hooks = start(service, receiver, tmp_path)
    until((tmp_path / "hooks.json").exists)  # verdicts from before aren't sent
    decide(service, "new")
    receiver.script = [500, 302]
    for part in range(10):
        play(service, "new", part)
    hooks.committed()
    ids, found = [], []
    for _ in range(3 + 2):
        id, message = receiver.next()
        ids.append(id)
        found.append((message["type"], message["data"].get("level")))
        assert message["data"]["study"] == "new"
    # The first two had to be retried, with the same ids.
    assert len(set(ids)) == 3
    assert set(found) == {
        ("level.dropped", "B"), ("guardrail.tripped", "C"), ("verdict.reached", None),
    }  # fmt: skip
    until(lambda: not hooks._waiting)
    hooks.close()
    text = hooks._metrics.text({})
    assert 'rank1_webhooks_total{result="sent"} 3.0' in text
    assert 'rank1_webhooks_total{result="failed"} 2.0' in text
    again = start(service, receiver, tmp_path)  # nothing is sent twice
    play(service, "new", 10)
    again.committed()
    seq = service.call("/v1/studies/new").document["events"]
    until(lambda: max(each["seq"] for each in again._seen.values()) >= seq)
    again.close()
    assert receiver.came.empty()


def test_what_waits_survives_a_restart_and_no_request_waits_for_it(
    service: InProcess, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = start(service, receiver, tmp_path)
    until((tmp_path / "hooks.json").exists)
    hooks.close()
    monkeypatch.setattr(webhooks, "PAUSE", 1000.0)
    receiver.script = [503] * 3
    decide(service, "new")
    for part in range(10):
        play(service, "new", part)
    hooks = start(service, receiver, tmp_path)
    first = {receiver.next()[0] for _ in range(3)}
    until(lambda: len(hooks._waiting) == 3 and all(m["tries"] for m in hooks._waiting))
    hooks.close()
    kept = json.loads((tmp_path / "hooks.json").read_text())
    for message in kept["waiting"]:
        message["next"] = 0
    (tmp_path / "hooks.json").write_text(json.dumps(kept))
    again = start(service, receiver, tmp_path)
    assert {receiver.next()[0] for _ in range(3)} == first
    until(lambda: not again._waiting)
    again.close()
    assert json.loads((tmp_path / "hooks.json").read_text())["waiting"] == []


@pytest.mark.validate
def test_a_killed_service_sends_what_waited(receiver: Receiver, tmp_path: Path) -> None:
    """Use the command line, with the pauses that users have, so this waits for seconds."""
    receiver.script = [500] * 3
    settings = f'webhook = "{receiver.url}"\nwebhook_secret = "{SECRET}"\n'
    (tmp_path / "rank1.toml").write_text(settings)
    flags = "--config", "rank1.toml"
    with served(tmp_path, *flags) as service:
        until((tmp_path / "rank1-webhooks.json").exists)
        decide(Over(service), "new")
        for part in range(10):
            play(Over(service), "new", part)
        first = {receiver.next()[0] for _ in range(3)}
        service.process.kill()
    receiver.script.clear()
    with served(tmp_path, *flags):
        assert {receiver.next()[0] for _ in range(3)} == first
        state = tmp_path / "rank1-webhooks.json"
        until(lambda: json.loads(state.read_text())["waiting"] == [])


class Over:
    """A separate service, with the interface of one in this process."""

    def __init__(self, service: Served) -> None:
        self._service = service

    def call(self, path: str, body: Any = None) -> Answer:
        return Answer(*self._service.call(path, body), {})


def test_settings_of_webhooks(tmp_path: Path, service: InProcess) -> None:
    given = {"webhook": "https://shop.example/hook", "webhook_secret": "very secret"}
    config = read_config(given, environment={})
    assert "very secret" not in repr(config) + repr(config.shown())
    with pytest.raises(InputError, match="webhook_secret must be given if there is a webhook"):
        read_config({"webhook": "https://shop.example/hook"}, environment={})
    for url in ("shop.example", "file:///etc/passwd", "https://a:b@shop.example/"):
        with pytest.raises(InputError, match="webhook must be an address"):
            read_config({**given, "webhook": url}, environment={})
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(FileError, match="can't be read"):
        Webhooks(service.registry, Metrics(), given["webhook"], "s", str(tmp_path / "broken.json"))
