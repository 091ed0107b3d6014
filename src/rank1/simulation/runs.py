"""Runs: their seeds, the loop that plays them, and many of them side by side."""

from __future__ import annotations

import hashlib
import itertools
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import kernel
from rank1.errors import InputError, InputTypeError
from rank1.policies.base import Policy
from rank1.problems.base import Problem
from rank1.progress import Progress
from rank1.simulation.known import known_of
from rank1.simulation.loop import play as play_steps
from rank1.simulation.result import Outcome, Result
from rank1.simulation.stages import play_stages
from rank1.simulation.store import Block, Store, gaps

__all__ = ["Interrupted", "Run", "checkpoints_of", "play_block", "play_run", "simulate"]

#: Steps between two looks at whether the user has had enough.
CHUNK = 2**18

ENGINES = ("auto", "steps", "stages")

#: Calls of `simulate` that were interrupted: their runs in other threads stop at the next chunk.
_stopped: set[int] = set()
_calls = itertools.count(1)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during `simulate`; `result` has the runs that were finished, or is None."""

    def __init__(self, result: Result | None) -> None:
        super().__init__("interrupted")
        self.result = result


class Run(NamedTuple):
    """One policy on one problem for n steps from one seed."""

    #: Expected and realised regret at each checkpoint: (checkpoints, 2).
    curve: NDArray[np.float64]
    best_pair: tuple[int, int]
    state: Any


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


def policy_number(policy: Policy) -> int:
    """A number that tells who plays."""
    who = repr((policy.name, sorted(policy.settings.items()))).encode()
    return int.from_bytes(hashlib.sha256(who).digest()[:16], "little")


def identity(problem: Problem, policy: Policy) -> tuple[int, int]:
    """What a run depends on beside its number, the seed and n: a number each."""
    return problem.digest, policy_number(policy)


def series_key(
    who: tuple[int, int], n: int, steps: NDArray[np.int64], seed: int, engine: str
) -> str:
    """The key under which a store keeps runs of one policy on one problem."""
    return Store.key(*who, n, steps.tolist(), seed, engine)


def seeds_of(
    seed: int, problem: Problem, policy: Policy, runs: Iterable[int]
) -> Iterator[np.random.SeedSequence]:
    """A run's seed depends on what the run is, and on nothing that happens beside it."""
    key = identity(problem, policy)
    for run in runs:
        yield np.random.SeedSequence(seed, spawn_key=(*key, run))


def has_stages(policy: Policy, problem: Problem) -> bool:
    """Whether runs can be played by whole stages."""
    return policy.eliminates and hasattr(problem.law, "draw_many")


def play_run(
    policy: Policy,
    problem: Problem,
    n: int,
    steps: NDArray[np.int64],
    seed: np.random.SeedSequence,
    engine: str = "auto",
    call: int = 0,
) -> Run:
    """Play one run to the end, in memory that doesn't grow with n."""
    state, law = policy.start(known_of(policy, problem, n)), problem.law
    rng = np.random.Generator(np.random.PCG64(seed))
    by_stages = engine != "steps" and has_stages(policy, problem)
    curve, totals = np.zeros((len(steps), 2)), np.zeros(2)
    if by_stages:
        scratch = np.empty((3, max(problem.K, problem.L)), np.int64)
        kernel(play_stages, state, law)(state, law, rng, 0, n, steps, curve, totals, scratch)
        return Run(curve, state.best(), state)
    loop = kernel(play_steps, state, law)
    chunk = problem.block or CHUNK
    for t in range(0, n, chunk):
        if call in _stopped:
            raise KeyboardInterrupt
        problem.refill(law, rng)
        loop(state, law, rng, t, min(t + chunk, n), steps, curve, totals)
    return Run(curve, state.best(), state)


def play_block(
    policy: Policy,
    problem: Problem,
    n: int,
    steps: NDArray[np.int64],
    seed: int,
    runs: range,
    engine: str = "auto",
    call: int = 0,
) -> Block:
    """Play several runs of one policy, one after another."""
    begin = time.perf_counter()
    played = [
        play_run(policy, problem, n, steps, child, engine, call)
        for child in seeds_of(seed, problem, policy, runs)
    ]
    return Block(
        np.array([run.curve for run in played]),
        np.array([run.best_pair for run in played], np.int64),
        time.perf_counter() - begin,
    )


def blocks_of(policy: Policy, problem: Problem, runs: range, engine: str) -> list[range]:
    """Runs that are played as one task and kept as one cell: few where a run takes long."""
    size = 5 if engine != "steps" and has_stages(policy, problem) else 1
    return [range(first, min(first + size, runs.stop)) for first in runs[::size]]


def simulate(
    policies: Policy | Sequence[Policy],
    problem: Problem,
    n: int,
    runs: int = 20,
    seed: int = 1,
    jobs: int = 1,
    checkpoints: int | Iterable[int] = 100,
    *,
    engine: str = "auto",
    store: str | os.PathLike[str] | None = None,
    progress: bool | Progress = False,
) -> Result:
    """Play each policy on the problem, `runs` times for n steps.

    Parameters
    ----------
    policies
        A policy, or several with different names or settings.
    problem
        What they play.
    n
        Number of steps, which the policies are told.
    runs
        Number of independent runs of each policy.
    seed
        A whole number. A run's random numbers depend on it, the problem, the policy and the run's
        number alone: not on `jobs`, nor on what else is simulated beside it. (With whole stages
        the checkpoints cut them into the sums that are drawn, so other checkpoints give other
        runs of the same law.)
    jobs
        Runs played side by side; -1 for one on each core. They share one process unless
        `joblib.parallel_config` names a backend.
    checkpoints
        How many evenly spaced steps regret is recorded at, or the steps themselves.
    engine
        "steps" plays every step; "stages" draws whole stages of an elimination policy, equal in
        law and much faster; "auto" takes the fastest.
    store
        A folder in which finished runs are kept as they come. The same call reads them back
        instead of playing them again, also after it was interrupted.
    progress
        Show a progress bar on standard error, if that is a terminal; or a bar over more than this
        call, to be moved on by the steps of this one.

    Returns
    -------
    Result
        Regret of every run at the checkpoints.

    Raises
    ------
    Interrupted
        After Ctrl-C, with the runs that were finished.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=8, L=8, p_u=0.7, p_v=0.7, delta_u=0.2, delta_v=0.2)
    >>> result = rank1.simulate([rank1.Rank1Elim(), rank1.Uniform()], problem, 10_000, 5, seed=1)
    >>> result.to_frame().shape
    (1000, 5)
    """
    policies = _checked_policies(policies)
    if not isinstance(problem, Problem):
        raise InputTypeError(f"problem must be a Problem, such as rank1.spike(…), got {problem!r}")
    n = checks.integer("n", n, 1)
    runs = checks.integer("runs", runs, 1)
    seed = checks.integer("seed", seed, 0, None)
    jobs = checks.jobs("jobs", jobs)
    checks.one_of("engine", engine, ENGINES)
    steps = checkpoints_of(n, checkpoints)

    if store is not None and not problem.storable:
        raise InputError(
            "store needs a Sampler with a name, to tell its runs from those of another one; "
            "give it as Sampler(…, name=…)"
        )
    kept = None if store is None else Store(store)
    call = next(_calls)
    finished: list[dict[int, Block]] = [{} for _ in policies]
    tasks = []
    for k, policy in enumerate(policies):
        if engine == "stages" and not has_stages(policy, problem):
            raise InputError(
                f"engine must be auto or steps for {policy.label} on this problem, got 'stages': "
                "that needs an elimination policy, and a law that can draw sums"
            )
        key = series_key(identity(problem, policy), n, steps, seed, engine)
        if kept:
            finished[k] = kept.load(key, range(runs))
        for gap in gaps(range(runs), finished[k]):
            for runs_of in blocks_of(policy, problem, gap, engine):
                tasks.append((k, runs_of, key))
        if isinstance(progress, Progress):
            read = sum(len(block.curves) for block in finished[k].values())
            progress.advance(n * read, policy.label)
    # Policies take turns, so that the time left can be told from the time spent.
    tasks.sort(key=lambda task: task[1][0])

    def play(k: int, runs_of: range, key: str) -> tuple[int, range, str, Block]:
        return (
            k,
            runs_of,
            key,
            play_block(policies[k], problem, n, steps, seed, runs_of, engine, call),
        )

    def result() -> Result:
        outcomes = [
            Outcome.of(policy, blocks)
            for policy, blocks in zip(policies, finished, strict=True)
            if blocks
        ]
        about = {"name": problem.description["name"], "K": problem.K, "L": problem.L}
        about["settings"] = problem.description["settings"]
        most = max(len(outcome.runs) for outcome in outcomes)  # fewer if it was interrupted
        return Result(about, problem, n, most, seed, steps, outcomes, engine)

    parallel = joblib.Parallel(n_jobs=jobs, prefer="threads", return_as="generator_unordered")
    total = n * sum(len(runs_of) for _, runs_of, _ in tasks)
    bar = progress if isinstance(progress, Progress) else Progress(progress, "steps", total)
    try:
        with nullcontext() if bar is progress else bar:
            for k, runs_of, key, block in parallel(joblib.delayed(play)(*task) for task in tasks):
                finished[k][runs_of[0]] = block
                if kept:
                    kept.put(key, runs_of, block)
                bar.advance(n * len(runs_of), policies[k].label)
    except KeyboardInterrupt:
        _stopped.add(call)
        raise Interrupted(result() if any(finished) else None) from None
    return result()


def _checked_policies(policies: Policy | Sequence[Policy]) -> list[Policy]:
    if isinstance(policies, type):
        name = policies.__name__
        raise InputTypeError(f"policies must be policies, such as {name}(), got the class {name}")
    given = [policies] if isinstance(policies, Policy) else list(policies)
    if not given:
        raise InputError(
            "policies must name at least one policy, such as rank1.Rank1Elim(), got []"
        )
    for policy in given:
        if not isinstance(policy, Policy):
            raise InputTypeError(
                f"policies must be policies, such as rank1.Rank1Elim(), got {checks.shown(policy)}"
            )
    labels = [policy.label for policy in given]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"policies must differ from each other, got {label} twice")
    return given
