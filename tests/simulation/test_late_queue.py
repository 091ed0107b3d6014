"""Late, lost and batched rewards beside a plain queue: each choice, and which pull is credited."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

import rank1
from rank1.policies import POLICIES
from rank1.policies.base import has_counts
from rank1.simulation.feedback import Feedback
from rank1.simulation.late import late_run
from rank1.simulation.series import Series

pytestmark = pytest.mark.usefixtures("uncompiled")

N = 400
PROBLEM = rank1.Bernoulli([0.9, 0.2, 0.5], [0.3, 0.8])
#: Every way by itself, and together.
WAYS: dict[str, dict[str, Any]] = {
    "late": {"delay": 100.0},  # more are pending than there was room for at first
    "lost": {"missing": 0.3},
    "batches": {"batch": 7},
    "late and lost": {"delay": 20.0, "missing": 0.3},
    "late, lost, in batches": {"delay": 20.0, "missing": 0.3, "batch": 7},
    "by what they are": {"delay": {"success": 3, "failure": 40}},
    "by what they are, lost, in batches": {
        "delay": {"success": 3, "failure": 40}, "missing": 0.3, "batch": 7
    },
    "drifting": {"delay": 5.0, "drift": [1.0, 0.5, 0.25]},
    "forgotten": {"delay": 5.0, "missing": 0.1, "forgetting": 64},
}  # fmt: skip


def noted(state: Any, calls: list[Any]) -> Any:
    """The same state, which writes down all calls."""

    class Noted(type(state)):  # type: ignore[misc]
        def choose(self, rng: np.random.Generator) -> tuple[int, int]:
            pull: tuple[int, int] = super().choose(rng)
            calls.append(("choose", *pull))
            return pull

        def update(self, arm: int, tag: int, reward: float) -> None:
            calls.append(("update", arm, tag, reward))
            super().update(arm, tag, reward)

        def forget(self, arm: int, tag: int) -> Any:
            calls.append(("forget", arm, tag))
            return super().forget(arm, tag)

    def load(self: Any, arm: int, count: int, total: float) -> None:
        calls.append(("load", arm, count, total))
        super(Noted, self).load(arm, count, total)

    if has_counts(state):
        Noted.load = load
    return Noted(*state)


class Rule(NamedTuple):
    """A rule that writes down what it is told, and never stops."""

    calls: list[Any]

    def learn(self, arm: int, reward: float) -> None:
        self.calls.append(("learn", arm, reward))

    def may_stop(self, state: Any) -> bool:
        return False


class Pulled(NamedTuple):
    step: int
    arm: int
    tag: int
    reward: float
    lost: bool


def plain(start: Any, rng: Any, calls: list[Any], feedback: Feedback) -> float:
    """Play N steps with a list of the pulls whose rewards are on their way; the regret."""
    state, rule, batch, delay = start(), Rule(calls), feedback.batch, feedback.delay
    pending: list[Pulled] = []
    known: dict[int, list[float]] = {}  # by arm: how many rewards, and their sum
    regret, learned, begun, drift = 0.0, 0, 0, feedback.multipliers.tolist() or [1.0]

    def due(pull: Pulled) -> tuple[int, float]:
        assert isinstance(delay, tuple)
        return pull.step + delay[pull.reward == 0], pull.reward

    def arrived(step: int) -> list[Pulled]:
        """What comes in at the end of a batch, in its order."""
        if isinstance(delay, tuple):
            came = sorted((pull for pull in pending if due(pull)[0] <= step), key=due)
        elif delay:
            came = []
            for _ in range(rng.binomial(len(pending), 1 - (delay / (1 + delay)) ** batch)):
                k = int(rng.random() * len(pending))
                came.append(pending[k])
                pending[k] = pending[-1]  # the last one takes its place
                pending.pop()
        else:
            came = list(pending)
        pending[:] = [pull for pull in pending if pull not in came]
        return came

    for step in range(1, N + 1):
        arm, tag = state.choose(rng)
        reward, _ = PROBLEM.law.draw(arm, rng)
        share = drift[(step - 1) % len(drift)]
        if feedback.drift is not None and rng.random() >= share:
            reward = 0.0
        regret += share * (PROBLEM.best_mean - PROBLEM.mean(arm))
        lost = feedback.missing > 0 and rng.random() < feedback.missing
        pending.append(Pulled(step, arm, tag, reward, bool(lost)))
        for pull in arrived(step) if step % batch == 0 else ():
            own = pull.step > begun  # else the state knows nothing of it
            if pull.lost:
                state = state.forget(pull.arm, pull.tag) if own else state
                continue
            if not own:
                state.load(pull.arm, 1, pull.reward)
            elif state.expects(pull.arm, pull.tag):
                state.update(pull.arm, pull.tag, pull.reward)
            rule.learn(pull.arm, pull.reward)
            count, total = known.get(pull.arm, (0.0, 0.0))
            known[pull.arm] = [count + 1, total + pull.reward]
            learned += 1
            if feedback.forgetting and learned == round(feedback.forgetting / 16):
                fade, learned = 0.5 ** (learned / feedback.forgetting), 0
                known = {arm: [fade * x for x in some] for arm, some in known.items()}
                state, begun = start(), step
                for arm, (count, total) in sorted(known.items()):
                    whole = max(1, int(count + 0.5))
                    state.load(arm, whole, whole * (total / count))
    return regret


@pytest.mark.parametrize(
    ("name", "way"), [*product(["uts"], WAYS), *product(["rank1elim"], [*WAYS][:-1])]
)
def test_choices_and_credits_are_those_of_a_plain_queue(name: str, way: str) -> None:
    """Of a policy of counts, and of one that can't forget and gives pulls back by another way."""
    policy, feedback = POLICIES[name](), Feedback.of(**WAYS[way])
    series = Series.of(policy, PROBLEM, N, 1, 1, feedback=feedback)
    calls: tuple[list[Any], list[Any]] = ([], [])
    start = Series.start

    expected = plain(
        lambda: noted(start(series, PROBLEM), calls[0]),
        np.random.default_rng(series.seed_of(0)), calls[0], feedback,
    )  # fmt: skip
    object.__setattr__(series, "start", lambda problem: noted(start(series, problem), calls[1]))
    late = late_run(
        series, PROBLEM, PROBLEM.law, np.random.default_rng(series.seed_of(0)), np.zeros((1, 4)),
        90, lambda: False, Rule(calls[1]),
    )  # fmt: skip
    assert calls[1] == calls[0]
    assert late.totals[0] == pytest.approx(expected)
    made = {call[0] for call in calls[0]}
    assert made >= {"choose", "update", "learn"}
    assert ("forget" in made) == (feedback.missing > 0)
    assert ("load" in made) == bool(feedback.forgetting)
