"""The loop for runs with late, batched or missing rewards, or with drifting means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import kernel, record
from rank1.policies.base import Records, choose, expects, update
from rank1.policies.folding import give_up, learn_count, load_tallies
from rank1.policies.step import draw, gap, note
from rank1.simulation.loop import NEVER, learn, may_stop, refuse, room_for_curve

if TYPE_CHECKING:
    from rank1.problems.base import Problem
    from rank1.simulation.series import Series

__all__ = ["Late", "compile_late", "late_run", "late_steps"]

Floats = NDArray[np.float64]

#: A pull whose reward is pending.
PULL = record("arm", "tag", "lost", reward=float)

#: The position of a run.
AT = record(
    "pending",  # pulls whose rewards are pending
    "due",  # how many of them arrive now
    "learned",  # rewards since the policy last forgot
    "arm",  # the pull at which the loop returned
    "tag",
)

# Why the loop returns.
DONE, OFF_THE_GRID, FULL, FORGET, FADE, STOPPED = range(6)


def late_steps(
    state: Any,
    law: Any,
    rng: np.random.Generator,
    rule: Any,
    arms: int,
    t: int,
    stop: int,
    checkpoints: NDArray[np.int64],
    curve: Floats,
    totals: Floats,
    settings: Records,
    drift: Floats,
    at_: Records,
    queue: Records,
    known: Floats,
    sums: Floats,
) -> tuple[int, int]:
    """Play steps t … stop - 1. Returns the step it reached, and why it returned.

    If the delay depends on the reward, `queue` holds the pull of step s at place s modulo its
    length. The steps of a batch are processed one after another: in each, the failure and the
    success that are due arrive, if there are any.
    """
    at, rules = at_[0], settings[0]
    mark = 0
    while checkpoints[mark] <= t and mark < len(checkpoints) - 1:
        mark += 1
    while True:
        while at.due > 0:
            if rules.exact == 1:
                number = 2 * rules.batch - at.due
                success = number % 2 == 1
                pulled = t - rules.batch + 1 + number // 2
                pulled -= rules.success if success else rules.failure
                k = pulled % len(queue)
                if pulled < 1 or (queue[k].reward > 0.0) != success:
                    at.due -= 1
                    continue
            else:  # in order, if all arrive
                k = at.pending - at.due if rules.arrives >= 1.0 else int(rng.random() * at.pending)
            arm, tag, reward, lost = queue[k].arm, queue[k].tag, queue[k].reward, queue[k].lost
            at.due -= 1
            if rules.exact == 1:
                pass
            elif rules.arrives < 1.0:
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
            learn(rule, arm, reward)
            if may_stop(rule, state):
                return t, STOPPED
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
        share = 1.0
        if len(drift) > 0:
            share = drift[t % len(drift)]
            if rng.random() >= share:  # the best arm's reward is 0, too
                reward, regret = 0.0, 0.0
        totals[0] += share * gap(law, arm)
        totals[1] += regret
        one = queue[(t + 1) % len(queue) if rules.exact == 1 else at.pending]
        one.arm, one.tag, one.reward, one.lost = arm, tag, reward, 0
        if rules.missing > 0.0 and rng.random() < rules.missing:
            one.lost = 1
        at.pending += rules.exact == 0
        t += 1
        if t == checkpoints[mark]:
            note(curve, mark, totals)
            mark += mark < len(checkpoints) - 1
        if t % rules.batch == 0:
            at.due = 2 * rules.batch if rules.exact == 1 else at.pending
            if rules.arrives < 1.0:
                at.due = rng.binomial(at.pending, rules.arrives)


class Late(NamedTuple):
    """What `late_run` returns."""

    state: Any
    pulls: int
    #: Whether the rule stopped the run.
    stopped: bool
    #: Expected and realised regret.
    totals: Floats


def late_run(
    series: Series,
    problem: Problem,
    law: Any,
    rng: np.random.Generator,
    curve: Floats,
    chunk: int,
    stopped: Callable[[], bool],
    rule: Any = NEVER,
) -> Late:
    """Play one run to its end, or until the rule stops it."""
    feedback, arms = series.feedback, problem.arms
    feedback.check(series.policy, problem)
    state, totals = series.start(problem), np.zeros(2)
    at, settings, drift = np.zeros(1, AT), feedback.settings, feedback.multipliers
    queue = np.zeros(feedback.room, PULL)
    # Discounted counts and sums per arm, only if the policy forgets.
    known, sums = np.zeros((2, arms if feedback.forgetting else 0))
    for begin in range(0, series.n, chunk):
        if stopped():
            raise KeyboardInterrupt
        problem.refill(law, rng)
        t, stop = begin, min(begin + chunk, series.n)
        while True:
            t, reason = kernel(late_steps, state, law, rule)(
                state, law, rng, rule, arms, t, stop, series.checkpoints, curve, totals,
                settings, drift, at, queue, known, sums,
            )  # fmt: skip
            if reason == DONE:
                break
            if reason == STOPPED:
                return Late(state, t, True, totals)
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
                queue["tag"] = -1  # tags mean nothing to a new state
                state = series.start(problem)
                kernel(load_tallies, state)(state, known, sums)
    return Late(state, series.n, False, totals)


def compile_late(series: Series, problem: Problem, rng: np.random.Generator, rule: Any) -> None:
    """Compile the loop."""
    shorter = replace(series, n=1, checkpoints=np.array([1]))
    late_run(shorter, problem, problem.law, rng, room_for_curve(1), 1, lambda: False, rule)
