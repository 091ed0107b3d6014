"""Runs in which rewards come late, in batches, or never, means drift, or the policy forgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import kernel, record
from rank1.errors import InputError, InputTypeError
from rank1.policies.base import Policy, Records, choose, expects, has_counts, update
from rank1.policies.folding import give_up, learn_count, load_tallies
from rank1.policies.step import draw, gap, note
from rank1.simulation.known import smallest_start
from rank1.simulation.loop import learn, may_stop, refuse, room_for_curve
from rank1.simulation.stop import NEVER

if TYPE_CHECKING:
    from rank1.problems.base import Problem
    from rank1.simulation.series import Series

__all__ = ["AT_ONCE", "Cycle", "Feedback", "Late", "compile_late", "late_run", "late_steps"]

Floats = NDArray[np.float64]

#: A policy with a half-life of h rewards forgets a little after each h/16 of them.
FADING = 16

#: The longest delay by what a reward is, and the longest period of a drift: both take memory.
MAX_KEPT_STEPS = 10**7

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

SETTINGS = record(
    "batch",
    "forget_every",
    "exact",  # 1 if a reward's delay depends on what it is; then they are:
    "success",
    "failure",
    arrives=float,
    missing=float,
)

# What the loop stops for.
DONE, OFF_THE_GRID, FULL, FORGET, FADE, STOPPED = range(6)


@dataclass(frozen=True)
class Cycle:
    """Means that fall by the amplitude, as a part of themselves, and rise again in each period."""

    amplitude: float
    period: int

    @property
    def multipliers(self) -> Floats:
        """Of each step of a period: from 1 down to 1 − amplitude and back.

        >>> Cycle(0.5, 4).multipliers.tolist()
        [1.0, 0.75, 0.5, 0.75]
        """
        turn = np.arange(self.period) / self.period
        return 1 - self.amplitude * (1 - np.cos(2 * np.pi * turn)) / 2


@dataclass(frozen=True)
class Feedback:
    """How rewards come in; see `simulate`."""

    #: On average; or exactly, of successes and of failures.
    delay: float | tuple[int, int] = 0.0
    missing: float = 0.0
    batch: int = 1
    forgetting: float | None = None
    #: What means are multiplied with: in a cycle, or step by step.
    drift: Cycle | tuple[float, ...] | None = None

    @classmethod
    def of(
        cls,
        delay: float | Mapping[str, int] = 0.0,
        missing: float = 0.0,
        batch: int = 1,
        forgetting: float | None = None,
        drift: Mapping[str, float] | Sequence[float] | None = None,
    ) -> Feedback:
        """From arguments as `simulate` takes them, and as `document` gives them.

        >>> Feedback.of(delay={"success": 0, "failure": 2000}).delay
        (0, 2000)
        """
        late = _delay(delay)
        missing = checks.number("missing", missing, 0, 1, below=True)
        if forgetting is not None:
            forgetting = checks.number("forgetting", forgetting, 1, 1e12)
        batch = checks.integer("batch", batch, 1, 10**6)
        return cls(late, missing, batch, forgetting, _drift(drift))

    def document(self) -> dict[str, Any]:
        """As plain values, from which `of` makes the same."""
        plain: dict[str, Any] = asdict(self)
        if isinstance(self.delay, tuple):
            plain["delay"] = dict(zip(("success", "failure"), self.delay, strict=True))
        if isinstance(self.drift, tuple):
            plain["drift"] = list(self.drift)
        return plain

    def check(self, policy: Policy, problem: Problem) -> None:
        """Refuse a policy that can't forget, and rewards that can't fade or drift."""
        if self.drift is not None and not problem.low <= 0 <= problem.high:
            rewards = f"rewards in [{problem.low:g}, {problem.high:g}]"
            raise InputError("drift", self.drift, "None unless a reward may be 0", got=rewards)
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
        exact = self.delay if isinstance(self.delay, tuple) else None
        delay = 0.0 if isinstance(self.delay, tuple) else self.delay
        arrives = 1 - (delay / (1 + delay)) ** self.batch
        every = 0 if self.forgetting is None else max(1, round(self.forgetting / FADING))
        by_reward = (exact is not None, *(exact or (0, 0)))
        return np.array([(self.batch, every, *by_reward, arrives, self.missing)], SETTINGS)

    @property
    def multipliers(self) -> Floats:
        """What means are multiplied with at each step, over and over; empty if they stay."""
        if isinstance(self.drift, Cycle):
            return self.drift.multipliers
        return np.array(self.drift or (), np.float64)

    @property
    def room(self) -> int:
        """How many pulls may be on their way; at first, if that depends on chance."""
        if isinstance(self.delay, tuple):
            return max(self.delay) + self.batch + 1
        return max(64, 2 * self.batch)


def _delay(given: Any) -> float | tuple[int, int]:
    if not isinstance(given, Mapping):
        return checks.number("delay", given, 0, 1e9)
    if set(given) != {"success", "failure"}:
        expected = "a number, or a dict of success and failure"
        raise InputError("delay", dict(given), expected)
    success, failure = (
        checks.integer(f"delay of a {name}", given[name], 0, MAX_KEPT_STEPS)
        for name in ("success", "failure")
    )
    return success, failure


def _drift(given: Any) -> Cycle | tuple[float, ...] | None:
    if given is None:
        return None
    if isinstance(given, Mapping):
        if set(given) != {"amplitude", "period"}:
            expected = "a dict of amplitude and period, or a list of multipliers"
            raise InputError("drift", dict(given), expected)
        amplitude = checks.number("amplitude of a drift", given["amplitude"], 0, 1)
        return Cycle(
            amplitude, checks.integer("period of a drift", given["period"], 2, MAX_KEPT_STEPS)
        )
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise InputTypeError("drift", given, "a dict of amplitude and period, or a list")
    if not 0 < len(given) <= MAX_KEPT_STEPS:
        raise InputError("drift", given, f"a list of 1 to {MAX_KEPT_STEPS:,} multipliers")
    return tuple(checks.number("a multiplier of drift", each, 0, 1) for each in given)


#: Every reward at once, as the loop without a queue has it.
AT_ONCE = Feedback()


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
    """Steps t … stop - 1; how far it came, and what it stopped for.

    Where the delay depends on the reward, `queue` has the pull of step s at place s modulo its
    length. The steps of a batch are gone through one after another: in each, the failure and the
    success that are due then come in, if there are such.
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
            else:  # in order, where all come in
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
            if rng.random() >= share:  # of the best arm's reward, too
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
    #: Whether the rule has.
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
    """Play one run, until its end or until the rule stops it."""
    feedback, arms = series.feedback, problem.arms
    feedback.check(series.policy, problem)
    state, totals = series.start(problem), np.zeros(2)
    at, settings, drift = np.zeros(1, AT), feedback.settings, feedback.multipliers
    queue = np.zeros(feedback.room, PULL)
    # What has faded is kept per arm, and only where it fades.
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
                queue["tag"] = -1  # they mean nothing to a new state
                state = series.start(problem)
                kernel(load_tallies, state)(state, known, sums)
    return Late(state, series.n, False, totals)


def compile_late(
    series: Series, problem: Problem, rng: np.random.Generator, rule: Any = NEVER
) -> None:
    """Have the loop ready."""
    shorter = replace(series, n=1, checkpoints=np.array([1]))
    late_run(shorter, problem, problem.law, rng, room_for_curve(1), 1, lambda: False, rule)
