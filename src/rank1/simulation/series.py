"""A series: all runs of one policy on one problem, how to play them, and their dependencies."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import digest, generator, kernel, missing
from rank1.compiled.dispatch import OPTIONS
from rank1.errors import InputError
from rank1.interrupts import held_back
from rank1.policies.base import Leaps, Policy
from rank1.policies.folding import load_tallies
from rank1.policies.mistakes import best_arm, start
from rank1.problems.base import Problem
from rank1.problems.shuffled import Shuffled
from rank1.simulation.block import Block
from rank1.simulation.feedback import AT_ONCE, Feedback
from rank1.simulation.known import known_of
from rank1.simulation.late import compile_late, late_run, late_steps
from rank1.simulation.loop import NEVER, refuse, room_for_curve
from rank1.simulation.loop import play as play_steps
from rank1.simulation.stop import OwnRule, StopRule

__all__ = ["METHODS", "Run", "Series", "checkpoints_of", "resolved"]

#: Steps between two checks for an interruption by the user.
CHUNK = 2**18
#: The shortest probe in seconds, unless a whole run is shorter.
PROBE_LEAST = 0.03

#: How runs are played: every step, whole stages at once, or whichever is faster.
METHODS = ("auto", "steps", "stages")

#: Increase this when runs give different numbers although no policy, problem or loop has changed.
VERSION = 5

Floats = NDArray[np.float64]

# Additional streams of random numbers of a run.
SPLIT, SHUFFLE = 1, 2


class Run(NamedTuple):
    """One policy on one problem for n steps from one seed."""

    #: Expected and realised regret at each checkpoint: (checkpoints, 2); constant after a stop.
    curve: Floats
    #: The problem's own number of the arm, even if the problem was shuffled.
    best_arm: int
    state: Any
    #: What was played: the problem itself, or its shuffled version.
    problem: Problem
    #: The number of pulls: n, or fewer if the rule stopped the run.
    pulls: int
    stopped: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """The values to store, named like the arrays of a block."""
        return {
            "curves": self.curve,
            "best_arms": self.best_arm,
            "pulls": self.pulls,
            "stopped": self.stopped,
        }


def checkpoints_of(n: int, checkpoints: int | Iterable[int]) -> NDArray[np.int64]:
    """The steps at which regret is recorded: a number of evenly spaced steps, or the given ones.

    The last step is always among them.

    >>> checkpoints_of(1000, 4).tolist()
    [250, 500, 750, 1000]
    >>> checkpoints_of(1000, [10, 100]).tolist()
    [10, 100, 1000]
    """
    if isinstance(checkpoints, Iterable):
        given = [checks.integer("checkpoints", step, 1, n) for step in checkpoints]
        return np.unique(np.array([*given, n], np.int64))
    count = min(checks.integer("checkpoints", checkpoints, 1, 10**6), n)
    return np.array([n * k // count for k in range(1, count + 1)], np.int64)


def resolved(method: str, policy: Policy, problem: Problem) -> str:
    """Resolve "auto": whole stages if possible, otherwise steps."""
    checks.one_of("method", method, METHODS)
    possible = (
        policy.leaps is not None and problem.has_tallies and policy.leaps.suits(policy, problem)
    )
    if method == "stages" and not possible:
        raise InputError(
            "method",
            method,
            f"auto or steps for {policy.label} on this problem",
            "stages need a policy with `leaps`, such as rank1elim, and a law that can draw sums",
        )
    return "stages" if possible and method != "steps" else "steps"


def policy_number(policy: Policy) -> int:
    """A number that identifies the policy, the same in every process.

    It depends only on settings that differ from their defaults, so that adding a setting leaves
    existing runs unchanged.
    """
    told = [
        (name, value if _is_plain(value) else digest(value))
        for name, value in sorted(policy.changed.items())
    ]
    who = repr((policy.name, told)).encode()
    return int.from_bytes(hashlib.sha256(who).digest()[:16], "little")


def _is_plain(value: Any) -> bool:
    """Whether a value's `repr` identifies it in every process."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


@dataclass(frozen=True, eq=False)
class Series:
    """One policy on one problem: everything that its runs have in common.

    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> series = Series.of(rank1.Rank1Elim(), problem, n=1000, checkpoints=2)
    >>> series.method, series.play(range(3))["curves"].shape
    ('stages', (3, 2, 2))
    """

    policy: Policy
    problem: Problem
    n: int
    #: The steps at which regret is recorded.
    checkpoints: NDArray[np.int64] = field(repr=False)
    seed: int
    #: "steps" or "stages".
    method: str
    #: Whether the levels of each side are relabelled at random in each run.
    shuffle: bool = False
    #: How rewards arrive.
    feedback: Feedback = field(default=AT_ONCE, kw_only=True)
    #: What ends a run before n steps.
    stop: StopRule | None = field(default=None, kw_only=True)

    @classmethod
    def of(
        cls,
        policy: Policy,
        problem: Problem,
        n: int,
        checkpoints: int | Iterable[int] = 100,
        seed: int = 1,
        method: str = "auto",
        shuffle: bool = False,
        feedback: Feedback = AT_ONCE,
        stop: StopRule | None = None,
    ) -> Series:
        """A series from the arguments of `simulate`."""
        n = checks.integer("n", n, 1)
        policy.check(problem.grid)
        feedback.check(policy, problem)
        if feedback != AT_ONCE or not isinstance(stop, OwnRule | None):
            if method == "stages":
                why = "auto or steps if rewards are late, or if a rule looks after every pull"
                raise InputError("method", method, why)
            method = "steps"
        return cls(
            policy,
            problem,
            n,
            checkpoints_of(n, checkpoints),
            checks.integer("seed", seed, 0, None),
            resolved(method, policy, problem),
            bool(shuffle),
            feedback=feedback,
            stop=stop,
        )

    @cached_property
    def key(self) -> str:
        """A digest of everything the runs depend on, including code.

        Raises `NoDigest` if that is impossible; such runs are not stored.
        """
        return digest(*self._depends_on())

    def _depends_on(self) -> tuple[Any, ...]:
        policy, problem = self.policy, self.problem
        loop: Any = play_steps if self.method == "steps" else self._leaps.play
        more: tuple[Any, ...] = (Shuffled,) if self.shuffle else ()
        if self.feedback != AT_ONCE:
            loop = late_steps
            more += self.feedback, load_tallies
        if self.stop is not None:
            more += (self.stop,)
        return (
            VERSION, OPTIONS,
            self.n, self.checkpoints, self.seed, self.method, self.shuffle, loop,
            # In settings, 1 and 1.0 are the same; a policy may store more than settings.
            type(policy), {**getattr(policy, "__dict__", {}), **policy.settings},
            # Means may have been set by hand, and the law can be anything.
            problem, problem.means, problem.digest, type(problem.law),
            *more,
        )  # fmt: skip

    @property
    def _leaps(self) -> Leaps:
        assert self.policy.leaps is not None
        return self.policy.leaps

    @cached_property
    def _who(self) -> tuple[int, int]:
        return self.problem.digest, policy_number(self.policy)

    def seed_of(self, run: int, stream: int | None = None) -> np.random.SeedSequence:
        """The seed of a run: depends on what the run is, and on nothing else in the call.

        Streams of one run are independent of each other.
        """
        key = (*self._who, run) if stream is None else (*self._who, run, stream)
        return np.random.SeedSequence(self.seed, spawn_key=key)

    def play(self, runs: Iterable[int], stopped: Callable[[], bool] = lambda: False) -> Block:
        """Play some runs, one after another, checking `stopped` from time to time."""
        self.compile()
        begin = time.thread_time()
        facts = [self.play_run(run, stopped).facts for run in runs]
        names = list(facts[0]) if self.stop is not None else ["curves", "best_arms"]
        arrays = {name: np.array([each[name] for each in facts]) for name in names}
        return Block(arrays, time.thread_time() - begin)

    def play_run(self, run: int, stopped: Callable[[], bool] = lambda: False) -> Run:
        """Play one run to the end, in memory that doesn't grow with n."""
        problem = self.problem
        if self.shuffle:
            with generator(self.seed_of(run, SHUFFLE)) as rng:
                problem = Shuffled(problem, rng)
        state, law = self.start(problem), problem.law
        rule, own = self._rule(problem), isinstance(self.stop, OwnRule)
        curve, totals, t = room_for_curve(len(self.checkpoints)), np.zeros(2), 0
        ended = own and bool(state.done())  # there is one arm
        # Whole stages take no time, and can't be interrupted.
        chunk = self.n if self.method == "stages" else problem.block or CHUNK
        with generator(self.seed_of(run)) as rng, generator(self.seed_of(run, SPLIT)) as splitter:
            if self.feedback != AT_ONCE and not ended:
                late = late_run(self, problem, law, rng, curve, chunk, stopped, rule)
                state, t, ended, totals = late
            else:
                loop = self._loop(problem, state, law, curve, totals, rule)
            while t < self.n and not ended:
                if stopped():
                    raise KeyboardInterrupt
                problem.refill(law, rng)
                until = min(t + chunk, self.n)
                t, arm, ended = loop(rng, splitter, t, until)
                if t < until and not ended:
                    raise refuse(self.policy.label, t, arm, problem.grid)
        named = own or self.stop is None
        best = best_arm(self.policy, state) if named else rule.leader()
        if ended:
            curve[self.checkpoints >= t, :2] = totals
        if isinstance(problem, Shuffled):
            best = problem.arm(best)
        return Run(curve[:, :2].copy(), best, state, problem, t, ended)

    def start(self, problem: Problem) -> Any:
        """The policy's state before the first step."""
        return start(self.policy, known_of(self.policy, problem, self.n))

    def _rule(self, problem: Problem) -> Any:
        """The state of the stopping rule before the first step."""
        return NEVER if self.stop is None else self.stop.start(problem.grid)

    def _loop(
        self, problem: Problem, state: Any, law: Any, curve: Floats, totals: Floats, rule: Any
    ) -> Callable[..., tuple[int, int, bool]]:
        """A function that plays from step t to another.

        It returns the step it reached, the last arm if that lay outside the grid, and whether the
        rule stopped it.
        """
        arms, marks = problem.arms, self.checkpoints
        compiled = kernel(*self._kernel_for(state, law, rule))
        if self.method == "steps":
            return lambda rng, _, t, stop: compiled(
                state, law, rng, rule, arms, t, stop, marks, curve, totals
            )
        own = isinstance(self.stop, OwnRule)
        work = self._leaps.room(law, problem.grid, marks, curve, totals)
        # The splitter is separate, so that the run itself doesn't depend on the checkpoints.
        return lambda rng, splitter, _, stop: (
            *compiled(state, law, rng, splitter, stop, own, work), own and bool(state.done())
        )  # fmt: skip

    def _kernel_for(self, state: Any, law: Any, rule: Any) -> tuple[Any, ...]:
        """The function that is compiled, and what it is compiled for."""
        if self.method == "steps":
            return play_steps, state, law, rule
        return self._leaps.play, state, law

    def uncompiled(self) -> Path | None:
        """The folder in which `compile` would store the kernel; None if there is nothing to do."""
        problem = self.problem
        if self.feedback != AT_ONCE or self.shuffle:
            return None  # compiled when it is played
        return missing(*self._kernel_for(self.start(problem), problem.law, self._rule(problem)))

    def compile(self) -> None:
        """Compile the kernel in advance, so that playing times don't include it."""
        with generator(np.random.SeedSequence(0)) as rng, held_back():
            problem = Shuffled(self.problem, rng) if self.shuffle else self.problem
            rule = self._rule(problem)
            if self.feedback != AT_ONCE:
                compile_late(self, problem, rng, rule)
                return
            state, curve = self.start(problem), room_for_curve(len(self.checkpoints))
            self._loop(problem, state, problem.law, curve, np.zeros(2), rule)(rng, rng, 0, 0)

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key: steps of two series with the same key take equally long."""
        problem = self.problem
        # The cost of a step doesn't depend on n, but the cost of a whole stage does.
        n = self.n if self.method == "stages" else 0
        return self.policy.name, type(problem.law), problem.grid.sizes, n, self.stop is None

    def guess(self) -> float:
        """A rough estimate of the seconds a run takes; for whole stages it depends on the arms."""
        if self.method == "stages":
            return 1e-4 + 1e-8 * self.problem.arms
        return 1e-7 * self.n

    def probe(self) -> tuple[float, float]:
        """The seconds that a run takes, measured by playing part of it; and how long that took."""
        n = self.n
        if self.method == "steps" and self.stop is None:
            n = min(n, 1000 + 4 * self.problem.arms)
        spent = took = 0.0
        try:
            while True:
                shorter = replace(self, n=n, checkpoints=checkpoints_of(n, len(self.checkpoints)))
                took = shorter.play(range(1)).seconds
                spent += took
                if took >= PROBE_LEAST or n == self.n:
                    return took * self.n / n, spent
                n = min(4 * n, self.n)
        except Exception:  # its cells will report the error
            return 0.0, spent

    def __str__(self) -> str:
        told = self.problem.description
        settings = ", ".join(f"{key}={checks.shown(v)}" for key, v in told["settings"].items())
        return f"{self.policy.label} on {told['name']} ({settings}), n={self.n:,}"
