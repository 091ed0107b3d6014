"""Records and rewards that PostgreSQL stores without the study's lock."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1 import Study
from rank1.assignment import held_out
from rank1.studies.appending import append_group, new_records, new_rewards
from rank1.studies.events import REPEAT, Event, Kind
from rank1.studies.records import take_records, take_rewards
from rank1.studies.storage.postgres import PostgresReader, PostgresStorage
from tests.studies.conftest import new_schema

pytestmark = pytest.mark.usefixtures("uncompiled")

SIDES = {"headline": ["A", "B"], "image": ["x", "y"]}
AX, BY = {"headline": "A", "image": "x"}, {"headline": "B", "image": "y"}
OPTIONS: dict[str, Any] = {
    "sides": SIDES, "goal": "find", "seed": 1, "guardrails": {"left": {"worse_by": 0.1}},
    "control": AX,
}  # fmt: skip


@pytest.fixture
def create(server: Any) -> Iterator[Callable[..., Study]]:
    made: list[Study] = []
    place = new_schema(server)

    def create(**options: Any) -> Study:
        study = Study.create(f"s{len(made)}", storage=place, **OPTIONS | options)
        made.append(study)
        study.shares()
        study.record("the first", 0, AX)  # the version is known from now on
        return study

    yield create
    for study in made:
        study.close()


def added(study: Study, records: Any = (), rewards: Any = ()) -> list[bool]:
    """Tell which of these are stored without the lock."""
    jobs: list[Any] = []
    if records:
        jobs.append((study.access, lambda access: new_records(access, records)))
    if rewards:
        jobs.append((study.access, lambda access: new_rewards(access, rewards)))
    return [each for answer in append_group(jobs) for each in answer]


def status(answer: Any) -> Any:
    return type(answer).__name__ if isinstance(answer, Exception) else answer


def stored(study: Study, items: list[Any], take: Any, new: Any) -> list[str]:
    """Do what a server does: store without the lock where possible, and the rest with it."""
    done = [False] * len(items)
    if isinstance(study.access.storage, PostgresStorage):
        (done,) = append_group([(study.access, lambda access: new(access, items))])
    left = [item for item, is_done in zip(items, done, strict=True) if not is_done]
    taken = iter(study.access.transact(lambda work: take(work, left)))
    answers = [None if is_done else next(taken) for is_done in done]
    return [
        type(each).__name__ if isinstance(each, Exception)
        else "new" if each is None or getattr(each, "new", take is take_rewards)
        else "known"
        for each in answers
    ]  # fmt: skip


def unnumbered(study: Study) -> int:
    with study.access.storage.reading() as log:
        ((count,),) = log.rows("SELECT count(*) FROM rank1_events WHERE seq < 0")  # type: ignore[attr-defined]
    return count


def kinds(study: Study) -> list[tuple[Any, ...]]:
    events = study.look(lambda state, log: log.page(study.access.study.id, limit=1000))
    return [(e.kind, e.tag, e.value, e.unit) for e in events if e.kind not in (1, 9)]


def test_nothing_waits_for_the_lock(create: Callable[..., Study]) -> None:
    study = create()
    with study.access.storage.transaction(study.access.study.id):
        assert added(study, [("ann", 0, AX, 1.0, {"left": 0.5}), ("bob", 0, BY)]) == [True] * 2
        assert added(study, rewards=[("the first", 0.0)]) == [True]
        assert unnumbered(study) == 3
    assert study.counts()["reports"] == 2  # a look numbers them
    assert unnumbered(study) == 0
    assert [event[::3] for event in kinds(study)] == [
        (Kind.RECORDED, "the first"), (Kind.RECORDED, "ann"), (Kind.GUARDRAIL, None),
        (Kind.RECORDED, "bob"), (Kind.REPORTED, None),
    ]  # fmt: skip
    assert study.verify().ok


def test_what_waits_for_its_number_is_safe(create: Callable[..., Study], tmp_path: Path) -> None:
    study = create()
    added(study, [("ann", 0, AX, 1.0)])
    assert study.access.storage.check() == []
    assert unnumbered(study) == 1
    assert study.forget_unit("ann") == 1
    assert "ann" not in [unit for *_, unit in kinds(study)]
    added(study, [("bob", 0, AX, 1.0)])
    assert study.export(tmp_path / "log.jsonl") == 3
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["unit"] for line in lines] == ["the first", None, "bob"]
    added(study, [("cid", 0, AX, 1.0)])
    with Study.open(study.name, study.access.storage) as other:
        assert other.verify().reports == 3
    added(study, [("dan", 0, AX, 1.0)])
    Study.delete(study.name, study.access.storage, confirm=study.name)
    assert unnumbered(study) == 0
    assert added(study, [("eve", 0, AX, 1.0)]) == [False]


def test_a_refused_job_leaves_no_state_ahead_of_the_log(create: Callable[..., Study]) -> None:
    """Its transaction numbered events, folded them, and was rolled back."""
    study = create()
    added(study, [("ann", 0, AX, 1.0)])
    with pytest.raises(rank1.UnknownSuggestionError):
        study.tell("9-unknown", 1.0)
    assert unnumbered(study) == 1  # as before
    with study.access.storage.reading() as log:
        last, _ = log.last(study.access.study.id)
    known = study.access.known
    assert known is None or known.seq == last
    assert study.counts()["reports"] == 1


def test_a_level_that_is_not_stored_yet_takes_the_lock(create: Callable[..., Study]) -> None:
    """If its transaction is rolled back, nothing in the log may be of this level."""
    study = create(given=["image"], new_levels="add", control={"headline": "A"})
    found: list[bool] = []

    def record(work: Any) -> None:
        (answer,) = take_records(work, [("ann", 0, {"headline": "A", "image": "new"}, 1.0)])
        assert not isinstance(answer, Exception)
        records = [
            (unit, 0, {"headline": "A", "image": image}, 1.0)
            for unit, image in (("bob", "new"), ("cid", "y"))
        ]
        thread = threading.Thread(target=lambda: found.extend(added(study, records)))
        thread.start()
        thread.join()
        raise rank1.StorageError("the database was killed")

    with pytest.raises(rank1.StorageError):
        study.access.transact(record)
    assert found == [False, True]
    assert study.verify().ok
    assert [unit for *_, unit in kinds(study) if unit] == ["the first", "cid"]


def test_held_out_units_do_not_wait_either(create: Callable[..., Study]) -> None:
    study = create(given=["image"], new_levels="add", control={"headline": "A"}, holdout=0.5)
    shares = study.shares()
    units = [unit for unit in map(str, range(30)) if held_out(shares, unit)]
    study.record(units[0], 0, AX)
    with study.access.storage.transaction(study.access.study.id):
        assert added(study, [(units[1], 0, AX, 1.0), (units[2], 0, {**AX, "image": "y"})]) == [
            True, True,
        ]  # fmt: skip
        wrong = {**AX, "headline": "B"}, {**AX, "image": "new"}, {"headline": "A"}, {**AX, "z": "z"}
        assert added(study, [(units[3], 0, each) for each in wrong]) == [False] * 4
    assert study.counts()["suggestions"] == 4
    assert study.verify().ok


def test_times_are_those_of_the_arrival(
    create: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = create()
    added(study, [("ann", 0, AX)])
    with study.access.storage.reading() as log:
        ((arrived,),) = log.rows("SELECT at FROM rank1_events WHERE seq < 0")  # type: ignore[attr-defined]
    lines = study.lines()[0]
    assert [line["asked_at"] for line in lines if line["unit"] == "ann"] == [arrived]
    assert study.access.storage.check() == []


def test_a_unit_that_was_asked_for_in_the_same_moment_counts_once(
    create: Callable[..., Study],
) -> None:
    study = create()

    def asked(work: Any) -> None:
        # After the log was completed, and before the ask is committed.
        assert added(study, [("ann", 0, AX, 1.0)]) == [True]
        work.append([Event(Kind.SUGGESTED, arm=0, nonce=1, unit="ann")])

    study.access.transact(asked)
    assert (Kind.RECORDED, REPEAT, 1.0, "ann") in kinds(study)
    assert added(study, [("ann", 0, AX, 1.0)]) == [False]
    assert study.access.compute(lambda state, now: int(state.book.at[0].evidence)) == 0
    assert study.verify().ok


def test_both_ways_of_storing_meet(create: Callable[..., Study]) -> None:
    """Items added after the log was completed make the holder of the lock look once more."""
    study = create()
    turns: list[int] = []

    def record(work: Any) -> Any:
        turns.append(1)
        if len(turns) == 1:
            assert added(study, [("ann", 0, AX, 1.0), ("cid", 0, AX)]) == [True] * 2
            assert added(study, rewards=[("the first", 1.0)]) == [True]
        return (
            take_records(work, [("ann", 0, AX, 1.0), ("bob", 0, AX), ("cid", 0, AX, 1.0)]),
            take_rewards(work, [("the first", 0.0)]),
        )

    (ann, bob, cid), (first,) = study.access.transact(record)
    assert (ann.new, bob.new, cid.new, cid.reward, len(turns)) == (False, True, False, 1.0, 2)
    assert isinstance(first, rank1.ConflictError)
    assert [unit for *_, unit in kinds(study) if unit] == ["the first", "ann", "cid", "bob"]
    assert study.verify().ok


def test_a_report_whose_exposure_has_expired_meanwhile_is_late(
    create: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = create(reward_window=60.0, on_expiry="drop")

    def expire(work: Any) -> None:
        assert added(study, rewards=[("the first", 1.0)]) == [True]
        work.append([Event(Kind.EXPIRED, suggestion=work.state.seq)])

    study.access.transact(expire)
    assert study.lines()[0][0]["late"]
    assert study.verify().ok
    clock = PostgresReader.clock
    study.record("ann", 0, AX)
    monkeypatch.setattr(PostgresReader, "clock", lambda self: clock(self) + 61)
    assert added(study, rewards=[("ann", 1.0)]) == [False]  # no event says yet that it is late


def test_a_version_begins_when_what_was_added_is_folded(create: Callable[..., Study]) -> None:
    study = create()
    with Study.open(study.name, study.access.storage) as other:
        rng = random.Random(1)
        for k in range(10):
            items = [
                (f"{k}-{n}", 0, levels, float(rng.random() < (0.9 if levels == BY else 0.1)))
                for n, levels in enumerate([AX, BY] * 25)
            ]
            assert all(added(study, items))
        assert other.shares()["version"] == 1
    assert kinds(study)[-1][0] == Kind.RECORDED  # there was no other write


def test_the_answers_are_those_of_the_lock(create: Callable[..., Study], tmp_path: Path) -> None:
    """Two servers that append in parallel, and one process with SQLite, have the same history."""
    one = create()
    with (
        Study.open(one.name, one.access.storage) as two,
        Study.create("s0", storage=str(tmp_path / "rank1.db"), **OPTIONS) as model,
    ):
        model.shares()
        model.record("the first", 0, AX)
        rng = random.Random(1)
        seen: set[str] = set()
        for _ in range(40):
            study = rng.choice([one, two])
            units = [f"u{rng.randrange(12)}" for _ in range(rng.randrange(1, 4))]
            some = {"left": rng.choice([0.0, 1.0])} if rng.random() < 0.3 else None
            if rng.random() < 0.5:
                items: list[Any] = [
                    (unit, rng.choice([0, 0, 0, 7, True, 0.0]), rng.choice([AX, AX, AX, BY, {}]),
                     *rng.choice([(), (1.0,), (0.0,), (1.0, some), (2.0,)]))
                    for unit in units
                ]  # fmt: skip
                how: Any = take_records, new_records
            else:
                items = [(unit, rng.choice([0.0, 1.0, 1.0, "x"]), some) for unit in units]
                how = take_rewards, new_rewards
            found = stored(study, items, *how)
            assert found == stored(model, items, *how), items
            seen |= set(found)
        assert seen >= {"new", "known", "ConflictError", "InputError", "UnknownSuggestionError"}
        facts = "unit", "levels", "state", "reward", "version"
        ours, theirs = (
            sorted([str([line[fact] for fact in facts]) for line in each.lines()[0]])
            for each in (two, model)
        )
        assert ours == theirs
        assert two.verify().ok
        assert two.best().to_dict()["leader"] == model.best().to_dict()["leader"]


@pytest.mark.parametrize("unit", ["\ud800", "a\0b", "", 5, None])
def test_a_unit_that_is_no_name_is_refused_by_itself(
    create: Callable[..., Study], unit: Any
) -> None:
    """PostgreSQL can't even look up some texts; the other items of the batch are stored."""
    study = create()
    records = study.record_many([(unit, 0, AX, 1.0), ("good", 0, AX, 1.0)])
    rewards = study.reward_many([(unit, 1.0), ("the first", 1.0)])
    for refused, stored in (records, rewards):
        assert isinstance(refused, rank1.InputError | rank1.InputTypeError)
        assert refused.field == "unit"
        assert not isinstance(stored, rank1.Rank1Error)
