"""Every field of `best()`, for rewards in [1, 5], against plain counts of the reports."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rank1 import Study, assign, stopping
from rank1.assignment import held_out
from rank1.fit.pooled import mean_of_all
from tests.studies.test_study import create as create

pytestmark = pytest.mark.usefixtures("uncompiled")

#: How often each pair had each reward; b × y was rarely tried.
TOLD = {
    ("a", "x"): {5: 400, 1: 300},
    ("a", "y"): {5: 340, 3: 20, 1: 340},
    ("b", "x"): {4: 40, 2: 40, 1: 560},
    ("b", "y"): {5: 3, 1: 3},
}
#: Fields with their own tests: texts, and the summary of the tables.
WORDS = (
    "statement", "next_step", "assumes", "lift", "doubt", "verdicts", "levels", "warnings", "arms",
    "out_arms", "interval",
)  # fmt: skip
GO_ON = "keep going: {}: the evidence against that is {} to 1, and {} to 1 is required"
STOP = (
    "stop: a × x is within the tolerance of 0.8 of the best at confidence 90%; the closest is a × y"
)
#: By tolerance, and whether row b is retired: the verdict under rank one, and on any grid.
CASES = {
    (0.0, False): (
        GO_ON.format("a × y may still be better than a × x", "0.03", "30"),
        GO_ON.format("b × y may still be better than a × x", "0.01", "30"),
    ),
    (0.8, False): (
        STOP,
        GO_ON.format("b × y may still be 0.8 better than a × x", "0.03", "30"),
    ),
    (0.8, True): (
        STOP,
        STOP,
    ),
}


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "rank1.db")


def assert_best(found: Any, **expected: Any) -> None:
    """Compare all fields except those with their own tests."""
    for field in dataclasses.fields(found):
        if field.name in WORDS:
            continue
        value: Any = getattr(found, field.name)
        right: Any = expected.get(field.name)
        if isinstance(value, dict):
            assert list(value) == list(right), field.name
        if isinstance(value, np.ndarray | float):
            np.testing.assert_allclose(value, right, rtol=1e-12, err_msg=field.name)
        else:
            np.testing.assert_equal(value, right, err_msg=field.name)


@pytest.mark.parametrize(("tolerance", "revised"), CASES)
def test_every_field_of_best(create: Callable[..., Study], tolerance: float, revised: bool) -> None:
    """Means, intervals, costs and the tolerance are in the units of the rewards.

    Rewards whose window is still open are known but aren't evidence yet, so the policy recommends
    another pair than the leader.
    """
    study = create(
        rows=["a", "b"], columns=["x", "y"], policy="uts", reward_range=(1, 5), confidence=0.9,
        tolerance=tolerance, reward_window=60, on_expiry="default",
    )  # fmt: skip
    history = [(*pair, r) for pair, some in TOLD.items() for r in some for _ in range(some[r])]
    study.import_history(history)
    given = study.ask(count=400)
    study.tell_many([(each.id, 1.0) for each in given[:380]])
    study.cancel(given[380].id)
    sides = {"row": ["a", "b"], "column": ["x", "y"]}
    if revised:
        study.revise(retire_rows=["b"])
        sides["row"] = ["a"]

    def table(value: Callable[[str, str], float]) -> Any:
        return np.array([[value(row, column) for column in "xy"] for row in sides["row"]], float)

    def pulls(some: list[Any]) -> Any:
        return table(lambda row, column: sum((e.row, e.column) == (row, column) for e in some))

    counts = table(lambda *pair: sum(TOLD[pair].values()))
    won = table(lambda *pair: sum(n * (r - 1) / 4 for r, n in TOLD[pair].items()))
    lost, level = counts - won, (0.9, tolerance / 4)
    known = won / (counts + pulls(given[:380]))
    likely = np.unravel_index(known.argmax(), known.shape)
    beside, any_beside = (
        stopping.relative_intervals(won, lost, *level, rank_one=one) for one in (True, False)
    )
    lower, upper = stopping.mean_intervals(won, lost, 0.9)
    reason, any_reason = CASES[tolerance, revised]
    assert_best(
        study.best(),
        sides=sides,
        leader=("a", "x"),
        mean=(400 * 5 + 300) / 700,
        counts=counts,
        means=1 + 4 * won / counts,
        mean_lower=1 + 4 * lower,
        mean_upper=1 + 4 * upper,
        lower=1 + 4 * beside.lower,
        upper=1 + 4 * beside.upper,
        mark=(400 * 5 + 300) / 700 + tolerance,
        out=beside.out,
        any_grid_upper=1 + 4 * any_beside.upper,
        any_grid_out=any_beside.out,
        effects=dict(zip(sides, stopping.effects(won, lost, 0.9).sides, strict=True)),
        rate=1 + 4 * won.sum() / counts.sum(),
        equal_split=1 + 4 * mean_of_all(won, lost),
        # b × y was tried too rarely to rely on one order alone
        stop=reason.startswith("stop") and any_reason.startswith("stop"),
        reason=reason,
        any_grid_stop=any_reason.startswith("stop"),
        any_grid_reason=any_reason,
        confidence=0.9,
        tolerance=tolerance,
        recommended=(sides["row"][likely[0]], sides["column"][likely[1]]),
        totals={
            "suggestions": 400, "reports": 380, "pending": 19, "expired": 0, "cancelled": 1
        },
        pending=pulls(given[381:]),
    )  # fmt: skip
    assert likely != (0, 0)


def test_a_study_that_forgets_never_says_stop(create: Callable[..., Study]) -> None:
    """Half of the reports are forgotten after 40 reports, in steps of 40/16 of them, rounded.

    From the counts alone, the rule would stop.
    """
    study = create(
        rows=["a", "b"], columns=["x"], policy="uniform", reward_range=(1, 5), forgetting=40
    )
    counts, sums = np.zeros((2, 1)), np.zeros((2, 1))
    for number in range(1, 81):
        shown = study.ask()
        row = "ab".index(str(shown.row))
        study.tell(shown.id, 5 if row == 0 else 1)
        counts[row] += 1
        sums[row] += row == 0
        if number % 2 == 0:
            counts *= 0.5 ** (2 / 40)
            sums *= 0.5 ** (2 / 40)
    found = study.best()
    np.testing.assert_allclose(found.counts, counts, rtol=1e-9)
    np.testing.assert_allclose(found.means, 1 + 4 * sums / counts, rtol=1e-9)
    assert found.recommended == found.leader == ("a", "x")
    for rank_one in (True, False):
        assert stopping.verdict(sums, counts - sums, rank_one=rank_one).stop
    assert (found.stop, found.any_grid_stop) == (False, False)
    reason = "no stopping rule applies, because the study forgets old rewards; a × x leads"
    assert found.reason == found.any_grid_reason == reason


def test_it_prints_as_a_few_lines(tmp_path: Path) -> None:
    with Study.create("s", ["A", "B"], ["x", "y"], storage=tmp_path / "rank1.db") as study:
        before = study.best()
        study.tell(study.ask().id, 1.0)
        found = study.best()
    lines = str(found).splitlines()
    sure = "Confidence: 95%, however often you look."
    assert lines[:3] == [found.statement, sure, found.next_step]
    assert [line.removeprefix("Assumes: ") for line in lines[3:]] == found.assumes
    assert str(before).splitlines()[:2] == [before.statement, before.next_step]


@pytest.mark.parametrize("late", [0, 5])
def test_failures_that_come_later_than_successes_are_noticed(
    create: Callable[..., Study], late: int
) -> None:
    study = create(rows=["a", "b"], columns=["x", "y"], policy="top_two", seed=1)
    waiting: list[Any] = []
    for turn in range(30):
        for k, each in enumerate(study.ask(count=20)):
            reward = float(k % 10 < (9 if each.levels == {"row": "a", "column": "x"} else 2))
            waiting.append((turn + late * (reward == 0), (each.id, reward)))
        study.tell_many([told for due, told in waiting if due <= turn])
        waiting = [one for one in waiting if one[0] > turn]
    found = study.best()
    assert found.stop == (late == 0)
    assert found.verdicts["one_order"]["stop"] == found.stop
    if late:
        why = "delays depend on the reward"
        assert found.statement.endswith(f"no stopping rule applies, because {why}.")
        assert found.reason == f"no stopping rule applies, because {why}; a × x leads"
        assert found.warnings[0].startswith("Low rewards come 97 exposures later than high ones")
    else:
        assert found.warnings == []


@pytest.mark.parametrize(("goal", "high"), [("find", 60.0), ("earn", 1.0)])
@pytest.mark.parametrize("waits", [0, 200])
def test_equal_delays_are_no_warning(tmp_path: Path, goal: str, high: float, waits: int) -> None:
    """Rewards grow while the study learns, and so does the number of events between exposures."""
    study = Study.create(
        "x", sides={"image": ["a", "b"]}, storage=tmp_path / "r.db", seed=1, goal=goal,
        reward_range=(0, high),
    )  # fmt: skip
    rng = np.random.default_rng(1)
    waiting: list[tuple[str, float]] = []
    for _ in range(40):
        for asked in study.ask(count=50):
            mean = 0.8 if asked.levels["image"] == "a" else 0.2
            x = mean + rng.uniform(-0.1, 0.1) if goal == "find" else float(rng.random() < mean)
            waiting.append((asked.id, high * x))
        due = max(0, len(waiting) - waits)
        study.tell_many(waiting[:due])
        waiting = waiting[due:]
    found = study.best()
    assert found.warnings == []
    assert found.stop
    delays = study.look(lambda state, log: state.book.delays)
    assert delays[:, 1].sum() / delays[:, 0].sum() == pytest.approx(waits + 24.5, abs=0.01)


WITH_A_CONTROL = pytest.param({"control": {"row": "a", "column": "x"}}, marks=pytest.mark.validate)


@pytest.fixture(scope="module")
def file_of_two_peaks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], Path]:
    """Make a file once for each set of options."""
    made: dict[str, Path] = {}

    def file(given: dict[str, Any]) -> Path:
        if repr(given) not in made:
            made[repr(given)] = place = tmp_path_factory.mktemp("two") / "rank1.db"
            play_two_peaks(place, given)
        return made[repr(given)]

    return file


def play_two_peaks(place: Path, given: dict[str, Any]) -> None:
    means = np.array([[0.5, 0.1], [0.1, 0.52]])
    sides, rng = {"row": ["a", "b"], "column": ["x", "y"]}, np.random.default_rng(1)
    with Study.create("two", sides=sides, goal="find", seed=1, storage=place, **given) as study:
        for batch in range(10):
            shares, records = study.shares(), []
            for k in range(2_000):
                levels = assign(shares, f"{batch}-{k}")
                at = tuple(sides[side].index(label) for side, label in levels.items())
                won = float(rng.random() < means[at])
                records.append((f"{batch}-{k}", shares["version"], levels, won))
            study.record_many(records)


@pytest.fixture(params=[{}, WITH_A_CONTROL])
def two_peaks(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    file_of_two_peaks: Callable[[dict[str, Any]], Path],
) -> Iterator[Study]:
    """Yield a study of a grid on which the product of the sides' ratios is a lift of 8% to 24%."""
    place = shutil.copy(file_of_two_peaks(request.param), tmp_path)
    with Study.open("two", place) as study:
        yield study


def lift_of(study: Study) -> dict[str, Any]:
    found = study.best()
    assert found.leader == ("b", "y")
    assert found.lift is not None
    return found.lift


def test_the_lift_on_a_grid_of_two_peaks_is_that_of_the_two_arms(two_peaks: Study) -> None:
    lift = lift_of(two_peaks)
    assert lift["over"] == ["a", "x"]  # otherwise it would be over b × x
    assert lift["estimate"] == pytest.approx(0.52 / 0.5 - 1, abs=0.1)
    assert lift["low"] < 0.52 / 0.5 - 1 < lift["high"] < 0.4


def test_the_interval_of_two_selected_arms_is_one_of_four(
    two_peaks: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two were selected by their rewards, so their intervals hold together with the others'."""
    before, real = lift_of(two_peaks), stopping.mean_intervals

    def of_four(won: Any, lost: Any, confidence: float) -> Any:
        if np.shape(won) != (2,):  # other tables
            return real(won, lost, confidence)
        return [ends[:2] for ends in real([*won, 1, 1], [*lost, 1, 1], 0.95)]

    monkeypatch.setattr(stopping, "mean_intervals", of_four)
    after = lift_of(two_peaks)
    for end in ("low", "high"):
        assert before[end] == pytest.approx(after[end])


def test_imported_rewards_are_not_in_the_interval_of_two_arms(two_peaks: Study) -> None:
    before = lift_of(two_peaks)
    with pytest.warns(UserWarning, match="isn't evidence"):
        two_peaks.import_history([("a", "x", float(k % 2)) for k in range(10_000)])
    after = lift_of(two_peaks)
    assert [after["low"], after["high"]] == [before["low"], before["high"]]


@pytest.mark.parametrize("control", [{}, WITH_A_CONTROL])
def test_rising_means_contradict_no_products(tmp_path: Path, control: dict[str, Any]) -> None:
    """Later, when all means are higher, the leader is shown more often than the other arms."""
    sides, rng = {"row": ["a", "b"], "column": ["x", "y"]}, np.random.default_rng(1)
    factors, place = {"a": 0.9, "b": 1.0, "x": 0.8, "y": 1.0}, tmp_path / "rank1.db"
    with Study.create("up", sides=sides, goal="find", seed=1, storage=place, **control) as study:
        for batch in range(20):
            shares, records = study.shares(), []
            for k in range(2_000):
                levels = assign(shares, f"{batch}-{k}")
                mean = (0.1 + 0.03 * batch) * factors[levels["row"]] * factors[levels["column"]]
                won = float(rng.random() < mean)
                records.append((f"{batch}-{k}", shares["version"], levels, won))
            study.record_many(records)
        lift = lift_of(study)
    truth = 1 / 0.72 if control else 1 / 0.9
    assert lift["low"] < truth - 1 < lift["high"]


def test_a_retired_level_is_no_runner_up(two_peaks: Study) -> None:
    if not lift_of(two_peaks)["is_control"]:
        two_peaks.revise(retire={"row": ["a"]})
        assert lift_of(two_peaks)["over"] == ["b", "x"]


@pytest.mark.parametrize("goal", ["earn", "find"])
def test_without_tables_the_summary_is_the_same(tmp_path: Path, goal: str) -> None:
    study = Study.create(
        "x", rows=["a", "b", "c"], columns=["d", "e"], storage=tmp_path / "r.db", seed=1, goal=goal
    )
    for k, asked in enumerate(study.ask(40)):
        if k % 5:
            study.tell(asked.id, float(k % 3 == 0))
    study.revise(retire={"row": ["b"]})
    whole, short = study.best(), study.best(tables=False)
    assert whole.counts.shape == whole.pending.shape == (2, 2)
    assert whole.pending.sum() > 0
    for field in dataclasses.fields(whole):
        here, there = getattr(whole, field.name), getattr(short, field.name)
        if isinstance(here, np.ndarray):
            assert there.size == 0
        else:
            assert repr(there) == repr(here), field.name
    rewards = np.where(whole.counts > 0, whole.counts * whole.means, 0)
    for axis, levels in enumerate(whole.levels.values()):
        living = [level for level in levels if level["why"] != "retired"]
        counts = whole.counts.sum(axis=1 - axis)
        assert [level["reports"] for level in living] == counts.tolist()
        np.testing.assert_allclose(
            [level["mean"] for level in living], rewards.sum(axis=1 - axis) / counts
        )
        shown = counts + whole.pending.sum(axis=1 - axis)
        assert [level["shown"] for level in living] == shown.tolist()
    first = whole.arms[0]
    names = whole.sides.values()
    at = tuple(side.index(label) for side, label in zip(names, first["levels"], strict=True))
    assert first["mean"] == pytest.approx(np.nanmax(whole.means)) == whole.means[at]
    assert first["interval"] == pytest.approx([whole.mean_lower[at], whole.mean_upper[at]])
    assert whole.out_arms == whole.out.sum()


#: Fields of a find study's `best()` in units of the reward, and those that don't depend on them.
IN_REWARDS = (
    "mean", "means", "mean_lower", "mean_upper", "lower", "upper", "mark", "any_grid_upper", "rate",
    "equal_split", "interval",
)  # fmt: skip
THE_SAME = (
    "sides", "leader", "counts", "out", "any_grid_out", "effects", "stop", "reason",
    "any_grid_stop", "any_grid_reason", "confidence", "tolerance", "recommended", "totals",
    "pending", "next_step", "verdicts", "out_arms", "version", "doubt",
)  # fmt: skip
#: How likely the rewards 0, 0.5 and 1 are, by arm.
FLAT, RISING = (0.6, 0.2, 0.2), (0.3, 0.2, 0.5)
LATER = ({"headline": "B", "image": "x"}, {"headline": "B", "image": "y"})
#: Fields with parts of both kinds, and texts about the range.
MIXED = ("statement", "lift", "levels", "arms", "holdout", "warnings", "assumes")


def test_every_field_of_best_of_a_study_that_draws(tmp_path: Path) -> None:
    """With rewards in [1, 5], every field is that of the same study with rewards in [0, 4]."""
    sides = {"headline": ["A", "B"], "image": ["x", "y"]}
    found, counted = [], []
    for low in (0.0, 1.0):
        study = Study.create(
            f"from {low:g}", sides=sides, storage=tmp_path / "rank1.db", goal="find", seed=1,
            control={"headline": "A", "image": "x"}, holdout=0.3, reward_range=(low, low + 4),
            guardrails={"left": {"worse_by": 0.1}}, min_lift=0.05,
        )  # fmt: skip
        rng = np.random.default_rng(1)
        told: dict[tuple[str, ...], list[float]] = {}
        held: list[float] = []
        for turn in range(20):
            shares, records = study.shares(), []
            for unit in (f"{turn} {k}" for k in range(100)):
                levels = assign(shares, unit)
                x = float(rng.choice([0.0, 0.5, 1.0], p=RISING if levels in LATER else FLAT))
                records.append((unit, shares["version"], levels, low + 4 * x, {"left": 0.0}))
                is_held = held_out(shares, unit)
                (held if is_held else told.setdefault(tuple(levels.values()), [])).append(x)
            study.record_many(records)
        found.append(study.best())
        counted.append((told, held))
        study.close()
    first: Any
    other: Any
    first, other = found
    assert counted[0] == counted[1]
    names = {field.name for field in dataclasses.fields(first)}
    assert names == {*IN_REWARDS, *THE_SAME, *MIXED}
    for name in IN_REWARDS:
        here, there = getattr(first, name), getattr(other, name)
        np.testing.assert_allclose(there, 1 + np.array(here), rtol=1e-9, err_msg=name)
    for name in THE_SAME:
        np.testing.assert_equal(getattr(other, name), getattr(first, name), err_msg=name)
    told, held = counted[0]
    for arm, rewards in told.items():
        at = tuple(sides[side].index(label) for side, label in zip(sides, arm, strict=True))
        assert other.counts[at] == len(rewards)
        assert other.means[at] == pytest.approx(1 + 4 * np.mean(rewards))
    everything = np.concatenate(list(told.values()))
    assert other.rate == pytest.approx(1 + 4 * everything.mean())
    holdout: Any = other.holdout
    assert holdout["units"] == len(held)
    assert holdout["rate"] == pytest.approx(1 + 4 * np.mean(held))
    assert holdout["rest_rate"] == pytest.approx(other.rate)
    earned = len(everything) * (holdout["rest_rate"] - holdout["rate"])
    assert holdout["earned"] == pytest.approx(earned)
    for end in ("low", "high"):
        assert holdout[end] == pytest.approx(first.holdout[end])
    above = {name: 1 + first.lift[name] for name in ("above", "mean", "over_mean")}
    means = f"with {above['mean']:.4g} against {above['over_mean']:.4g} on average"
    said = first.statement.replace(" over A", " in reward above 1 over A")
    assert other.statement == said.replace("control.", f"control, {means}.")
    lift, expected = dict(other.lift), {**first.lift, **above}
    assert lift.pop("over") == expected.pop("over") == ["A", "x"]
    assert lift == pytest.approx(expected)
    for place, (side, levels) in enumerate(other.levels.items()):
        for here, there in zip(first.levels[side], levels, strict=True):
            values = np.concatenate([v for k, v in told.items() if k[place] == there["label"]])
            assert there["mean"] == pytest.approx(1 + 4 * values.mean())
            assert there["reports"] == len(values)
            assert {**there, "mean": 0, "gone_at": 0} == {**here, "mean": 0, "gone_at": 0}
    for here, there in zip(first.arms, other.arms, strict=True):
        assert there["mean"] == pytest.approx(1 + here["mean"])
        assert there["interval"] == pytest.approx([1 + end for end in here["interval"]])
        assert {**there, "mean": 0, "interval": 0} == {**here, "mean": 0, "interval": 0}
    assert first.warnings == other.warnings
    pairs = zip(first.assumes, other.assumes, strict=True)
    assert [there for here, there in pairs if here != there] == [
        "Lifts of arms: means above 1 are products of the levels' factors, unless "
        "rewards contradict that."
    ]
