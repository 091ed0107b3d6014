"""Which policies to simulate, for how long, and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rank1 import checks, notebook
from rank1.advice.assumed import AssumedGrid, assumed_grids, plays
from rank1.advice.find import find
from rank1.advice.words import about, earn_words, earner, table_of
from rank1.errors import InputError
from rank1.grid import Grid
from rank1.policies import DEFAULT_POLICY, BetElim, Policy
from rank1.problems import Product
from rank1.settings import parse_policy
from rank1.simulation import simulate
from rank1.simulation.runs import checked_policies
from rank1.statistics import mean_and_error

if TYPE_CHECKING:
    from rank1.frames import WholeFrame

__all__ = ["Advice", "advise"]

#: The policies to simulate for the goal "earn", the default first.
EARN = ("uts", "thompson", "rank1elim_kl")
#: Also simulated if trying every arm first would take more than this share of the horizon.
WITHOUT_FIRST_ROUND, SHARE = "uts:first_round=false", 0.1
#: The total number of pulls; fewer if there are more levels than LEVELS, which makes them slower.
EARNING = 24_000_000
LEVELS = 40
LEAST_RUNS, MOST_RUNS = 5, 40
#: With more arms than this a run takes long to start, so there are fewer runs.
MANY_ARMS, FEW_RUNS = 2**17, 2
#: The largest number of arms.
MOST_ARMS = 2**24

#: An assumption of every grid that is simulated.
ONE_ORDER = (
    "All of this assumes one order: the best level of a side is the best whatever the other sides "
    "show."
)


@dataclass(frozen=True)
class Advice:
    """The advice, and the figures behind it."""

    #: The number of levels of each side, and the names of the sides, if they have any.
    sides: list[int]
    names: list[str] | None
    horizon: int
    rate: float
    goal: str
    confidence: float
    seed: int
    #: The recommended policy; None if the horizon is too short for any.
    policy: str | None
    #: The advice itself, one or two sentences each.
    words: list[str]
    #: One row per simulated grid and policy; see `summary`.
    figures: list[dict[str, Any]] = field(repr=False)
    #: Policies that weren't simulated, with the reason.
    left_out: dict[str, str] = field(default_factory=dict, repr=False)

    def summary(self) -> WholeFrame:
        """One row per simulated grid and policy.

        For the goal "find": `within` is the share of runs that stopped within the horizon. `wrong`
        is the number of runs that stopped at a wrong arm: not the best, or worse than `min_lift`
        allows. `median` and `p90` are the pulls by which half and 90% of the runs had stopped.
        `most` is the limit on a run's pulls; `cut` and `cut_p90` are true if fewer than half, or
        fewer than 90%, stopped within it. `given_up` is true if some runs reached this limit before
        the horizon; `within` is then a lower bound.

        For the goal "earn": `regret` and `reward` after `steps` pulls. `gain` is the policy's
        advantage over an equal split, as a share of what the best arm alone would gain. `steps` is
        less than the horizon if playing all of it would take too long.
        """
        from rank1.frames import WholeFrame

        return WholeFrame(self.figures, infer_schema_length=None)

    def document(self) -> dict[str, Any]:
        """The results as one JSON document, as `rank1 advise --json` prints it."""
        names = ("rows", "columns") if len(self.sides) == 2 and self.names is None else ()
        return dict(zip(names, self.sides, strict=False)) | asdict(self)

    def __str__(self) -> str:
        return "\n".join(self.words)

    @notebook.never_fails
    def _repr_html_(self) -> str:
        words = "".join(f"<p>{notebook.figure(each)}</p>" for each in self.words)
        return words + notebook.table(*table_of(self.goal, self.figures))


def advise(
    rows: int | None = None,
    columns: int | None = None,
    horizon: int | None = None,
    rate: float | None = None,
    goal: str = "earn",
    *,
    sides: Sequence[int] | Mapping[str, int] | None = None,
    confidence: float = 0.95,
    lifts: Sequence[float] | None = None,
    policies: Policy | Sequence[Policy] | None = None,
    runs: int | None = None,
    seed: int = 1,
    jobs: int = 1,
    progress: bool = False,
) -> Advice:
    """Recommend a policy and say what to expect from it, by simulating it now.

    Parameters
    ----------
    rows, columns
        Numbers of rows and columns, for a grid with two sides.
    horizon
        The number of pulls available.
    rate
        The average reward of an equal split over all arms, above 0 and below 1.
    goal
        "find" to be sure which arm is best, "earn" to keep regret low.
    sides
        The number of levels of each side, instead of rows and columns: `[3, 4]`, or
        `{"headline": 3, "image": 4}`.
    confidence
        For "find": the probability that the arm found is the best.
    lifts
        How much better the best level of each side may be than the second: 0.2 for 20%. Default:
        20% and 50%, as long as no mean exceeds 1.
    policies
        The policies to simulate; default: some for each goal. The fewer, the longer each can be
        simulated. For "find" the default is `BetElim`; the advice also says what it would cost to
        assume nothing about the grid and, if the horizon is too short, what a `min_lift` gains.
    runs
        Runs of each policy on each grid; default: as many as time allows.
    seed, jobs, progress
        As for `simulate`.

    Examples
    --------
    >>> import rank1
    >>> advice = rank1.advise(3, 2, horizon=20_000, rate=0.3, goal="find", lifts=[0.5], runs=4)
    >>> advice.policy
    'bet_elim'
    """
    grid, called = _grid_of(rows, columns, sides)
    horizon = checks.integer("horizon", horizon, 1)
    rate = checks.number("rate", rate, 0, 1, above=True, below=True)
    checks.one_of("goal", goal, tuple(DEFAULT_POLICY))
    confidence = checks.number("confidence", confidence, 0, 1, above=True, below=True)
    if runs is not None:
        runs = checks.integer("runs", runs, 1)
    grids = assumed_grids(grid.sizes, rate, lifts, called)
    names = list(EARN)
    if SHARE * horizon < grid.arms:
        names.insert(1, WITHOUT_FIRST_ROUND)
    asked = [parse_policy(name) for name in names]
    asked = [policy for policy in asked if policy.sides in (None, len(grid.sizes))]
    if goal == "find":
        asked = [BetElim()]
    if policies is not None:
        asked = checked_policies(policies)
        for policy in asked:
            if policy.needs_truth:
                raise InputError("policies", policy, "policies that don't need to know the answer")
    able, left_out = _able(asked, grid, horizon)
    if goal == "find":
        # Report pulls until a stop even if the horizon doesn't allow them.
        given = asked if policies is not None else None
        how = confidence, runs, seed, jobs, progress
        chosen, words, figures = find(grids, given, able, horizon, *how)
    else:
        chosen, words, figures = _earning(grids, able, horizon, runs, seed, jobs, progress)
    arm, size = grids[0].arm, " × ".join(f"{size:,}" for size in grid.sizes)
    first = f"{size} {arm}s, {horizon:,} pulls, average reward {rate:g}; goal: "
    aim = f"to find the best {arm} with confidence {confidence:g}" if goal == "find" else "to earn"
    if sum(size > 1 for size in grid.sizes) > 1 and not any("one order" in each for each in words):
        words.append(ONE_ORDER)
    words = [f"{first}{aim}.", *words, *(f"Left out: {why}." for why in left_out.values())]
    told = horizon, rate, goal, confidence, seed, chosen, words, figures, left_out
    return Advice(list(grid.sizes), list(called) if called else None, *told)


def _grid_of(
    rows: int | None, columns: int | None, sides: Sequence[int] | Mapping[str, int] | None
) -> tuple[Grid, tuple[str, ...] | None]:
    """The grid, from its rows and columns or its sides, and the names of the sides."""
    names = tuple(sides) if isinstance(sides, Mapping) else None
    if sides is None:
        sides = checks.integer("rows", rows, 1), checks.integer("columns", columns, 1)
    elif rows is not None or columns is not None:
        raise InputError("sides", sides, "None if rows and columns are given")
    grid = Grid(list(sides.values()) if isinstance(sides, Mapping) else sides)
    if not 1 < grid.arms <= MOST_ARMS:
        name = "rows × columns" if rows is not None else "sides"
        asked = f"a grid with 2 to {MOST_ARMS:,} arms"
        raise InputError(name, sides, asked, got=f"{grid.arms:,} ({grid})")
    return grid, names


def _able(asked: list[Policy], grid: Grid, horizon: int) -> tuple[list[Policy], dict[str, str]]:
    """The policies that can play the grid within the horizon; and why the others can't."""
    able, left_out = [], {}
    for policy in asked:
        try:
            policy.check(grid, horizon)
        except InputError as error:
            left_out[policy.label] = str(error)
        else:
            able.append(policy)
    return able, left_out


def _earning(
    grids: list[AssumedGrid], able: list[Policy], horizon: int, runs: int | None, seed: int,
    jobs: int, progress: bool,
) -> tuple[str | None, list[str], list[dict[str, Any]]]:  # fmt: skip
    """The recommended policy for earning, None if it isn't worth it; the words; the figures."""
    if not able:
        return None, ["None of these policies can play this grid within the horizon."], []
    # The best of them may be played once more, for `_until_half`.
    longest = _longest(grids[0].problem.grid, len(grids) * (len(able) + 1))
    figures = [
        given | _earned(policy, each.problem, horizon, longest, runs, seed, jobs)
        for each, policy, given in plays(grids, able, progress, "simulations")
    ]
    best, verdict = earner(figures, able, horizon)
    halves: list[str] = []
    if verdict == "nothing":
        halves = [
            _until_half(best, each.problem, horizon, longest, seed, jobs)
            for each, _, _ in plays(grids, [best], progress, "pulls until half")
        ]
    chosen = None if verdict == "nothing" else best.label
    return chosen, earn_words(grids, figures, best, verdict, horizon, halves), figures


def _longest(grid: Grid, plays: int) -> int:
    """The largest number of pulls of a run, so that `plays` runs of policies take seconds."""
    return max(1, int(EARNING / plays * min(1.0, LEVELS / sum(grid.sizes))) // LEAST_RUNS)


def _earned(
    policy: Policy, problem: Product, horizon: int, longest: int,
    runs: int | None, seed: int, jobs: int,
) -> dict[str, Any]:  # fmt: skip
    """Reward and regret of a policy, in as many pulls of the horizon as time allows."""
    steps = min(horizon, longest)
    whole = runs or FEW_RUNS
    if runs is None and problem.arms <= MANY_ARMS:
        whole = int(np.clip(LEAST_RUNS * longest / steps, LEAST_RUNS, MOST_RUNS))
    result = simulate(policy, problem, steps, whole, seed, jobs, 1, shuffle=True)
    regret = mean_and_error(result.outcomes[0].expected[:, -1])
    lost, error = regret["mean"] or 0.0, regret["se"] or 0.0
    most = steps * float(problem.best_mean - problem.means.mean())
    return {
        "policy": policy.label,
        "runs": whole,
        "steps": steps,
        "regret": lost,
        "regret_se": error,
        "reward": steps * problem.best_mean - lost,
        "equal_split": steps * float(problem.means.mean()),
        "gain": 1 - lost / most,
        "gain_se": error / most,
    }


def _until_half(
    policy: Policy, problem: Product, horizon: int, longest: int, seed: int, jobs: int
) -> str:
    """When a policy would have earned half of the possible gain, in words."""
    steps = np.unique(np.geomspace(horizon, longest, 60).astype(np.int64))
    runs = LEAST_RUNS if problem.arms <= MANY_ARMS else FEW_RUNS
    result = simulate(policy, problem, longest, runs, seed, jobs, steps.tolist(), shuffle=True)
    lost = result.outcomes[0].expected.mean(axis=0)
    half = lost <= 0.5 * steps * (problem.best_mean - problem.means.mean())
    if not half.any():
        return f"half of that takes more than {about(longest, horizon, down=True)} pulls"
    return f"half of that takes about {about(steps[half.argmax()], horizon)} pulls"
