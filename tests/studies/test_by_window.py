"""Find studies whose rewards aren't 0 or 1 bet on a reward when its window closes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1 import Study
from rank1.documents import Best
from rank1.studies.storage.sqlite import SqliteReader

pytestmark = pytest.mark.usefixtures("uncompiled")


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [2e9]
    monkeypatch.setattr(SqliteReader, "clock", lambda self: time[0])
    return time


@pytest.fixture
def create(tmp_path: Path, now: list[float]) -> Callable[..., Study]:
    def made(**options: Any) -> Study:
        told: dict[str, Any] = {
            "sides": {"image": ["x", "y"]}, "reward_range": (0, 100), "reward_window": 60,
            "on_expiry": "default",
        }  # fmt: skip
        told |= options
        return Study.create("s", goal="find", seed=1, storage=tmp_path / "rank1.db", **told)

    return made


def tell(study: Study, count: int, baskets: dict[str, float]) -> None:
    """Ask, and report at once what each level earns; None isn't reported."""
    some = study.ask(count=count)
    study.tell_many(
        [(s.id, baskets[s.levels["image"]]) for s in some if baskets[s.levels["image"]]]
    )


def evidence(study: Study) -> float:
    return float(study.best().counts.sum())


@pytest.mark.parametrize("on_expiry", ["drop", "default", "wait"])
def test_a_reward_counts_when_its_window_has_closed(
    create: Callable[..., Study], now: list[float], on_expiry: str
) -> None:
    with create(on_expiry=on_expiry) as study:
        tell(study, 1000, {"x": 50.0, "y": 100.0})
        assert evidence(study) == 0
        now[0] += 59
        study.ask()
        assert evidence(study) == 0
        now[0] += 1
        # One look writes the versions that are due, each after at most a tenth more evidence.
        found = study.best()
        assert found.counts.sum() == 1000
        assert found.version is not None
        assert found.version > 5
        assert found.leader == ("y",)
        assert found.stop
        assert study.verify().ok


def test_large_rewards_that_come_early_prove_nothing(
    create: Callable[..., Study], now: list[float]
) -> None:
    """Levels with the same mean: one earns 50 twice as often as the other earns 100.

    Who doesn't buy is never reported. At first, the level that sells more often has four times as
    many reports as its share explains, and bets on these alone would refute the other level.
    """
    rng = np.random.default_rng(1)
    with create() as study:
        for _ in range(12):
            now[0] += 1
            some = study.ask(count=250)
            chances = {"x": (0.6, 50.0), "y": (0.3, 100.0)}
            bought = [(s.id, *chances[s.levels["image"]]) for s in some]
            study.tell_many([(id, value) for id, p, value in bought if rng.random() < p])
        before = study.best()
        now[0] += 60
        study.ask()
        after = study.best()
    assert not before.stop
    assert all(level["living"] for level in before.levels["image"])
    assert after.counts.sum() == 3000
    assert not after.stop
    assert all(level["living"] for level in after.levels["image"])


def test_a_late_report_changes_nothing_if_the_default_counted(
    create: Callable[..., Study], now: list[float]
) -> None:
    with create() as study:
        some = study.ask(count=3)
        now[0] += 60
        assert evidence(study) == 3  # as of now: an event must follow before the log has it
        assert study.tell(some[0].id, 100.0).late
        found = study.best()
        assert found.counts.sum() == 3
        assert found.rate == 0.0
        assert study.counts()["reports"] == 1
        assert study.verify().ok


def test_a_recorded_reward_waits_too(create: Callable[..., Study], now: list[float]) -> None:
    with create(control={"image": "x"}, holdout=0.5) as study:
        version = study.shares()["version"]

        for k in range(40):
            levels = rank1.assign(study.shares(), f"u{k}")
            study.record(f"u{k}", version, levels, 70.0)
        found = study.best()
        assert found.counts.sum() == 0
        assert found.holdout is not None
        assert found.holdout["units"] == 0
        now[0] += 60
        found = study.best()
        assert found.holdout is not None
        assert found.counts.sum() + found.holdout["units"] == 40
        assert found.counts.sum() > 0
        assert found.holdout["rate"] == pytest.approx(70)
        assert study.reward("u3", 70.0).reward == 70.0  # a duplicate


def test_rewards_of_0_and_1_count_at_once(create: Callable[..., Study]) -> None:
    with create(reward_range=(0, 1)) as study:
        tell(study, 100, {"x": 1.0, "y": 1.0})
        assert evidence(study) == 100
        assert not study.spec.by_window


def late_failures(study: Study, now: list[float], low: float, high: float) -> Best:
    """Report successes at once, and failures eight seconds after they were shown."""
    waiting: list[Any] = []
    for turn in range(30):
        now[0] += 1
        for k, each in enumerate(study.ask(count=20)):
            reward = high if k % 10 < 4 else low
            waiting.append((turn + 8 * (reward == low), (each.id, reward)))
        study.tell_many([told for due, told in waiting if due <= turn])
        waiting = [one for one in waiting if one[0] > turn]
    return study.best()


def test_failures_after_the_window_are_noticed(
    create: Callable[..., Study], now: list[float]
) -> None:
    options: dict[str, Any] = {"reward_range": (0, 1), "reward_window": 5, "on_expiry": "drop"}
    with create(policy="top_two", **options) as study:
        found = late_failures(study, now, 0.0, 1.0)
    assert [text.split(" than")[0][:16] for text in found.warnings] == ["Low rewards come"]
    assert not found.stop
    assert "because delays depend on the reward" in found.reason


@pytest.mark.parametrize("kind", ["no window", "of 0 to 1", "dropped", "at the end", "0 and 1"])
def test_a_find_study_knows_which_delays_it_allows(
    create: Callable[..., Study], now: list[float], kind: str
) -> None:
    options: dict[str, dict[str, Any]] = {
        "no window": {"reward_window": None, "on_expiry": "drop"},
        "of 0 to 1": {"reward_range": (0, 1)},
        "dropped": {"on_expiry": "drop", "reward_window": 5},
        "at the end": {},
        "0 and 1": {"reward_range": (0, 1)},
    }
    with create(**options[kind]) as study:
        high = study.spec.reward_range[1] * (1.0 if kind == "0 and 1" else 0.5)
        found = late_failures(study, now, 0.0, high)
    assert bool(found.warnings) == (kind not in ("at the end", "0 and 1"))
    allowed = {
        "dropped": "Whether a reward arrives in time doesn't depend on the level or the reward.",
        "at the end": "What a level earns after the reward window doesn't matter.",
        "0 and 1": "How long a reward takes doesn't depend on the level that was shown.",
    }
    when = "How long a reward takes doesn't depend on the level that was shown, nor on the reward."
    assert allowed.get(kind, when) in found.assumes
    if found.warnings:
        assert found.warnings[0].startswith("Low rewards come")
        assert "no stopping rule applies" in found.statement
        assert not found.verdicts["one_order"]["stop"]
        assert not found.any_grid_stop
