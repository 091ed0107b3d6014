"""The Python client: assignment from cached shares, and a queue that survives a restart."""

from __future__ import annotations

import math
import resource
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1.client.transport import error_of
from rank1.errors import ConflictError, FileError, StorageError
from tests.server.support import PATIENCE, Served, served, until


def test_assign_record_and_reward(service: Served) -> None:
    client = rank1.Client(service.url, service.token, PATIENCE)
    study = client.create("client", sides={"image": ["x", "y"]}, goal="find")
    seen = study.assign("u1")
    assert seen.levels == rank1.assign(study.shares(), "u1")
    assert seen.version is not None
    study.record("u1", seen.version, seen.levels)
    study.reward("u1", 1.0)
    study.reward("u1", 1.0)
    with pytest.raises(ConflictError):
        study.reward("u1", 0.0)
    assert study.counts()["reports"] == 1
    found = study.record_many([("u2", 99, seen.levels), ("u3", seen.version, seen.levels, 1.0)])
    assert [error is None for error in found] == [False, True]
    client.close()


def test_the_queue_survives_a_restart_of_either_end(tmp_path: Path) -> None:
    path = tmp_path / "unsent.jsonl"
    with served(tmp_path) as service:
        token = service.call("/v1/tokens", {"role": "admin"})[1]["token"]
        port = service.url.rpartition(":")[2]
        client = rank1.Client(service.url, token, timeout=PATIENCE)
        study = client.create("queue", sides={"image": ["x", "y"]}, goal="find")
        with study.recorder(path) as recorder:
            seen = study.assign("u0")
            recorder.record(seen, 1.0)
            until(lambda: recorder.unsent == 0)
        assert path.read_text() == ""
        client.close()
    client = rank1.Client(service.url, token, timeout=0.2)  # the service is down now
    study = client.open("queue", look=False)
    with pytest.raises(StorageError):
        study.assign("u1")
    assert study.assign("u1", fallback={"image": "x"}).version is None
    recorder = study.recorder(path)
    for unit in ("u1", "u2"):
        recorder.record(rank1.client.Assignment(unit, {"image": "x"}, seen.version))
        recorder.reward(unit, 1.0)
    recorder.close(0.1)
    assert len(path.read_text().splitlines()) == 4
    with path.open("a") as file:
        file.write('["records", {"unit": "cut sh')  # as a kill would leave it
    with served(tmp_path, "--port", port, token=token) as service:
        client = rank1.Client(service.url, token, timeout=PATIENCE)
        study = client.open("queue")
        with study.recorder(path) as recorder:
            until(lambda: recorder.unsent == 0)
        assert study.counts() == {
            "suggestions": 3, "reports": 3, "pending": 0, "expired": 0, "cancelled": 0
        }  # fmt: skip
        assert recorder.refused == []
        client.close()


def test_the_queue_sends_guardrails_and_forgets_old_refusals(
    service: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rank1.client.assigning.REFUSED", 2)
    client = rank1.Client(service.url, service.token, PATIENCE)
    study = client.create(
        "guarded", sides={"image": ["x", "y"]}, goal="find", control={"image": "x"},
        guardrails={"left": {"worse_by": 0.1}},
    )  # fmt: skip
    with study.recorder(tmp_path / "unsent.jsonl") as recorder:
        recorder.record(study.assign("u0"), 1.0, {"left": 0.0})
        recorder.record(study.assign("u1"))
        recorder.reward("u1", 1.0, {"left": 1.0})
        for reward in (2.0, 3.0, math.nan, 5.0):
            recorder.reward("u1", reward)
        until(lambda: recorder.unsent == 0)
    assert [str(item["reward"]) for item, _ in recorder.refused] == ["nan", "5.0"]
    assert {type(error) for _, error in recorder.refused} == {rank1.InputError}
    left = [each["value"] for each in study.events() if each["kind"] == "guardrail"]
    assert left == [0.0, 1.0]
    client.close()


def test_what_the_queue_does_about_errors(service: Served, tmp_path: Path) -> None:
    """It counts fallbacks, waits with a token that isn't valid, and goes on after a refusal."""

    def fallbacks() -> float:
        bearer = {"Authorization": f"Bearer {service.token}"}
        request = urllib.request.Request(service.url + "/metrics", headers=bearer)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return float(answer.read().decode().partition("\nrank1_fallbacks_total ")[2].split()[0])

    before = fallbacks()
    made = service.call("/v1/tokens", {"role": "writer"})[1]
    with rank1.Client(service.url, service.token, PATIENCE) as admin:
        admin.create("errors", sides={"image": ["x", "y"]}, goal="find")
        client = rank1.Client(service.url, made["token"], PATIENCE)
        study = client.open("errors")
        with study.recorder(tmp_path / "unsent.jsonl") as recorder:
            recorder.record(rank1.client.Assignment("u0", {"image": "x"}, None))
            until(lambda: recorder.unsent == 0)
            assert (fallbacks(), recorder.refused) == (before + 1, [])
            seen = study.assign("u1")
            admin.delete("errors", confirm="errors")
            recorder.record(seen)
            until(lambda: recorder.unsent == 0)
            ((item, error),) = recorder.refused
            assert (item["unit"], type(error)) == ("u1", rank1.UnknownStudyError)
            service.call(f"/v1/tokens/{made['id']}", method="DELETE")
            recorder.record(seen)
            until(lambda: recorder.problem is not None)
            assert getattr(recorder.problem, "status", None) == 401
            assert recorder.unsent == 1
        client.close()


def test_the_queue_waits_where_the_study_did_not_refuse(
    service: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy's page, or a timeout of the service, says nothing about the records."""
    timeout = {"type": "urn:rank1:problem:timeout", "detail": "the body took too long"}
    answers: list[tuple[int, Any]] = [(404, None), (302, None), (403, None), (408, timeout)]
    with rank1.Client(service.url, service.token, PATIENCE) as client:
        study = client.create("behind a proxy", sides={"image": ["x", "y"]}, goal="find")
        send = study.send

        def sent(what: str, bodies: Any) -> Any:
            if answers:
                raise error_of(*answers.pop(0))
            return send(what, bodies)

        monkeypatch.setattr(study, "send", sent)
        with study.recorder(tmp_path / "unsent.jsonl") as recorder:
            recorder.record(study.assign("u1"), 1.0)
            until(lambda: recorder.unsent == 0)
            assert (answers, recorder.refused, recorder.problem) == ([], [], None)
        assert study.counts()["reports"] == 1


def test_a_full_disk_takes_no_report_that_is_queued(
    service: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "unsent.jsonl"
    with rank1.Client(service.url, service.token, PATIENCE) as client:
        study = client.create("full disk", sides={"image": ["x", "y"]}, goal="find")
        seen = study.assign("u1")
        with monkeypatch.context() as patch:
            patch.setattr(study, "send", lambda *_: (_ for _ in ()).throw(StorageError("down")))
            recorder = study.recorder(path)
            recorder.record(seen)
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            try:
                resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 9, limits[1]))
                with pytest.raises(FileError, match=r"can't write .*; the report isn't queued"):
                    recorder.record(study.assign("u2"))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            recorder.reward("u1", 1.0)
            recorder.close(0.1)
            with pytest.raises(FileError, match="the recorder is closed"):
                recorder.reward("u1", 1.0)
        assert [line.split()[0] for line in path.read_text().splitlines()] == [
            '["records",', '["rewards",'
        ]  # fmt: skip
        with path.open("a") as file:
            file.write('5\n["rewards"]\n["other", {}]\n\0\n')  # damage isn't sent

        def full(*_: Any, **__: Any) -> Any:
            raise FileError("can't write: no space left")

        monkeypatch.setattr("rank1.atomic.whole_file", full)
        with study.recorder(path) as recorder:  # the file can't be written again in between
            until(lambda: recorder.unsent == 0)
            assert recorder.refused == []
        assert path.read_text() == ""
        assert study.counts()["reports"] == 1
        with pytest.raises(FileError, match="No such file"):
            study.recorder(tmp_path / "nowhere" / "unsent.jsonl")


def test_a_queue_can_be_opened_again_after_a_full_disk(tmp_path: Path) -> None:
    line = '["rewards", {"unit": "u1", "reward": 1.0}]'
    path = tmp_path / "unsent.jsonl"
    path.write_text(line)  # the process ended before the end of the line
    with rank1.Client("http://127.0.0.1:1", "t", 0.01) as client:
        study = client.open("spring", look=False)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(line), limits[1]))
            with pytest.raises(FileError, match="can't write"):
                study.recorder(path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_text() == line
        recorder = study.recorder(path)
        assert recorder.unsent == 1
        recorder.close(0.1)
    assert path.read_text() == f"{line}\n"


def test_assign_waits_briefly_if_there_is_something_to_show(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rank1.client.assigning.PATIENCE", 0.1)
    with socket.socket() as deaf:  # accepts connections, but never answers
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        client = rank1.Client(f"http://127.0.0.1:{deaf.getsockname()[1]}", "t", timeout=1000)
        study = client.open("spring", look=False)
        began = time.monotonic()
        assert study.assign("u1", fallback={"image": "x"}).levels == {"image": "x"}
        assert time.monotonic() - began < 500
        assert study.assign("u1", fallback={"image": "x"}).version is None  # without a request
        client.close()
        with rank1.Client(service.url, service.token, PATIENCE) as near:
            found = near.create("old shares", sides={"image": ["x", "y"]}, goal="find")
            shares, found._client = found.shares(), client
            found._fresh_until = 0.0
            assert found.shares() == shares
            assert time.monotonic() - began < 500


def test_nothing_heavy_is_imported() -> None:
    code = "import sys, rank1; rank1.Client; print(sorted({'numpy', 'numba'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
