"""Pulls until a decision, and wrong decisions: bets compared with the usual alternatives.

    python -m benchmarks.why_bets [--runs 200] [--seed 1] [--guess 1] [--grid NAME]… [--json]

Prints the tables of docs/why-bets.md. A method ends with a decision (the arm that it calls best,
at α = 0.05), or without one, after its planned number of pulls or the most that a run may have. A
method that has to know the gap in advance gets the true one, times --guess.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

import rank1
from benchmarks.kaufmann_koolen import KaufmannKoolen
from rank1.simulation.feedback import Feedback
from rank1.simulation.series import Series

Floats = NDArray[np.float64]
ALPHA, POWER = 0.05, 0.8
#: The mixture SPRT looks whenever pulls have grown by this fraction, as BetElim does,
GROWTH = 0.01
#: starting after this many pulls of each level, because it estimates variances.
FIRST = 100


@dataclass(frozen=True)
class Case:
    """A grid to play: the fraction of the runs, how rates drift, and the most pulls of a run."""

    problem: Any
    part: float = 1.0
    drift: dict[str, float] | None = None
    n: int = 1_000_000
    guess: float = 1.0


CYCLE = {"amplitude": 0.9, "period": 3000}
SPIKE = rank1.spike(8, 8, 0.5, 0.5, 0.2, 0.2)
LIFTS = rank1.Product([[0.24] + [0.2] * 11, [0.3] + [0.25] * 7])
CASES = {
    "A/B, 3.6% against 3.0%": Case(rank1.Product([[0.036, 0.03]])),
    "8×8 spike (.7/.5)": Case(SPIKE),
    "12×8, lifts of 20%": Case(LIFTS, part=0.2, n=10_000_000),
    "two peaks": Case(rank1.Means([[0.5, 0.1], [0.1, 0.52]])),
    "crossing": Case(rank1.Means([[0.5, 0.2], [0.45, 0.45]])),
    "8×8 spike, cycling": Case(SPIKE, drift=CYCLE),
    "near tie, cycling": Case(rank1.Product([[0.95, 0.9499, 0.9499]] * 2), 1.0, CYCLE, 60_000),
}


class Outcome(NamedTuple):
    """For each run that was played: pulls, whether it decided, and for which arm."""

    pulls: Any
    decided: Any
    arms: Any


class Side(NamedTuple):
    """Levels to compare with each other, under an equal split of the arms."""

    average: Floats  # (arms, levels): turns averages by arm into averages by level
    gap: float  # between the two best levels, as guessed
    variance: float  # of their difference, for one pull each
    alpha: float  # of one comparison

    @property
    def size(self) -> int:
        return self.average.shape[1]


def sides_of(case: Case, one_order: bool) -> list[Side]:
    """Return the sides of the grid if one order is assumed; otherwise one side with all arms."""
    grid, drift = case.problem.grid, Feedback.of(drift=case.drift).multipliers
    means = case.problem.means.ravel() * (drift.mean() if len(drift) else 1.0)
    levels = np.array([grid.levels(arm) for arm in range(grid.arms)]).T
    found = []
    for own in levels if one_order else [np.arange(grid.arms)]:
        each = own[:, None] == np.arange(own.max() + 1)
        average = each / each.sum(axis=0)
        second, best = np.sort(means @ average)[-2:]
        middle, sides = (best + second) / 2, len(levels) if one_order else 1
        variance, alpha = 2 * middle * (1 - middle), ALPHA / sides / own.max()
        found.append(Side(average, case.guess * (best - second), variance, alpha))
    return found


def reaches(bound: float, looks: int) -> float:
    """Return P(one of the first `looks` partial sums of unit normals reaches the bound)."""
    s = np.linspace(-12.0, bound, 600)
    weight = np.full(len(s), s[1] - s[0])
    weight[[0, -1]] /= 2
    density, found = norm.pdf(s), norm.sf(bound)
    step = np.exp(-((s[:, None] - s[None, :]) ** 2) / 2) / math.sqrt(2 * math.pi) * weight
    for _ in range(looks - 1):
        found += (density * weight) @ norm.sf(bound - s)
        density = step @ density
    return float(found)


def beats_all(excess: float, others: int) -> float:
    """Return P(a level beats `others` levels), with a mean `excess` above the required margin."""
    x, weight = np.polynomial.hermite_e.hermegauss(60)
    return float(weight @ norm.cdf(math.sqrt(2) * excess + x) ** others / weight.sum())


def planned(case: Case, one_order: bool, looks: int, runs: int, rng: Any) -> Outcome:
    """Run a fixed-size test (one look) or O'Brien–Fleming boundaries, with Bonferroni.

    At look k of K, a level is best if it beats every other by c·√(K/k) standard errors. There are
    enough pulls for this to happen at the last look in 80% of the runs.
    """
    sides, arms = sides_of(case, one_order), case.problem.arms
    bounds, rounds = [], 0
    for side in sides:
        bound = brentq(lambda b, a=side.alpha: reaches(b, looks) - a, 0.5, 6 * math.sqrt(looks))
        asked, others = POWER ** (1 / len(sides)), side.size - 1
        excess = brentq(lambda e, q=asked, m=others: beats_all(e, m) - q, -1, 9)
        pulls = side.variance * ((bound / math.sqrt(looks) + excess) / side.gap) ** 2  # of a level
        rounds = max(rounds, math.ceil(pulls * side.size / arms))
        bounds.append(bound)
    if rounds * arms > case.n:  # too long to play
        return Outcome(np.array([rounds * arms]), np.zeros(0, bool), np.zeros(0, int))

    def passes(d: int, look: int, gaps: Floats, errors: Floats) -> Any:
        return gaps >= bounds[d] / math.sqrt(look) * errors

    ends = [math.ceil(rounds * k / looks) for k in range(1, looks + 1)]
    return equal_split(case, sides, ends, passes, runs, rng)


def mixture_sprt(case: Case, one_order: bool, runs: int, rng: Any) -> Outcome:
    """Run an always-valid test: a normal mixture over positive differences, as wide as the gap."""
    sides, arms = sides_of(case, one_order), case.problem.arms
    first = max(1, FIRST * max(side.size for side in sides) // arms)
    many = int(math.log(case.n / arms / first) / GROWTH) + 2
    ends = np.unique(np.geomspace(first, case.n // arms, many).astype(int)).tolist()

    def passes(d: int, look: int, gaps: Floats, errors: Floats) -> Any:
        ratio = (sides[d].gap / errors) ** 2
        z = gaps / errors * np.sqrt(ratio / (1 + ratio))
        evidence = math.log(2) - np.log1p(ratio) / 2 + z**2 / 2 + norm.logcdf(z)
        return evidence >= -math.log(sides[d].alpha)

    return equal_split(case, sides, ends, passes, runs, rng)


def equal_split(
    case: Case, sides: list[Side], ends: list[int], passes: Callable[..., Any], runs: int, rng: Any
) -> Outcome:
    """Play rounds of all arms, with looks after some; the first look that passes decides a side."""
    arms, means, begin = case.problem.arms, case.problem.means.ravel(), 0
    drift = Feedback.of(drift=case.drift).multipliers
    sums, active = np.zeros((runs, arms)), np.arange(runs)
    pulls, winners = np.full(runs, ends[-1] * arms), np.full((runs, len(sides)), -1)
    for look, end in enumerate(ends, 1):
        if not len(drift):
            sums[active] += rng.binomial(end - begin, means, (len(active), arms))
        for now in range(begin, end) if len(drift) else ():
            rates = means * drift[(now * arms + np.arange(arms)) % len(drift)]
            sums[active] += rng.random((len(active), arms)) < rates
        begin = end
        for d, side in enumerate(sides):
            rates = sums[active] @ side.average / end
            best, leader = rates.max(axis=1, keepdims=True), rates.argmax(axis=1)
            middle = (best + rates) / 2
            errors = np.sqrt(2 * middle * (1 - middle) / (end * arms / side.size))
            with np.errstate(divide="ignore", invalid="ignore"):
                passed = (errors > 0) & passes(d, look, best - rates, errors)
            passed[np.arange(len(active)), leader] = True
            done = passed.all(axis=1) & (winners[active, d] < 0)
            winners[active[done], d] = leader[done]
        decided = (winners[active] >= 0).all(axis=1)
        pulls[active[decided]] = end * arms
        active = active[~decided]
    decided = (winners >= 0).all(axis=1)
    grid = case.problem.grid if len(sides) > 1 else rank1.Grid([arms])
    return Outcome(pulls, decided, np.array([grid.arm(row) for row in np.maximum(winners, 0)]))


def identified(case: Case, policy: Any, flat: bool, runs: int, seed: int) -> Outcome:
    """Use `rank1.identify`; with `flat`, all arms are levels of one side."""
    problem = rank1.Means(case.problem.means.ravel()) if flat else case.problem
    how: dict[str, Any] = {"n": case.n, "runs": runs, "seed": seed, "shuffle": True}
    each = rank1.identify(policy, problem, 1 - ALPHA, drift=case.drift, **how).searches[0]
    return Outcome(each.pulls, each.stopped, np.array(each.arms))


def best_arm(case: Case, runs: int, seed: int) -> Outcome:
    """Run TopTwo over all arms, with the thresholds of Kaufmann and Koolen."""
    problem, feedback = rank1.Means(case.problem.means.ravel()), Feedback.of(drift=case.drift)
    told = case.n, 1, seed, "steps", True, feedback, KaufmannKoolen(ALPHA)
    block = Series.of(rank1.TopTwo(), problem, *told).play(range(runs))
    return Outcome(block["pulls"], block["stopped"], block["best_arms"])


def outcomes(case: Case, runs: int, seed: int) -> Iterator[tuple[str, str, Outcome]]:
    """Yield what each method assumes about the grid, its name, and its outcome."""
    structured = len(case.problem.grid.sizes) > 1
    for one_order in (False, True) if structured else (False,):
        assumed, flat = "one order" if one_order else "nothing", structured and not one_order
        rng = np.random.default_rng((seed, case.problem.arms, one_order))
        yield assumed, "fixed-size test", planned(case, one_order, 1, runs, rng)
        yield assumed, "5 looks, O'Brien–Fleming", planned(case, one_order, 5, runs, rng)
        yield assumed, "always valid, mixture SPRT", mixture_sprt(case, one_order, runs, rng)
        if not one_order:
            yield assumed, "best arm, Kaufmann–Koolen", best_arm(case, runs, seed)
        yield assumed, "TopTwo and its rule", identified(case, "top_two", flat, runs, seed)
        policy = rank1.BetElim(any_grid=flat)
        yield assumed, "**BetElim**", identified(case, policy, False, runs, seed)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Pulls until a decision, and wrong decisions.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--guess", type=float, default=1.0, help="of the gap, by the true one")
    parser.add_argument("--grid", action="append", choices=list(CASES))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    told: list[dict[str, Any]] = []
    out = sys.stderr if given.json else sys.stdout
    for name in given.grid or CASES:
        case, runs = replace(CASES[name], guess=given.guess), round(given.runs * CASES[name].part)
        print(f"\n**{name}** ({runs} runs)\n", file=out)
        print("| assumes | method | pulls | no decision | wrong |", file=out)
        print("| --- | --- | ---: | ---: | ---: |", file=out, flush=True)
        for assumed, method, (pulls, decided, arms) in outcomes(case, runs, given.seed):
            row: dict[str, Any] = {"grid": name, "assumes": assumed, "method": method.strip("*")}
            if len(decided):
                mean, error = float(pulls.mean()), float(pulls.std(ddof=1) / math.sqrt(runs))
                wrong = sum(not case.problem.is_best(int(arm)) for arm in arms[decided])
                row |= {"runs": runs, "pulls": {"mean": mean, "se": error}}
                row |= {"undecided": runs - int(decided.sum()), "wrong": wrong}
                shares = f"{row['undecided'] / runs:.1%} | {wrong / runs:.1%}"
                cells = f"{mean:,.0f}{f' ± {error:,.0f}' if error else ''} | {shares}"
            else:
                row |= {"planned": int(pulls[0])}
                cells = f"planned: {float(f'{pulls[0]:.2g}'):,.0f} | |"
            told.append(row)
            print(f"| {assumed} | {method} | {cells} |", file=out, flush=True)
    if given.json:
        told_of = {"alpha": ALPHA, "seed": given.seed, "guess": given.guess}
        print(json.dumps(told_of | {"outcomes": told}, indent=1))


if __name__ == "__main__":
    main()
