"""Any order of asking, telling, cancelling, expiring and reopening."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import rank1
from rank1 import Study
from rank1.studies.events import Event, Kind, as_events
from rank1.studies.spec import make_spec
from rank1.studies.state import StudyState
from rank1.studies.storage.sqlite import SqliteReader
from tests.studies.support import NAMES, USUAL
from tests.support import examples, few

pytestmark = pytest.mark.usefixtures("uncompiled")

ORDER_FREE = ["uniform", "thompson"]  # their state doesn't depend on the order of rewards

_numbers = itertools.count()


class AnyOrder(RuleBasedStateMachine):
    """A model of what became of each suggestion, compared with the study."""

    policies: Sequence[str] = USUAL

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="rank1-order-")
        self.time = 1e9
        self.real = SqliteReader.clock
        SqliteReader.clock = lambda _: self.time  # type: ignore

    @initialize(data=st.data(), on_expiry=st.sampled_from(["drop", "default", "wait"]))
    def begin(self, data: st.DataObject, on_expiry: str) -> None:
        policy = data.draw(st.sampled_from(self.policies))
        self.place = str(Path(self.folder.name, "rank1.db"))
        self.study = Study.create(
            "s", ["a", "b", "c"], ["d", "e"], policy=policy, storage=self.place, seed=1,
            reward_window=100, on_expiry=on_expiry,
        )  # fmt: skip
        self.on_expiry = on_expiry
        self.pairs: dict[str, tuple[str, str]] = {}
        self.asked: dict[str, float] = {}
        self.state: dict[str, str] = {}
        self.value: dict[str, float] = {}
        self.expired: set[str] = set()

    def _expire(self) -> None:
        for name, state in self.state.items():
            if state == "pending" and self.asked[name] + 100 <= self.time:
                self.state[name] = "expired"
                self.expired.add(name)

    @rule(count=st.integers(1, 8))
    def ask(self, count: int) -> None:
        self._expire()
        for each in self.study.ask(count=count):
            assert each.id not in self.state
            self.pairs[each.id], self.asked[each.id] = (str(each.row), str(each.column)), self.time
            self.state[each.id] = "pending"

    @precondition(lambda self: bool(getattr(self, "state", None)))
    @rule(data=st.data(), reward=st.sampled_from([0.0, 0.25, 1.0]))
    def tell(self, data: st.DataObject, reward: float) -> None:
        self._expire()
        name = data.draw(st.sampled_from(sorted(self.state)))
        state = self.state[name]
        if state == "cancelled":
            with pytest.raises(rank1.CancelledError):
                self.study.tell(name, reward)
        elif state == "reported" and self.value[name] != reward:
            with pytest.raises(rank1.ConflictError):
                self.study.tell(name, reward)
        else:
            told = self.study.tell(name, reward)
            assert told.late == (name in self.expired)
            self.state[name], self.value[name] = "reported", reward

    @precondition(lambda self: bool(getattr(self, "state", None)))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        self._expire()
        name = data.draw(st.sampled_from(sorted(self.state)))
        filled = self.on_expiry == "default" and name in self.expired
        if self.state[name] == "reported" or (self.state[name] == "expired" and filled):
            with pytest.raises(rank1.ConflictError):
                self.study.cancel(name)
        else:
            self.study.cancel(name)
            self.state[name] = "cancelled"

    @rule(seconds=st.sampled_from([1, 60, 101, -86_400, 86_400]))
    def wait(self, seconds: float) -> None:
        self.time = max(self.time + seconds, max([1e9, *self.asked.values()]))

    @rule()
    def open_again(self) -> None:
        self.study.close()
        self.study = Study.open("s", self.place)

    @rule()
    def snapshot(self) -> None:
        self.study.access.keep_snapshot()

    @invariant()
    def counts_are_exact(self) -> None:
        if not hasattr(self, "study"):
            return
        self._expire()
        found = self.study.counts()
        became = Counter(self.state.values())
        assert found == {
            "suggestions": len(self.state), "reports": became["reported"],
            "pending": became["pending"], "expired": became["expired"],
            "cancelled": became["cancelled"],
        }  # fmt: skip

    def teardown(self) -> None:
        if hasattr(self, "study"):
            self._expire()
            self.time += 1000
            self._expire()
            best = self.study.best()
            counts, sums = np.zeros((3, 2)), np.zeros((3, 2))
            for name, state in self.state.items():
                row, column = self.pairs[name]
                place = "abc".index(row), "de".index(column)
                filled = self.on_expiry == "default" and name in self.expired
                if filled or state == "reported":
                    counts[place] += 1
                    sums[place] += 0.0 if filled else self.value[name]
            np.testing.assert_array_equal(best.counts, counts)
            with np.errstate(invalid="ignore"):
                np.testing.assert_allclose(best.means, sums / counts, atol=1e-12)
            assert self.study.verify().problems == []
            self.study.close()
        SqliteReader.clock = self.real  # type: ignore
        self.folder.cleanup()


AnyOrder.TestCase.settings = settings(
    max_examples=8,
    stateful_step_count=25,
    suppress_health_check=list(HealthCheck),
)
TestAnyOrder = AnyOrder.TestCase


class AnyPolicy(AnyOrder):
    """The same with all policies."""

    policies = NAMES


AnyPolicy.TestCase.settings = settings(AnyOrder.TestCase.settings, max_examples=60)
TestAnyPolicy = pytest.mark.validate(AnyPolicy.TestCase)


def _state(policy: str, **options: Any) -> StudyState:
    settings: dict[str, Any] = {
        "rows": ["a", "b"], "columns": ["c", "d"], "goal": "earn", "policy": policy,
        "horizon": None, "reward_window": None, "on_expiry": "drop", "default_reward": None,
        "reward_range": (0.0, 1.0), "confidence": 0.95, "tolerance": 0.0, "forgetting": None,
        "seed": 1,
    }  # fmt: skip
    return StudyState(make_spec(**settings | options))


@pytest.mark.parametrize(
    "bad",
    [
        Event(Kind.SUGGESTED, arm=2 * 4096),
        Event(Kind.SUGGESTED, arm=-1),
        Event(Kind.REPORTED, arm=2**40, suggestion=1, value=1.0),
        Event(Kind.HISTORY, tag=-5, value=1.0),
    ],
    ids=str,
)
def test_an_event_that_cannot_be_is_not_folded(bad: Event) -> None:
    state = _state("uts")
    with pytest.raises(rank1.StorageError, match=r"event 2 of the log .* go back to a backup"):
        state.fold(as_events([Event(Kind.CREATED), bad], 1, 0.0))


@pytest.mark.parametrize("policy", few(dict.fromkeys(["uniform", *USUAL, *NAMES]), 4))
@examples(8)
@given(data=st.data())
def test_the_order_of_reports_and_the_size_of_batches(policy: str, data: st.DataObject) -> None:
    """The state doesn't depend on batches nor, for order-free policies, on the order of reports."""
    asker = _state(policy)
    asker.fold(as_events([Event(Kind.CREATED)], 1, 0.0))
    pulls = asker.choose(np.random.default_rng(data.draw(st.integers(0, 9))), 30)
    asks = [Event(Kind.SUGGESTED, *pull) for pull in pulls]
    rewards = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=30, max_size=30))
    told = [
        Event(Kind.REPORTED, arm=pull.arm, suggestion=2 + k, value=reward)
        for k, (pull, reward) in enumerate(zip(pulls, rewards, strict=True))
    ]
    mixed = data.draw(st.permutations(told))
    states = []
    for order in (told, mixed):
        events = [Event(Kind.CREATED), *asks, *order]
        whole, parts = _state(policy), _state(policy)
        whole.fold(as_events(events, 1, 0.0))
        cut = data.draw(st.integers(1, len(events) - 1))
        parts.fold(as_events(events[:cut], 1, 0.0))
        parts.fold(as_events(events[cut:], cut + 1, 0.0))
        assert whole.differences(parts) == []
        restored = StudyState.from_bytes(whole.spec, whole.to_bytes())
        assert whole.differences(restored) == []
        states.append(whole)
    one, two = states
    np.testing.assert_array_equal(one.book.counts, two.book.counts)
    np.testing.assert_array_equal(one.book.sums, two.book.sums)
    if policy in ORDER_FREE:
        found = one.differences(two)  # delays depend on the order
        same = [text for text in found if "log_beta" not in text and text != "delays differ"]
        assert same == []
