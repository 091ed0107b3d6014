"""Many processes on one storage; some are killed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rank1.studies.events import Kind, read_id
from rank1.studies.storage import Storage
from tests.forked import PROCESSES
from tests.studies.support import SPEC, append, python, suggested
from tests.studies.worker import asks, create, tells, work

#: Processes at once; the kills of `make validate` have more to say.
MANY = 4


def together(*jobs: Any) -> list[list[Any]]:
    """What processes that run at the same time say, a list each."""
    running, all_there = [], PROCESSES.Barrier(len(jobs))
    for job in jobs:
        here, there = PROCESSES.Pipe()
        process = PROCESSES.Process(target=work, args=(all_there, there, *job))
        process.start()
        there.close()
        running.append((process, here))
    said = [here.recv() for _, here in running]  # an error ends a process, and this with EOFError
    for process, _ in running:
        process.join()
        assert process.exitcode == 0
    return said


def test_one_of_many_creates_a_study(storage: Storage, place: str) -> None:
    said = together(*[(create, place)] * MANY)
    with storage.reading() as log:
        (study,) = log.studies()
    assert sorted(said) == sorted([[study.uid]] + [["exists"]] * (MANY - 1))
    assert storage.check() == []


def test_many_processes_ask(storage: Storage, place: str) -> None:
    study = storage.create("spring", SPEC)
    said = together(*[(asks, place, 25)] * MANY)
    ids = [read_id(line) for lines in said for line in lines]
    assert [len(lines) for lines in said] == [49] * MANY
    assert {uid for uid, _, _ in ids} == {study.uid}
    with storage.reading() as log:
        events = log.read(study.id)
    assert events.seq.tolist() == list(range(1, MANY * 49 + 2))
    stored = list(zip(events.seq.tolist()[1:], events.nonce.tolist()[1:], strict=True))
    assert sorted((seq, nonce) for _, seq, nonce in ids) == stored
    assert storage.check() == []


def test_many_processes_report_the_same(storage: Storage, place: str) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(30))
    said = together(*[(tells, place, k / 8) for k in range(MANY)])
    with storage.reading() as log:
        events = log.read(study.id)
    values = dict(
        zip(
            events.suggestion[events.kind == Kind.REPORTED].tolist(),
            events.value[events.kind == Kind.REPORTED].tolist(),
            strict=True,
        )
    )
    acknowledged = {seq: k / 8 for k, lines in enumerate(said) for seq in lines}
    assert sum(len(lines) for lines in said) == len(acknowledged) == 30
    assert values == acknowledged
    assert storage.check() == []


@pytest.mark.parametrize("kills", [10, pytest.param(1000, marks=pytest.mark.validate)])
def test_what_killed_processes_acknowledged_is_there_once(place: str, kills: int) -> None:
    run = python("-m", "tests.studies.storm", place, str(kills))
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result["asked"] >= kills
    assert result["told"] >= kills
    assert result["events"] >= 1 + result["asked"] + result["told"]
    assert result["forgot"] >= kills / 20
    faults = "asked twice", "asked and lost", "told and lost", "told twice", "forgotten and there"
    for fault in (*faults, "faults"):
        assert result[fault] == 0, result
