"""The goal "find": pulls until the best arm is known, and how to shorten a search."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rank1.advice.assumed import AssumedGrid, plays
from rank1.advice.words import about, by_grid, study_default
from rank1.policies import BetElim, Policy, Uniform
from rank1.simulation import identify
from rank1.simulation.series import resolved

__all__ = ["find"]

Figures = list[dict[str, Any]]

#: A horizon is enough if this share of the runs stop within it.
ENOUGH = 0.5
#: If it isn't: values of min_lift to try, as fractions of the smallest lift, in ascending order.
PARTS = (0.5, 1.0)
#: The budget of all simulations together, in pulls played one by one: 0.35 µs each.
WORK = 20_000_000
LEAST_RUNS, MOST_RUNS = 5, 20
#: The number of pulls until a stop is about this number times levels/(rate·lift²).
USUAL = 15
#: Versions with at least as many pulls as arms are drawn at once. They begin at this number of
#: reports per arm; after 1/growth of them, the number of reports has grown by a factor of e.
VERSIONS = 100
#: The largest number of pulls of a run.
MOST_PULLS = 10**12
#: Expensive searches are skipped on large grids: `any_grid` with more arms than this, `min_lift`
#: with more levels.
MANY_ARMS, MANY_LEVELS = 2**13, 64
#: A step with a `min_lift` costs about as much as this many others.
DEARER = 4


def find(
    grids: list[AssumedGrid], asked: list[Policy] | None, able: list[Policy], horizon: int,
    confidence: float, runs: int | None, seed: int, jobs: int, progress: bool,
) -> tuple[str | None, list[str], Figures]:  # fmt: skip
    """The recommended policy, None if the horizon is too short for it; the words; the figures.

    By default this is BetElim; its search on any grid is simulated, too, and if the horizon is
    short, searches with a min_lift.
    """
    sizes = grids[0].problem.grid.sizes
    structured = sum(size > 1 for size in sizes) > 1
    players, levers = asked or [BetElim()], []
    if not asked and sum(sizes) <= MANY_LEVELS:
        levers = _levers(grids)
    if not asked and structured and math.prod(sizes) <= MANY_ARMS:
        players = [*players, BetElim(any_grid=True)]
    every = [*players, *levers]
    told = horizon, confidence, WORK / (len(grids) * len(every)), runs, seed, jobs
    figures: Figures = []
    for grid, policy, given in plays(grids, every, progress, "simulations"):
        rows = [row for row in figures if given.items() <= row.items()]
        short = not any(row["within"] >= ENOUGH for row in [*rows[:1], *rows[len(players) :]])
        if policy not in levers or short:
            figures.append(given | _searched(policy, grid, *told))
    chosen, words = _advice(grids, figures, able, levers, horizon)
    words += [
        _of_grid(grid, rows, chosen, levers, horizon) for grid, rows in by_grid(grids, figures)
    ]
    if not asked and structured:
        words.append(_assumption(grids, figures))
    return chosen, words, figures


def _levers(grids: list[AssumedGrid]) -> list[BetElim]:
    """Searches that stop sooner, because small lifts aren't worth having."""
    least = min(grid.lift for grid in grids)
    return [BetElim(min_lift=lift) for lift in dict.fromkeys(min(x * least, 1.0) for x in PARTS)]


def _searched(
    policy: Policy, grid: AssumedGrid, horizon: int, confidence: float, work: float,
    runs: int | None, seed: int, jobs: int,
) -> dict[str, Any]:  # fmt: skip
    """Pulls until a policy stops, within about this amount of work."""
    problem, own = grid.problem, policy.judging(confidence, rank_one=True)
    alone = math.inf  # pulls played one by one
    if own is not None and resolved("auto", own, problem) == "stages":
        alone = float(VERSIONS * problem.arms)
    usual = USUAL * sum(problem.grid.sizes) / (float(problem.means.mean()) * grid.lift**2)
    usual = usual if usual < alone else alone * (1 + math.log(usual / alone))
    dearer = DEARER if isinstance(policy, BetElim) and policy.min_lift > 0 else 1
    whole = runs or int(np.clip(work / (dearer * usual), LEAST_RUNS, MOST_RUNS))
    most = work / LEAST_RUNS
    if most > alone:
        most = alone * math.exp(min(most / alone - 1, 40))
    cut = int(max(1, min(most, MOST_PULLS)))
    each = identify(
        policy, problem, confidence, 0.0, cut, whole, seed, jobs, shuffle=True
    ).searches[0]
    share = float(each.stopped.mean())
    return {
        "policy": policy.label,
        "runs": whole,
        "within": float((each.stopped & (each.pulls <= horizon)).mean()),
        "wrong": int(each.wrong.sum()),
        "median": float(np.median(each.pulls)),
        "p90": float(np.quantile(each.pulls, 0.9)),
        "cut": share < 0.5,
        "cut_p90": share < 0.9,
        "given_up": cut < horizon and share < 1,
        "most": cut,
    }


def _advice(
    grids: list[AssumedGrid],
    figures: Figures,
    able: list[Policy],
    levers: list[BetElim],
    horizon: int,
) -> tuple[str | None, list[str]]:
    """The recommended policy, and the advice in one or two sentences."""
    able = [policy for policy in able if policy.name != Uniform.name] or able
    within = {
        policy.label: [row["within"] for row in figures if row["policy"] == policy.label]
        for policy in able
    }
    best = max(within, key=lambda label: sum(within[label]), default=None)
    rows = [
        next((row for row in own if row["policy"] == best), own[0])
        for _, own in by_grid(grids, figures)
    ]
    enough = [row["within"] >= ENOUGH for row in rows]
    unknown = sum(row["within"] < ENOUGH and row["given_up"] for row in rows)
    pulls, total = f"{horizon:,} pulls", len(grids)
    lever, more = _best_lever(grids, figures, levers, enough)
    if best is not None and (any(enough) or unknown):
        told = (
            f"Use {best}{study_default(best, 'find')}, and stop when it says so: {pulls} are "
            f"enough for most runs on {_of(sum(enough), total)} that were simulated."
        )
        if sum(enough) + unknown < total:
            short = total - sum(enough) - unknown
            others = "1 other" if short == 1 else f"{short} others"
            told += f" On {others}, most runs would end without an answer."
        if lever:
            told += f" If {_small(lever)}, {pulls} are enough for most runs on {_of(more, total)}."
        if unknown:
            told += f" On {unknown}, a simulation would take too long here: use `rank1.identify`."
        return best, [told]
    if lever:
        named = grids[0].arm
        allowance = lever.allowance(sum(size > 1 for size in grids[0].problem.grid.sizes)) - 1
        return lever.label, [
            f"{pulls} are too few to find the best {named}. But if {_small(lever)}, use "
            f"{lever.label}: with it, {pulls} are enough for most runs on {_of(more, total)} that "
            f"were simulated, and the best {named} is at most {allowance:.0%} better than the one "
            "it names."
        ]
    made = any(policy.name == BetElim.name for policy in able)
    asked = "" if made else f" for {' and '.join(within)}; others weren't simulated"
    even = f", even if {_small(levers[-1])}" if levers else ""
    plan = "Plan for the pulls below, " + ("" if levers or asked else "set a min_lift, ")
    return None, [
        f"Don't expect to find it: {pulls} are too few on all grids that were simulated{asked}"
        f"{even}. {plan}merge {grids[0].levels}, accept less confidence, or measure something that "
        'happens more often. If you want to earn meanwhile, use the goal "earn".'
    ]


def _best_lever(
    grids: list[AssumedGrid], figures: Figures, levers: list[BetElim], enough: list[bool]
) -> tuple[BetElim | None, int]:
    """The smallest lift to give up so that the horizon is enough on most grids; on how many."""
    best, most = None, sum(enough)
    for lever in levers:  # if one is enough for a grid, so is the next
        enough = [
            before or any(row["policy"] == lever.label and row["within"] >= ENOUGH for row in rows)
            for before, (_, rows) in zip(enough, by_grid(grids, figures), strict=True)
        ]
        if sum(enough) > most:
            best, most = lever, sum(enough)
    return best, most


def _small(lever: BetElim) -> str:
    return (
        f"lifts below {lever.min_lift * 100:.3g}% don't matter to you (min_lift={lever.min_lift:g})"
    )


def _of(some: int, total: int) -> str:
    return "all grids" if some == total else f"{some or 'none'} of the {total} grids"


def _of_grid(
    grid: AssumedGrid, rows: Figures, best: str | None, levers: list[BetElim], horizon: int
) -> str:
    """What the figures of a grid say."""
    mine = rows[0] if levers else next((row for row in rows if row["policy"] == best), rows[0])
    runs = f"of the runs of {mine['policy']} stop within"
    told, most = f"half {runs} {about(mine['median'], horizon)} pulls", mine["most"]
    if mine["cut"]:
        told = f"fewer than half {runs} {about(most, horizon, down=True)} pulls"
    elif mine["cut_p90"]:
        told += f", but not 90% within {about(most, horizon, down=True)}"
    elif mine["p90"] > horizon or mine["within"] >= 0.9:  # p90 is interpolated
        told += f", and 90% within {about(mine['p90'], horizon)}"
    told = f"If {grid.words}, then {told}."
    if mine["given_up"] and mine["within"] < ENOUGH:
        told += " Longer runs weren't simulated."
    else:
        told += f" Within {horizon:,} pulls, {mine['within']:.0%} of them stop."
    for lever in levers:
        for row in rows:
            if row["policy"] == lever.label:
                half = about(row["median"], horizon)
                if row["cut"]:
                    half = f"more than {about(row['most'], horizon, down=True)}"
                told += f" With min_lift={lever.min_lift:g}, half of them stop within {half}."
    return told


def _assumption(grids: list[AssumedGrid], figures: Figures) -> str:
    """What BetElim assumes, and what it would cost to assume nothing."""
    told = (
        f"{BetElim.name} assumes one order: the best level of a side is the best whatever the "
        "other sides show. To assume nothing, use bet_elim:any_grid=true"
    )
    pairs = [
        (rows[0], row)
        for _, rows in by_grid(grids, figures)
        for row in rows
        if row["policy"] == BetElim(any_grid=True).label and not rows[0]["cut"]
    ]
    if not pairs:
        return f"{told}; how much longer that takes wasn't simulated on this grid."
    ratios = sorted(row["median"] / mine["median"] for mine, row in pairs)
    least, most = (f"{ratio:.1f}" for ratio in (ratios[0], ratios[-1]))
    times = least if least == most else f"{least} to {most}"
    more = "or more " if any(row["cut"] for _, row in pairs) else ""
    return f"{told}, which takes {times} times as many pulls {more}on these grids."
