"""Runs in which rewards come late, in batches, or never, or in which the policy forgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import kernel, record
from rank1.errors import InputError
from rank1.policies.base import Policy, Records, choose, expects, has_counts, update
from rank1.policies.folding import give_up, learn_count, load_tallies
from rank1.policies.step import draw, gap, note
from rank1.simulation.known import smallest_start
from rank1.simulation.loop import refuse, room_for_curve

if TYPE_CHECKING:
    from rank1.problems.base import Problem
    from rank1.simulation.series import Series

__all__ = ["AT_ONCE", "Feedback", "compile_late", "late_run", "late_steps"]

Floats = NDArray[np.float64]

#: A policy with a half-life of h rewards forgets a little after each h/16 of them.
FADING = 16

#: A pull whose reward is on its way.
PULL = record("arm", "tag", "lost", reward=float)

#: Where a run stands.
AT = record(
    "pending",  # pulls whose rewards are on their way
    "due",  # how many of them come in now
    "learned",  # rewards since the policy last forgot
    "arm",  # the pull at which the loop has stopped
    "tag",
)

SETTINGS = record("batch", "forget_every", arrives=float, missing=float)

# What the loop stops for.
DONE, OFF_THE_GRID, FULL, FORGET, FADE = range(5)


@dataclass(frozen=True)
class Feedback:
    """How rewards come in; see `simulate`."""

    delay: float = 0.0
    missing: float = 0.0
    batch: int = 1
    forgetting: float | None = None

    @classmethod
    def of(cls, delay: float, missing: float, batch: int, forgetting: float | None) -> Feedback:
        """From arguments as `simulate` takes them."""
        delay = checks.number("delay", delay, 0, 1e9)
        missing = checks.number("missing", missing, 0, 1, below=True)
        if forgetting is not None:
            forgetting = checks.number("forgetting", forgetting, 1, 1e12)
        return cls(delay, missing, checks.integer("batch", batch, 1, 10**6), forgetting)

    def check(self, policy: Policy, problem: Problem) -> None:
        """Refuse a policy that can't forget, and rewards that can't fade."""
        if self.forgetting is None:
            return
        if not has_counts(smallest_start(policy, problem, 1)):
            why = f"None for {policy.label}, whose state isn't counts and sums"
            raise InputError("forgetting", self.forgetting, why)
        if not (problem.low >= 0 and problem.high <= 1):
            rewards = f"{self.forgetting:g} with rewards in [{problem.low:g}, {problem.high:g}]"
            why = "None unless rewards lie in [0, 1]"
            raise InputError("forgetting", self.forgetting, why, got=rewards)

    @property
    def settings(self) -> Records:
        """For the loop."""
        arrives = 1 - (self.delay / (1 + self.delay)) ** self.batch
        every = 0 if self.forgetting is None else max(1, round(self.forgetting / FADING))
        return np.array([(self.batch, every, arrives, self.missing)], SETTINGS)


#: Every reward at once, as the loop without a queue has it.
AT_ONCE = Feedback()


def late_steps(
    state: Any,
    law: Any,
    rng: np.random.Generator,
    arms: int,
    t: int,
    stop: int,
    checkpoints: NDArray[np.int64],
    curve: Floats,
    totals: Floats,
    settings: Records,
    at_: Records,
    queue: Records,
    known: Floats,
    sums: Floats,
) -> tuple[int, int]:
    """Steps t … stop - 1; how far it came, and what it stopped for."""
    at, rules = at_[0], settings[0]
    mark = 0
    while checkpoints[mark] <= t and mark < len(checkpoints) - 1:
        mark += 1
    while True:
        while at.due > 0:
            # In order, where all come in.
            k = at.pending - at.due if rules.arrives >= 1.0 else int(rng.random() * at.pending)
            arm, tag, reward, lost = queue[k].arm, queue[k].tag, queue[k].reward, queue[k].lost
            at.due -= 1
            if rules.arrives < 1.0:
                at.pending -= 1
                last = queue[at.pending]
                queue[k].arm, queue[k].tag = last.arm, last.tag
                queue[k].reward, queue[k].lost = last.reward, last.lost
            elif at.due == 0:
                at.pending = 0
            if lost == 1:
                if tag >= 0 and not give_up(state, arm, tag):
                    at.arm, at.tag = arm, tag
                    return t, FORGET
                continue
            if tag < 0:
                learn_count(state, arm, 1, reward)
            elif expects(state, arm, tag):
                update(state, arm, tag, reward)
            if rules.forget_every > 0:
                known[arm] += 1.0
                sums[arm] += reward
                at.learned += 1
                if at.learned >= rules.forget_every:
                    return t, FADE
        if t >= stop:
            return t, DONE
        if at.pending == len(queue):
            return t, FULL
        arm, tag = choose(state, rng)
        if np.uint64(arm) >= np.uint64(arms):
            at.arm = arm
            return t, OFF_THE_GRID
        reward, regret = draw(law, arm, rng)
        totals[0] += gap(law, arm)
        totals[1] += regret
        one = queue[at.pending]
        one.arm, one.tag, one.reward, one.lost = arm, tag, reward, 0
        if rules.missing > 0.0 and rng.random() < rules.missing:
            one.lost = 1
        at.pending += 1
        t += 1
        if t == checkpoints[mark]:
            note(curve, mark, totals)
            mark += mark < len(checkpoints) - 1
        if t % rules.batch == 0:
            at.due = at.pending
            if rules.arrives < 1.0:
                at.due = rng.binomial(at.pending, rules.arrives)


def late_run(
    series: Series,
    problem: Problem,
    law: Any,
    rng: np.random.Generator,
    curve: Floats,
    chunk: int,
    stopped: Callable[[], bool],
) -> Any:
    """Play one run; the policy's state at its end."""
    feedback, arms = series.feedback, problem.arms
    feedback.check(series.policy, problem)
    state, totals = series.start(problem), np.zeros(2)
    at, settings = np.zeros(1, AT), feedback.settings
    queue = np.zeros(max(64, 2 * feedback.batch), PULL)
    # What has faded is kept per arm, and only where it fades.
    known, sums = np.zeros((2, arms if feedback.forgetting else 0))
    for begin in range(0, series.n, chunk):
        if stopped():
            raise KeyboardInterrupt
        problem.refill(law, rng)
        t, stop = begin, min(begin + chunk, series.n)
        while True:
            t, reason = kernel(late_steps, state, law)(
                state, law, rng, arms, t, stop, series.checkpoints, curve, totals,
                settings, at, queue, known, sums,
            )  # fmt: skip
            if reason == DONE:
                break
            if reason == OFF_THE_GRID:
                raise refuse(series.policy.label, t, int(at[0].arm), problem.grid)
            if reason == FULL:
                queue = np.concatenate([queue, np.zeros(len(queue), PULL)])
            elif reason == FORGET:
                state = state.forget(int(at[0].arm), int(at[0].tag))
            else:
                assert feedback.forgetting is not None
                factor = 0.5 ** (at[0].learned / feedback.forgetting)
                known *= factor
                sums *= factor
                at[0].learned = 0
                queue["tag"] = -1  # they mean nothing to a new state
                state = series.start(problem)
                kernel(load_tallies, state)(state, known, sums)
    return state


def compile_late(series: Series, problem: Problem, rng: np.random.Generator) -> None:
    """Have the loop ready."""
    shorter = replace(series, n=1, checkpoints=np.array([1]))
    late_run(shorter, problem, problem.law, rng, room_for_curve(1), 1, lambda: False)
