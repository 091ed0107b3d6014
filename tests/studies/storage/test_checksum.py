"""Checksums: what was changed in a log is seen."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import rank1
from rank1 import Study
from rank1.studies.events import COLUMNS, RECORD, WITH_DATA, Event, Events, Kind
from rank1.studies.state import StudyState
from rank1.studies.storage import Storage, open_storage
from rank1.studies.storage.checksum import chained, first_wrong, packed
from rank1.studies.storage.sqlite import SqliteStorage
from rank1.studies.verification import examine
from rank1.testing.storages import BECAME, EVERYTHING
from tests.studies import old_logs
from tests.studies.conftest import new_schema
from tests.studies.support import SPEC, append, suggested


def test_a_checksum_is_what_the_module_says() -> None:
    """Written out once more. A log holds these for ever: they must never change."""
    event = Event(Kind.SUGGESTED, arm=4097, tag=-2, value=0.25, nonce=9, seq=2, at=1e9, unit="u")
    raw = struct.pack("<hqqqdiiqd", 2, 4097, -2, 0, 0.25, 9, 0, 2, 1e9)
    hashed = blake2b(struct.pack("<q", -77) + raw, digest_size=8).digest()
    (expected,) = struct.unpack("<q", hashed)
    columns = {name: [getattr(event, name)] for name in Events._fields}
    assert chained(packed(columns), -77) == [expected]


def test_a_log_is_chained(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *EVERYTHING)
    append(storage, study, *BECAME)
    append(storage, study, Event(Kind.REPORTED, suggestion=7, value=-0.0))
    with storage.reading() as log:
        events = log.page(study.id)
    before = 0
    for event in events:
        piece = packed({name: [getattr(event, name)] for name in Events._fields})[0]
        if event.kind in WITH_DATA:
            piece += str(event.data).encode()
        (before,) = chained([piece], before)
        assert event.checksum == before != 0
    assert storage.check() == []


def flipped(value: Any, kind: str, bit: int) -> Any:
    """A value of a column with one of its bits changed."""
    if kind == "text":
        raw = bytearray(value.encode())
        raw[bit // 8 % len(raw)] ^= 1 << bit % 7  # remains ASCII
        return raw.decode().replace("\0", "\x01")
    code = {"int2": "h", "int4": "i", "int8": "q", "float8": "d"}[kind]
    raw = bytearray(struct.pack(f"<{code}", value))
    raw[bit // 8 % len(raw)] ^= 1 << bit % 8
    return struct.unpack(f"<{code}", raw)[0]


COVERED = (*(name for name in Events._fields if name != "seq"), "checksum", "data")


@pytest.mark.parametrize("column", COVERED)
def test_a_flipped_bit_is_seen(storage: Storage, column: str) -> None:
    """In every column that is folded, whatever the kind of the event, the last one included."""
    study = storage.create("spring", SPEC)
    append(storage, study, *EVERYTHING)
    append(storage, study, *BECAME)
    with storage.reading() as log:
        events = log.page(study.id)
    rng = random.Random(1)
    for event in events:
        if column == "data" and event.kind not in WITH_DATA:
            continue
        before = getattr(event, column)
        if before != before:
            continue  # other bits would make another NaN of it
        bit = rng.randrange(63)  # SQLite has no -0.0
        changed = flipped(before, COLUMNS[column], bit)
        set_to = f"UPDATE rank1_events SET {column} = ? WHERE seq = {event.seq}"
        with storage.transaction() as tx:
            tx.rows(set_to, changed)  # type: ignore[attr-defined]
        named = f"event {event.seq} of study 'spring' doesn't match its checksum"
        with pytest.raises(rank1.DamagedError, match=named), storage.reading() as log:
            log.read(study.id)
        found = storage.check()
        assert any(named in each for each in found) or column in ("kind", "suggestion", "at"), found
        assert found
        with storage.transaction() as tx:
            tx.rows(set_to, before)  # type: ignore[attr-defined]
    assert storage.check() == []


def test_a_read_that_goes_on_is_checked_too(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(20))
    with storage.transaction() as tx:
        tx.rows("UPDATE rank1_events SET arm = arm + 1 WHERE seq = 12")  # type: ignore[attr-defined]
    with storage.reading() as log:
        assert log.read(study.id, limit=11).size == 11
        assert log.read(study.id, after=12).size == 9
    with pytest.raises(rank1.DamagedError, match="event 12 of"), storage.reading() as log:
        log.read(study.id, after=11, limit=1)


def test_events_that_change_places_are_seen(storage: Storage) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(4))
    swap = "UPDATE rank1_events SET seq = CASE seq WHEN 3 THEN 4 WHEN 4 THEN 3 END + ? WHERE seq {}"
    with storage.transaction() as tx:
        tx.rows(swap.format("IN (3, 4)"), 100)  # type: ignore[attr-defined]
        tx.rows("UPDATE rank1_events SET seq = seq - 100 WHERE seq > 100")  # type: ignore[attr-defined]
    assert storage.check() == ["event 3 of study 'spring' doesn't match its checksum"]


def records(count: int) -> np.ndarray[Any, Any]:
    made = np.zeros(count, RECORD)
    made["kind"], made["seq"] = Kind.SUGGESTED, np.arange(1, count + 1)
    columns = {name: made[name].tolist() for name in Events._fields}
    made["checksum"] = chained(packed(columns), 0)
    return made


def test_what_came_before_checksums_is_not_checked() -> None:
    made = records(10)
    assert first_wrong(made, {}, 0) is None
    made["checksum"] = 0
    assert first_wrong(made, {}, 0) is None
    columns = {name: made[name][4:].tolist() for name in Events._fields}
    made["checksum"][4:] = chained(packed(columns), 0)
    assert first_wrong(made, {}, 0) is None
    made["arm"][2] = 5
    assert first_wrong(made, {}, 0) is None
    made["checksum"][7] = 0  # after one that has a checksum
    assert first_wrong(made, {}, 0) == 7
    assert first_wrong(made[7:], {}, int(made["checksum"][6])) == 0


def test_parts_are_chained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rank1.studies.storage.checksum._PART", 7)
    for wrong in (0, 6, 7, 13, 19):
        made = records(20)
        assert first_wrong(made, {}, 0) is None
        made["tag"][wrong] += 1
        assert first_wrong(made, {}, 0) == wrong


@pytest.fixture(params=["sqlite", "postgres"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A storage as version 0.1 left it."""
    if request.param == "sqlite":
        place = str(tmp_path / "rank1.db")
        Path(place).write_bytes(old_logs.kept("log-0.1.db"))
    else:
        place = new_schema(request.getfixturevalue("server"))
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute(old_logs.kept("log-0.1.sql"))
    return place


def test_an_old_log_is_covered_from_its_upgrade_on(old: str) -> None:
    with open_storage(old) as storage:  # type: ignore[attr-defined]
        with storage.reading() as log:
            study = log.study("uts")
            assert not any(event.checksum for event in log.page(study.id, limit=1000))
        append(storage, study, *suggested(3))
        assert storage.check() == []
        with storage.reading() as log:
            events = log.page(study.id, limit=1000)
        assert [bool(event.checksum) for event in events] == [
            event.seq > study.last_seq for event in events
        ]
        change = "UPDATE rank1_events SET {} WHERE study = ? AND seq = ?"
        with storage.transaction() as tx:
            tx.rows(change.format("tag = tag + 1"), study.id, study.last_seq + 2)
        named = f"event {study.last_seq + 2} of study 'uts' doesn't match its checksum"
        assert storage.check() == [named]
        with storage.transaction() as tx:
            tx.rows(change.format("checksum = 0, tag = tag - 1"), study.id, study.last_seq + 2)
        assert storage.check() == [named]


def test_a_process_of_an_older_version_writes_nothing(old: str) -> None:
    """One that is still running when the tables are brought to this version."""
    written = "study, kind, arm, tag, suggestion, nonce, position, seq, at"
    with open_storage(old) as storage:  # type: ignore[attr-defined]
        with storage.reading() as log:
            study = log.study("uts")
        insert = f"INSERT INTO rank1_events ({written}) VALUES ({study.id}, 2, 0, 0, 0, 1, 0, ?, 9)"
        with (
            pytest.raises(rank1.Rank1Error, match=r"older version|not-null"),
            storage.transaction() as tx,
        ):
            tx.rows(insert.replace("?", str(study.last_seq + 1)))


def played(path: Path) -> Study:
    study = Study.create("spring", ["a", "b"], ["c", "d"], storage=path, seed=1, policy="uts")
    for turn in range(6):
        given = study.ask(count=20, key=f"turn {turn}")
        study.ask(unit=f"visitor {turn}", data={"page": turn})
        study.tell_many([(each.id, float(k % 3 == 0)) for k, each in enumerate(given[:15])])
    study.revise(add_rows=["e"])
    return study


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_of_a_file_is_refused_or_changes_nothing(tmp_path: Path, seed: int) -> None:
    """Opened without a snapshot; 30 bits each."""
    path = tmp_path / "rank1.db"
    study = played(path)
    before = study.look(lambda state, log: state)
    study.close()
    with SqliteStorage(path) as storage:
        with storage.transaction() as log:
            log.rows("DELETE FROM rank1_snapshots")
        storage.prepare()
    raw = path.read_bytes()
    rng = random.Random(seed)
    refused = 0
    for number in range(30):
        changed = bytearray(raw)
        changed[rng.randrange(100, len(raw))] ^= 1 << rng.randrange(8)
        other = tmp_path / f"{number}.db"
        other.write_bytes(changed)
        told = told_by(other, before)
        if told:
            assert f"'{other}' is damaged" in told
            assert not examine(str(other))["ok"], told
            refused += 1
    assert refused


def told_by(path: Path, before: StudyState) -> str:
    """The error with which a file is refused; if it isn't, it says what it said before."""
    try:
        with Study.open("spring", path) as study:
            assert before.differences(study.look(lambda state, log: state)) == []
            study.events(limit=1000)
            study.lines()
    except rank1.StorageError as error:
        return str(error)
    return ""


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(
    ("column", "value"), [("arm", 2**40), ("arm", -1), ("metric", 9), ("kind", 99)]
)
def test_a_damaged_event_behind_a_snapshot_is_named(
    tmp_path: Path, column: str, value: int
) -> None:
    """The fold doesn't read it again, so whoever lists it must notice."""
    path = tmp_path / "rank1.db"
    sides, guardrails = {"row": ["a", "b"]}, {"left": {"worse_by": 0.1}}
    study = Study.create(
        "spring", sides=sides, control={"row": "a"}, goal="find", guardrails=guardrails,
        storage=path, seed=1,
    )  # fmt: skip
    asked = study.ask(unit="ann")
    study.tell(asked.id, 1.0, {"left": 0.0})
    study.snapshot()
    study.close()
    which = Kind.GUARDRAIL if column == "metric" else Kind.SUGGESTED
    with SqliteStorage(path) as storage, storage.transaction() as log:
        log.rows(f"UPDATE rank1_events SET {column} = ? WHERE kind = ?", value, int(which))
    with Study.open("spring", path) as study:
        assert study.counts()["suggestions"] == 1  # from the snapshot
        listings: list[Callable[[], object]] = [lambda: study.events(limit=100)]
        if column == "arm":
            listings += [study.lines, lambda: study.ask(unit="ann")]
        for listing in listings:
            with pytest.raises(rank1.DamagedError, match=r"damaged|isn't on the grid"):
                listing()
        assert not study.verify().ok


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("column", ["unit", "key", "data"])
def test_bytes_that_are_no_text_are_damage(tmp_path: Path, column: str) -> None:
    path = tmp_path / "rank1.db"
    played(path).close()
    with SqliteStorage(path) as storage, storage.transaction() as log:
        log.rows(
            f"UPDATE rank1_events SET {column} = CAST(x'ff41' AS TEXT) WHERE unit = 'visitor 3'"
        )
    with (
        Study.open("spring", path) as study,
        pytest.raises(rank1.DamagedError, match=r"rank1\.db' is damaged"),
    ):
        study.events(limit=1000)


@pytest.mark.usefixtures("uncompiled")
def test_data_that_is_no_json_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "rank1.db"
    study = played(path)
    (given,) = (each for each in study.lines()[0] if each["unit"] == "visitor 3")
    assert given["data"] == {"page": 3}
    with study.access.storage.transaction() as log:
        log.rows("UPDATE rank1_events SET data = '{\"page\": 3' WHERE unit = 'visitor 3'")  # type: ignore[attr-defined]
    for use in (study.lines, lambda: study.events(limit=1000), lambda: study.ask(unit="visitor 3")):
        with pytest.raises(rank1.DamagedError, match=r"rank1\.db.*data of event \d+ can't be read"):
            use()
    seq = given["id"].split("-")[1]
    named = f"the data of event {seq} of study 'spring' can't be read"
    assert study.access.storage.check() == [named]
    study.close()
