"""Find the best arm and stop: how many pulls until it is known."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.errors import InputError, InputTypeError
from rank1.grid import Grid
from rank1.notebook import never_fails
from rank1.policies.base import Policy
from rank1.problems.base import Problem
from rank1.progress import Progress
from rank1.simulation.block import Block
from rank1.simulation.feedback import AT_ONCE, Feedback
from rank1.simulation.known import NamesArms, best_document, problem_document
from rank1.simulation.plan import Plan
from rank1.simulation.runs import checked_policies, checked_problem, play
from rank1.simulation.series import Series
from rank1.simulation.stop import BestArmRule, OwnRule, StopRule
from rank1.statistics import mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rank1.frames import WholeFrame

__all__ = ["Identification", "Searches", "identify"]


@dataclass(frozen=True, eq=False)
class Searches(NamesArms):
    """All runs of one policy in a call of `identify`."""

    label: str
    policy: str
    settings: dict[str, Any]
    seconds: float
    #: Pulls of each run; n if the rule did not stop it.
    pulls: NDArray[np.int64] = field(repr=False)
    stopped: NDArray[np.bool_] = field(repr=False)
    grid: Grid
    #: The arm that led at the end of each run.
    arms: list[int] = field(repr=False)
    #: Whether a run stopped at an arm that is further from the best than the tolerance, or than
    #: the policy's own rule allows.
    wrong: NDArray[np.bool_] = field(repr=False)
    #: Expected regret until the end of each run.
    regret: NDArray[np.float64] = field(repr=False)

    def entry(self) -> dict[str, Any]:
        """The results as plain values."""
        return {
            "policy": self.policy,
            "settings": self.settings,
            "seconds": self.seconds,
            "stopped": int(self.stopped.sum()),
            "wrong": int(self.wrong.sum()),
            **best_document(self.best_arms),
            "pulls": mean_and_error(self.pulls)
            | {
                "median": float(np.median(self.pulls)),
                "p90": float(np.quantile(self.pulls, 0.9)),
            },
            "expected_regret": mean_and_error(self.regret),
        }


@dataclass(frozen=True, eq=False)
class Identification:
    """The result of `identify`: pulls until the rule stops, for every policy and run."""

    problem: Problem
    confidence: float
    tolerance: float
    rank_one: bool
    n: int
    runs: int
    seed: int
    searches: list[Searches]
    shuffle: bool = False
    rule: str = "kt"
    feedback: Feedback = AT_ONCE

    def __getitem__(self, policy: str) -> Searches:
        """The runs of a policy, by its label."""
        labels = [each.label for each in self.searches]
        return self.searches[labels.index(checks.one_of("policy", policy, labels))]

    @cached_property
    def bound(self) -> dict[str, Any] | None:
        """The lower bound T*·log(1/α) on the average number of pulls; None if there is none.

        A dict with the `structure` that the bound relies on and the `pulls`. The structure is "any"
        if the rule assumes nothing; otherwise "rank_one", or "unimodal" if that can't be solved.
        There is no bound for a tolerance above 0 or for drifting means. See
        `rank1.theory.characteristic_time`.
        """
        from rank1.theory.characteristic import characteristic_time
        from rank1.theory.rank_one_time import is_quickly_solved

        if self.tolerance > 0 or self.feedback.drift is not None:
            return None
        for structure in ("rank_one", "unimodal") if self.rank_one else ("any",):
            if structure == "rank_one" and not is_quickly_solved(self.problem):
                continue
            try:
                time = characteristic_time(self.problem, structure)
            except (InputError, InputTypeError, RuntimeError):  # not available for this problem
                continue
            if time.value > 0:
                return {"structure": structure, "pulls": time.pulls(self.confidence)}
        return None

    def over_bound(self, policy: str) -> float | None:
        """A policy's average number of pulls divided by the bound; None if a run did not stop."""
        each = self[policy]
        if self.bound is None or not each.stopped.all():
            return None
        return float(each.pulls.mean() / self.bound["pulls"])

    def summary(self) -> WholeFrame:
        """One row per policy: the number of stopped runs, pulls until the stop, and regret.

        A run that did not stop counts with n pulls, which makes the means too small.
        """
        from rank1.frames import WholeFrame

        rows = []
        for each in self.searches:
            facts = each.entry()
            row = {"policy": each.label, "runs": len(each.pulls)}
            row |= {"stopped": facts["stopped"], "wrong": facts["wrong"]}
            row |= {f"pulls_{name}": facts["pulls"][name] for name in ("mean", "se")}
            row |= {f"pulls_{name}": facts["pulls"][name] for name in ("median", "p90")}
            row |= {f"regret_{name}": facts["expected_regret"][name] for name in ("mean", "se")}
            rows.append(row | {"seconds": each.seconds})
        return WholeFrame(rows, infer_schema_length=None)

    def document(self) -> dict[str, Any]:
        """The results as one JSON document, as `rank1 identify --json` prints it."""
        return {
            "problem": problem_document(self.problem),
            "confidence": self.confidence,
            "tolerance": self.tolerance,
            "rank_one": self.rank_one,
            "rule": self.rule,
            "n": self.n,
            "runs": self.runs,
            "seed": self.seed,
            "shuffle": self.shuffle,
            **({} if self.feedback == AT_ONCE else {"feedback": self.feedback.document()}),
            "bound": self.bound,
            "policies": [
                each.entry() | {"over_bound": self.over_bound(each.label)} for each in self.searches
            ],
        }

    def plot(self, *, bound: bool = True, ax: Axes | None = None) -> Axes:
        """Plot the share of runs that have stopped by each pull, with the lower bound if any.

        Parameters
        ----------
        bound
            Draw T*·log(1/α), the lower bound on the average number of pulls.
        ax
            Axes to draw into instead of a new figure.
        """
        from rank1.plots import plot_identification

        return plot_identification(self, bound=bound, ax=ax)

    @never_fails
    def _repr_html_(self) -> str:
        from rank1.plots.html import identification_html

        return identification_html(self)


def identify(
    policies: Policy | str | Sequence[Policy | str],
    problem: Problem,
    confidence: float = 0.95,
    tolerance: float = 0.0,
    n: int = 1_000_000,
    runs: int = 100,
    seed: int = 1,
    jobs: int = 1,
    *,
    rank_one: bool = True,
    rule: str = "kt",
    method: str = "auto",
    shuffle: bool = False,
    delay: float | Mapping[str, int] = 0.0,
    missing: float = 0.0,
    batch: int = 1,
    drift: Mapping[str, float] | Sequence[float] | None = None,
    store: str | os.PathLike[str] | None = None,
    backend: str = "threads",
    address: str | None = None,
    progress: bool | Progress = False,
) -> Identification:
    """Play each policy until the best arm is known.

    A policy with its own stopping rule, such as `BetElim`, says when it is done. All others are
    judged by the rule of `rank1.stopping`, which is checked after every pull. A rule stops at an
    arm that is not the best, or not within `tolerance` of it, with probability at most
    1 − confidence.

    Parameters
    ----------
    policies
        A policy, or several: `BetElim` and `TopTwo` are made for this.
    problem
        The problem to play. The rule of `rank1.stopping` needs rewards in [0, 1].
    confidence
        The probability, below 1, that the rule is right; a policy's own rule uses it, too.
    tolerance
        How far an arm may be from the best. A policy's own rule has a separate setting for this.
    n
        The number of pulls after which a run ends without a stop.
    runs, seed, jobs
        As for `simulate`.
    rank_one
        Whether the rule may assume that the grid has rank one; otherwise it compares all arms.
    rule
        The kind of evidence: "kt", or "sharp", which needs fewer pulls but doesn't allow drifting
        means. See `rank1.stopping.verdict`.
    delay, missing, batch, drift
        As for `simulate`. The rule sees each reward when it arrives. Its guarantee doesn't hold for
        drifting means, nor for delays that depend on the reward.
    method
        "steps" or "stages", as for `simulate`; stages need a policy with its own rule.
    shuffle, store, backend, address, progress
        As for `simulate`.

    Raises
    ------
    Interrupted
        After Ctrl-C, with the completed runs.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=3, L=3, p_u=0.4, p_v=0.4, delta_u=0.5, delta_v=0.5)
    >>> found = rank1.identify(rank1.Uniform(), problem, runs=5)
    >>> found["uniform"].best_pairs, int(found["uniform"].wrong.sum())
    ([(0, 0), (0, 0), (0, 0), (0, 0), (0, 0)], 0)
    """
    policies = checked_policies(policies)
    checked_problem(problem)
    counting = BestArmRule(confidence, tolerance, rank_one, rule)
    counting.start(Grid([2]))  # checks the arguments
    counting = BestArmRule(float(confidence), float(tolerance), rank_one, rule)
    rules = [_rule(policy, counting) for policy in policies]
    if (problem.low < 0 or problem.high > 1) and any(stop is counting for _, stop in rules):
        got = f"one with rewards in [{problem.low:g}, {problem.high:g}]"
        expected = "one with rewards in [0, 1] for the stopping rule"
        raise InputError("problem", problem, expected, got=got)
    n = checks.integer("n", n, 1)
    runs = checks.integer("runs", runs, 1)
    jobs = checks.jobs("jobs", jobs)
    shuffle = checks.boolean("shuffle", shuffle)
    feedback = Feedback.of(delay, missing, batch, None, drift)
    series = [
        Series.of(played, problem, n, 1, seed, method, shuffle, feedback, stop)
        for played, stop in rules
    ]

    def found(plan: Plan[Series]) -> Identification:
        played = [number for number in range(len(series)) if plan.finished(number)]
        searches = [
            _searches(policies[number], problem, tolerance, plan.whole(number)) for number in played
        ]
        most = max(len(each.pulls) for each in searches)  # fewer if interrupted
        asked = counting.confidence, counting.tolerance, rank_one
        return Identification(
            problem, *asked, n, most, series[0].seed, searches, shuffle, rule, feedback
        )

    return play(series, runs, store, backend, jobs, address, progress, found)


def _rule(policy: Policy, rule: BestArmRule) -> tuple[Policy, StopRule]:
    """The policy to play, and the rule that ends its runs."""
    own = policy.judging(rule.confidence, rule.rank_one)
    if own is None:
        return policy, rule
    if rule.tolerance > 0:
        hint = "use the policy's own setting instead, such as min_lift of bet_elim"
        expected = f"0 for {policy.name}, which has its own rule"
        raise InputError("tolerance", rule.tolerance, expected, hint)
    return own, OwnRule()


def _searches(policy: Policy, problem: Problem, tolerance: float, block: Block) -> Searches:
    arms: list[int] = block["best_arms"].tolist()
    gaps = np.array([problem.best_mean - problem.mean(arm) for arm in arms])
    best = np.array([problem.is_best(arm) for arm in arms])
    means = np.array([problem.mean(arm) for arm in arms])
    beyond = means * policy.allowance(len(problem.grid.sizes)) < problem.best_mean
    wrong = block["stopped"] & ~best & (gaps > tolerance) & beyond
    return Searches(
        policy.label, policy.name, policy.settings, block.seconds, block["pulls"],
        block["stopped"], problem.grid, arms, wrong, block["curves"][:, -1, 0],
    )  # fmt: skip
