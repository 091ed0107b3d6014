"""The ends of windows, retries, returning units, and replays of late rewards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1 import Study, policies
from rank1.policies import Known
from tests.studies.test_study import COLUMNS, ROWS, Clock
from tests.studies.test_study import clock as clock
from tests.studies.test_study import create as create

pytestmark = pytest.mark.usefixtures("uncompiled")

ON_EXPIRY = pytest.mark.parametrize("on_expiry", ["drop", "default", "wait"])


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "rank1.db")


@ON_EXPIRY
@pytest.mark.parametrize("look_first", [True, False])
def test_a_window_ends_before_what_happens_at_its_end(
    create: Callable[..., Study], clock: Clock, on_expiry: str, look_first: bool
) -> None:
    """A report just before the end is in time, and one at the end is late, looked at or not."""
    study = create(reward_window=60, on_expiry=on_expiry)
    early, late = study.ask(count=2)
    clock.time += 59.5
    assert not study.tell(early.id, 1.0).late
    assert study.counts()["expired"] == 0
    clock.time += 0.5
    if look_first:
        assert (study.counts()["expired"], study.counts()["pending"]) == (1, 0)
    told = study.tell(late.id, 1.0)
    assert told.late
    assert study.tell(late.id, 1.0) == told
    assert [line["late"] for line in study.lines()[0]] == [False, True]
    kinds = [event["kind"] for event in study.events()]
    assert kinds == ["created", "suggested", "suggested", "reported", "expired", "reported"]
    assert study.events()[-1]["late"]
    assert study.best().rate == (0.5 if on_expiry == "default" else 1.0)


@pytest.mark.parametrize("another", [False, True], ids=["by a look", "by another event"])
def test_a_report_becomes_evidence_at_the_end_of_its_window(
    create: Callable[..., Study], clock: Clock, another: bool
) -> None:
    study = create(reward_window=60, on_expiry="default")
    given = study.ask(count=3)
    study.tell_many([(each.id, 1.0) for each in given])
    clock.time += 59.5
    assert study.best().counts.sum() == 0
    clock.time += 0.5
    if another:
        study.ask()
        counts: Any = study.look(lambda state, log: state.book.counts.copy())
        assert counts.sum() == 3
    assert study.best().counts.sum() == 3


def test_looking_twice_changes_nothing(create: Callable[..., Study], clock: Clock) -> None:
    """It changes neither results nor state: a look doesn't write that windows have closed."""
    study = create(reward_window=60, on_expiry="default")
    for each in study.ask(count=6):
        study.tell(each.id, 1.0)
    clock.time += 60
    before = study.look(lambda state, log: state.to_bytes())
    found = study.best().to_dict()
    assert found["totals"]["reports"] == np.sum(found["counts"]) == 6
    assert study.best().to_dict() == found
    assert study.fit(B=19).to_dict() == study.fit(B=19).to_dict()
    assert study.look(lambda state, log: state.to_bytes()) == before
    assert study.last_event() == 13
    assert study.verify().ok


@ON_EXPIRY
def test_a_retry_keeps_its_expiry(
    create: Callable[..., Study], clock: Clock, on_expiry: str
) -> None:
    """A key, or a unit that is still pending, gets the same suggestion with the same expiry."""
    study = create(reward_window=60, on_expiry=on_expiry)
    asks: list[dict[str, Any]] = [{"key": "k"}, {"unit": "u"}, {"key": "both", "unit": "v"}]
    given, asked = [study.ask(**how) for how in asks], clock.time
    clock.time += 59
    assert [study.ask(**how) for how in asks] == given
    assert {(each.asked_at, each.expires_at) for each in given} == {(asked, asked + 60)}
    clock.time += 1
    assert study.ask(key="k") == given[0]  # although it has expired
    assert study.counts()["expired"] == 3


def test_a_unit_whose_suggestion_was_cancelled_is_a_new_one(create: Callable[..., Study]) -> None:
    """It was never shown, so the policy chooses for the unit again."""
    study = create(policy="uniform", seed=3)
    arms = set()
    for _ in range(20):
        shown = study.ask(unit="u")
        assert study.ask(unit="u") == shown
        arms.add((shown.row, shown.column))
        study.cancel(shown.id)
    assert len(arms) == 6
    assert all(line["propensity"] == pytest.approx(1 / 6) for line in study.lines()[0])
    assert study.counts()["cancelled"] == 20


def test_the_policy_did_not_choose_a_repeat_visit(create: Callable[..., Study]) -> None:
    """So its propensity isn't known, and the policy isn't told that it was issued."""
    study = create(policy="uniform")
    first = study.ask(unit="u")
    study.tell(first.id, 1.0)
    again = study.ask(unit="u")
    assert again.id != first.id
    assert (again.row, again.column) == (first.row, first.column)
    other = study.ask(unit="v")
    lines = {line["id"]: line["propensity"] for line in study.lines()[0]}
    assert lines == {
        first.id: pytest.approx(1 / 6), again.id: None, other.id: pytest.approx(1 / 6)
    }  # fmt: skip


@ON_EXPIRY
def test_a_replay_has_rewards_as_the_study_counts_them(
    create: Callable[..., Study], clock: Clock, on_expiry: str
) -> None:
    """A late reward counts, unless a default was used in its place.

    Another policy is played by hand on the same rewards, in the order of each arm's rewards.
    """
    study = create(
        policy="uniform", reward_range=(1, 5), reward_window=60, on_expiry=on_expiry,
        default_reward=4,
    )  # fmt: skip
    rewards: dict[int, list[float]] = {arm: [] for arm in range(6)}
    rng = np.random.default_rng(1)

    def arm_of(each: Any) -> int:
        return 2 * ROWS.index(each.row) + COLUMNS.index(each.column)

    def tell(suggestions: list[Any], counts: bool = True) -> None:
        for each in suggestions:
            reward = float(rng.integers(1, 6))
            study.tell(each.id, reward)
            if counts:
                rewards[arm_of(each)].append(reward)

    study.import_history([("35+", "push", 2.0)] * 3)
    rewards[5] += [2.0] * 3
    given = study.ask(count=60)
    tell(given[:30])
    for each in given[30:35]:
        study.cancel(each.id)
    clock.time += 60
    if on_expiry == "default":
        for each in given[35:]:
            rewards[arm_of(each)].append(4.0)
    tell(given[35:50], counts=on_expiry != "default")
    found = study.replay("uts", seed=9)
    assert found.rewards == sum(map(len, rewards.values())) == study.best().counts.sum()
    assert found.logged_rate == pytest.approx(
        np.mean([x for some in rewards.values() for x in some])
    )

    state = rank1.UTS().start(Known(3, 2, found.rewards))
    numbers, told = np.random.default_rng(9), []
    while rewards[(pull := policies.ask(state, numbers)).arm]:
        told.append(rewards[pull.arm].pop(0))
        policies.tell(state, pull, (told[-1] - 1) / 4)
    assert found.steps == len(told)
    assert found.rate == pytest.approx(np.mean(told))
    assert found.best == (ROWS[state.best() // 2], COLUMNS[state.best() % 2])
    assert found.exhausted == (ROWS[pull.arm // 2], COLUMNS[pull.arm % 2])
