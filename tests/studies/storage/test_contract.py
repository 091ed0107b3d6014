"""What every storage must do, whichever database is behind it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rank1
from rank1.studies.events import Event, Kind
from rank1.studies.storage import Snapshot, Storage
from rank1.studies.storage.postgres import CLOCK, ENDS
from rank1.testing.storages import STORAGE_CHECKS
from tests.studies.support import SPEC, append, reported, suggested


@pytest.mark.parametrize("check", STORAGE_CHECKS)
def test_the_contract(storage: Storage, check: Callable[[Storage], None]) -> None:
    check(storage)


def test_reading_in_parts(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    from rank1.studies.storage import postgres

    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(99))
    for portion in (7, 10, 500_000):
        monkeypatch.setattr(postgres, "PORTION", portion)
        with storage.reading() as log:
            assert log.read(study.id).seq.tolist() == list(range(1, 101))
            assert log.read(study.id, after=97).seq.tolist() == [98, 99, 100]
            assert log.read(study.id, after=100).size == 0
            assert log.read(study.id, limit=10).seq.tolist() == list(range(1, 11))
            assert log.read(study.id, after=95, limit=10).seq.tolist() == list(range(96, 101))


def test_time_never_runs_backwards(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    from rank1.studies.storage import sql_reader

    day = 24 * 3600
    real = storage.create("clock", SPEC).created
    study = storage.create("spring", SPEC)
    times = []
    for jump in (0, day, -day, 2 * day, 0):
        for cls in _subclasses(sql_reader.SqlReader):
            monkeypatch.setattr(cls, "clock", lambda self, jump=jump: real + jump)
        monkeypatch.setattr("rank1.studies.storage.postgres.ENDS", _shifted(real + jump))
        with storage.transaction(study.id) as tx:
            times.append(tx.now(study.id))
            tx.append(study.id, suggested(2))
            assert tx.now(study.id) == times[-1]
        with storage.reading() as log:
            assert log.now(study.id) == times[-1]
    assert times[0] >= real
    assert np.array(times[1:]) - real == pytest.approx([day, day, 2 * day, 2 * day])
    assert storage.check() == []


def _subclasses(cls: type[Any]) -> list[type[Any]]:
    return [cls] + [each for sub in cls.__subclasses__() for each in _subclasses(sub)]


def _shifted(now: float) -> str:
    assert CLOCK in ENDS
    return ENDS.replace(CLOCK, f"{now!r}::float8")


def test_a_damaged_snapshot_is_not_used(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(9))
    for seq in (2, 4):
        storage.put_snapshot(study.id, Snapshot(seq, "one", b"state"))
    for change in ("blob = digest", "seq = 5"):
        with storage.transaction() as tx:
            tx.rows(f"UPDATE rank1_snapshots SET {change} WHERE seq = 4")  # type: ignore[attr-defined]
        with storage.reading() as log:
            assert log.snapshot(study.id, "one") == Snapshot(2, "one", b"state")
        assert any("is damaged; it is derived" in fault for fault in storage.check())


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("DELETE FROM rank1_events WHERE seq = 4", "the log has gaps"),
        ("DELETE FROM rank1_events WHERE seq = 1", "doesn't begin with|has gaps"),
        ("DELETE FROM rank1_events", "the log has gaps"),
        ("UPDATE rank1_events SET kind = 77 WHERE seq = 3", "a kind that this version"),
        ("UPDATE rank1_events SET kind = 1 WHERE seq = 3", "has it twice"),
        ("UPDATE rank1_events SET suggestion = 1 WHERE seq = 6", "no earlier suggestion"),
        ("UPDATE rank1_events SET suggestion = 99 WHERE seq = 6", "no earlier suggestion"),
        ("UPDATE rank1_events SET suggestion = 3 WHERE seq = 7", "both reported and cancelled"),
        ("UPDATE rank1_events SET at = at - 86400 WHERE seq = 5", "older than the one before"),
    ],
)  # fmt: skip
def test_what_a_check_finds(storage: Storage, change: str, fault: str) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(4))
    append(storage, study, reported(3), Event(Kind.CANCELLED, suggestion=4))
    assert storage.check() == []
    with storage.transaction() as tx:
        tx.rows(change)  # type: ignore[attr-defined]
    found = storage.check()
    assert found
    assert all("study 'spring': " in each for each in found)
    assert any(re.search(fault, each) for each in found), found


def test_a_log_with_a_gap_is_not_read(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(4))
    with storage.transaction() as tx:
        tx.rows("DELETE FROM rank1_events WHERE seq = 3")  # type: ignore[attr-defined]
    with (
        pytest.raises(rank1.StorageError, match="event 3 of the log is missing"),
        storage.reading() as log,
    ):
        log.read(study.id)


def test_a_log_that_ends_before_a_known_event_says_where(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(2))
    missing = "event 7 was read before, but is missing now: the log ends with event 3"
    with pytest.raises(rank1.DamagedError, match=missing), storage.reading() as log:
        log.read(study.id, after=7)
