"""Play policies on a problem, many runs at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from rank1 import checks
from rank1.errors import InputError, InputTypeError
from rank1.policies.base import Policy
from rank1.problems.base import Problem
from rank1.progress import Progress
from rank1.settings import parse_policy
from rank1.simulation.feedback import Feedback
from rank1.simulation.plan import Plan, make_plan
from rank1.simulation.result import Outcome, Result
from rank1.simulation.series import Series
from rank1.simulation.store import Store

__all__ = ["Interrupted", "checked_policies", "checked_problem", "play", "simulate"]

T = TypeVar("T")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during `simulate` or `identify`.

    `result` is their return value with the completed runs; None if there were none.
    """

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted")
        self.result = result


def simulate(
    policies: Policy | str | Sequence[Policy | str],
    problem: Problem,
    n: int,
    runs: int = 20,
    seed: int = 1,
    jobs: int = 1,
    checkpoints: int | Iterable[int] = 100,
    *,
    method: str = "auto",
    shuffle: bool = False,
    delay: float | Mapping[str, int] = 0.0,
    missing: float = 0.0,
    batch: int = 1,
    drift: Mapping[str, float] | Sequence[float] | None = None,
    forgetting: float | None = None,
    store: str | os.PathLike[str] | None = None,
    backend: str = "threads",
    address: str | None = None,
    progress: bool | Progress = False,
) -> Result:
    """Play each policy on the problem, `runs` times for n steps.

    Parameters
    ----------
    policies
        A policy, or several with different names or settings; as values, or as text like
        `"ucb1:confidence=2"`.
    problem
        The problem to play.
    n
        Number of steps; the policies know it.
    runs
        Number of independent runs of each policy.
    seed
        An integer. A run's random numbers depend only on it, the problem, the policy and the run's
        number: not on `jobs`, nor on anything else that is simulated.
    jobs
        Number of parallel runs; -1 for one per core.
    checkpoints
        The number of evenly spaced steps at which regret is recorded, or the steps themselves.
    method
        "steps" plays every step; "stages" plays many pulls at a time, such as whole stages of an
        elimination policy, with the same law and much faster; "auto" uses the faster one.
    shuffle
        Relabel the levels of each side at random in each run, so that no policy profits from the
        position of the best arm: ties go to the lowest number, and a spike's best pair is (0, 0).
        Arms in the result are those of the problem.
    delay
        The mean delay of rewards in steps: in each step each pending reward arrives with the same
        probability, so rewards also arrive out of order. Or exact delays of successes and
        failures: `{"success": 0, "failure": 2000}`, where a success is a reward above 0.
    missing
        The probability that a reward never arrives. The policy is told when it would have arrived.
    batch
        Rewards arrive together, at the end of each batch of this number of steps.
    drift
        Multipliers of all means, from 0 to 1, by step: a list that is repeated, or
        `{"amplitude": 0.9, "period": 3000}` for means that fall to a tenth and rise again every
        3,000 steps. With probability one minus the multiplier, a reward is 0. All gaps shrink
        equally, so the best arm stays the best; regret is relative to it at each step's means.
    forgetting
        The half-life of what is learned, in rewards, for policies whose state is counts and sums.
    store
        A folder for finished runs. The same call reads them back instead of playing them again,
        even after an interruption; a policy or problem whose code has changed is played again.
    backend, address
        Where to play: "threads" of this process, "processes" on this machine, "dask" or "ray";
        `address` is the address of a cluster.
    progress
        Whether to show a progress bar on standard error; or an existing bar to advance.

    Returns
    -------
    Result
        Regret of every run at the checkpoints.

    Raises
    ------
    Interrupted
        After Ctrl-C, with the completed runs.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=8, L=8, p_u=0.7, p_v=0.7, delta_u=0.2, delta_v=0.2)
    >>> result = rank1.simulate([rank1.Rank1Elim(), rank1.Uniform()], problem, 10_000, 5, seed=1)
    >>> result.to_frame().shape
    (1000, 5)
    """
    policies = checked_policies(policies)
    checked_problem(problem)
    n = checks.integer("n", n, 1)
    runs = checks.integer("runs", runs, 1)
    jobs = checks.jobs("jobs", jobs)
    marks = list(checkpoints) if isinstance(checkpoints, Iterable) else checkpoints
    shuffle = checks.boolean("shuffle", shuffle)
    feedback = Feedback.of(delay, missing, batch, forgetting, drift)
    series = [
        Series.of(policy, problem, n, marks, seed, method, shuffle, feedback) for policy in policies
    ]

    def result(plan: Plan[Series]) -> Result:
        played = [number for number in range(len(series)) if plan.finished(number)]
        outcomes = [Outcome.of(series[number], plan.finished(number)) for number in played]
        most = max(len(outcome.runs) for outcome in outcomes)  # fewer if interrupted
        missing = [
            (number, part.start, part.stop)
            for number in range(len(series))
            for part in plan.missing(number)
        ]
        return Result.of(series[0], method, most, outcomes, missing)

    return play(series, runs, store, backend, jobs, address, progress, result)


def play(
    series: Sequence[Series],
    runs: int,
    store: str | os.PathLike[str] | None,
    backend: str,
    jobs: int,
    address: str | None,
    progress: bool | Progress,
    result: Callable[[Plan[Series]], T],
) -> T:
    """Play series; returns the result of the plan, or raises `Interrupted` with it."""
    kept = None if store is None else Store(store)
    plan = make_plan([(one, runs) for one in series], kept, in_turns=True, progress=bool(progress))
    try:
        plan.play(backend, jobs, address, progress=progress, strict=True)
    except KeyboardInterrupt:
        raise Interrupted(result(plan) if any(plan.blocks) else None) from None
    return result(plan)


def checked_problem(problem: Any) -> None:
    """Raise an error unless this is a problem."""
    if not isinstance(problem, Problem):
        raise InputTypeError("problem", problem, "a Problem, such as rank1.spike(…)")


def checked_policies(policies: Policy | str | Sequence[Policy | str]) -> list[Policy]:
    """The policies as a list; raises an error for anything else and for duplicates."""
    if isinstance(policies, type):
        name = policies.__name__
        expected = f"policies, such as {name}()"
        raise InputTypeError("policies", policies, expected, got=f"the class {name}")
    if not isinstance(policies, Iterable | Policy):
        raise InputTypeError("policies", policies, "policies, such as rank1.Rank1Elim()")
    named = [policies] if isinstance(policies, Policy | str) else list(policies)
    given = [parse_policy(one) if isinstance(one, str) else one for one in named]
    if not given:
        raise InputError("policies", given, "at least one policy, such as rank1.Rank1Elim()")
    for policy in given:
        if not isinstance(policy, Policy):
            raise InputTypeError("policies", policy, "policies, such as rank1.Rank1Elim()")
    labels = [policy.label for policy in given]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError("policies", labels, "different from each other", got=f"{label} twice")
    return given
