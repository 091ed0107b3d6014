"""Studies that draw by shares: their guarantees, on SQLite."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1 import Study
from rank1.compiled import kernel
from rank1.studies import any_grid, live_design, planning, state
from rank1.studies.events import HELD_OUT, REPEAT, Kind
from rank1.studies.storage.sqlite import SqliteReader, SqliteTransaction
from tests.studies.support import from_log

pytestmark = pytest.mark.usefixtures("uncompiled")

HOME = {"headline": ["A", "B", "C"], "image": ["x", "y"]}
FACTORS = {"A": 0.5, "B": 0.9, "C": 0.4, "x": 0.5, "y": 0.8}
CONTROL = {"headline": "A", "image": "x"}


@pytest.fixture
def create(tmp_path: Path) -> Iterator[Callable[..., Study]]:
    made: list[Study] = []

    def create(sides: Any = None, **options: Any) -> Study:
        given: dict[str, Any] = {"goal": "find", "seed": 1} | options
        place = str(tmp_path / "rank1.db")
        made.append(Study.create(f"s{len(made)}", sides=sides or HOME, storage=place, **given))
        return made[-1]

    yield create
    for study in made:
        study.close()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [2e9]
    monkeypatch.setattr(SqliteReader, "clock", lambda self: now[0])
    return now


def mean(levels: dict[str, str]) -> float:
    return float(np.prod([FACTORS.get(label, 1.0) for label in levels.values()]))


def play(study: Study, steps: int, batch: int = 20, seed: int = 1, **asked: Any) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(0, steps, batch):
        given = study.ask(count=batch, **asked)
        study.tell_many([(each.id, float(rng.random() < mean(each.levels))) for each in given])


def known(study: Study) -> state.StudyState:
    return study.look(lambda found, log: found)


def design(study: Study) -> live_design.LiveDesign:
    return known(study).settled()


def tags(study: Study, *kinds: Kind) -> list[int]:
    return study.look(
        lambda _, log: [e.tag for e in log.page(study.access.study.id, 0, 10**6, kinds=kinds)]
    )


def is_whole(study: Study) -> bool:
    """Check that the process, a snapshot and the log agree, and a new process knows the same."""
    assert study.snapshot()
    assert study.verify().problems == []
    return known(study).differences(known(Study.open(study.name, study.access.storage))) == []


def test_versions_are_in_the_log(create: Callable[..., Study]) -> None:
    study = create()
    assert study.policy.name == "bet_elim"
    play(study, 600)
    numbers = tags(study, Kind.VERSION)
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > 5
    found = design(study)
    assert sorted(found.versions) == numbers
    assert found.evidence.counts().pulls.sum() == 600
    # Every suggestion names the version that was current, and its propensity.
    version = -1
    for event in study.look(lambda _, log: log.page(study.access.study.id, 0, 10**6)):
        if event.kind == Kind.VERSION:
            version = event.tag
            shares = json.loads(event.data or "")["shares"]
            assert all(sum(side) == pytest.approx(1) for side in shares.values())
        if event.kind == Kind.SUGGESTED:
            assert event.tag == version
            levels = known(study).levels_of(event.arm)
            expected = np.prod([shares[side][k] for side, k in zip(HOME, levels, strict=True)])
            assert event.value == pytest.approx(expected)
    assert is_whole(study)


def test_the_winner_is_found_and_shown(create: Callable[..., Study]) -> None:
    study = create()
    play(study, 1000, batch=100)
    verdict = design(study).verdict()
    assert verdict.stop
    assert verdict.leaders == (1, 1)
    assert study.shares()["sides"] == {"headline": {"B": 1.0}, "image": {"y": 1.0}}
    assert {tuple(each.levels.values()) for each in study.ask(count=50)} == {("B", "y")}
    gone = design(study).gone
    assert {level: each.why for level, each in gone.items()} == dict.fromkeys(
        [(0, 0), (0, 2), (1, 0)], "refuted"
    )
    assert is_whole(study)


def test_a_fold_is_the_same_compiled(
    create: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = create(control=CONTROL, holdout=0.2, guardrails={"left": {"worse_by": 0.1}})
    for unit in range(60):
        given = study.ask(unit=str(unit % 50))
        study.tell(given.id, float(unit % 3 == 0), {"left": 0.0})
    shares = study.shares()
    study.record_many(
        [(f"r{k}", 0, rank1.assign(shares, f"r{k}"), None if k % 2 else 1.0) for k in range(40)]
    )
    play(study, 300)
    study.revise(add={"image": ["z"]}, retire={"headline": ["C"]})
    play(study, 40)
    plain = from_log(study)
    monkeypatch.setattr(state, "kernel_for", lambda do, *given, work: kernel(do, *given))
    compiled = from_log(study)
    assert plain.differences(compiled) == []
    assert is_whole(study)


def test_the_journal_may_be_short(
    create: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = create()
    play(study, 400, batch=200)
    whole = from_log(study)
    monkeypatch.setattr("rank1.studies.fold.JOURNAL", 7)
    short = from_log(study)
    assert whole.differences(short) == []


def test_looking_changes_nothing(create: Callable[..., Study], time: list[float]) -> None:
    one, two = create(seed=3), create(seed=3)
    for study in (one, two):
        for turn in range(12):
            play(study, 20, seed=turn)
            if study is two:
                study.best()
                study.shares()
    first, second = known(one), known(two)
    assert design(one).number == design(two).number > 3
    assert first.differences(second) == []


# Units


def test_a_unit_is_assigned_by_hash(create: Callable[..., Study]) -> None:
    study = create()
    play(study, 300)
    shares = study.shares()
    for unit in map(str, range(30)):
        assert study.ask(unit=unit).levels == rank1.assign(shares, unit)


def test_a_unit_counts_once(create: Callable[..., Study]) -> None:
    study = create()
    first = study.ask(unit="a")
    assert study.ask(unit="a") == first
    study.tell(first.id, 1.0)
    again = study.ask(unit="a")
    assert again.id != first.id
    assert again.levels == first.levels
    assert study.ask(unit="a") == again
    study.tell(again.id, 0.0)
    assert tags(study, Kind.SUGGESTED) == [0, REPEAT]
    assert study.best().counts.sum() == 1
    assert study.counts()["reports"] == 2
    study.cancel(study.ask(unit="a").id)
    assert study.ask(unit="a").levels == first.levels
    assert tags(study, Kind.SUGGESTED)[1:] == [REPEAT] * 3
    # A suggestion that was never shown doesn't count.
    study.cancel(study.ask(unit="b").id)
    study.tell(study.ask(unit="b").id, 1.0)
    assert tags(study, Kind.SUGGESTED)[4:] == [0, 0]
    assert study.best().counts.sum() == 2
    assert is_whole(study)


@pytest.mark.parametrize("goal", ["find", "earn"])
@pytest.mark.parametrize("on_expiry", ["drop", "wait", "default"])
def test_a_unit_whose_suggestion_has_expired(
    create: Callable[..., Study], time: list[float], goal: str, on_expiry: str
) -> None:
    study = create(goal=goal, reward_window=60, on_expiry=on_expiry)
    first = study.ask(unit="a")
    time[0] += 61
    again = study.ask(unit="a")
    assert again.id != first.id
    assert again.levels == first.levels
    assert study.tell(again.id, 1.0).late is False
    counted = 1 if on_expiry == "default" else 0
    assert study.best().counts.sum() == counted
    # A late report of the first visit counts, unless the default was used for it.
    assert study.tell(first.id, 1.0).late
    assert study.best().counts.sum() == 1
    time[0] += 61
    more = study.ask(unit="a")
    time[0] += 61
    study.tell(more.id, 1.0)  # late, and for a visit that doesn't count
    assert study.best().counts.sum() == 1
    assert is_whole(study)


def test_each_visit_may_count(create: Callable[..., Study]) -> None:
    with pytest.warns(UserWarning, match="56 of 200"):
        study = create(repeat="each")
    for _ in range(5):
        study.tell(study.ask(unit="a").id, 1.0)
    assert study.best().counts.sum() == 5
    assert tags(study, Kind.SUGGESTED) == [0] * 5
    assert is_whole(study)


def test_visits_to_a_policy_count_once_as_well(create: Callable[..., Study]) -> None:
    study = create(policy="uts")
    for _ in range(3):
        study.tell(study.ask(unit="a").id, 1.0)
    assert study.best().counts.sum() == 1
    assert is_whole(study)


# Holdout


def test_what_is_held_out_plays_the_control(create: Callable[..., Study]) -> None:
    study = create(control=CONTROL, holdout=0.25)
    shares = study.shares()
    held = [unit for unit in map(str, range(160)) if rank1.assignment.held_out(shares, unit)]
    assert 24 < len(held) < 56
    for unit in map(str, range(160)):
        given = study.ask(unit=unit)
        assert given.levels == CONTROL or unit not in held
        study.tell(given.id, mean(given.levels))
    assert Counter(tags(study, Kind.SUGGESTED))[HELD_OUT] == len(held)
    found = known(study).book.at[0]
    assert found.held == len(held)
    assert found.held_sum == pytest.approx(0.25 * len(held))
    assert found.evidence == 160 - len(held)
    assert design(study).evidence.counts().pulls.sum() == 160 - len(held)
    study.tell(study.ask(unit=held[0]).id, 1.0)
    assert known(study).book.at[0].held == len(held)
    without = study.ask(count=1000)
    assert 180 < sum(tag == HELD_OUT for tag in tags(study, Kind.SUGGESTED)[161:]) < 320
    assert len(without) == 1000
    assert is_whole(study)


# Records


@pytest.mark.filterwarnings("ignore:repeat='each'")
@pytest.mark.parametrize("repeat", ["once", "each"])
def test_visits_of_held_out_units(create: Callable[..., Study], repeat: str) -> None:
    study = create(control=CONTROL, holdout=0.5, repeat=repeat)
    for _ in range(3):
        for k in range(20):
            study.tell(study.ask(unit=f"u{k}").id, 1.0)
    found = study.best()
    assert found.holdout is not None
    assert found.holdout["units"] + found.counts.sum() == (20 if repeat == "once" else 60)


def test_a_visitor_returns_under_a_newer_version(create: Callable[..., Study]) -> None:
    study = create()
    first, units = study.shares(), [f"u{k}" for k in range(40)]
    for unit in units:
        study.record(unit, 0, rank1.assign(first, unit), 1.0)
    play(study, 400)
    now = study.shares()
    assert now["version"] > 0
    levels = {unit: rank1.assign(first, unit) for unit in units}
    same = [unit for unit in units if rank1.assign(now, unit) == levels[unit]]
    assert 0 < len(same) < 40
    again = study.record(same[0], now["version"], levels[same[0]], 1.0)
    assert (again.version, again.new) == (0, False)
    other = next(unit for unit in units if unit not in same)
    with pytest.raises(rank1.ConflictError, match="already recorded"):
        study.record(other, now["version"], rank1.assign(now, other), 1.0)
    for unit, shares in (("new", now), ("slow", first)):  # each is evidence of its own version
        assert study.record(unit, shares["version"], rank1.assign(shares, unit), 1.0).new
        (event,) = study.events(limit=1, kinds=["recorded"], newest=True)
        assert (event["unit"], event["version"]) == (unit, shares["version"])
        assert study.lines()[0][-1]["version"] == shares["version"]


def test_what_was_assigned_elsewhere_is_recorded(create: Callable[..., Study]) -> None:
    study = create(control=CONTROL, holdout=0.1)
    shares = study.shares()
    units = [f"u{k}" for k in range(100)]
    records: list[Any] = [(unit, 0, rank1.assign(shares, unit), 1.0) for unit in units[:50]]
    records += [(unit, 0, rank1.assign(shares, unit)) for unit in units[50:]]
    first = study.record_many(records)
    assert all(isinstance(each, rank1.studies.Recorded) and each.new for each in first)
    names = "unit", "version", "levels", "reward"
    again = study.record_many(dict(zip(names, each, strict=False)) for each in records)
    assert again == first
    assert not any(each.new for each in again)  # type: ignore[union-attr]
    assert study.counts()["pending"] == 50
    for wrong in (("u0", 0), {"unit": "u0", "level": {}}, "u0"):
        with pytest.raises(rank1.InputTypeError, match=r"records\[1\] must be unit, version, lev"):
            study.record_many([records[0], wrong])
    (told,) = study.reward_many([{"unit": "u50", "reward": 0.5}])
    assert isinstance(told, rank1.studies.Report)
    assert told.levels == rank1.assign(shares, "u50")
    assert study.reward("u50", 0.5) == told
    with pytest.raises(rank1.ConflictError, match=r"already has the reward 0\.5, got 1"):
        study.reward("u50", 1.0)
    with pytest.raises(rank1.ConflictError, match="already has the reward 1, got 0"):
        study.record("u1", 0, rank1.assign(shares, "u1"), 0.0)
    with pytest.raises(rank1.ConflictError, match="already has the reward 1, got 0"):
        study.reward("u1", 0.0)
    assert study.reward("u1", 1.0).reward == 1.0
    # A record that adds the reward later, in the same batch as others.
    late = study.record_many([(units[51], 0, rank1.assign(shares, units[51]), 0.25)])
    assert late[0].reward == 0.25  # type: ignore[union-attr]
    assert study.record(units[51], 0, rank1.assign(shares, units[51])).reward == 0.25
    assert study.counts() == {
        "suggestions": 100, "reports": 52, "pending": 48, "expired": 0, "cancelled": 0,
    }  # fmt: skip
    assert is_whole(study)


def test_what_does_not_fit_its_version_is_refused(create: Callable[..., Study]) -> None:
    study = create(control=CONTROL, holdout=0.1)
    shares = study.shares()
    names = iter([u for u in map(str, range(99)) if not rank1.assignment.held_out(shares, u)])
    held = next(u for u in map(str, range(99)) if rank1.assignment.held_out(shares, u))
    for levels, version, message in [
        ({"headline": "D", "image": "x"}, 0, r"levels\.headline must be one that version 0 draws"),
        ({"headline": "A"}, 0, "levels must be a level of each of headline, image"),
        ({"headline": "A", "image": "x", "c": "d"}, 0, "levels must be a level of each"),
        ("A", 0, "levels must be a level of each"),
        (CONTROL, 1, "version must be one of the study's, 0 … 0, got 1"),
        (CONTROL, "0", "version must be a whole number"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            study.record(next(names), version, levels)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"the control .* which is held out"):
        study.record(held, 0, {"headline": "B", "image": "x"})
    assert study.record(held, 0, CONTROL, 1.0).version is None
    asked = study.ask(unit=(unit := next(names)))
    with pytest.raises(rank1.ConflictError, match="was given a suggestion"):
        study.record(unit, 0, asked.levels)
    unit = next(names)
    study.record(unit, 0, {"headline": "A", "image": "x"})
    with pytest.raises(rank1.ConflictError, match="was already recorded: A × x, under version 0"):
        study.record(unit, 0, {"headline": "A", "image": "y"})
    with pytest.raises(rank1.UnknownSuggestionError, match="'nobody' has no exposure"):
        study.reward("nobody", 1.0)
    mixed = study.record_many([(next(names), 0, CONTROL, 1.0), (next(names), 7, CONTROL, 1.0)])
    assert [isinstance(each, rank1.Rank1Error) for each in mixed] == [False, True]
    study.revise(retire={"headline": ["C"]})
    unit = next(names)
    with pytest.raises(ValueError, match="version 1 draws: A, B, got 'C'"):
        study.record(unit, 1, {"headline": "C", "image": "x"})
    study.record(unit, 0, {"headline": "C", "image": "x"}, 1.0)  # it was shown before the revision
    with pytest.raises(rank1.ConflictError, match="has no shares, because uts chooses"):
        create(goal="earn").record("u", 0, CONTROL)
    assert is_whole(study)


# Given sides


MAIL = {"segment": ["18-24", "25-34"], "channel": ["email", "push"]}


def test_segments_come_with_the_visitor(create: Callable[..., Study]) -> None:
    study = create(MAIL, given=["segment"])
    with pytest.raises(ValueError, match="given must be a level of each of segment"):
        study.ask(given={})
    study.ask(unit="ann", given={"segment": "18-24"})
    with pytest.raises(rank1.ConflictError, match=r"'ann' has a pending .*18-24'}, got .*25-34'}"):
        study.ask(unit="ann", given={"segment": "25-34"})
    with pytest.raises(TypeError, match="given must be a level of each of segment, got None"):
        study.ask()
    with pytest.raises(ValueError, match=r"given\.segment must be among .*, got '35\+'"):
        study.ask(given={"segment": "35+"})
    play(study, 200, given={"segment": "25-34"})
    found = study.ask(count=10, given={"segment": "18-24"})
    assert {each.levels["segment"] for each in found} == {"18-24"}
    assert study.shares()["given"] == {"segment": ["18-24", "25-34"]}
    assert list(study.shares()["sides"]) == ["channel"]
    one = study.ask(unit="a", given={"segment": "18-24"})
    study.tell(one.id, 1.0)
    moved = study.ask(unit="a", given={"segment": "25-34"})
    assert moved.levels == {"segment": "25-34", "channel": one.levels["channel"]}
    assert is_whole(study)


@pytest.mark.parametrize(
    ("channels", "floor", "expected"), [(3, 0.0, 0.05), (3, 0.1, 0.1), (20, 0.0, 0.025)]
)
def test_with_segments_a_level_that_lives_is_shown(
    create: Callable[..., Study], channels: int, floor: float, expected: float
) -> None:
    sides = {"segment": ["s", "t"], "channel": [str(k) for k in range(channels)]}
    study = create(sides, given=["segment"], floor=floor)
    assert planning.plan(design(study)).floor == expected
    assert study.best().assumes[0].startswith("One order: a level that is best on its side is best")
    assert planning.plan(design(create(floor=floor))).floor == floor


def test_new_segments_may_be_added(create: Callable[..., Study]) -> None:
    study = create(MAIL, given=["segment"], new_levels="add")
    play(study, 300, given={"segment": "18-24"})
    before = design(study).number
    given = study.ask(given={"segment": "35+"})
    assert given.levels["segment"] == "35+"
    assert design(study).number == before + 1
    shares = study.shares()
    levels = rank1.assign(shares, "u", {"segment": "65+"})
    study.record("u", shares["version"], levels, 1.0)
    assert study.sides["segment"] == ["18-24", "25-34", "35+", "65+"]
    play(study, 300, given={"segment": "65+"}, seed=2)
    assert is_whole(study)


# Revisions


def test_levels_come_and_go(create: Callable[..., Study]) -> None:
    study = create()
    play(study, 60)
    waiting = study.ask(count=30)
    study.revise(add={"image": ["z"]}, retire={"headline": ["A"]})
    assert tags(study, Kind.VERSION)[-1] == design(study).number
    assert set(study.shares()["sides"]["headline"]) == {"B", "C"}
    assert study.shares()["sides"]["image"]["z"] > 0
    study.tell_many([(each.id, 1.0) for each in waiting])
    play(study, 400)
    seen = {each.levels["headline"] for each in study.ask(count=100)}
    assert "A" not in seen
    assert design(study).evidence.counts().pulls.sum() == 490
    study.revise(add={"headline": ["A"]})
    play(study, 200)
    assert is_whole(study)


def test_retiring_the_winner_revives_the_others(create: Callable[..., Study]) -> None:
    study = create()
    play(study, 1000, batch=100)
    assert study.shares()["sides"]["headline"] == {"B": 1.0}
    study.revise(retire={"headline": ["B"]})
    assert set(study.shares()["sides"]["headline"]) == {"A", "C"}
    assert study.shares()["sides"]["image"] == {"y": 1.0}
    assert not design(study).verdict().stop
    play(study, 2000, batch=200)
    assert design(study).verdict().leaders == (0, 1)
    assert is_whole(study)


def play_tie(study: Study, steps: int) -> None:
    """Play a tie of y and z; x is worse."""
    rng = np.random.default_rng(1)
    for _ in range(0, steps, 100):
        chances = [(s.id, 0.2 if s.levels["image"] == "x" else 0.6) for s in study.ask(count=100)]
        study.tell_many([(id_, float(rng.random() < chance)) for id_, chance in chances])


def test_the_control_keeps_a_share_until_the_study_may_stop(create: Callable[..., Study]) -> None:
    study = create(sides={"image": ["x", "y", "z"]}, control={"image": "x"})
    play_tie(study, 600)
    levels = study.best().levels["image"]
    assert [level["living"] for level in levels] == [False, True, True]
    assert study.shares()["sides"]["image"]["x"] == pytest.approx(0.05)
    assert is_whole(study)
    # Without a rival the study may stop, and every visitor sees the leader.
    study = create(sides={"image": ["x", "y"]}, control={"image": "x"})
    play_tie(study, 600)
    assert study.best().stop
    assert study.shares()["sides"]["image"] == {"x": 0.0, "y": 1.0}


@pytest.mark.validate
def test_the_lift_over_a_control_that_is_refuted_narrows(create: Callable[..., Study]) -> None:
    study = create(sides={"image": ["x", "y", "z"]}, control={"image": "x"})
    widths: list[float] = []
    for _ in range(2):
        play_tie(study, 600 + 6000 * len(widths))
        lift = study.best().lift
        assert lift is not None
        assert lift["is_control"]
        widths.append(lift["high"] - lift["low"])
    assert not study.best().levels["image"][0]["living"]
    assert widths[1] < 0.5 * widths[0]


def test_a_floor_is_for_what_lives(create: Callable[..., Study]) -> None:
    study = create(floor=0.1, control=CONTROL)
    play(study, 200, batch=50)
    for _ in range(10):
        play(study, 200, batch=100)
        shares = study.shares()["sides"]
        living = {
            side: {label for label, lives in zip(labels, alive, strict=True) if lives}
            for (side, labels), alive in zip(HOME.items(), design(study).living, strict=True)
        }
        for side, own in shares.items():
            assert all(own[label] >= 0.1 for label in living[side])
            gone = {label: share for label, share in own.items() if label not in living[side]}
            assert all(
                share in (0, 0.05 * (label == CONTROL[side])) for label, share in gone.items()
            )
    assert living == {"headline": {"B"}, "image": {"y"}}
    with pytest.raises(ValueError, match=r"retire\.headline must be levels other than the control"):
        study.revise(retire={"headline": ["A"]})
    assert is_whole(study)


def test_only_matured_rewards_are_fitted(create: Callable[..., Study], time: list[float]) -> None:
    """Successes arrive immediately, failures when the window closes; averages would be biased."""
    study = create(reward_window=1000, on_expiry="default")
    rng = np.random.default_rng(1)
    for _ in range(40):
        given = study.ask(count=50)
        good = [each for each in given if rng.random() < mean(each.levels) / 4]
        study.tell_many([(each.id, 1.0) for each in good])
        time[0] += 50
    found = design(study)
    # The best arm's mean is 0.18; without waiting for failures, the fit would be nearly 1.
    fit = found.versions[found.number].fit
    assert 0.1 < fit[0][1] * fit[1][1] < 0.3
    early = found.versions[1].fit
    assert 0.02 < max(early[0]) * max(early[1]) < 0.4
    assert len(found.evidence.unripe) > 0
    assert is_whole(study)
    time[0] += 1001
    study.counts()  # notes the last failures, and a version begins
    assert len(found.evidence.unripe) == 0
    assert is_whole(study)


def test_history_is_for_the_fit_alone(create: Callable[..., Study]) -> None:
    study = create()
    with pytest.warns(UserWarning, match="isn't evidence"):
        study.import_history([("B", "y", 1.0)] * 70 + [("A", "x", 0.0)] * 70)
    assert design(study).number == 1
    assert study.shares()["sides"]["headline"]["B"] > 0.4
    assert design(study).verdict().log_e[0].tolist() == [0, 0, 0]
    assert study.best().counts.sum() == 140
    assert is_whole(study)


def test_asks_are_seeded(create: Callable[..., Study]) -> None:
    study = create(seed=5)
    shares = study.shares()["sides"]
    seq = known(study).seq
    given = study.ask(count=20)
    draws = np.random.default_rng(np.random.SeedSequence((5, seq))).random((2, 20))
    for k, each in enumerate(given):
        for side, row in zip(HOME, draws, strict=True):
            up_to = np.cumsum(list(shares[side].values()))
            assert each.levels[side] == HOME[side][int((row[k] >= up_to).sum())]


# Without assumptions about the grid


@pytest.mark.parametrize("min_lift", [0.0, 0.1])
def test_bets_against_arms_are_those_of_the_design(
    create: Callable[..., Study], min_lift: float
) -> None:
    study = create(min_lift=min_lift)
    waiting: list[Any] = []
    rng = np.random.default_rng(2)
    for _ in range(60):  # some rewards arrive late
        waiting += study.ask(count=20)
        rng.shuffle(waiting)
        told, waiting = waiting[:18], waiting[18:]
        study.tell_many([(each.id, float(rng.random() < mean(each.levels))) for each in told])
    live = design(study)
    counts = live.evidence.counts()
    assert counts.under is not None
    assert (counts.under > counts.version).sum() > 100
    plan = rank1.design.any_grid(live.design)
    wealth, before = rank1.design.start(plan), np.zeros(len(counts.arm), np.bool_)
    flat: dict[int, Any] = {}
    for number in sorted(live.versions):
        seen = rank1.design.totals(live.design, live.versions, counts.take(before))
        gained = (counts.pulls * counts.reward)[before]
        sums = np.bincount(counts.arm[before], gained, 6).astype(float)
        flat[number] = rank1.design.flattened(live.design, live.versions[number], seen, sums)
        now = counts.under == number
        wealth = rank1.design.fold(plan, wealth, flat, counts.take(now))
        before |= now
        if number == live.number // 2:
            middle = any_grid.AnyGrid(live)
    expected = rank1.design.verdict(plan, flat[live.number], wealth)
    found = any_grid.AnyGrid(live)
    for _ in range(2):
        said = found.verdict(live)
        assert said.stop == expected.stop
        assert said.leader == expected.leaders[0]
        np.testing.assert_allclose(middle.verdict(live).out, said.out)
    now = any_grid.AnyGrid(live)
    now.verdict(live)
    rows = live.evidence.rows()
    now._take(live, live.number, rows[rows["under"] == live.number])
    np.testing.assert_allclose(now._logs, wealth.logs, rtol=1e-9)
    assert wealth.logs.max() > 1


def test_bets_against_arms_go_on_where_they_were(create: Callable[..., Study]) -> None:
    study = create()
    play(study, 500)
    found = any_grid.AnyGrid(design(study))
    found.verdict(design(study))
    play(study, 700, seed=2)
    said, anew = found.verdict(design(study)), any_grid.AnyGrid(design(study))
    assert anew.verdict(design(study)).weakest == said.weakest
    np.testing.assert_allclose(found._logs, anew._logs, atol=1e-9)


# Guardrails


def test_what_harms_is_dropped(create: Callable[..., Study]) -> None:
    """B pays best, but visitors leave; the verdict says why it isn't shown any more."""
    study = create(
        control=CONTROL, guardrails={"left": {"worse_by": 0.05}, "slow": {"worse_by": 0}}
    )
    rng = np.random.default_rng(3)
    told = 0
    while (0, 1) not in design(study).gone and told < 1200:
        reports = []
        for each in study.ask(count=20):
            left = rng.random() < (0.4 if each.levels["headline"] == "B" else 0.1)
            reports.append((each.id, float(rng.random() < mean(each.levels)), {"left": left}))
        study.tell_many(reports)
        told += len(reports)
    gone = design(study).gone[0, 1]
    assert gone.why == "harms left"
    assert "B" not in study.shares()["sides"]["headline"]
    levels = {each["label"]: each for each in study.best().levels["headline"]}
    assert levels["B"]["why"] == "harms left"
    assert "Note: B was dropped, because it harms left." in str(study.best()).splitlines()
    assert levels["B"]["gone_at"] == {"seq": gone.seq, "at": gone.at}
    assert not levels["B"]["living"]
    play(study, 200)
    assert study.best().leader != ("B", "y")
    with pytest.raises(ValueError, match=r"guardrails must be among the study's \(left, slow\)"):
        study.tell(study.ask().id, 1.0, {"cost": 1.0})
    with pytest.raises(ValueError, match=r"guardrails\.left must be a number"):
        study.tell(study.ask().id, 1.0, {"left": 2.0})
    assert len(tags(study, Kind.GUARDRAIL)) == told
    assert is_whole(study)


@pytest.mark.parametrize("goal", ["find", "earn"])
def test_a_pending_unit_isnt_shown_a_retired_level(create: Callable[..., Study], goal: str) -> None:
    study = create(goal=goal)
    first = next(
        s for s in (study.ask(unit=f"u{k}") for k in range(40)) if s.levels["headline"] == "C"
    )
    assert study.ask(unit=first.unit).id == first.id
    study.revise(retire={"headline": ["C"]})
    second = study.ask(unit=first.unit)
    assert second.id != first.id
    assert second.levels["headline"] != "C"
    assert study.ask(unit=first.unit).id == second.id
    assert study.tell(first.id, 1.0).reward == 1.0
    assert study.verify().problems == []


def test_a_pending_unit_isnt_shown_what_harms(create: Callable[..., Study]) -> None:
    study = create(control=CONTROL, guardrails={"left": {"worse_by": 0.05}})
    first = next(
        s for s in (study.ask(unit=f"u{k}") for k in range(40)) if s.levels["headline"] == "B"
    )
    while "B" in study.shares()["sides"]["headline"]:
        given = study.ask(count=100)
        study.tell_many([(s.id, 1.0, {"left": float(s.levels["headline"] == "B")}) for s in given])
    assert study.ask(unit=first.unit).levels["headline"] != "B"


def test_what_does_not_harm_stays(create: Callable[..., Study]) -> None:
    study = create(control=CONTROL, guardrails={"left": {"worse_by": 0.05}})
    rng = np.random.default_rng(4)
    shares = study.shares()
    for begin in range(0, 800, 50):
        units = [f"u{k}" for k in range(begin, begin + 50)]
        study.record_many(
            [(u, 0, rank1.assign(shares, u), 0.0, {"left": rng.random() < 0.1}) for u in units]
        )
    assert design(study).evidence.counts(metric=1).pulls.sum() == 800
    assert not planning._harmed(design(study))
    assert not design(study).gone
    assert is_whole(study)


GUARDED: dict[str, Any] = {
    "control": CONTROL, "guardrails": {"left": {"worse_by": 0.1}, "slow": {"worse_by": 0.2}},
}  # fmt: skip


def reporting(study: Study, how: str) -> Callable[..., Any]:
    """Return a call that reports a reward and guardrails of an exposure, in each possible way."""
    levels = {"headline": "A", "image": "x"}
    study.shares()
    if how == "tell":
        id = study.ask().id
        return lambda *told: study.tell(id, *told)
    if how == "record":
        return lambda *told: study.record("ann", 0, levels, *told)
    if how == "ask, reward":
        study.ask(unit="ann")
    else:
        study.record("ann", 0, levels)
    if how == "record, record":
        return lambda *told: study.record("ann", 0, levels, *told)
    return lambda *told: study.reward("ann", *told)


@pytest.mark.parametrize(
    "how", ["tell", "record", "record, record", "record, reward", "ask, reward"]
)
def test_guardrails_of_a_duplicate_are_the_same_or_refused(
    create: Callable[..., Study], how: str
) -> None:
    study = create(**GUARDED)
    report = reporting(study, how)
    first = report(1.0, {"slow": 0.5, "left": 1.0})
    stored = study.last_event()
    for told in ({"slow": 0.5, "left": True}, {"left": 1}, {}, None):  # missing ones don't change
        assert report(1.0, told).reward == first.reward
    who = "suggestion '.*'" if how == "tell" else "unit 'ann'"
    with pytest.raises(
        rank1.ConflictError, match=f"{who} already has left = 1, got left = 0: guard"
    ):
        report(1.0, {"slow": 0.5, "left": 0.0})
    with pytest.raises(rank1.ConflictError, match=f"{who} already has the reward 1, got 0$"):
        report(0.0, {"left": 1.0})
    assert study.last_event() == stored
    assert len(tags(study, Kind.GUARDRAIL)) == 2
    # The values of the next report aren't used for this one.
    study.record("bob", 0, {"headline": "A", "image": "x"}, 0.0)
    study.record("cay", 0, {"headline": "A", "image": "x"}, 0.0, {"left": 0.0})
    with pytest.raises(rank1.ConflictError, match="'bob' already has a reward without left, got "):
        study.reward("bob", 0.0, {"left": 0.0})
    assert is_whole(study)


def test_guardrails_of_duplicates_in_a_batch(create: Callable[..., Study]) -> None:
    study = create(**GUARDED)
    levels, id = {"headline": "A", "image": "x"}, study.ask().id
    batch: list[Any] = [
        ("ann", 0, levels, 1.0, {"left": 1.0}), ("ann", 0, levels, 1.0, {"left": 1.0}),
        ("ann", 0, levels, 1.0, {"left": 0.0}), ("bob", 0, levels),
        ("bob", 0, levels, 0.0, {"slow": 1.0}), ("bob", 0, levels, 0.0, {"slow": 0.0}),
        ("cay", 0, levels, None, {"left": 1.0}),
    ]  # fmt: skip
    errors = [str(each) if isinstance(each, Exception) else "" for each in study.record_many(batch)]
    assert [text[:31] for text in errors] == [
        "", "", "unit 'ann' already has left = 1", "", "", "unit 'bob' already has slow = 1",
        "guardrails must be left out if ",
    ]  # fmt: skip
    assert len(tags(study, Kind.RECORDED)) == len(tags(study, Kind.GUARDRAIL)) == 2
    with pytest.raises(rank1.ConflictError, match="already has left = 1, got left = 0"):
        study.tell_many([(id, 1.0, {"left": 1.0}), (id, 1.0, {"left": 0.0})])
    assert study.counts()["reports"] == 2  # either all or none
    study.tell_many([(id, 1.0, {"left": 1.0}), (id, 1.0, {"left": 1.0})])
    assert len(tags(study, Kind.GUARDRAIL)) == 3


def test_a_retry_after_a_failure_has_its_guardrails(
    create: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The storage fails at a report, which is retried, and then sent once more."""
    study = create(**GUARDED)
    report = reporting(study, "record, reward")

    def fails(self: Any, rows: Any) -> None:
        raise rank1.StorageError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteTransaction, "insert", fails)
        with pytest.raises(rank1.StorageError, match="no room"):
            report(1.0, {"left": 1.0})
    assert tags(study, Kind.GUARDRAIL, Kind.REPORTED) == []
    told = [report(1.0, {"left": 1.0}) for _ in range(2)]
    assert told[0] == told[1]
    assert len(tags(study, Kind.GUARDRAIL)) == len(tags(study, Kind.REPORTED)) == 1


# Segments and forecasts


def test_nothing_is_said_of_segments_before_a_report(create: Callable[..., Study]) -> None:
    study = create(MAIL, given=["segment"])
    for _ in range(2):  # before the first version, and before the first reward
        found = study.personalise("channel", by="segment")
        assert not found.pays
        assert (found.common, found.leaders, found.segments, found.gain) == (None, {}, [], {})
        assert found.statement == "No answer about channel by segment: no results yet."
        given = study.ask(given={"segment": "18-24"})
    study.tell(given.id, 1.0)
    assert study.personalise("channel", by="segment").common == given.levels["channel"]


def test_it_pays_to_personalise(create: Callable[..., Study]) -> None:
    """True for a crossing grid, with the segments that support it; not for a rank-one grid."""
    for means, pays in (
        ({("18-24", "email"): 0.5, ("25-34", "push"): 0.5}, True),
        ({("18-24", "email"): 0.5, ("25-34", "email"): 0.3}, False),
    ):
        study = create(MAIL, given=["segment"])
        rng = np.random.default_rng(1)
        for _ in range(10):
            given = [e for name in MAIL["segment"] for e in study.ask(100, given={"segment": name})]
            chances = [means.get((e.levels["segment"], e.levels["channel"]), 0.1) for e in given]
            rewards = (rng.random(200) < chances).astype(float).tolist()
            study.tell_many(list(zip((e.id for e in given), rewards, strict=True)))
        found = study.personalise("channel", by="segment")
        assert found.pays == pays
        assert found.leaders["18-24"] == "email"
        assert found.leaders["25-34"] == ("push" if pays else "email")
        if pays:
            assert found.statement.startswith("It pays to choose channel by segment")
            assert found.gain["low"] < 0.67 < found.gain["high"]
            assert found.segments
        else:
            assert found.common == "email"
            assert found.statement.startswith("No evidence that it pays")
        json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(ValueError, match="side must be a side that is chosen, got 'segment'"):
        study.personalise("segment", by="channel")
    with pytest.raises(ValueError, match="by must be one of the sides, segment, channel, got 'x'"):
        study.personalise("channel", by="x")


def test_the_seed_and_the_sides_decide_what_units_see(tmp_path: Path) -> None:
    def salt(name: str, seed: int, *levels: str) -> str:
        place = tmp_path / "rank1.db"
        with Study.create(name, levels, ["x", "y"], "find", storage=place, seed=seed) as study:
            return str(study.shares()["salt"])

    same = salt("a", 1, "A", "B")
    assert salt("b", 1, "A", "B") == same
    assert len({same, salt("c", 2, "A", "B"), salt("d", 1, "A", "C")}) == 3
