"""What every storage must do, whichever database is behind it."""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rank1
from rank1.studies.events import Event, Expiry, Kind
from rank1.studies.storage import Snapshot, Storage, open_storage
from rank1.studies.storage.postgres import CLOCK, ENDS
from tests.studies.support import SPEC, append, reported, suggested


def test_a_new_study(storage: Storage) -> None:
    before = time.time()
    study = storage.create("spring", SPEC)
    with storage.reading() as log:
        assert log.study("spring") == study
        assert log.studies() == [study]
        (event,) = log.page(study.id)
    assert (study.name, study.retired, study.last_seq) == ("spring", None, 1)
    assert (event.kind, event.seq, event.data) == (Kind.CREATED, 1, SPEC)
    assert event.at == study.last_at
    assert before - 5 < study.created <= event.at < time.time() + 5
    assert storage.check() == []


def test_names(storage: Storage) -> None:
    names = [
        "b",
        "a",
        "Zoë",
        "日本",
        "'; DROP TABLE rank1_events; --",
        "x" * 256,
        "%s ? {}",
        "../..",
    ]
    studies = [storage.create(name, "{}") for name in names]
    with storage.reading() as log:
        assert [study.name for study in log.studies()] == sorted(names)
        for name, study in zip(names, studies, strict=True):
            assert log.study(name) == study
    assert len({study.uid for study in studies}) == len({study.id for study in studies}) == 8
    for name in ("", "x" * 257, "a\0b", "\ud800"):
        with pytest.raises(rank1.InputError, match="name must"):
            storage.create(name, "{}")
    with pytest.raises(rank1.InputTypeError, match="name must be text, got 3"):
        storage.create(3, "{}")  # type: ignore[arg-type]


def test_a_name_can_be_taken_once(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    with pytest.raises(rank1.StudyExistsError, match="there is a study 'spring' in"):
        storage.create("spring", "{}")
    with storage.reading() as log:
        assert log.studies() == [study]
        assert log.page(study.id)[0].data == SPEC


def test_what_is_unknown(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    with storage.reading() as log:
        with pytest.raises(rank1.UnknownStudyError, match="no study 'sprung'; there are: 'spring'"):
            log.study("sprung")
        assert log.events(study.id, [2]) == log.outcomes(study.id, [1, 2]) == []
        assert log.with_key(study.id, "k") == []
        assert log.of_unit(study.id, "u") is None
        assert log.snapshot(study.id, "a") is None
        assert log.pending(study.id).tolist() == []
        assert log.read(study.id, after=1).size == 0
    with pytest.raises(rank1.UnknownStudyError), storage.transaction(study.id + 1) as tx:
        tx.append(study.id + 1, suggested())
    with (
        pytest.raises(rank1.InputError, match="study must be one that the transaction names"),
        storage.transaction() as tx,
    ):
        tx.append(study.id, suggested())


def test_nothing_is_there_before_a_study_is_created(place: str) -> None:
    storage = open_storage(place)
    with (
        pytest.raises(rank1.StorageError, match=r"there is no file|has no tables"),
        storage.reading(),
    ):
        pass
    with (
        pytest.raises(rank1.StorageError, match=r"there is no file|has no tables"),
        storage.transaction(),
    ):
        pass
    storage.prepare()
    storage.prepare()
    with storage.reading() as log:
        assert log.studies() == []
    assert storage.check() == []
    storage.close()


EVERYTHING = [
    Event(Kind.SUGGESTED, 4095, 7, 2**63 - 1, value=0.125, nonce=5, key="k", unit="Zoë"),
    Event(Kind.SUGGESTED, 2, 4095, -(2**63), nonce=2**20 - 1, key="k", position=1, unit="u"),
    Event(Kind.HISTORY, 1, 1, 40, value=-1e300, nonce=1),
    Event(Kind.REVISED, tag=2, data='{"added": "\\u0000"}', nonce=2),
    Event(Kind.SUGGESTED, value=math.inf, nonce=3),
    Event(Kind.SUGGESTED, nonce=4),
]
OUTCOMES = [
    Event(Kind.REPORTED, suggestion=2, value=5e-324, nonce=6),
    Event(Kind.CANCELLED, suggestion=3, nonce=7),
    Event(Kind.EXPIRED, tag=Expiry.DEFAULT, suggestion=6, value=0.0, nonce=8),
    Event(Kind.REPORTED, tag=1, suggestion=6, value=0.1 + 0.2, nonce=9),
]


def same(event: Event, expected: Event) -> bool:
    """Equal, where NaN equals NaN."""
    return repr(event) == repr(Event(int(expected.kind), *map(_plain, expected[1:])))


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Expiry) else value


def test_events_come_back_as_they_were(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    with storage.transaction(study.id) as log:
        assert log.append(study.id, EVERYTHING) == 2
        assert log.append(study.id, OUTCOMES) == 8
        assert log.append(study.id, []) == 12
        at = log.now(study.id)
        within = log.read(study.id)
    with storage.reading() as log:
        page = log.page(study.id, after=1)
        events = log.read(study.id)
        assert log.last(study.id) == (11, at)
    for k, (event, expected) in enumerate(zip(page, EVERYTHING + OUTCOMES, strict=True)):
        assert same(event, expected._replace(seq=k + 2, at=at))
    for read in (events, within):
        assert read.seq.tolist() == list(range(1, 12))
        for k, event in enumerate(page, 1):
            fields = [column[k].item() for column in read]
            assert repr(fields) == repr([event.seq, event.at, *event[:7]])
    assert storage.check() == []


def test_an_event_without_a_nonce_is_given_one(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(1), *[Event(Kind.SUGGESTED)] * 50)
    with storage.reading() as log:
        nonces = log.read(study.id, after=2).nonce
    assert nonces.min() >= 1
    assert nonces.max() < 2**20
    assert len(np.unique(nonces)) > 40


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


def test_a_log_that_is_shorter_than_it_was(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(3))
    with (
        pytest.raises(rank1.StorageError, match="event 5 was read before, but the log ends"),
        storage.transaction(study.id) as log,
    ):
        log.read(study.id, after=5)


def test_lookups(storage: Storage) -> None:
    study, other = storage.create("spring", SPEC), storage.create("autumn", SPEC)
    keyed = [e._replace(key="k", position=i) for i, e in enumerate(suggested(3, unit="u"))]
    with storage.transaction(study.id, other.id) as log:
        log.append(study.id, keyed + suggested(2, unit="u") + suggested(1, unit="w"))
        log.append(other.id, suggested(1, unit="u", key="k"))
        log.append(study.id, [reported(3), reported(2), Event(Kind.CANCELLED, suggestion=5)])
        log.append(study.id, [Event(Kind.EXPIRED, suggestion=3)])
    with storage.reading() as log:
        assert [e.seq for e in log.with_key(study.id, "k")] == [2, 3, 4]
        assert [e.position for e in log.with_key(study.id, "k")] == [0, 1, 2]
        assert [e.seq for e in log.with_key(other.id, "k")] == [2]
        unit = log.of_unit(study.id, "u")
        assert unit is not None
        assert (unit.seq, unit.unit) == (6, "u")
        assert [e.seq for e in log.events(study.id, [7, 2, 2, 99])] == [2, 7]
        assert [(e.seq, e.kind) for e in log.outcomes(study.id, [5, 3, 4])] == [
            (8, 3),
            (10, 4),
            (11, 5),
        ]
        assert log.outcomes(other.id, [2, 3]) == []
        assert log.pending(study.id).tolist() == [4, 6, 7]
        assert log.pending(other.id).tolist() == [2]


def test_many_lookups_at_once(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(12_000))
    append(storage, study, *[reported(seq) for seq in range(2, 12_002)])
    seqs = list(range(2, 12_002))
    with storage.reading() as log:
        assert [event.seq for event in log.events(study.id, seqs)] == seqs
        assert [event.suggestion for event in log.outcomes(study.id, seqs)] == seqs
        assert log.pending(study.id).size == 0


def test_pages(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(5))
    append(storage, study, reported(2), reported(4))

    def seqs(**options: Any) -> list[int]:
        with storage.reading() as log:
            return [event.seq for event in log.page(study.id, **options)]

    assert seqs() == list(range(1, 9))
    assert seqs(limit=3) == [1, 2, 3]
    assert seqs(after=3, limit=3) == [4, 5, 6]
    assert seqs(newest=True, limit=3) == [8, 7, 6]
    assert seqs(newest=True, after=6, limit=3) == [5, 4, 3]
    assert seqs(kinds=[Kind.REPORTED, Kind.CREATED]) == [1, 7, 8]
    assert seqs(kinds=[Kind.REPORTED], newest=True, limit=1) == [8]
    assert seqs(after=8) == []


def test_an_exception_undoes_all(storage: Storage) -> None:
    study = storage.create("spring", SPEC)

    def fail() -> None:
        with storage.transaction(study.id) as log:
            log.append(study.id, suggested(3))
            assert log.last(study.id)[0] == 4
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with storage.reading() as reader:
        assert reader.last(study.id)[0] == 1
    assert append(storage, study, *suggested()) == 2


@pytest.mark.parametrize(
    "events",
    [
        [reported(2, 0.5)],
        [reported(3), reported(3)],
        [Event(Kind.CANCELLED, suggestion=4)],
        [reported(3), *suggested(1, key="k")],
    ],
)
def test_nothing_happens_twice(storage: Storage, events: list[Event]) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(1, key="k"), *suggested(2))
    append(storage, study, reported(2), Event(Kind.CANCELLED, suggestion=4))
    with storage.reading() as log:
        before = log.read(study.id)
    with pytest.raises(rank1.ConflictError, match="has such an event already"):
        append(storage, study, *events)

    def go_on_regardless() -> None:
        with storage.transaction(study.id) as tx, contextlib.suppress(Exception):
            tx.append(study.id, events)

    with pytest.raises(rank1.StorageError, match="an append failed, so nothing"):
        go_on_regardless()  # half of it may have been written
    with storage.reading() as log:
        assert log.read(study.id).seq.tolist() == before.seq.tolist()


def test_a_key_is_of_its_study(storage: Storage) -> None:
    for name in ("a", "b"):
        append(storage, storage.create(name, SPEC), *suggested(1, key="k"))
    assert storage.check() == []


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (Event(Kind.SUGGESTED, key=""), "key must have 1 to 256 characters"),
        (Event(Kind.SUGGESTED, key="k" * 257), "key must have 1 to 256 characters, got 257"),
        (Event(Kind.SUGGESTED, unit="a\0"), "unit must be text without null"),
        (Event(Kind.REVISED, data="é"), "data must be ASCII"),
        (Event(Kind.REVISED, data="\0"), "data must be ASCII"),
        (Event(Kind.REPORTED), "suggestion must be one that was made before"),
        (Event(Kind.REPORTED, suggestion=9), "suggestion must be one that was made before"),
        (Event(Kind.SUGGESTED, suggestion=1), "suggestion must be one that was made before"),
    ],
)
def test_what_can_not_be_appended(storage: Storage, event: Event, message: str) -> None:
    study = storage.create("spring", SPEC)
    with pytest.raises(rank1.InputError, match=message):
        append(storage, study, event)
    with storage.reading() as log:
        assert log.last(study.id)[0] == 1


def test_the_longest_texts_are_kept(storage: Storage) -> None:
    study = storage.create("𝔘" * 256, SPEC)
    append(storage, study, *suggested(1, key="𝔎" * 256, unit="𝔘" * 256))
    with storage.reading() as log:
        assert log.with_key(study.id, "𝔎" * 256)[0].unit == "𝔘" * 256
        assert log.of_unit(study.id, "𝔘" * 256) is not None


def test_time_never_runs_backwards(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    from rank1.studies.storage import sql

    day = 24 * 3600
    real = storage.create("clock", SPEC).created
    study = storage.create("spring", SPEC)
    times = []
    for jump in (0, day, -day, 2 * day, 0):
        for cls in _subclasses(sql.SqlReader):
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


def test_the_clock_is_read_once_for_a_transaction(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    with storage.transaction(study.id) as log:
        now = log.now(study.id)
        time.sleep(0.01)
        log.append(study.id, suggested())
        assert log.now(study.id) == now
    with storage.reading() as reader:
        assert reader.last(study.id) == (2, now)
        assert reader.now(study.id) > now


def test_retiring(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested())
    with storage.transaction(study.id) as tx:
        tx.retire(study.id)
        at = tx.now(study.id)
    with (
        pytest.raises(rank1.ConflictError, match="retired already"),
        storage.transaction(study.id) as tx,
    ):
        tx.retire(study.id)
    append(storage, study, reported(2))  # a report that comes later still is never lost
    with storage.reading() as log:
        assert log.study("spring").retired == at
        assert log.read(study.id).kind.tolist() == [1, 2, 8, 3]


def test_snapshots(storage: Storage) -> None:
    study, other = storage.create("spring", SPEC), storage.create("autumn", SPEC)
    append(storage, study, *suggested(9))
    blob = bytes(range(256)) * 1000
    for seq in (2, 4, 6):
        storage.put_snapshot(study.id, Snapshot(seq, "one", blob + bytes([seq])))
    with storage.reading() as log:
        assert log.snapshot(study.id, "one") == Snapshot(6, "one", blob + b"\6")
        assert log.snapshot(study.id, "two") is None
        assert log.snapshot(other.id, "one") is None
        assert log.rows("SELECT seq FROM rank1_snapshots ORDER BY seq") == [(4,), (6,)]  # type: ignore[attr-defined]
    storage.put_snapshot(study.id, Snapshot(6, "two", b"new"))
    storage.put_snapshot(study.id, Snapshot(11, "one", b"ahead of the log"))
    with storage.reading() as log:
        assert log.snapshot(study.id, "two") == Snapshot(6, "two", b"new")
        assert log.snapshot(study.id, "one") is None


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
        ("UPDATE rank1_events SET kind = 1 WHERE seq = 3", "tells it twice"),
        ("UPDATE rank1_events SET suggestion = 1 WHERE seq = 6", "of no suggestion before it"),
        ("UPDATE rank1_events SET suggestion = 99 WHERE seq = 6", "of no suggestion before it"),
        ("UPDATE rank1_events SET suggestion = 3 WHERE seq = 7", "reported on and cancelled"),
        ("UPDATE rank1_events SET at = at - 86400 WHERE seq = 5", "time runs backwards"),
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


def test_readers_see_one_moment(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    with storage.reading() as log:
        assert log.last(study.id)[0] == 1
        append(storage, study, *suggested(3))
        assert log.last(study.id)[0] == 1
        assert log.read(study.id).size == 1
    with storage.reading() as log:
        assert log.read(study.id).size == 4


def test_many_threads_share_a_storage(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    acknowledged: list[int] = []
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                with storage.transaction(study.id) as tx:
                    first = tx.append(study.id, suggested(3, unit=f"u{number}"))
                acknowledged.extend(range(first, first + 3))
                with storage.reading() as log:
                    assert log.last(study.id)[0] >= first
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=[k]) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sorted(acknowledged) == list(range(2, 122))
    assert storage.check() == []


def test_two_studies_in_one_transaction(storage: Storage) -> None:
    a, b = storage.create("a", SPEC), storage.create("b", SPEC)
    with storage.transaction(b.id, a.id) as log:
        assert log.append(a.id, suggested(2)) == 2
        assert log.append(b.id, suggested(3)) == 2
    with storage.reading() as reader:
        assert (reader.last(a.id)[0], reader.last(b.id)[0]) == (3, 4)


def test_a_closed_storage_opens_again(new_place: Callable[[], str]) -> None:
    storage = open_storage(new_place())
    study = storage.create("spring", SPEC)
    for _ in range(2):
        storage.close()
        append(storage, study, *suggested())
    storage.close()
    storage.close()
    with storage.reading() as log:
        assert log.last(study.id)[0] == 3
    storage.close()
