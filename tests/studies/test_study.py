"""The guarantees of a study, on both storages."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1 import Study
from rank1.documents import Imported
from rank1.policies.base import has_counts
from rank1.studies.state import layout_of
from rank1.studies.storage.postgres import CLOCK, ENDS, PostgresReader, PostgresTransaction
from rank1.studies.storage.sqlite import SqliteReader, SqliteTransaction
from tests.studies.support import LIVE

ROWS, COLUMNS = ["18-24", "25-34", "35+"], ["email", "push"]
MEANS = np.outer([0.9, 0.5, 0.3], [0.8, 0.4])


class Clock:
    """The storage's clock, set by the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.time = 2e9  # after the server's time when it creates the study

    @property
    def time(self) -> float:
        return self._time

    @time.setter
    def time(self, time: float) -> None:
        self._time = time
        for cls in (SqliteReader, SqliteTransaction, PostgresReader, PostgresTransaction):
            self._patch.setattr(cls, "clock", lambda self: time)
        now = ENDS.replace(CLOCK, f"{time!r}::float8")
        self._patch.setattr("rank1.studies.storage.postgres.ENDS", now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def create(place: str) -> Iterator[Callable[..., Study]]:
    made: list[Study] = []

    def create(name: str = "spring", **options: Any) -> Study:
        given: dict[str, Any] = {
            "rows": ROWS,
            "columns": COLUMNS,
            "storage": place,
            "seed": 1,
        } | options
        made.append(Study.create(name, **given))
        return made[-1]

    yield create
    for study in made:
        study.close()


def reward(suggestion: rank1.Suggestion, rng: np.random.Generator) -> float:
    mean = MEANS[ROWS.index(str(suggestion.row)), COLUMNS.index(str(suggestion.column))]
    return float(rng.random() < mean)


def play(study: Study, steps: int, seed: int = 1) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        given = study.ask()
        study.tell(given.id, reward(given, rng))


def is_whole(study: Study) -> bool:
    """`verify` passes, and a process that has just opened the study knows the same."""
    found = study.verify()
    assert found.problems == []
    assert found.pending + found.reports + found.expired + found.cancelled == found.suggestions
    here, there = (
        each.look(lambda state, log: state)
        for each in (study, Study.open(study.name, study.access.storage))
    )
    return here.differences(there) == []


def test_ask_and_tell(create: Callable[..., Study]) -> None:
    study = create()
    given = study.ask()
    assert (given.row, given.column) == ("18-24", "email")
    told = study.tell(given.id, 1)
    assert (told.id, told.row, told.reward, told.late) == (given.id, "18-24", 1.0, False)
    assert study.tell(given.id, 1.0) == told
    with pytest.raises(rank1.ConflictError, match=r"already has the reward 1, got 0"):
        study.tell(given.id, 0)
    assert study.counts() == {
        "suggestions": 1, "reports": 1, "pending": 0, "expired": 0, "cancelled": 0,
    }  # fmt: skip
    assert is_whole(study)


def test_each_wrong_id_has_an_error_of_its_own(create: Callable[..., Study]) -> None:
    study, other = create(), create("other")
    given = study.ask()
    strange = other.ask()
    with pytest.raises(rank1.OtherStudyError, match=f"{strange.id!r} is an id of study 'other'"):
        study.tell(strange.id, 1)
    uid, seq, nonce = given.id.split("-")
    for text in ("nonsense", f"{uid}-1-{nonce}", f"{uid}-99-{nonce}", f"{uid}-{seq}-0000"):
        with pytest.raises(rank1.UnknownSuggestionError):
            study.tell(text, 1)
    with pytest.raises(TypeError, match="id must be the text that ask returned, got 5"):
        study.tell(5, 1)  # type: ignore[arg-type]
    study.cancel(given.id)
    study.cancel(given.id)
    with pytest.raises(rank1.CancelledError):
        study.tell(given.id, 1)
    done = study.ask()
    study.tell(done.id, 0)
    with pytest.raises(rank1.ConflictError, match="has a reward, so it can't be cancelled"):
        study.cancel(done.id)
    assert study.counts()["cancelled"] == 1
    assert is_whole(study)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -0.01, 1.01, None, "1"])
def test_a_reward_that_cannot_be_is_refused(create: Callable[..., Study], bad: Any) -> None:
    study = create()
    given = study.ask()
    with pytest.raises((ValueError, TypeError), match=r"reward must be a number in \[0, 1\], got"):
        study.tell(given.id, bad)
    assert study.counts()["reports"] == 0
    study.tell(given.id, True)


def test_the_same_key_gives_the_same_suggestions(create: Callable[..., Study]) -> None:
    study = create()
    given = study.ask(count=4, key="page 7")
    assert study.ask(count=4, key="page 7") == given
    assert len({each.id for each in given}) == 4
    one = study.ask(key="alone")
    assert study.ask(key="alone") == one
    with pytest.raises(rank1.ConflictError, match=r"was used for 4 suggestions, not 1"):
        study.ask(key="page 7")
    study.tell(given[0].id, 1)
    assert Study.open("spring", study.access.storage).ask(count=4, key="page 7") == given
    assert study.counts()["suggestions"] == 5


def test_a_unit_keeps_its_pair_while_the_pair_lives(create: Callable[..., Study]) -> None:
    study = create()
    play(study, 30)
    first = study.ask(unit="visitor 1")
    other = study.ask(unit="visitor 2")
    assert study.ask(unit="visitor 1") == first
    assert other.id != first.id
    study.tell(first.id, 1)
    again = study.ask(unit="visitor 1")
    assert (again.row, again.column) == (first.row, first.column)
    assert again.id != first.id
    study.tell(again.id, 0)
    study.revise(retire_rows=[str(first.row)])
    moved = study.ask(unit="visitor 1")
    assert moved.row != first.row
    with pytest.raises(ValueError, match="count must be 1 if a unit is given, got 2"):
        study.ask(count=2, unit="visitor 3")
    assert is_whole(study)


def test_all_or_none_of_many_reports_are_stored(create: Callable[..., Study]) -> None:
    study = create()
    given = study.ask(count=10)
    reports = [(each.id, 1.0) for each in given]
    with pytest.raises(rank1.ConflictError):
        study.tell_many([*reports, (given[0].id, 0.0)])
    assert study.counts()["reports"] == 0
    answers = study.tell_many([*reports, reports[0]])
    assert answers[-1] == answers[0]
    assert study.tell_many(dict(reports)) == answers[:-1]
    assert study.counts()["reports"] == 10
    assert is_whole(study)


@pytest.mark.parametrize("policy", LIVE)
def test_every_policy_hands_out_a_thousand_before_any_report(
    create: Callable[..., Study], policy: str
) -> None:
    study = create(policy=policy)
    given = study.ask(count=1000)
    rng = np.random.default_rng(1)
    rng.shuffle(given)
    study.tell_many([(each.id, reward(each, rng)) for each in given[:700]])
    for each in given[700:720]:
        study.cancel(each.id)
    more = study.ask(count=300)
    study.tell_many([(each.id, reward(each, rng)) for each in more])
    found = study.best()
    assert found.leader == ("18-24", "email")
    assert found.counts.sum() == 1000
    assert found.totals["pending"] == found.pending.sum() == 280
    assert is_whole(study)


@pytest.mark.parametrize("policy", LIVE)
@pytest.mark.parametrize("on_expiry", ["drop", "default", "wait"])
def test_expiry(create: Callable[..., Study], clock: Clock, policy: str, on_expiry: str) -> None:
    study = create(policy=policy, reward_window=60, on_expiry=on_expiry, default_reward=0.0)
    rng = np.random.default_rng(1)
    for _ in range(10):
        given = study.ask(count=20)
        assert all(each.expires_at == clock.time + 60 for each in given)
        clock.time += 10
        study.tell_many([(each.id, reward(each, rng)) for each in given[:10]])
        clock.time += 45
    totals = study.counts()
    assert totals["reports"] == 100
    assert totals["expired"] == 90
    assert totals["pending"] == 10
    clock.time += 6
    assert study.counts()["expired"] == 100
    late = study.tell(given[15].id, 1.0)
    assert late.late
    assert study.tell(given[15].id, 1.0) == late
    assert study.counts() == {
        "suggestions": 200, "reports": 101, "pending": 0, "expired": 99, "cancelled": 0,
    }  # fmt: skip
    counted = {"drop": 101, "default": 200, "wait": 101}[on_expiry]
    assert study.best().counts.sum() == counted
    if on_expiry == "default":
        with pytest.raises(rank1.ConflictError, match="the default was counted"):
            study.cancel(given[16].id)
    else:
        study.cancel(given[16].id)
        assert study.counts()["cancelled"] == 1
    play(study, 20)
    assert is_whole(study)


def test_evidence_does_not_come_sooner_for_a_success(
    create: Callable[..., Study], clock: Clock
) -> None:
    """Successes are reported immediately, failures never: each counts when its window closes."""
    study = create(reward_window=100, on_expiry="default")
    given = study.ask(count=10)
    study.tell_many([(each.id, 1.0) for each in given[:4]])
    assert study.best().counts.sum() == 0
    assert study.counts()["reports"] == 4
    clock.time += 99
    assert study.best().counts.sum() == 0
    clock.time += 2
    found = study.best()
    assert (float(found.counts.sum()), found.rate) == (10.0, 0.4)
    assert is_whole(study)


def test_nothing_is_lost_when_the_clock_jumps(create: Callable[..., Study], clock: Clock) -> None:
    study = create(reward_window=3600)
    given = study.ask(count=5)
    clock.time += 86_400
    assert study.counts()["expired"] == 5
    clock.time -= 2 * 86_400
    more = study.ask(count=5)
    clock.time += 86_400
    assert study.counts() == {
        "suggestions": 10, "reports": 0, "pending": 5, "expired": 5, "cancelled": 0,
    }  # fmt: skip
    study.tell_many([(each.id, 1.0) for each in given + more])
    clock.time += 3 * 86_400
    assert study.counts()["reports"] == 10
    assert study.best().counts.sum() == 10
    assert is_whole(study)


@pytest.mark.parametrize("policy", LIVE)
@pytest.mark.filterwarnings("ignore:.*starts over")
def test_rows_and_columns_come_and_go(create: Callable[..., Study], policy: str) -> None:
    study = create(policy=policy)
    play(study, 60)
    out = study.ask(count=10)
    before = study.best()
    assert study.revise(retire_rows=["35+"], add_columns=["sms", "post"]) == 1
    assert study.rows == ["18-24", "25-34"]
    assert study.columns == ["email", "push", "sms", "post"]
    after = study.best()
    np.testing.assert_array_equal(after.counts[:, :2], before.counts[:2])
    given = study.ask(count=100)
    assert {each.row for each in given} <= {"18-24", "25-34"}
    if policy != "linucb":  # it repeats its choice until a reward arrives
        assert {each.column for each in given} & {"sms", "post"}
    study.tell_many([(each.id, 0.0) for each in out + given])
    gone = sum(each.row == "35+" for each in out)
    assert study.best().counts.sum() == before.counts[:2].sum() + 110 - gone
    assert study.revise(add_rows=["35+"]) == 2
    assert study.best().counts.sum() == before.counts.sum() + 110
    fresh: Any = study.look(lambda state, log: state.state)
    if has_counts(fresh):  # the new state knows what was known about the arms
        total = {"successes": 0.0, "counts": 0.0, "reports": 0.0}
        total |= {key: float(a.sum()) for key, a in fresh._asdict().items() if key in total}
        failures = getattr(fresh, "failures", np.zeros(1)).sum()
        assert total["successes"] + failures + total["counts"] + total["reports"] == 170
    assert is_whole(study)


def test_a_revision_that_cannot_be_is_refused(create: Callable[..., Study]) -> None:
    study = create()
    for change, message in (
        ({"retire_rows": ["nobody"]}, "retire.row must be among"),
        ({"retire_rows": ROWS}, "retire.row must be fewer names: at least one level must remain"),
        ({"add_rows": ["18-24"]}, "add.row must be names that differ, got '18-24' twice"),
        ({"add_columns": ["x", "x"]}, "add_columns must be names that differ, got 'x' twice"),
        (
            {"add_columns": [str(k) for k in range(4096)]},
            "add.column must be at most 4,094 new names",
        ),
        ({"add_rows": [""]}, r"add_rows\[0\] must be text of 1 to 256 characters"),
    ):
        with pytest.raises(ValueError, match=message):
            study.revise(**change)  # type: ignore[arg-type]
    assert study.revision == 0
    assert study.revise() == 0


def test_a_study_can_be_closed(create: Callable[..., Study]) -> None:
    study = create()
    given = study.ask()
    study.retire()
    with pytest.raises(rank1.ConflictError, match=r"'spring' is retired, .*: ship its winner, or"):
        study.ask()
    study.tell(given.id, 1)
    with pytest.raises(rank1.ConflictError):
        study.retire()
    assert study.best().rate == 1
    assert is_whole(study)


def test_rewards_in_a_range_are_scaled(create: Callable[..., Study]) -> None:
    study = create(reward_range=(-1, 3), columns=["a"], rows=["b"], tolerance=0.4)
    for value in (3, -1, 1, 1):
        study.tell(study.ask().id, value)
    found = study.best()
    assert found.mean == found.rate == 1.0
    assert found.mean_lower[0, 0] >= -1
    assert found.mean_upper[0, 0] <= 3
    with pytest.raises(ValueError, match=r"in \[-1, 3\], got 4"):
        study.tell(study.ask().id, 4)


@pytest.mark.uncompiled
def test_best_agrees_with_the_rule(create: Callable[..., Study]) -> None:
    """Compare the picture with the verdict of the rule, at every look."""
    study = create(policy="uniform", rows=["a", "b"], columns=["c", "d"], confidence=0.9)
    assert study.best().leader is None
    rng, means, stops = np.random.default_rng(1), np.outer([0.95, 0.2], [0.9, 0.3]), []
    for _ in range(30):
        given = study.ask(count=20)
        study.tell_many(
            [
                (
                    e.id,
                    float(rng.random() < means["ab".index(str(e.row)), "cd".index(str(e.column))]),
                )
                for e in given
            ]
        )
        found = study.best()
        one_order = found.verdicts["one_order"]["stop"]
        assert one_order == (found.out.sum() == found.out.size - 1)
        assert found.reason.startswith("stop: a × c" if one_order else "keep going:")
        assert one_order or not found.stop
        assert found.any_grid_stop == (found.any_grid_out.sum() == found.out.size - 1)
        stops.append(found.stop)
    assert stops[-1]
    assert not stops[0]
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert document["leader"] == ["a", "c"]
    assert found.rate == pytest.approx(found.equal_split, abs=0.05)


def test_fit_sees_a_pair_that_does_not_fit(create: Callable[..., Study]) -> None:
    study = create(rows=["a", "b"], columns=["c", "d"])
    history = [("a", "c", 1.0)] * 60 + [("a", "c", 0.0)] * 40
    history += [("a", "d", 1.0)] * 30 + [("a", "d", 0.0)] * 70
    history += [("b", "c", 1.0)] * 30 + [("b", "c", 0.0)] * 70
    history += [("b", "d", 1.0)] * 75 + [("b", "d", 0.0)] * 25
    assert study.import_history(history).rewards == 400
    found = study.fit(B=99)
    assert found.p_value == 0.01
    assert "The grid isn't of rank one (p = 0.01)" in found.advice
    assert json.loads(json.dumps(found.to_dict()))["deviating"][0]["residual"] != 0
    for wordy in (found, dataclasses.replace(found, advice="long advice " * 33)):
        assert len(str(wordy).splitlines()) <= 10
    even = create("even", rows=["a", "b"], columns=["c", "d"])
    even.import_history([*history[:300], *[("b", "d", 1.0)] * 15, *[("b", "d", 0.0)] * 85])
    assert even.fit(B=99).p_value > 0.2  # type: ignore[operator]
    assert "Nothing is reported" in create("empty").fit().advice


@pytest.mark.parametrize("pulls", [4, 40])
def test_fit_names_the_arms_that_could_hide_a_second_peak(
    create: Callable[..., Study], pulls: int
) -> None:
    """Four pulls can't tell a mean of 0.15, which fits, from the leader's 0.6."""
    study = create(rows=["a", "b"], columns=["c", "d"])
    for arm, won, lost in (("ac", 120, 80), ("ad", 60, 140), ("bc", 60, 140)):
        study.import_history([(*arm, 1.0)] * won + [(*arm, 0.0)] * lost)
    won = math.ceil(0.15 * pulls)
    study.import_history([("b", "d", 1.0)] * won + [("b", "d", 0.0)] * (pulls - won))
    found = study.fit(B=19)
    assert found.leader == ("a", "c")
    assert found.power is not None
    if pulls == 4:
        assert found.power < 0.8
        assert found.hardly_tried == [("b", "d")]
        assert "1 of 4 arms have too few pulls" in found.advice
        assert f"above all at b × d (power {found.power:.0%})" in found.advice
        assert "Don't rely on rank one for these arms" in found.advice
        assert "you can use" not in found.advice
    else:
        assert found.power > 0.99
        assert found.hardly_tried == []
        assert "you can use methods that assume rank one" in found.advice


def test_rewards_of_a_file_are_not_guessed_from_its_first_lines(
    create: Callable[..., Study], tmp_path: Path
) -> None:
    study = create(rows=["a", "b"], columns=["c", "d"])
    for suffix, lines in {
        "csv": ["row,column,reward", *["a,c,1"] * 150, "a,c,0.5", "b,d,true"],
        "jsonl": [
            *['{"row": "a", "column": "c", "reward": 1}'] * 2,
            *['{"row": "a", "column": "c", "reward": 0.25}'],
        ],
    }.items():
        file = tmp_path / f"good.{suffix}"
        file.write_text("\n".join(lines))
        assert study.import_history(file).rewards == len(lines) - (suffix == "csv")
    for suffix, lines in {
        "csv": ["row,column,reward", "a,c,1", "b,d,oops"],
        "jsonl": [f'{{"row": "a", "column": "c", "reward": {each}}}' for each in ("1", '"oops"')],
    }.items():
        file = tmp_path / f"bad.{suffix}"
        file.write_text("\n".join(lines))
        number = len(lines)  # of lines in the file
        with pytest.raises(
            rank1.InputTypeError, match=rf"line {number} of '.*bad\.{suffix}': .* got 'oops'"
        ):
            study.import_history(file)
    with pytest.raises(rank1.InputTypeError, match="history must be a file or lines"):
        study.import_history(None)  # type: ignore[arg-type]
    with pytest.raises(rank1.InputTypeError, match="storage must be a file or an address"):
        Study.create("other", ["a"], ["b"], storage=None)  # type: ignore[arg-type]


def test_a_fit_of_one_pair_tests_nothing(create: Callable[..., Study]) -> None:
    study = create(rows=["a", "b"], columns=["c", "d"])
    study.import_history([("a", "c", 1.0), ("a", "c", 0.0)])
    found = study.fit(B=19)
    assert found.degrees_of_freedom == 0
    assert "Too few arms have reports to test anything" in found.advice


def test_a_key_is_for_one_request(create: Callable[..., Study]) -> None:
    study = create()
    asked = study.ask(key="asked", unit="alice")
    for unit in ("bob", None):
        with pytest.raises(rank1.ConflictError, match="'asked' was used for something else"):
            study.ask(key="asked", unit=unit)
    assert study.ask(key="asked", unit="alice") == asked
    one, other = [("18-24", "email", 1.0)] * 2, [("18-24", "email", 0.0)]
    assert study.import_history(one, key="known").rewards == 2
    assert study.import_history(one, key="known").rewards == 2
    for history, key in ((other, "known"), (one * 2, "known"), (one, "asked")):
        with pytest.raises(rank1.ConflictError, match="was used for something else"):
            study.import_history(history, key=key)
    assert study.best().counts.sum() == 2
    assert is_whole(study)


def test_history_comes_in_once(create: Callable[..., Study], tmp_path: Path) -> None:
    study = create()
    play(study, 20)
    lines = [("18-24", "email", 1.0), ("18-24", "email", 0.0), ("35+", "push", 1.0)]
    csv = tmp_path / "known.csv"
    csv.write_text("row,column,reward\n" + "".join(f"{a},{b},{c}\n" for a, b, c in lines))
    assert study.import_history(csv) == Imported(3)
    assert study.import_history(csv) == Imported(3, already_imported=True)
    assert study.best().counts.sum() == 23
    jsonl = tmp_path / "known.jsonl"
    dicts = [dict(zip(("row", "column", "reward"), line, strict=True)) for line in lines]
    jsonl.write_text("".join(json.dumps(each) + "\n" for each in dicts))
    assert study.import_history(jsonl, key="another").rewards == 3
    assert study.best().counts.sum() == 26
    import polars as pl

    parquet = tmp_path / "known.parquet"
    pl.DataFrame(lines, schema=["row", "column", "reward"], orient="row").write_parquet(parquet)
    assert study.import_history(parquet, key="third").rewards == 3
    with pytest.raises(ValueError, match="line 1 of the history: row must be one of the study's"):
        study.import_history([("x", "push", 1.0)])
    with pytest.raises(ValueError, match="line 2 of the history: reward must be a number"):
        study.import_history([*lines[:1], ("35+", "push", 2.0)])
    (tmp_path / "bad.csv").write_text("row,column\na,b\n")
    with pytest.raises(OSError, match="must have the columns row, column, reward; missing: reward"):
        study.import_history(tmp_path / "bad.csv")
    assert is_whole(study)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_export(create: Callable[..., Study], tmp_path: Path, clock: Clock, ending: str) -> None:
    study = create(policy="uniform", reward_window=60)
    told, gone, late, out = study.ask(count=4)
    study.tell(told.id, 0.25)
    study.cancel(gone.id)
    clock.time += 61
    new = study.ask(unit="visitor")
    path = tmp_path / f"log.{ending}"
    assert study.export(path) == 5
    import polars as pl

    read = pl.read_ndjson if ending == "jsonl" else pl.read_parquet
    lines = {line["id"]: line for line in read(path).to_dicts()}
    assert [lines[e.id]["state"] for e in (told, gone, late, out, new)] == [
        "reported", "cancelled", "expired", "expired", "pending",
    ]  # fmt: skip
    first = lines[told.id]
    assert (first["row"], first["column"], first["reward"]) == (told.row, told.column, 0.25)
    assert first["told_at"] >= first["asked_at"]
    assert first["propensity"] == pytest.approx(1 / 6)
    assert lines[new.id]["unit"] == "visitor"
    assert lines[out.id]["reward"] is None


@pytest.mark.uncompiled
def test_replay_under_another_policy(create: Callable[..., Study]) -> None:
    study = create(policy="uniform")
    with pytest.raises(ValueError, match="nothing to replay"):
        study.replay("ucb1")
    given = study.ask(count=3000)
    rng = np.random.default_rng(1)
    study.tell_many([(each.id, reward(each, rng)) for each in given])
    found = study.replay("kl_ucb:c=0")
    assert found.best == found.exhausted == ("18-24", "email")
    assert found.rate > found.logged_rate + 0.2
    assert 400 < found.steps < 1500
    assert found.policy == "kl_ucb:c=0"
    json.dumps(found.to_dict())


def test_a_snapshot_is_kept_and_may_be_lost(create: Callable[..., Study], monkeypatch: Any) -> None:
    monkeypatch.setattr("rank1.studies.unit_of_work.SNAPSHOT_EVERY", 50)
    study = create(policy="uts")
    play(study, 60)
    storage, row = study.access.storage, study.access.study
    with storage.reading() as log:
        kept = log.snapshot(row.id, layout_of(study.spec))
    assert kept is not None
    assert kept.seq > 60
    assert is_whole(study)
    storage.put_snapshot(row.id, kept._replace(seq=kept.seq + 10, blob=b"garbage"))
    assert study.verify().problems[0].startswith("the snapshot can't be read")
    again = Study.open("spring", storage)
    assert again.counts() == study.counts()


def test_forgetting_follows_a_grid_that_moves(create: Callable[..., Study]) -> None:
    study = create(policy="uts", forgetting=40, rows=["a", "b"], columns=["c"])
    for winner in ("a", "b"):
        for _ in range(80):
            given = study.ask()
            study.tell(given.id, float(given.row == winner))
        assert study.best().recommended == (winner, "c")
    assert study.best().counts.sum() < 100
    assert study.best().reason.startswith("no stopping rule applies")
    assert is_whole(study)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": []}, "rows must be 1 to 4,096 names, got 0"),
        ({"rows": [str(k) for k in range(4097)]}, "rows must be 1 to 4,096 names, got 4,097"),
        (
            {"rows": ["a" * 10_000_000]},
            r"rows\[0\] must be text of 1 to 256 characters, got 10,000,000 characters",
        ),
        ({"rows": ["a", "a"]}, "rows must be names that differ, got 'a' twice"),
        ({"rows": "abc"}, "rows must be a list of names, got 'abc'"),
        ({"columns": [1, 2]}, r"columns\[0\] must be text, got 1"),
        ({"goal": "win"}, "goal must be"),
        ({"policy": "ucb2"}, "policy must be"),
        ({"policy": "oracle"}, "truth must be known for oracle"),
        ({"policy": "glm_ucb"}, "c_mu must be given for glm_ucb"),
        ({"horizon": 5}, r"horizon must be at least 6, got 5: uts tries each of the 6 arms first"),
        ({"on_expiry": "default"}, "reward_window must be given with on_expiry='default'"),
        ({"reward_window": 0}, "reward_window must be a number above 0"),
        ({"reward_range": (1, 0)}, r"reward_range must be \(low, high\) with low < high"),
        ({"default_reward": 2}, "default_reward must be"),
        ({"confidence": 1}, "confidence must be a number above 0 and below 1, got 1"),
        ({"tolerance": -1}, "tolerance must be"),
        ({"forgetting": 0}, "forgetting must be"),
        ({"forgetting": 100, "policy": "rank1elim"}, "forgetting must be None for rank1elim"),
        ({"seed": -1}, "seed must be"),
        ({"name": ""}, "name must be text of 1 to 256 characters"),
    ],
)
def test_what_cannot_work_is_refused(
    create: Callable[..., Study], options: Any, message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        create(**options)


@pytest.mark.uncompiled
def test_large_grids_are_for_policies_of_lines(create: Callable[..., Study]) -> None:
    names = [f"line {k}" for k in range(4096)]
    with pytest.raises(ValueError, match=r"thompson stores .*got 16,777,216"):
        create(policy="thompson", rows=names, columns=names)
    study = create(policy="rank1elim", rows=names, columns=names)
    given = study.ask(count=100)
    study.tell_many([(each.id, 1.0) for each in given])
    assert len({each.row for each in given}) == 100
    assert study.counts()["reports"] == 100


def test_a_name_is_taken_once_and_found_again(create: Callable[..., Study], place: str) -> None:
    study = create("naïve 🙂")
    with pytest.raises(rank1.StudyExistsError):
        create("naïve 🙂")
    with pytest.raises(rank1.UnknownStudyError, match="there are: 'naïve 🙂'"):
        Study.open("spring", place)
    with Study.open("naïve 🙂", place) as again:
        assert again.rows == ROWS
        assert again.spec == study.spec


def test_goals_have_their_policies() -> None:
    from rank1.policies import DEFAULT_POLICY

    assert DEFAULT_POLICY == {"earn": "uts", "find": "top_two"}
