"""The Python client: assignment from cached shares, and a queue that survives a restart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rank1
from rank1.errors import ConflictError, StorageError
from tests.server.support import PATIENCE, Served, served, until


def test_assign_record_and_reward(service: Served) -> None:
    client = rank1.Client(service.url, service.token)
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


def test_nothing_heavy_is_imported() -> None:
    code = "import sys, rank1; rank1.Client; print(sorted({'numpy', 'numba'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
