"""The client against a scripted service: which requests it retries, when, and which it doesn't."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import rank1
from rank1.client import Client, RemoteStudy

SUGGESTION = {"id": "k-1-0", "levels": {"row": "a", "column": "x"}, "asked_at": 1.0}
REPORT = {"id": "k-1-0", "levels": {"row": "a"}, "reward": 1.0, "told_at": 2.0, "late": False}


class Request(NamedTuple):
    method: str
    path: str
    body: Any
    key: str | None


class Script(ThreadingHTTPServer):
    """A service that first answers with `failures`, then with an answer that fits the path."""

    def __init__(self) -> None:
        self.failures: list[tuple[int, Any, dict[str, str]]] = []
        self.requests: list[Request] = []

        class Handler(BaseHTTPRequestHandler):
            server: Script
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                request = Request(
                    self.command, self.path, json.loads(body or b"null"),
                    self.headers.get("Idempotency-Key"),
                )  # fmt: skip
                self.server.requests.append(request)
                status, document, headers = (
                    self.server.failures.pop(0)
                    if self.server.failures
                    else (200, answer(request), {})
                )
                data = document if isinstance(document, bytes) else json.dumps(document).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    def fail(self, status: int, times: int = 1, problem: str = "busy", **headers: str) -> None:
        document = {"type": f"urn:rank1:problem:{problem}", "detail": f"it is {problem}"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.failures += [(status, document, named)] * times


def answer(request: Request) -> Any:
    last = request.path.rpartition("/")[2]
    if last == "batch" and "reports" in request.body:
        return {"results": [told(each["id"]) for each in request.body["reports"]]}
    if last == "batch":
        ids = range(request.body["count"])
        return {"results": [{"suggestion": {**SUGGESTION, "id": f"k-{k}-0"}} for k in ids]}
    found = {"ask": SUGGESTION, "tell": REPORT, "revisions": {"revision": 1}}
    other = {"rewards": 1, "studies": [], "results": [{"status": 201}], "events": 1}
    return found.get(last, other)


def told(id: str) -> Any:
    if id.startswith("bad"):
        problem = {"type": "urn:rank1:problem:conflict", "detail": f"{id} has another reward"}
        return {"status": 409, "problem": problem}
    return {"status": 200, "report": {**REPORT, "id": id}}


@pytest.fixture(scope="module")
def service() -> Iterator[Script]:
    with Script() as service:
        threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True).start()
        yield service
        service.shutdown()


@pytest.fixture
def script(service: Script) -> Script:
    service.failures.clear()
    service.requests.clear()
    return service


class Time:
    """A clock that moves only during sleeps, and the list of those sleeps."""

    def __init__(self) -> None:
        self.now, self.pauses = 0.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr("rank1.client.transport.time", time)
    longest = SimpleNamespace(uniform=lambda low, high: high)
    monkeypatch.setattr("rank1.client.transport.random", longest)
    return time


@pytest.fixture
def client(script: Script, time: Time) -> Iterator[Client]:
    with Client(f"http://127.0.0.1:{script.server_port}", "t") as client:
        yield client


@pytest.fixture
def study(client: Client) -> RemoteStudy:
    return client.open("spring", look=False)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_sent_again_after_growing_pauses(
    script: Script, study: RemoteStudy, time: Time, status: int
) -> None:
    script.fail(status, times=3)
    report = study.tell("k-1-0", 1.0)
    assert report is not None
    assert report.reward == 1.0
    body = {"id": "k-1-0", "reward": 1.0}
    assert script.requests == [Request("POST", "/v1/studies/spring/tell", body, None)] * 4
    assert time.pauses == pytest.approx([0.05, 0.1, 0.2])


@pytest.mark.parametrize("status", [429, 503])
def test_the_service_says_how_long_to_wait(
    script: Script, study: RemoteStudy, time: Time, status: int
) -> None:
    script.fail(status, Retry_After="3")
    script.fail(status, Retry_After="0")
    script.fail(status, Retry_After="soon")
    script.fail(status, times=3, Retry_After="1")  # in the end, the client's own pause is longer
    study.tell("k-1-0", 1.0)
    assert time.pauses == pytest.approx([3, 0.1, 0.2, 1, 1, 1.6])


def test_nobody_waits_longer_than_the_timeout(
    script: Script, client: Client, study: RemoteStudy, time: Time
) -> None:
    script.fail(503, times=2, Retry_After="4")
    script.fail(503, problem="storage", Retry_After="4")  # the retry would come after 12 seconds
    with pytest.raises(rank1.StorageError, match="it is storage"):
        study.tell("k-1-0", 1.0)
    assert (len(script.requests), time.pauses) == (3, [4, 4])
    script.fail(503, Retry_After="1")
    with pytest.raises(rank1.StorageError, match="it is busy"):
        study.ask(timeout=0.5)
    assert len(time.pauses) == 2
    script.fail(503, Retry_After="1")
    assert study.ask(fallback=("a", "y")).id == ""


@pytest.mark.parametrize(
    ("status", "problem", "error"),
    [
        (500, "damaged", rank1.DamagedError),
        (500, "format", rank1.FormatError),
        (404, "unknown-study", rank1.UnknownStudyError),
        (409, "conflict", rank1.ConflictError),
        (422, "input", rank1.InputError),
        (401, "not-authenticated", rank1.BackendError),
    ],
)
def test_what_will_not_pass_is_not_sent_again(
    script: Script, study: RemoteStudy, time: Time, status: int, problem: str, error: type
) -> None:
    """Retrying is worst for a damaged storage, which needs an administrator."""
    script.fail(status, problem=problem)
    with pytest.raises(error) as caught:
        study.tell("k-1-0", 1.0)
    assert type(caught.value) is error
    assert (len(script.requests), time.pauses) == (1, [])


#: Every request that changes something, and whether it needs a key. The others are idempotent
#: without one: by the id of a suggestion, the unit, the study, or the rewards.
POSTS: dict[str, tuple[bool, Callable[[Client, RemoteStudy], Any]]] = {
    "create": (True, lambda client, study: client.create("new", ["a"], ["x"])),
    "ask": (True, lambda client, study: study.ask()),
    "ask many": (True, lambda client, study: study.ask(count=2)),
    "ask with data": (True, lambda client, study: study.ask(data={"page": 7})),
    "revise": (True, lambda client, study: study.revise(add={"row": ["c"]})),
    "note": (True, lambda client, study: study.note("new prices")),
    "ask for a unit": (False, lambda client, study: study.ask(unit="u")),
    "tell": (False, lambda client, study: study.tell("k-1-0", 1.0)),
    "tell many": (False, lambda client, study: study.tell_many([("k-1-0", 1.0)])),
    "cancel": (False, lambda client, study: study.cancel("k-1-0")),
    "retire": (False, lambda client, study: study.retire()),
    "import": (False, lambda client, study: study.import_history([("a", "x", 1.0)])),
    "archive": (False, lambda client, study: study.archive()),
    "unarchive": (False, lambda client, study: study.unarchive()),
    "record": (False, lambda client, study: study.record("u", 0, {"row": "a", "column": "x"}, 1.0)),
    "reward": (False, lambda client, study: study.reward("u", 1.0)),
    "forget_unit": (False, lambda client, study: study.forget_unit("u")),
}


@pytest.mark.parametrize("post", POSTS)
def test_a_retry_is_the_same_request_with_the_same_key(
    script: Script, client: Client, study: RemoteStudy, post: str
) -> None:
    needs_key, send = POSTS[post]
    script.fail(503, times=2)
    send(client, study)
    first, *again = script.requests
    assert again == [first] * 2
    assert first.method == "POST"
    assert (first.key is not None) == needs_key
    send(client, study)
    other = script.requests[-1]
    assert other._replace(key=first.key) == first
    assert (other.key != first.key) == needs_key  # another call is a new request


def test_a_key_of_the_callers_own_is_sent(script: Script, study: RemoteStudy) -> None:
    study.ask(key="one")
    study.ask(count=2, key="two")
    study.ask(key="three", unit="u")
    study.import_history([("a", "x", 1.0)], key="four")
    study.note("new prices", key="five")
    assert [request.key for request in script.requests] == ["one", "two", "three", "four", "five"]


@pytest.mark.parametrize("as_mapping", [False, True])
def test_each_answer_of_a_batch_is_in_its_place(
    script: Script, study: RemoteStudy, monkeypatch: pytest.MonkeyPatch, as_mapping: bool
) -> None:
    """Reports, errors and fallbacks keep their places, over several requests."""
    monkeypatch.setattr("rank1.client.study.PART", 3)
    ids = ["k-1", "", "bad-2", "k-3", "k-4", "bad-5", "k-6", "k-7"]
    if as_mapping:
        ids.remove("")
        reports: Any = dict.fromkeys(ids, 1.0)
    else:
        ids.append("")
        reports = [(id, 1.0) for id in ids]
    found = study.tell_many(reports)
    shown = [each.id if isinstance(each, rank1.Report) else str(each) for each in found]
    right = {"": "None", "bad-2": "bad-2 has another reward", "bad-5": "bad-5 has another reward"}
    assert shown == [right.get(id, id) for id in ids]
    assert {type(each) for each in found} - {type(None)} == {rank1.Report, rank1.ConflictError}
    sent = [[each["id"] for each in request.body["reports"]] for request in script.requests]
    assert sent == [["k-1", "bad-2", "k-3"], ["k-4", "bad-5", "k-6"], ["k-7"]]


def test_suggestions_of_a_batch_are_in_order(study: RemoteStudy) -> None:
    assert [each.id for each in study.ask(count=4)] == ["k-0-0", "k-1-0", "k-2-0", "k-3-0"]


def test_an_answer_that_is_no_json_is_an_error_of_the_package(
    script: Script, study: RemoteStudy, time: Time
) -> None:
    """For example a proxy's page: it says nothing about the study, so the status decides."""
    script.failures += [(502, b"<h1>Bad gateway</h1>", {})]
    assert study.tell("k-1-0", 1.0) is not None
    script.failures += [(403, b"<h1>Forbidden</h1>", {})]
    with pytest.raises(rank1.BackendError, match="the service answered 403"):
        study.tell("k-1-0", 1.0)
    script.failures += [(200, b"<h1>Please log in</h1>", {}), (200, b"[1]", {})]
    with pytest.raises(rank1.StorageError, match="the answer isn't of a rank1 service"):
        study.tell("k-1-0", 1.0)
    assert study.ask(fallback=("a", "y")).id == ""
