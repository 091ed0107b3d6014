"""Forgotten units, archived and deleted studies, and how looks affect a storage."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1 import Study
from rank1.studies import suggestions, unit_of_work
from rank1.studies.events import Event, Kind
from rank1.studies.group_commit import transact_group
from rank1.studies.state import StudyState, layout_of
from rank1.studies.storage import Storage, open_storage
from tests.studies.support import append, suggested

GRID = ["a", "b"], ["c", "d"]
NAME = "Zoë.Müller@example.com"

pytestmark = pytest.mark.usefixtures("uncompiled")


def visited(place: str) -> Study:
    """Make a study in which a unit's name is stored wherever possible."""
    study = Study.create("spring", *GRID, storage=place, policy="uts", seed=1)
    for turn in range(3):
        one = study.ask(unit=NAME, key=f"ask {NAME} {turn}", data={"mail": NAME})
        study.tell(one.id, 1.0)
    other = study.ask(unit="another", data={"page": 7})
    study.access.transact(
        lambda work: suggestions.take_reports(work, [(other.id, 0.0)], key=f"{NAME}/7")
    )
    study.ask(unit=NAME)
    append(study.access.storage, study.access.study, Event(Kind.RECORDED, unit=NAME, value=1.0))
    study.snapshot()
    return study


def test_a_unit_is_forgotten(place: str, tmp_path: Path) -> None:
    study = visited(place)
    before, counts = study.best().to_dict(), study.counts()
    assert study.forget_unit(NAME) == 6
    assert study.forget_unit(NAME) == 0
    study.export(tmp_path / "log.jsonl")
    told = (tmp_path / "log.jsonl").read_text(encoding="utf-8")
    told += json.dumps(study.events(limit=1000), ensure_ascii=False)
    assert "Zoë" not in told
    assert told.count("another") == 2
    assert {"page": 7} in [line["data"] for line in study.lines()[0]]
    assert study.counts() == counts
    assert study.best().to_dict() == before
    again = Study.open("spring", place)
    for each in (study, again):
        assert each.verify().problems == []
    assert again.ask(unit=NAME, key=f"ask {NAME} 1").unit == NAME  # as if it had never been seen
    again.close()
    study.close()


def test_a_snapshot_holds_no_names(place: str) -> None:
    study = visited(place)
    with study.access.storage.reading() as log:
        kept = log.snapshot(study.access.study.id, layout_of(study.spec))
    assert kept is not None
    for encoding in ("utf-8", "utf-16-le", "utf-32-le"):
        assert NAME.encode(encoding) not in kept.blob
        assert "another".encode(encoding) not in kept.blob
    assert "a".encode("utf-32-le") in kept.blob
    study.close()


def test_nothing_of_a_name_is_left_in_the_file(tmp_path: Path) -> None:
    study = visited(str(tmp_path / "rank1.db"))
    reader = Study.open("spring", tmp_path / "rank1.db")

    def left() -> list[str]:
        files = [each for each in tmp_path.iterdir() if NAME.encode() in each.read_bytes()]
        return sorted(each.name for each in files)

    assert left()
    study.forget_unit(NAME)
    assert left() == []
    reader.ask(unit="ann")
    Study.delete("spring", study.access.storage, confirm="spring")
    raw = (tmp_path / "rank1.db").read_bytes() + (tmp_path / "rank1.db-wal").read_bytes()
    assert b"another" not in raw
    reader.close()
    study.close()


def test_an_archived_study_goes_on(place: str) -> None:
    study = Study.create("spring", *GRID, storage=place, policy="uts", seed=1)
    study.archive()
    study.archive()
    with study.access.storage.reading() as log:
        assert [row.archived is not None for row in log.studies()] == [True]
    opened = Study.open("spring", place)
    opened.tell(opened.ask().id, 1.0)
    assert opened.verify().problems == []
    opened.unarchive()
    with study.access.storage.reading() as log:
        assert log.study("spring").archived is None
    opened.close()
    study.close()


def test_a_study_is_deleted_by_whoever_names_it_twice(place: str) -> None:
    study, other = visited(place), Study.create("autumn", *GRID, storage=place, policy="uts")
    for confirm in ("autumn", "", "Spring"):
        with pytest.raises(rank1.InputError, match=r"confirm must be the name of the study"):
            Study.delete("spring", place, confirm=confirm)
    assert study.verify().problems == []
    Study.delete("spring", place, confirm="spring")
    for use in (study.ask, study.best, study.counts, lambda: study.forget_unit("u"), study.archive):
        with pytest.raises(rank1.UnknownStudyError):
            use()
    with pytest.raises(rank1.UnknownStudyError):
        Study.delete("spring", place, confirm="spring")
    with pytest.raises(rank1.UnknownStudyError):
        Study.open("spring", place)
    # A study that stayed open never writes to a new one with the same name.
    again = Study.create("spring", *GRID, storage=place, policy="uts")
    with pytest.raises(rank1.UnknownStudyError):
        study.ask()
    refused, made = transact_group(
        [(study.access, suggestions.suggest), (again.access, suggestions.suggest)]
    )
    assert isinstance(refused, rank1.UnknownStudyError)
    assert len(made) == 1
    assert again.counts()["suggestions"] == 1
    assert other.access.storage.check() == []
    for each in (study, again, other):
        each.close()


# No computation within a transaction


@pytest.fixture
def watched(place: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Storage, list[str]]]:
    """Yield a storage, and a list of its open transactions."""
    storage, around = open_storage(place), list[str]()
    for name in ("reading", "transaction"):
        real: Any = getattr(storage, name)

        @contextlib.contextmanager
        def opened(*studies: int, name: str = name, real: Any = real) -> Iterator[Any]:
            with real(*studies) as log:
                around.append(name)
                try:
                    yield log
                finally:
                    around.remove(name)

        monkeypatch.setattr(storage, name, opened)
    yield storage, around
    storage.close()


def test_looks_compute_after_their_transaction(
    watched: tuple[Storage, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, around = watched
    study = Study.create("spring", *GRID, storage=storage, policy="uts", seed=1)
    study.tell_many([(each.id, float(k % 2)) for k, each in enumerate(study.ask(count=300))])
    seen: list[tuple[str, list[str]]] = []

    def watch(module: Any, name: str) -> None:
        real = getattr(module, name)

        def called(*given: Any, **named: Any) -> Any:
            seen.append((name, list(around)))
            return real(*given, **named)

        monkeypatch.setattr(module, name, called)

    for name in ("best_of", "fit_of", "replay_log"):
        watch(rank1.studies.study, name)
    watch(StudyState, "fold")
    looks: list[Callable[[Study], object]] = [
        Study.best,
        lambda study: study.fit(B=19),
        lambda study: study.replay("ucb1"),
        Study.counts,
        Study.verify,
        lambda study: study.events(limit=3),
    ]
    for look in looks:
        opened = Study.open("spring", storage)
        look(opened)
    assert {name for name, _ in seen} == {"best_of", "fit_of", "replay_log", "fold"}
    assert [each for each in seen if each[1]] == []


def test_a_study_that_is_far_behind_catches_up_before_its_transaction(
    watched: tuple[Storage, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, around = watched
    study = Study.create("spring", *GRID, storage=storage, policy="uts", seed=1)
    behind = Study.open("spring", storage)
    behind.ask()
    folded: list[tuple[int, bool]] = []
    real = StudyState.fold

    def fold(state: StudyState, events: Any, *more: Any) -> None:
        folded.append((events.size, "transaction" in around))
        real(state, events, *more)

    uses: list[Callable[[], object]] = [
        behind.ask,
        lambda: transact_group([(behind.access, suggestions.suggest)]),
    ]
    for use in uses:
        for count, within in ((unit_of_work.FAR_BEHIND + 1, False), (5, True)):
            study.ask(count=count)
            folded.clear()
            with monkeypatch.context() as patch:
                patch.setattr(StudyState, "fold", fold)
                use()
            # The events that are new to it, and the one suggestion that it makes.
            assert folded == [(count, within), (1, True)]
            study.counts()
    assert behind.verify().problems == []


def test_others_may_write_faster_than_one_catches_up(
    watched: tuple[Storage, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, _ = watched
    study = Study.create("spring", *GRID, storage=storage, policy="uts", seed=1)
    behind = Study.open("spring", storage)
    behind.ask()
    real = behind.access.catch_up

    def catch_up() -> Any:
        found = real()
        append(storage, study.access.study, *suggested(unit_of_work.FAR_BEHIND + 1))
        return found

    monkeypatch.setattr(behind.access, "catch_up", catch_up)
    study.ask(count=unit_of_work.FAR_BEHIND + 1)
    assert behind.ask().id  # in the end, it folds within its transaction
    assert behind.verify().problems == []


# What verify finds


def hours(state: Any) -> Any:
    """Return the counts of each hour, after all events are counted."""
    state.traffic.days()
    return state.traffic._hours.values()


def test_verify_names_a_falsified_state(place: str) -> None:
    study = visited(place)
    falsified: list[tuple[Callable[[Any], object], str]] = [
        (lambda state: state.book.counts.__setitem__(1, 9.0), "counts differ"),
        (lambda state: state.book.sums.__setitem__(1, 9.0), "sums differ"),
        (lambda state: state.book.known_sums.__setitem__(0, 9.0), "known_sums differ"),
        (lambda state: state.book.at["reported"].__iadd__(1), "reported differ"),
        (lambda state: state.book.at["limit"].__iadd__(1), "limit differ"),
        (lambda state: state.book.at["time"].__iadd__(60.0), "time differ"),
        (lambda state: state.book.delays.__setitem__((0, 0), 9.0), "delays differ"),
        (lambda state: state.traffic.notes.append(3), "traffic notes differ"),
        (lambda state: state.traffic.versions.append((1, 5.0)), "traffic versions differ"),
        (lambda state: next(iter(hours(state))).__iadd__(1), "traffic hours differ"),
        (lambda state: state.book.table["arm"].__setitem__(0, 3), "pending suggestions differ"),
        (lambda state: state.state.successes.__iadd__(1), "successes of uts differ"),
        (lambda state: state.labels["row"].append("z"), "labels are "),
        (lambda state: state.living["row"].pop(), "levels that live are "),
        (lambda state: setattr(state, "revision", 5), "revisions are 0 and 5"),
    ]
    for falsify, named in falsified:
        study.access.forget()
        state, _ = study.access.catch_up()
        falsify(state)
        (problem,) = study.verify().problems
        assert problem.startswith(f"in this process: {named}")
    study.access.forget()
    assert study.verify().problems == []
    study.close()


@pytest.mark.usefixtures("uncompiled")
def test_verify_names_falsified_wealth_and_versions(place: str) -> None:
    study = Study.create(
        "drawn",
        sides={"image": ["x", "y"]},
        goal="find",
        storage=place,
        seed=1,
        reward_window=1e6,
        min_lift=0.02,
    )
    for _ in range(4):
        told = [(each.id, float(each.levels["image"] == "x")) for each in study.ask(count=30)]
        study.tell_many(told)
    falsified: dict[str, Callable[[Any], object]] = {
        "design shares": lambda live: live.versions[1].shares[0].__setitem__(0, 0.9),
        "design fit": lambda live: live.versions[1].fit[0].__setitem__(0, 0.9),
        "design leaders": lambda live: live.versions.__setitem__(
            1, dataclasses.replace(live.versions[1], leaders=(1,))
        ),
        "design living": lambda live: live.versions[1].living[0].__setitem__(0, False),
        "design": lambda live: setattr(live, "since", live.since + 1),
        "design now": lambda live: live.living[0].__setitem__(0, False),
        "design rows": lambda live: live.evidence.rows()["count"].__iadd__(1),
        "design unripe": lambda live: live.evidence.unripe["x"].__iadd__(0.5),
    }
    fields = study.access.catch_up()[0].live.wealth._asdict()
    for name in fields:

        def add_one(live: Any, name: str = name) -> object:
            return getattr(live.wealth, name).__iadd__(1)

        falsified[f"design {name}"] = add_one
    for name, falsify in falsified.items():
        study.access.forget()
        live = study.access.catch_up()[0].settled()
        for version in live.versions.values():
            for array in (*version.shares, *version.fit, *version.living):
                array.setflags(write=True)
        falsify(live)
        assert study.verify().problems == [f"in this process: {name} differ"]
    study.access.forget()
    assert study.verify().problems == []
    study.close()


def test_verify_names_a_falsified_snapshot(place: str) -> None:
    study = visited(place)
    access = study.access
    layout = layout_of(study.spec)
    with access.storage.reading() as log:
        kept = log.snapshot(access.study.id, layout)
    assert kept is not None
    state = StudyState.from_bytes(study.spec, kept.blob)
    state.book.counts[1] += 1
    access.storage.put_snapshot(access.study.id, kept._replace(blob=state.to_bytes()))
    assert study.verify().problems == ["from the snapshot: counts differ"]
    access.storage.put_snapshot(access.study.id, kept._replace(blob=b"garbage"))
    (problem,) = study.verify().problems
    assert problem.startswith("the snapshot can't be read")
    access.storage.put_snapshot(access.study.id, kept)
    assert study.verify().problems == []
    with access.storage.transaction() as log:
        log.rows("UPDATE rank1_snapshots SET blob = digest")  # type: ignore[attr-defined]
    (problem,) = study.verify().problems
    assert re.match(r"the snapshot of study number \d+ at event 11 is damaged", problem)
    study.close()


def test_verify_names_a_falsified_count(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are compared with the log itself, so the same wrong fold twice doesn't pass."""
    study = visited(place)
    real = StudyState.fold

    def fold(state: StudyState, *given: Any) -> None:
        real(state, *given)
        state.book.at["reported"] = 3
        state.book.at["cancelled"] = 1

    with monkeypatch.context() as patch:
        patch.setattr(StudyState, "fold", fold)
        study.access.forget()
        with study.access.storage.transaction() as log:
            log.rows("DELETE FROM rank1_snapshots")  # type: ignore[attr-defined]
        (problem,) = study.verify().problems
        assert problem.startswith("the log has {'suggestions': 6, 'reports': 5, ")
        assert "but its fold has {'suggestions': 6, 'reports': 3, " in problem
    study.access.forget()
    assert study.verify().problems == []
    study.close()


def test_verify_names_a_damaged_event(place: str) -> None:
    study = visited(place)
    with study.access.storage.transaction() as log:
        log.rows("UPDATE rank1_events SET arm = arm + 1 WHERE seq = 4")  # type: ignore[attr-defined]
    found = study.verify()
    assert not found.ok
    assert found.problems == ["event 4 of study 'spring' doesn't match its checksum"]
    again = Study.open("spring", place)
    assert again.counts()["reports"] == 5  # from the snapshot
    with study.access.storage.transaction() as log:
        log.rows("DELETE FROM rank1_snapshots")  # type: ignore[attr-defined]
    again.access.forget()
    with pytest.raises(rank1.DamagedError, match="event 4 of study 'spring'"):
        again.counts()
    again.close()
    study.close()
