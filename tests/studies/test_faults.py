"""The guarantees of a study when things go wrong. `make validate` runs the heavy tests."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1 import Study
from rank1.studies.events import Kind
from tests.studies.conftest import new_schema, while_killed
from tests.studies.study_storm import DONE, OFTEN
from tests.studies.support import python, small_disk

GRID = ["a", "b"], ["c", "d"]


def ran(*words: object) -> Any:
    run = python("-m", "tests.studies.study_storm", *map(str, words))
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("kills", [10, pytest.param(1000, marks=pytest.mark.validate)])
def test_killed_processes(place: str, kills: int) -> None:
    found = ran("kill", place, kills)
    assert found.pop("wrong") == []
    assert found["versions"] > 1
    tried, acknowledged, stored = np.array([found[what] for what in DONE]).T
    assert (acknowledged <= stored).all()
    assert (stored <= tried).all()
    # A kill waits for each of these operations in turn.
    assert (acknowledged[: len(OFTEN)] >= kills // len(OFTEN)).all()


@pytest.mark.parametrize(
    ("times", "workers"), [(20, 4), pytest.param(1000, 8, marks=pytest.mark.validate)]
)
def test_the_same_report_from_many_processes(place: str, times: int, workers: int) -> None:
    """Half send another value: one report counts, equal ones get the same answer, others don't."""
    found = ran("same", place, times, workers)
    assert found["answers"] == times * workers
    assert found["wrong"] == found["told twice"] == 0
    assert found["reports"] == times + 2
    assert found["problems"] == []


def ask_for_ever(study: Study, asked: list[str]) -> None:
    while True:
        asked += [each.id for each in study.ask(count=100)]


def test_a_file_may_grow_no_more_and_then_may_again(tmp_path: Path) -> None:
    study = Study.create("full", *GRID, storage=tmp_path / "rank1.db", policy="uts")
    asked = [study.ask(unit="ann").id, *(each.id for each in study.ask(count=100))]
    gone = 0
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
        with pytest.raises(rank1.StorageError, match="nothing was acknowledged"):
            ask_for_ever(study, asked)
        assert study.counts()["suggestions"] == len(asked)
        assert study.best().leader is None
        with contextlib.suppress(rank1.StorageError):  # there may be room for a little
            study.forget_unit("ann")
            gone = 1
        with study.access.storage.reading() as log:
            assert (log.of_unit(study.access.study.id, "ann") is None) == gone
        assert study.counts()["suggestions"] == len(asked)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        signal.signal(signal.SIGXFSZ, before)
    study.tell_many([(each, 1.0) for each in asked])
    assert study.forget_unit("ann") == 1 - gone
    study.ask()
    assert study.verify().problems == []
    assert study.counts()["reports"] == len(asked)


def test_the_disk_is_full_and_then_is_not(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4) as disk:
        (disk / "ballast").write_bytes(bytes(3_000_000))
        study = Study.create("full", *GRID, storage=disk / "rank1.db")
        asked: list[str] = []
        with pytest.raises(rank1.StorageError, match=r"no disk space to write .*; nothing"):
            ask_for_ever(study, asked)
        (disk / "ballast").unlink()
        assert study.counts()["suggestions"] == len(asked)
        study.tell_many([(each, 1.0) for each in asked])
        assert study.verify().problems == []
        study.close()


def use(path: Path) -> None:
    opened = Study.open("spring", path)
    opened.ask()
    opened.best()
    if opened.verify().problems:
        raise rank1.StorageError("rank1.db is damaged")


def broken(path: Path, how: str) -> None:
    if how == "truncated":
        os.truncate(path, 5000)
    elif how == "garbage":
        data = bytearray(path.read_bytes())
        data[4096:8192] = os.urandom(4096)
        path.write_bytes(data)
    elif how == "directory":
        path.unlink()
        path.mkdir()
    elif how == "text":
        path.write_text("this is no database\n" * 1000)


@pytest.mark.parametrize("how", ["truncated", "garbage", "directory", "text"])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, how: str) -> None:
    path = tmp_path / "rank1.db"
    study = Study.create("spring", *GRID, storage=path)
    study.tell_many([(each.id, 1.0) for each in study.ask(count=200)])
    study.close()
    broken(path, how)
    with pytest.raises(rank1.StorageError, match=r"rank1\.db"):
        use(path)
    with pytest.raises((rank1.StorageError, rank1.StudyExistsError)):
        Study.create("spring", *GRID, storage=path)


def test_a_file_that_is_not_there_is_not_made_by_opening(tmp_path: Path) -> None:
    path = tmp_path / "rank1.db"
    with pytest.raises(rank1.StorageError, match=r"rank1\.db"):
        Study.open("spring", path)
    assert not path.exists()


def test_a_backup_is_restored(tmp_path: Path) -> None:
    path, copy = tmp_path / "rank1.db", tmp_path / "copy.db"
    study = Study.create("spring", *GRID, storage=path)
    given = study.ask(count=50)
    study.tell_many([(each.id, 1.0) for each in given[:30]])
    study.backup(copy)
    study.ask(count=10)
    study.close()
    restored = Study.open("spring", copy)
    assert restored.counts()["suggestions"] == 50
    restored.tell(given[40].id, 0.0)
    assert restored.verify().problems == []


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.validate)])
def test_the_server_is_killed_and_restarted(server: Any, kills: int) -> None:
    """Threads ask and tell while PostgreSQL is killed; acknowledged data is stored once."""
    url = new_schema(server)
    Study.create("storm", *GRID, storage=url, policy="uts").close()
    Study.create(
        "drawn", *GRID, storage=url, goal="find", control={"row": "a", "column": "c"},
        guardrails={"left": {"worse_by": 0.1}},
    ).close()  # fmt: skip
    asked: list[str] = []
    recorded: list[str] = []
    told: dict[str, float] = {}
    forgot: set[str] = set()

    def worker(number: int) -> Callable[[], None]:
        study, drawn = Study.open("storm", url), Study.open("drawn", url)
        shares = drawn.shares()

        def work() -> None:
            given = study.ask(count=3)
            asked.extend(each.id for each in given)
            unit = f"unit {given[0].id}"
            study.ask(unit=unit)
            study.forget_unit(unit)
            forgot.add(unit)
            told[study.tell(given[0].id, float(number)).id] = float(number)
            for name in (f"{given[1].id} {k}" for k in range(50)):
                levels = rank1.assign(shares, name)
                drawn.record(name, shares["version"], levels, float(number), {"left": 0.0})
                recorded.append(name)

        return work

    while_killed(server, [worker(0), worker(1)], asked, kills)
    study = Study.open("storm", url)
    found = study.verify()
    assert found.problems == []
    assert len(set(asked)) == len(asked) <= found.suggestions
    with study.access.storage.reading() as log:
        assert log.of_units(study.access.study.id, sorted(forgot)) == {}
    assert forgot
    assert len(told) <= found.reports
    for name, reward in told.items():
        assert study.tell(name, reward).reward == reward
    assert study.counts()["reports"] == found.reports
    study.close()
    with Study.open("drawn", url) as drawn:
        assert drawn.verify().problems == []
        number = drawn.access.study.id
        events = drawn.look(lambda _, log: log.page(number, limit=10**6))
    units = [event.unit for event in events if event.kind == Kind.RECORDED]
    assert len(units) == len(set(units)) == sum(e.kind == Kind.GUARDRAIL for e in events)
    assert recorded
    assert set(recorded) <= set(units)
    versions = [event.tag for event in events if event.kind == Kind.VERSION]
    assert versions == list(range(len(versions)))
