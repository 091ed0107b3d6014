"""A series: all runs of one policy on one problem, how they are played and what they depend on."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import digest, generator, kernel
from rank1.compiled.dispatch import OPTIONS
from rank1.errors import InputError
from rank1.interrupts import held_back
from rank1.policies.base import Policy
from rank1.policies.folding import load_tallies
from rank1.problems.base import Problem
from rank1.problems.shuffled import Shuffled
from rank1.simulation.block import Block
from rank1.simulation.feedback import AT_ONCE, Feedback, compile_late, play_late, play_late_run
from rank1.simulation.known import known_of
from rank1.simulation.loop import play as play_steps
from rank1.simulation.loop import refuse, room_for_curve
from rank1.simulation.rounds import play_rounds
from rank1.simulation.stages import play_stages, room_for

__all__ = ["METHODS", "Run", "Series", "checkpoints_of", "has_stages", "resolved"]

#: Steps between two looks at whether the user has had enough.
CHUNK = 2**18
#: A probe takes at least so many seconds, or a whole run.
PROBE_LEAST = 0.03

#: How runs are played: every step, whole stages at once, or whichever is faster.
METHODS = ("auto", "steps", "stages")

#: To be raised when runs give other numbers though no policy, problem or loop has changed.
VERSION = 4

# Streams of random numbers that a run has beside its own.
SPLIT, SHUFFLE = 1, 2


class Run(NamedTuple):
    """One policy on one problem for n steps from one seed."""

    #: Expected and realised regret at each checkpoint: (checkpoints, 2).
    curve: NDArray[np.float64]
    #: By the problem's own numbers, also where it was shuffled.
    best_pair: tuple[int, int]
    state: Any
    #: What was played: the problem itself, or the order of it that this run had.
    problem: Problem


def checkpoints_of(n: int, checkpoints: int | Iterable[int]) -> NDArray[np.int64]:
    """The steps at which regret is recorded: that many, evenly spaced, or those given.

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


def has_stages(policy: Policy, problem: Problem) -> bool:
    """Whether runs can be played by whole stages."""
    return (policy.eliminates or policy.has_rounds) and problem.has_tallies


def resolved(method: str, policy: Policy, problem: Problem) -> str:
    """The method that "auto" stands for: whole stages where they are possible."""
    checks.one_of("method", method, METHODS)
    possible = has_stages(policy, problem)
    if method == "stages" and not possible:
        raise InputError(
            f"method must be auto or steps for {policy.label} on this problem, got 'stages': "
            "that needs an elimination policy, and a law that can draw sums"
        )
    return "stages" if possible and method != "steps" else "steps"


def policy_number(policy: Policy) -> int:
    """A number that tells who plays; the same in every process."""
    default = {field.name: field.default for field in fields(policy)}
    told = [
        (name, value if _is_plain(value) else digest(value))
        for name, value in sorted(policy.settings.items())
        if name not in policy.later or value != default[name]
    ]
    who = repr((policy.name, told)).encode()
    return int.from_bytes(hashlib.sha256(who).digest()[:16], "little")


def _is_plain(value: Any) -> bool:
    """Whether a value's `repr` says what it is, in every process."""
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
    #: Whether rows and columns are relabelled at random in each run.
    shuffle: bool = False
    #: How rewards come in.
    feedback: Feedback = field(default=AT_ONCE, kw_only=True)

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
    ) -> Series:
        """A series from arguments as `simulate` takes them."""
        n = checks.integer("n", n, 1)
        feedback.check(policy, problem)
        if feedback != AT_ONCE:
            if method == "stages":
                raise InputError("method must be auto or steps where rewards don't come at once")
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
        )

    @cached_property
    def key(self) -> str:
        """A digest of all that the runs depend on, code included.

        Raises `NoDigest` where that can't be had; such runs are not stored.
        """
        return digest(*self._depends_on())

    def _depends_on(self) -> tuple[Any, ...]:
        policy, problem = self.policy, self.problem
        loop: Any = self._stages if self.method == "stages" else play_steps
        more: tuple[Any, ...] = (Shuffled,) if self.shuffle else ()
        if self.feedback != AT_ONCE:
            loop = play_late
            more += self.feedback, load_tallies
        return (
            VERSION, OPTIONS,
            self.n, self.checkpoints, self.seed, self.method, self.shuffle, loop,
            # In settings, 1 and 1.0 are the same; a policy may keep more than settings.
            type(policy), {**getattr(policy, "__dict__", {}), **policy.settings},
            # The means may have been set by hand, and the law be made of anything.
            problem, problem.means, problem.digest, type(problem.law),
            *more,
        )  # fmt: skip

    @property
    def _stages(self) -> Callable[..., Any]:
        return play_stages if self.policy.eliminates else play_rounds

    def seed_of(self, run: int, stream: int | None = None) -> np.random.SeedSequence:
        """A run's seed depends on what the run is, and on nothing that happens beside it.

        Streams of one run are independent of each other.
        """
        who = self.problem.digest, policy_number(self.policy), run
        key = who if stream is None else (*who, stream)
        return np.random.SeedSequence(self.seed, spawn_key=key)

    def play(self, runs: Iterable[int], stopped: Callable[[], bool] = lambda: False) -> Block:
        """Play some runs, one after another; `stopped` is asked from time to time."""
        self.compile()
        begin = time.thread_time()
        played = [self.play_run(run, stopped) for run in runs]
        return Block(
            {
                "curves": np.array([run.curve for run in played]),
                "best_pairs": np.array([run.best_pair for run in played], np.int64),
            },
            time.thread_time() - begin,
        )

    def play_run(self, run: int, stopped: Callable[[], bool] = lambda: False) -> Run:
        """Play one run to the end, in memory that doesn't grow with n."""
        problem = self.problem
        if self.shuffle:
            with generator(self.seed_of(run, SHUFFLE)) as rng:
                problem = Shuffled(problem, rng)
        state, law = self.start(problem), problem.law
        curve = room_for_curve(len(self.checkpoints))
        with generator(self.seed_of(run)) as rng, generator(self.seed_of(run, SPLIT)) as splitter:
            # Whole stages take no time, and can't be cut anywhere.
            chunk = self.n if self.method == "stages" else problem.block or CHUNK
            if self.feedback != AT_ONCE:
                state = play_late_run(self, problem, law, rng, curve, chunk, stopped)
                return self._ended(problem, state, curve)
            step, totals = self._loop(problem, state, law, curve), np.zeros(2)
            for t in range(0, self.n, chunk):
                if stopped():
                    raise KeyboardInterrupt
                problem.refill(law, rng)
                stop = min(t + chunk, self.n)
                reached, row, column = step(rng, splitter, t, stop, totals)
                if reached < stop:
                    raise refuse(self.policy.label, reached, row, column, problem.K, problem.L)
        return self._ended(problem, state, curve)

    def _ended(self, problem: Problem, state: Any, curve: NDArray[np.float64]) -> Run:
        pair = state.best()
        if isinstance(problem, Shuffled):
            pair = problem.pair(*pair)
        return Run(curve[:, :2].copy(), pair, state, problem)

    def start(self, problem: Problem) -> Any:
        """The policy's state before the first step."""
        return self.policy.start(known_of(self.policy, problem, self.n))

    def _loop(
        self, problem: Problem, state: Any, law: Any, curve: NDArray[np.float64]
    ) -> Callable[..., tuple[int, int, int]]:
        """What plays from step t until another; returns how far it came, and the last pull."""
        K, L, marks = problem.K, problem.L, self.checkpoints
        if self.method == "steps":
            steps = kernel(play_steps, state, law)
            return lambda rng, _, t, stop, totals: steps(
                state, law, rng, K, L, t, stop, marks, curve, totals
            )
        stages = kernel(self._stages, state, law)
        room: tuple[Any, ...] = room_for(law, K, L, marks)
        if not self.policy.eliminates:
            room = (*room, np.arange(max(K, L)))
        # The splitter is apart, so that the run itself doesn't depend on the checkpoints.
        return lambda rng, splitter, t, stop, totals: stages(
            state, law, rng, splitter, K, L, stop, marks, curve, totals, *room
        )

    def compile(self) -> None:
        """Have the kernel ready, so that compiling isn't counted as playing."""
        with generator(np.random.SeedSequence(0)) as rng, held_back():
            problem = Shuffled(self.problem, rng) if self.shuffle else self.problem
            state, curve = self.start(problem), room_for_curve(len(self.checkpoints))
            if self.feedback != AT_ONCE:
                compile_late(self, problem, rng)
            else:
                self._loop(problem, state, problem.law, curve)(rng, rng, 0, 0, np.zeros(2))

    @property
    def kind(self) -> tuple[Any, ...]:
        """A step of two series of the same kind takes as long."""
        problem = self.problem
        # A step costs the same whatever n is, but a whole stage doesn't cost by the step.
        n = self.n if self.method == "stages" else 0
        return self.policy.name, type(problem.law), problem.K, problem.L, n

    def guess(self) -> float:
        """Seconds that a run takes, roughly: whole stages cost by the pair, steps 100 ns each."""
        if self.method == "stages":
            return 1e-4 + 1e-8 * self.problem.K * self.problem.L
        return 1e-7 * self.n

    def probe(self) -> tuple[float, float]:
        """Seconds that a run takes, by playing a little; and how long it took to find out."""
        n = self.n
        if self.method == "steps":
            n = min(n, 1000 + 4 * self.problem.K * self.problem.L)
        spent = took = 0.0
        try:
            while True:
                shorter = replace(self, n=n, checkpoints=checkpoints_of(n, len(self.checkpoints)))
                took = shorter.play(range(1)).seconds
                spent += took
                if took >= PROBE_LEAST or n == self.n:
                    return took * self.n / n, spent
                n = min(4 * n, self.n)
        except Exception:  # its cells will say why
            return 0.0, spent

    def __str__(self) -> str:
        told = self.problem.description
        settings = ", ".join(f"{key}={checks.shown(v)}" for key, v in told["settings"].items())
        return f"{self.policy.label} on {told['name']} ({settings}), n={self.n:,}"
