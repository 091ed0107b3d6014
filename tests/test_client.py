from __future__ import annotations

import contextlib
import json
import math
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1.client import Client
from tests.server.support import PATIENCE, Served, served, until


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("client")) as found:
        yield found


@pytest.fixture
def client(service: Served) -> Iterator[Client]:
    with rank1.Client(service.url, service.token, PATIENCE) as client:
        yield client


def test_what_a_study_does_a_client_does(client: Client, service: Served, tmp_path: Path) -> None:
    far = client.create("both", ["a", "b", "c"], ["x", "y"], seed=1)
    near = rank1.Study.create("both", ["a", "b", "c"], ["x", "y"], seed=1, storage=tmp_path / "db")
    rng = np.random.default_rng(1)
    for _ in range(40):
        one, two = far.ask(), near.ask()
        assert (one.row, one.column) == (two.row, two.column)
        reward = float(rng.random() < 0.5)
        told = far.tell(one.id, reward)
        assert told is not None
        assert told.reward == near.tell(two.id, reward).reward
    given = far.ask(count=3)
    near.ask(count=3)
    far.cancel(given[0].id)
    assert far.counts()["pending"] == 2
    best, expected = far.best(), near.best()
    assert best.leader == expected.leader
    for name in ("means", "mean_lower", "out", "row_effects", "counts"):
        # One of the two may be compiled by now, which changes the last bits of logarithms.
        np.testing.assert_allclose(getattr(best, name), getattr(expected, name), rtol=1e-9)
    assert best.out.dtype == bool
    assert far.fit(B=19).p_value == near.fit(B=19).p_value
    assert far.replay("uniform") == near.replay("uniform")
    assert far.import_history([("a", "x", 1.0)] * 4).rewards == 4
    assert far.export(tmp_path / "log.jsonl") == 43
    assert far.export(tmp_path / "log.csv") == 43
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["state"] for line in lines[-3:]] == ["cancelled", "pending", "pending"]
    assert far.revise(add_rows=["d"], retire_columns=["y"]) == 1
    assert (far.rows, far.columns, far.revision) == (["a", "b", "c", "d"], ["x"], 1)
    assert far.verify().ok
    assert far.history(limit=2)["next"] == 2
    far.ask(key="first")
    far.retire()
    with pytest.raises(rank1.EndedError, match="retired"):
        far.ask()
    assert far.ask(unit="late", fallback=("a", "x")).id == ""  # shipping breaks no page
    with pytest.raises(rank1.ConflictError):  # one of a caller's own is still an error
        far.ask(key="first", unit="other", fallback=("a", "x"))
    assert "both" in client.studies()
    near.close()


def test_any_number_of_sides(client: Client, tmp_path: Path) -> None:
    sides = {"headline": ["A", "B"], "image": ["x", "y", "z"], "button": ["buy", "go"]}
    study = client.create("sides", sides=sides, seed=1)
    shown = study.ask(data={"page": 7})
    assert (shown.levels, shown.data) == (
        {"headline": "A", "image": "x", "button": "buy"},
        {"page": 7},
    )
    with pytest.raises(AttributeError, match="two sides, not 3"):
        print(shown.row)
    told = study.tell(shown.id, 1.0)
    assert told is not None
    assert told.levels == shown.levels
    best = study.best()
    assert best.leader == ("A", "x", "buy")
    assert best.effects["image"].shape == (3, 3)
    (tmp_path / "known.csv").write_text("image,headline,button,reward\ny,B,go,1\ny,A,go,\n")
    for already in (False, True):
        found = study.import_history(tmp_path / "known.csv")
        assert (found.rewards, found.skipped, found.already_imported) == (1, 1, already)
    wrong = "image,headline,button,reward\ny,A,go,\ny,A,go,line 1 (\ny,B,go,1\ny,C,go,1\n"
    (tmp_path / "known.csv").write_text(wrong)
    with pytest.raises(rank1.InputTypeError) as caught:
        study.import_history(tmp_path / "known.csv")
    assert caught.value.context == "line 3 of the history"
    assert caught.value.hint is not None
    assert caught.value.hint.endswith("nor can these be used: line 5 (headline 'C')")
    assert study.revise(add={"image": ["w"]}, retire={"headline": ["B"]}) == 1
    assert study.sides == {
        "headline": ["A"],
        "image": ["x", "y", "z", "w"],
        "button": ["buy", "go"],
    }
    assert study.export(tmp_path / "log.csv") == 1
    head, line = (tmp_path / "log.csv").read_text().splitlines()
    assert head.startswith("id,headline,image,button,state")
    assert line.startswith(f"{shown.id},A,x,buy,reported")
    with pytest.raises(rank1.InputError, match=r"sides.image must be"):
        client.create("bad", sides={"image": ["x", "x"]})


def test_a_study_that_draws_by_shares(client: Client) -> None:
    guardrails = {"unsubscribed": {"worse_by": 0.02}}
    study = client.create(
        "drawn", sides={"image": ["x", "y"]}, goal="find", control={"image": "x"}, seed=1,
        guardrails=guardrails,
    )  # fmt: skip
    (one,) = study.ask(count=1, unit="ann")
    assert study.ask(unit="ann") == one
    with pytest.raises(rank1.InputError, match="count must be 1 if a unit is given, got 2"):
        study.ask(count=2, unit="ann")
    given = [one, *study.ask(count=39)]
    told = [(s.id, float(s.levels["image"] == "y"), {"unsubscribed": 0.0}) for s in given[1:]]
    answers = study.tell_many([(one.id, 1.0), *told])
    assert not any(isinstance(each, Exception) for each in answers)
    with pytest.raises(rank1.ConflictError, match="unsubscribed"):
        study.tell(given[1].id, told[0][1], {"unsubscribed": 1.0})
    found = study.forecast(per_day=10)
    assert (found.reports, found.per_day) == (40, 10)
    assert found.days == {part: n / 10 for part, n in found.more.items()}
    assert " more days (" in found.statement
    study.note("new prices")
    assert [each["kind"] for each in study.events(kinds=["noted", "reported"], limit=2)] == [
        "reported"
    ] * 2
    assert study.events(newest=True, limit=1)[0]["kind"] == "noted"
    study.archive()
    assert "drawn" not in client.studies()
    study.unarchive()
    assert "drawn" in client.studies()
    assert study.plot().axes


def test_an_empty_study_has_a_best(client: Client) -> None:
    best = client.create("empty", ["a"], ["x", "y"]).best()
    assert best.leader is None
    assert math.isnan(best.rate)


def test_errors_are_the_classes_of_the_package(client: Client) -> None:
    with pytest.raises(rank1.UnknownStudyError):
        client.open("nowhere")
    study = client.create("errors", ["a"], ["x"])
    with pytest.raises(rank1.StudyExistsError):
        client.create("errors", ["a"], ["x"])
    with pytest.raises(rank1.UnknownSuggestionError):
        study.tell("17", 1.0)
    asked = study.ask()
    with pytest.raises(rank1.InputError, match="reward must be a number in") as caught:
        study.tell(asked.id, 7.0)
    error = caught.value
    assert (error.argument, error.got, error.expected) == ("reward", "7.0", "a number in [0, 1]")
    with pytest.raises(rank1.InputError, match="policy ucb1: confidence must be") as caught:
        client.create("settings", ["a"], ["x"], policy="ucb1:confidence=-1")
    error = caught.value
    assert (error.argument, error.got, error.context) == ("confidence", "-1", "policy ucb1")
    with pytest.raises(rank1.InputError, match="goal must be one of earn, find") as caught:
        client.create("shape", ["a"], ["x"], goal=3)
    assert (caught.value.argument, caught.value.got) == ("goal", "3")
    with pytest.raises(rank1.InputError, match="reward must be a number in"):
        study.tell(asked.id, math.nan)
    answers = study.tell_many([(asked.id, 1.0), (asked.id, 0.0), ("", 1.0)])
    assert isinstance(answers[0], rank1.Report)
    assert isinstance(answers[1], rank1.ConflictError)
    assert answers[2] is None
    address = f"http://{client._place[0]}:{client._place[1]}"
    with Client(address, "wrong") as other, pytest.raises(rank1.BackendError, match="token"):
        other.studies()
    with pytest.raises(rank1.InputError, match="url"):
        Client("ftp://x", "t")


def test_the_same_key_or_unit_gives_the_same_suggestion(client: Client) -> None:
    study = client.create("keys", ["a", "b"], ["x", "y"])
    assert study.ask(key="k") == study.ask(key="k")
    assert study.ask(unit="u").id == study.ask(unit="u").id
    assert study.ask().id != study.ask().id


def test_a_page_never_waits_for_a_service_that_is_down() -> None:
    taken: list[socket.socket] = []

    def take() -> None:
        with contextlib.suppress(OSError):
            while True:
                taken.append(deaf.accept()[0])

    with socket.socket() as deaf:  # accepts connections, but never answers
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        threading.Thread(target=take, daemon=True).start()
        client = Client(f"http://127.0.0.1:{deaf.getsockname()[1]}", "t", timeout=1000)
        study = rank1.client.RemoteStudy(client, "spring")
        began = time.monotonic()
        shown = study.ask(fallback=("a", "x"))
        took = time.monotonic() - began
        assert (shown.id, shown.row, shown.column) == ("", "a", "x")
        assert took < 500  # a request without a fallback may take 1,000
        until(lambda: bool(taken))
        before = len(taken)
        assert study.tell(shown.id, 1.0) is None
        study.cancel(shown.id)
        client.silent_until = math.inf  # rather than a second, which may pass on a busy machine
        assert [each.id for each in study.ask(count=2, fallback=("a", "x"))] == ["", ""]
        assert len(taken) == before  # no request immediately after a failure
        with pytest.raises(rank1.StorageError, match="no answer"):
            study.ask(timeout=0.1)
        deaf.shutdown(socket.SHUT_RDWR)
    for each in taken:
        each.close()


def _message(source: socket.socket) -> bytes:
    """Read a complete request or answer."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += source.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < size:
        body += source.recv(65536)
    return head + b"\r\n\r\n" + body


def test_an_answer_that_is_lost_is_asked_for_again(client: Client, service: Served) -> None:
    """If the connection breaks after the request, the retry gets the same suggestion."""
    study = client.create("lossy", ["a", "b"], ["x", "y"])
    host, port = client._place
    broken = 0

    def relay(listener: socket.socket) -> None:
        nonlocal broken
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            with near, socket.create_connection((host, port)) as far:
                far.sendall(_message(near))
                answer = _message(far)
                broken += 1
                if broken % 2 == 0:
                    near.sendall(answer)

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        threading.Thread(target=relay, args=(listener,), daemon=True).start()
        lossy = Client(f"http://127.0.0.1:{listener.getsockname()[1]}", service.token)
        far = rank1.client.RemoteStudy(lossy, "lossy")
        asked = far.ask()
        told = far.tell(asked.id, 1.0)
        assert told is not None
        assert broken >= 4
        lossy.close()
        listener.shutdown(socket.SHUT_RDWR)
    assert study.counts() == {
        "suggestions": 1, "reports": 1, "pending": 0, "expired": 0, "cancelled": 0
    }  # fmt: skip


def test_a_fallback_needs_no_service_but_a_row_and_a_column(tmp_path: Path) -> None:
    with rank1.Client("http://127.0.0.1:1", "t") as client:
        study = client.open("spring", look=False)
        shown = study.ask(fallback=("a", "x"))
        assert (shown.id, shown.row, shown.column) == ("", "a", "x")
        shown = study.ask(fallback={"image": "a", "button": "b"})
        assert (shown.levels, shown.row) == ({"image": "a", "button": "b"}, "a")
        bad: Any
        for bad in ("ax", ("a",), ("a", 1), 3, {}, {"image": 1}):
            with pytest.raises(rank1.InputTypeError, match="fallback must be a row and a column"):
                study.ask(fallback=bad)
        with pytest.raises(rank1.InputError, match=r"timeout must be .* above 0, got -1"):
            study.ask(fallback=("a", "x"), timeout=-1)
        bad = "5"
        with pytest.raises(rank1.InputTypeError, match="timeout must be a number"):
            study.ask(timeout=bad)
        with pytest.raises(rank1.StorageError, match="the stream broke off"):
            study.export(tmp_path / "log.jsonl")
    for bad in ("http://h:99999", "http://h:x", "h:80", None, 5):
        with pytest.raises(rank1.InputError, match="url must be http"):
            Client(bad, "t")


@contextlib.contextmanager
def scripted(answer: Callable[[str], Any]) -> Iterator[Client]:
    """Yield a client of a service that answers each path as scripted."""

    class Script(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            data = json.dumps(answer(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Script) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Client(f"http://127.0.0.1:{server.server_port}", "t") as client:
            yield client
        server.shutdown()


def test_answers_may_have_more_fields_than_the_client_knows(tmp_path: Path) -> None:
    with rank1.Study.create("more", ["a", "b"], ["x", "y"], storage=tmp_path / "db") as near:
        for each in near.ask(count=8):
            near.tell(each.id, 1.0)
        documents = {
            "ask": {"id": "k-1-0", "levels": {"row": "a", "column": "x"}, "asked_at": 1.0},
            "tell": {
                "id": "k-1-0", "levels": {"row": "a"}, "reward": 1.0, "told_at": 2.0, "late": False
            },
            "best": near.best().to_dict(),
            "replay": near.replay("uniform").to_dict(),
            "verification": near.verify().to_dict(),
            "fit": near.fit(B=19).to_dict(),
        }  # fmt: skip
        expected = near.best()

    def answer(path: str) -> Any:
        last = path.partition("?")[0].rpartition("/")[2]
        if last == "batch":
            asked = {"status": 201, "suggestion": {**documents["ask"], "colour": "red"}, "x": 1}
            told = {"status": 200, "report": {**documents["tell"], "colour": "red"}, "x": 1}
            return {"results": [asked if "/ask/" in path else told], "x": 1}
        return {**documents[last], "colour": "red"}

    with scripted(answer) as client:
        study = client.open("more", look=False)
        assert (study.ask().id, study.ask().unit) == ("k-1-0", None)
        assert study.ask(count=1)[0].levels == {"row": "a", "column": "x"}
        told = study.tell("k-1-0", 1.0)
        assert told is not None
        assert told.reward == 1.0
        assert study.tell_many([("k-1-0", 1.0)]) == [told]
        np.testing.assert_array_equal(study.best().means, expected.means)
        assert study.replay("uniform").steps > 0
        assert study.verify().ok
        assert study.fit().repetitions == 19
        del documents["tell"]["told_at"]
        with pytest.raises(rank1.BackendError, match=r"isn't a valid report: .*told_at"):
            study.tell("k-1-0", 1.0)


@pytest.mark.compiled
def test_the_client_loads_nothing_that_is_slow() -> None:
    """A page that uses HTTP shouldn't wait for NumPy, SciPy or a compiler."""
    code = (
        "import sys, rank1; rank1.Client('http://127.0.0.1:1', 't').open('a', look=False)"
        ".ask(fallback=('a', 'x'))\n"
        "slow = {'numpy', 'numba', 'scipy', 'polars', 'matplotlib', 'joblib', 'rank1.studies'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
