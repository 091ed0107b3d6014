"""A study asks what its bare policy asks, whatever happens to the suggestions."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1 import Study
from rank1.policies import Known, Policy, ask, tell
from rank1.policies.base import has_counts
from rank1.settings import parse_policy
from rank1.studies.spec import HORIZON
from tests.studies.support import LIVE
from tests.studies.test_study import Clock
from tests.studies.test_study import clock as clock
from tests.studies.test_study import create as create

pytestmark = pytest.mark.usefixtures("uncompiled")

SEED, WINDOW, DEFAULT = 7, 100, 2.0
Arm = tuple[str, str]


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "rank1.db")


def scaled(reward: float) -> float:
    """Scale a reward in [1, 5] as policies receive it."""
    return (reward - 1) / 4


class Bare:
    """A policy, its pulls, and the number of events that a study would have.

    Suggestion k is its k-th pull. `tags` has the pulls that the current state knows and waits for.
    """

    def __init__(self, policy: Policy, on_expiry: str, rows: list[str], columns: list[str]) -> None:
        self.policy, self.on_expiry, self.events = policy, on_expiry, 1  # it was created
        self.names, self.retired = [list(rows), list(columns)], set[str]()
        self.arms: list[Arm] = []
        self.asked: list[float] = []
        self.tags: dict[int, int] = {}
        self.pending: set[int] = set()
        self.expired: set[int] = set()
        self.known: dict[Arm, list[float]] = defaultdict(list)
        self._start()

    def _start(self) -> None:
        """Start over with all that is known about living arms; earlier pulls are unknown to it."""
        living = [[name for name in side if name not in self.retired] for side in self.names]
        self.living: list[Any] = list(itertools.product(*living))
        self.state: Any = self.policy.start(Known(n=HORIZON, sides=[len(side) for side in living]))
        self.tags.clear()
        for arm in self.living:
            if self.known[arm]:
                self._load(arm, self.known[arm])

    def _load(self, arm: Arm, rewards: list[float]) -> None:
        if has_counts(self.state) and arm in self.living:
            self.state.load(self.living.index(arm), len(rewards), sum(rewards))

    def ask(self, count: int, now: float) -> list[Arm]:
        """Return the next pulls, with random numbers from the seed and the last event."""
        rng = np.random.default_rng((SEED, self.events))
        for _ in range(count):
            pull = ask(self.state, rng)
            number = len(self.arms)
            self.arms.append(self.living[pull.arm])
            self.tags[number] = pull.tag
            self.asked.append(now)
            self.pending.add(number)
        self.events += count
        return self.arms[-count:]

    def _learn(self, number: int, reward: float) -> None:
        arm = self.arms[number]
        self.known[arm].append(reward)
        if number in self.tags:
            tell(self.state, rank1.Pull(self.living.index(arm), self.tags.pop(number)), reward)
        else:
            self._load(arm, [reward])

    def _give_back(self, number: int) -> None:
        if number in self.tags:
            arm = self.living.index(self.arms[number])
            self.state = self.state.forget(arm, self.tags.pop(number))

    def expire(self, now: float) -> None:
        """Note overdue pulls, in the order in which they were asked for."""
        for number in sorted(self.pending):
            if self.asked[number] + WINDOW <= now:
                self.pending.discard(number)
                self.expired.add(number)
                self.events += 1
                if self.on_expiry == "drop":
                    self._give_back(number)
                elif self.on_expiry == "default":
                    self._learn(number, scaled(DEFAULT))

    def tell(self, number: int, reward: float) -> None:
        """Process a report; if a default was used in its place, the policy learns nothing."""
        self.events += 1
        if number in self.pending or self.on_expiry != "default":
            self._learn(number, scaled(reward))
        self.pending.discard(number)
        self.expired.discard(number)

    def cancel(self, number: int) -> None:
        self.events += 1
        self._give_back(number)
        self.pending.discard(number)
        self.expired.discard(number)

    def revise(self, retire: str, add: str) -> None:
        self.events += 1
        self.retired = {retire}
        self.names[1].append(add)
        self._start()


@pytest.mark.parametrize("on_expiry", ["drop", "default", "wait"])
@pytest.mark.parametrize("policy", LIVE)
@pytest.mark.filterwarnings("ignore:.*starts over")
def test_a_study_asks_what_its_bare_policy_asks(
    create: Callable[..., Study], clock: Clock, policy: str, on_expiry: str
) -> None:
    """Compare every choice, with late and lost rewards, cancelled pulls, and a revision."""
    rows, columns = ["a", "b", "c"], ["x", "y"]
    study = create(
        policy=policy, rows=rows, columns=columns, seed=SEED, reward_range=(1, 5),
        reward_window=WINDOW, on_expiry=on_expiry, default_reward=DEFAULT,
    )  # fmt: skip
    bare, rng, ids = (
        Bare(parse_policy(policy), on_expiry, rows, columns),
        np.random.default_rng(3),
        [],
    )
    done = set[str]()
    for step in range(160):
        do = rng.choice(["ask", "ask many", "tell", "tell", "late", "cancel", "wait"])
        some, overdue = sorted(bare.pending), sorted(bare.expired)
        if step == 80:
            assert bare.pending
            study.revise(retire_rows=["b"], add_columns=["z"])
            bare.revise("b", "z")
        elif do.startswith("ask"):
            count = 1 if do == "ask" else 4
            given = study.ask(count=count)
            arms = [(str(each.row), str(each.column)) for each in given]
            assert arms == bare.ask(count, clock.time), step
            ids += [each.id for each in given]
        elif do == "wait":
            clock.time += 30
            study.counts()  # notes what is overdue
            bare.expire(clock.time)
        elif do == "cancel" and some:
            number = int(rng.choice(some))
            study.cancel(ids[number])
            bare.cancel(number)
        elif numbers := {"tell": some, "late": overdue}.get(do):
            number, reward = int(rng.choice(numbers)), float(rng.choice([1, 2, 5]))
            assert study.tell(ids[number], reward).late == (do == "late")
            bare.tell(number, reward)
        else:
            continue
        done.add(do)
    assert len(done) == 6
    assert study.last_event() == bare.events
