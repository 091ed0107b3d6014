"""Pulls until the best arm is known: bets, TopTwo with its rule, and an equal split with bets.

python -m benchmarks.bench_bets            # the table of docs/policies/bet_elim.md
python -m benchmarks.bench_bets late       # late rewards
python -m benchmarks.bench_bets tried      # other settings
python -m benchmarks.bench_bets speed      # steps, whole versions, folding
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any

import numpy as np
from scipy import stats

import rank1
from rank1 import design
from rank1.policies import bet_elim
from rank1.simulation.series import Series

RUNS = 200
SPIKE = rank1.spike(8, 8, 0.5, 0.5, 0.2, 0.2)
LIFTS = rank1.Product([[0.24] + [0.2] * 11, [0.3] + [0.25] * 7])
TWO_PEAKS: dict[str, Any] = {
    "two peaks .5, .52": [[0.5, 0.1], [0.1, 0.52]],
    "two peaks .03, .033": [[0.03, 0.015], [0.015, 0.033]],
    "two peaks .2, .21": [[0.2, 0.15], [0.15, 0.21]],
    "two peaks .3, .33 in .1": [[0.3, 0.1, 0.1], [0.1, 0.33, 0.1], [0.1, 0.1, 0.1]],
}


def baskets(cap: float, buyers: tuple[float, ...] = (0.036, 0.03), cells: int = 400) -> Any:
    """An A/B test of buyers whose baskets are Gamma(2) with mean 60, capped, in small steps.

    A basket in a cell gets the average value of that cell, so that means are exact.
    """
    edges = np.linspace(0, cap, cells + 1)
    gamma, first = stats.gamma(2, scale=30), stats.gamma(3, scale=30)
    mass = np.diff(gamma.cdf(edges))
    mean = (
        60 * np.diff(first.cdf(edges)) / np.maximum(mass, 1e-300)
    )  # E[X; cell] = 60·P(Γ(3) in it)
    values = np.array([0.0, *np.where(mass > 1e-12, mean, edges[:-1]), cap])
    laws = [[1 - rate, *rate * mass, rate * gamma.sf(cap)] for rate in buyers]
    return rank1.Categorical(values, laws)


GRIDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "8×8 (.7/.5)": (SPIKE, {}),
    "16×16 (.7/.5)": (rank1.spike(16, 16, 0.5, 0.5, 0.2, 0.2), {}),
    "12×8, best .072, lifts 20%": (LIFTS, {}),
    "12×8, min_lift 0.1": (LIFTS, {"min_lift": 0.1}),
    "8×8, nothing assumed": (SPIKE, {"any_grid": True}),
    "A/B, 3.6% against 3%": (rank1.Product([[0.036, 0.03]]), {}),
    "baskets, range 0–500": (baskets(500), {}),
    "baskets, range 0–2,000": (baskets(2000), {}),
    "5×5×5 (.8/.6)": (rank1.Product([[0.8] + [0.6] * 4] * 3), {}),
    "4⁴ (.85/.65)": (rank1.Product([[0.85] + [0.65] * 3] * 4), {}),
    "2⁶ (.9/.8)": (rank1.Product([[0.9, 0.8]] * 6), {}),
    **{name: (rank1.Means(means), {}) for name, means in TWO_PEAKS.items()},
    **{
        f"{name}, nothing assumed": (rank1.Means(means), {"any_grid": True})
        for name, means in TWO_PEAKS.items()
    },
    "crossing": (rank1.Means([[0.5, 0.2], [0.45, 0.45]]), {}),
    "crossing, nothing assumed": (rank1.Means([[0.5, 0.2], [0.45, 0.45]]), {"any_grid": True}),
}


def show(name: str, who: str, each: Any) -> None:
    stopped = each.stopped
    mean, error = each.pulls.mean(), each.pulls.std() / math.sqrt(len(each.pulls))
    print(
        f"{name:41} {who:12} {mean:10,.0f} ± {error:6,.0f}  median {np.median(each.pulls):9,.0f}"
        f"  stopped {stopped.sum():3}/{len(stopped)}  wrong {each.wrong.sum():3}",
        flush=True,
    )


def table(names: list[str]) -> None:
    for name, (problem, settings) in GRIDS.items():
        if names and name not in names:
            continue
        options: dict[str, Any] = {"runs": RUNS, "seed": 1, "n": 1_000_000, "shuffle": True}
        policy = rank1.BetElim(**settings)
        show(name, "bets", rank1.identify(policy, problem, **options).searches[0])
        levels = problem.arms if policy.any_grid else max(problem.grid.sizes)
        if len(set(problem.grid.sizes)) == 1 and not settings.get("min_lift"):
            # A floor that leaves almost nothing to choose: all levels are drawn equally, even
            # eliminated ones.
            equal = rank1.BetElim(floor=(1 - 1e-9) / levels, **settings)
            show(name, "equal split", rank1.identify(equal, problem, **options).searches[0])
        if problem.high <= 1 and not settings:
            few = options | {"runs": 50 if problem.best_mean < 0.1 else RUNS}
            show(name, "top_two", rank1.identify("top_two", problem, **few).searches[0])


def late(runs: int = RUNS) -> None:
    """Play the 8×8 spike with late rewards; the window is the longer delay."""
    for name, success, failure in (
        ("at once", 0, 0),
        ("all 1,000 pulls late", 1000, 1000),
        ("failures 2,000 pulls late", 0, 2000),
    ):
        policy = rank1.BetElim(window=max(success, failure))
        options: dict[str, Any] = {"runs": runs, "seed": 1, "n": 100_000, "shuffle": True}
        delay = {"success": success, "failure": failure}
        show(name, "8×8", rank1.identify(policy, SPIKE, delay=delay, **options).searches[0])


def tried(runs: int = 4000) -> None:
    """Try other settings on the 8×8 spike; means are over runs that stop within 30,000 pulls."""
    module: Any = bet_elim
    kept = module.ENOUGH
    for growth, enough in ((0.01, 60), (0.02, 60), (0.05, 60), (0.01, 15), (0.01, 30), (0.01, 1e9)):
        module.ENOUGH = enough
        policy = rank1.BetElim(growth=growth)
        options: dict[str, Any] = {"runs": runs, "seed": 2, "n": 30_000, "shuffle": True}
        found = rank1.identify(policy, SPIKE, **options).searches[0]
        pulls, stopped = found.pulls[found.stopped], int(found.stopped.sum())
        print(
            f"growth {growth:g}, first version up to {enough:g} successes: {pulls.mean():,.0f} ± "
            f"{pulls.std() / math.sqrt(len(pulls)):,.0f}, not stopped {runs - stopped} of {runs:,}",
            flush=True,
        )
    module.ENOUGH = kept


def speed() -> None:
    for K, n in ((8, 10**5), (64, 10**5), (64, 10**6)):
        problem = rank1.spike(K, K, 0.5, 0.5, 0.2, 0.2)
        block = Series.of(rank1.BetElim(), problem, n, 1, method="steps").play(range(3))
        print(f"{K}×{K}, {n:,} steps: {block.seconds / (3 * n) * 1e9:.0f} ns a step (at most 300)")
    found = rank1.identify("bet_elim", LIFTS, runs=50, seed=1, method="stages")["bet_elim"]
    cost = found.seconds / len(found.pulls) * 1000
    print(f"12×8, {found.pulls.mean():,.0f} pulls by versions: {cost:.1f} ms a run (at most 5)")
    plan, rng, reports = design.Design([12, 8]), np.random.default_rng(1), 10**6
    versions = {0: design.first_version(plan)}

    def counts(version: int) -> design.Counts:
        arms, ones = rng.integers(0, 96, reports), rng.random(reports) < 0.05
        every = np.full(reports, version)
        return design.Counts(every, arms, ones.astype(float), np.ones(reports, np.int64))

    seen = design.totals(plan, versions, counts(0))
    versions[1] = design.next_version(plan, versions[0], design.start(plan), seen)
    more = counts(1)
    for _ in range(2):  # the first call may have to compile
        begin = time.thread_time()
        design.fold(plan, design.start(plan), versions, more)
        took = time.thread_time() - begin
    print(f"folding {reports:,} reports: {took:.2f} s (at most 0.2)")


def main() -> None:
    what = sys.argv[1:]
    if what == ["late"]:
        late()
    elif what == ["tried"]:
        tried()
    elif what == ["speed"]:
        speed()
    else:
        table(what)


if __name__ == "__main__":
    main()
