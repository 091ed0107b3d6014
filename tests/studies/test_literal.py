"""A study's fold, compared with a plain Python pass over its events."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

import rank1
from rank1 import Study
from rank1.literal.study import LiteralStudy
from rank1.studies.events import Event
from rank1.studies.state import StudyState
from rank1.studies.storage.postgres import PostgresReader
from rank1.studies.storage.sqlite import SqliteReader
from tests.studies.support import from_log

pytestmark = [
    pytest.mark.usefixtures("uncompiled"),
    pytest.mark.filterwarnings("ignore:repeat='each'"),
    pytest.mark.filterwarnings("ignore:a study that draws by shares can't bet"),
]

SIDES = {"headline": ["A", "B", "C"], "image": ["x", "y"]}
CONTROL = {"headline": "A", "image": "x"}
#: The level of the given side, if there is one; the last two are new.
SEGMENTS = st.sampled_from(["x", "y", "v", "w"])
VALUES = st.sampled_from([1.0, 2.0, 5.0])
UNITS = st.sampled_from([f"u{k}" for k in range(12)])
CASES: dict[str, dict[str, Any]] = {
    "drawn": {"goal": "find"},
    "held out": {
        "goal": "find", "control": CONTROL, "holdout": 0.4,
        "guardrails": {"left": {"worse_by": 0.1}, "slow": {"worse_by": 0.2}},
    },
    "each": {"goal": "find", "repeat": "each"},
    "given": {"goal": "find", "given": ["image"], "new_levels": "add"},
    "uts": {"goal": "earn"},
    "forgets": {"goal": "earn", "forgetting": 40},
    "top two": {"goal": "find", "policy": "top_two"},
}  # fmt: skip


def same_as_literal(study: Study) -> None:
    """Compare every field of the process's state, of a fresh fold and of a snapshot."""
    row, spec = study.access.study, study.spec
    events = study.look(lambda _, log: log.page(row.id, 0, 10**6))
    low, high = spec.reward_range
    window = np.inf if spec.reward_window is None else spec.reward_window
    literal = LiteralStudy(
        spec.on_expiry, window, low, high, spec.design, spec.forgetting or np.inf,
        {side: set(labels) for side, labels in spec.sides.items()}, spec.by_window,
    ).take(events)  # fmt: skip
    for state in (
        study.look(lambda state, log: state),
        from_log(study),
        study.look(lambda state, log: StudyState.from_bytes(spec, state.to_bytes())),
    ):
        compare(state, literal, events)


def compare(state: StudyState, literal: LiteralStudy, events: Sequence[Event]) -> None:
    now = events[-1].at
    at, arms = state.book.at[0], [state.in_log(k) for k in range(state.grid.arms)]
    assert state.counts() == literal.totals()
    assert (state.revision, bool(at.retired)) == (literal.revision, literal.retired)
    assert {side: set(state.living_labels(side)) for side in state.labels} == literal.living
    assert at.learned == literal.learned
    own = [(arm, x) for arm, since, x in literal.evidence if since <= now]
    told: dict[int, list[float]] = {arm: [] for arm in arms}
    for arm, x in [*own, *literal.imported]:
        told[arm].append(x)
    imported = Counter(arm for arm, _ in literal.imported)
    counts, sums = state.evidence(now)
    pending = literal.pending()
    lives = [arm for arm in arms if is_living(state.named(arm), literal)]
    for table, some, expected in (
        (counts, lives, lambda arm: len(told[arm])),
        (sums, lives, lambda arm: sum(told[arm])),
        (state.pending(), lives, lambda arm: pending[arm]),
        (state.book.known, arms, lambda arm: literal.known[arm][0]),
        (state.book.known_sums, arms, lambda arm: literal.known[arm][1]),
        (state.book.imported, arms, lambda arm: imported[arm]),
    ):
        np.testing.assert_allclose(np.ravel(table), [expected(arm) for arm in some], atol=1e-9)
    held = literal.held_out
    assert (at.held, at.held_sum) == (len(held), pytest.approx(sum(held)))
    assert at.held_squares == pytest.approx(sum(x * x for x in held))
    assert (at.seq, at.time) == (events[-1].seq, now)
    if literal.by_window:
        assert (at.evidence, at.gained) == (literal.credited, pytest.approx(literal.gained))
        at = state.as_of(now).book.at[0]
    assert at.evidence == len(own)
    assert (at.gained, at.squares) == pytest.approx(
        (sum(x for _, x in own), sum(x * x for _, x in own))
    )
    delays = [(len(d), sum(d), sum(k * k for k in d)) for d in literal.delays.values()]
    np.testing.assert_allclose(state.book.delays, delays, rtol=1e-12)
    if state.design is not None:
        live = state.settled()
        assert live.number == at.version == literal.version
        names = ("version", "under", "arm", "metric", "value")
        rows = {
            (int(v), int(u), state.in_log(int(arm)), int(metric), float(value)): int(row["count"])
            for row in live.evidence.rows()
            for v, u, arm, metric, value in [tuple(row[name] for name in names)]
        }
        assert rows == dict(literal.rows)


def is_living(labels: dict[str, str], literal: LiteralStudy) -> bool:
    return all(label in literal.living[side] for side, label in labels.items())


def given_to(study: Study, segment: str) -> dict[str, str] | None:
    """Return the levels that come with a visitor."""
    return dict.fromkeys(study.spec.given, segment) or None


class Anything(RuleBasedStateMachine):
    """Anything that may happen to a study."""

    new_place: Callable[[], str]

    def __init__(self) -> None:
        super().__init__()
        self.time = 1e9
        self.patch = pytest.MonkeyPatch()
        for reader in (SqliteReader, PostgresReader):
            self.patch.setattr(reader, "clock", lambda _: self.time)
        self.ids: list[str] = []
        self.numbers = itertools.count()

    @initialize(
        case=st.sampled_from(sorted(CASES)),
        on_expiry=st.sampled_from(["drop", "default", "wait"]),
        window=st.sampled_from([None, 100]),
        scale=st.sampled_from([(0.0, 1.0), (1.0, 5.0)]),
    )
    def begin(
        self, case: str, on_expiry: str, window: float | None, scale: tuple[float, float]
    ) -> None:
        """With a window, find studies bet at once or when windows close, depending on the scale."""
        if window is None:
            on_expiry = "drop"
        self.place = self.new_place()
        self.study = Study.create(
            "s", sides=SIDES, storage=self.place, seed=1, reward_window=window,
            on_expiry=on_expiry, reward_range=scale, **CASES[case],
        )  # fmt: skip

    def on_scale(self, reward: float) -> float:
        """Return a reward, given from 1 to 5, on the study's scale."""
        low, high = self.study.spec.reward_range
        return low + (high - low) * (reward - 1) / 4

    def attempt(self, *calls: Any) -> None:
        """Call these; some raise errors, which other tests check."""
        for call in calls:
            with contextlib.suppress(rank1.ConflictError, rank1.CancelledError):
                call()

    @rule(count=st.integers(1, 6), segment=SEGMENTS)
    def ask(self, count: int, segment: str) -> None:
        given = given_to(self.study, segment)
        self.ids += [each.id for each in self.study.ask(count=count, given=given)]

    @rule(unit=UNITS, segment=SEGMENTS)
    def ask_unit(self, unit: str, segment: str) -> None:
        given = given_to(self.study, segment)
        self.attempt(lambda: self.ids.append(self.study.ask(unit=unit, given=given).id))

    @rule(data=st.data(), reward=VALUES, left=st.sampled_from([None, 0.0, 1.0]))
    def tell(self, data: st.DataObject, reward: float, left: float | None) -> None:
        if self.ids:
            id = data.draw(st.sampled_from(self.ids))
            guards = None if left is None or not self.study.spec.guardrails else {"left": left}
            self.attempt(lambda: self.study.tell(id, self.on_scale(reward), guards))

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if self.ids:
            self.attempt(lambda: self.study.cancel(data.draw(st.sampled_from(self.ids))))

    @rule(unit=UNITS, reward=st.one_of(st.none(), VALUES), segment=SEGMENTS)
    def record(self, unit: str, reward: float | None, segment: str) -> None:
        if self.study.spec.design:
            shares = self.study.shares()
            levels = rank1.assign(shares, unit, given_to(self.study, segment))
            guards = {"slow": 0.5} if reward and self.study.spec.guardrails else None
            told = None if reward is None else self.on_scale(reward)
            self.attempt(
                lambda: self.study.record(unit, shares["version"], levels, told, guards),
                lambda: self.study.reward(unit, self.on_scale(reward or 1.0)),
            )

    @rule(seed=st.integers(0, 99))
    def many(self, seed: int) -> None:
        """Play enough for versions to begin."""
        rewards = np.random.default_rng(seed).choice([1.0, 2.0, 5.0], 150 + seed).tolist()
        given = self.study.ask(count=len(rewards), given=given_to(self.study, "xy"[seed % 2]))
        reports = list(zip((each.id for each in given), map(self.on_scale, rewards), strict=True))
        self.study.tell_many(reports[10:])
        self.ids += [id for id, _ in reports[:10]]

    @rule(seconds=st.sampled_from([1, 60, 100, 101]))
    def wait(self, seconds: float) -> None:
        self.time += seconds

    @rule(value=VALUES, count=st.integers(1, 4))
    def history(self, value: float, count: int) -> None:
        headline = self.study.sides["headline"][-1]
        lines = [(headline, "y", self.on_scale(value))] * count
        self.study.import_history(lines, key=f"h{next(self.numbers)}")

    @rule(unit=UNITS)
    def forget(self, unit: str) -> None:
        """Its exposures and rewards stay; its name no longer refers to them."""
        self.study.forget_unit(unit)
        assert self.study.look(lambda _, log: log.of_unit(self.study.access.study.id, unit)) is None

    @rule()
    def add_a_level(self) -> None:
        if self.study.revision < 2:
            self.study.revise(add={"image": [f"new {self.study.revision}"]})

    @rule(level=st.sampled_from(["A", "B", "C"]))
    def retire_or_bring_back_a_level(self, level: str) -> None:
        lives = self.study.sides["headline"]
        if level not in lives:
            self.study.revise(add={"headline": [level]})
        elif len(lives) > 1 and level not in (self.study.spec.control or {}).values():
            self.study.revise(retire={"headline": [level]})

    @rule()
    def open_again(self) -> None:
        self.study.snapshot()
        self.study.close()
        self.study = Study.open("s", self.place)

    @rule()
    def look(self) -> None:
        self.study.best()

    def teardown(self) -> None:
        if hasattr(self, "study"):
            self.study.counts()
            same_as_literal(self.study)
            assert self.study.verify().problems == []
            self.study.close()
        self.patch.undo()


def play(new_place: Callable[[], str], examples: int, steps: int) -> None:
    machine: Any = type("Anything", (Anything,), {"new_place": staticmethod(new_place)})
    how = settings(
        max_examples=examples, stateful_step_count=steps, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=how)


def test_anything(new_place: Callable[[], str], request: pytest.FixtureRequest) -> None:
    play(new_place, 3 if request.node.callspec.params["new_place"] == "postgres" else 10, 20)


@pytest.mark.validate
def test_everything(new_place: Callable[[], str], request: pytest.FixtureRequest) -> None:
    play(new_place, 60 if request.node.callspec.params["new_place"] == "postgres" else 300, 40)


@pytest.mark.parametrize("name", sorted(CASES))
def test_one_of_each(name: str, tmp_path: Path) -> None:
    """Some of each event, in every kind of study, because random tests may miss some."""
    study = Study.create(
        "s", sides=SIDES, storage=tmp_path / "rank1.db", seed=1, reward_range=(1, 5), **CASES[name]
    )
    rewards, given = itertools.cycle([1.0, 2.0, 5.0]), given_to(study, "w")
    first = asked = study.ask(count=50, given=given)
    study.tell_many([(each.id, next(rewards)) for each in asked[5:]])
    study.import_history([("B", "y", 2.0)] * 3)
    study.revise(add={"image": ["z"]}, retire={"headline": ["C"]})
    study.cancel(study.ask(given=given).id)
    for unit in ("ann", "bob", "ann"):
        study.tell(study.ask(unit=unit, given=given).id, next(rewards))
    asked = study.ask(count=16, given=given)
    study.tell_many([(each.id, next(rewards)) for each in asked[2:]])
    for each in first[:3]:  # of an earlier version, if there are versions
        study.tell(each.id, next(rewards), {"slow": 0.5} if study.spec.guardrails else None)
    same_as_literal(study)
    study.close()
