"""Forecast how many more reports a verdict takes: continue the design on grids around the fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rank1 import checks
from rank1.design.bets import LARGEST_MEAN, LEAST_MEAN, MOST
from rank1.design.counts import log_average
from rank1.design.shares import PRIOR, WIDEST
from rank1.design.values import Bools, Design, Floats, Ints, Totals, Version, Wealth
from rank1.design.versions import next_version, with_floors
from rank1.design.wealth import level_sums

__all__ = ["Forecast", "forecast"]

#: Reports grow by at least this fraction from version to version; fewer versions take less time.
GROWTH = 0.02
#: The fractions of runs that have stopped by the reported numbers.
QUANTILES = (0.1, 0.5, 0.9)


class Forecast(NamedTuple):
    """How many more reports a verdict takes; infinite if beyond the search limit."""

    #: 10% of the studies have a verdict after this many more reports,
    low: float
    #: 50% after this many,
    median: float
    #: and 90% after this many.
    high: float


@np.errstate(over="ignore")  # the wealth may overflow
def forecast(
    design: Design,
    versions: Mapping[int, Version],
    wealth: Wealth,
    seen: Totals,
    reports: int,
    runs: int = 200,
    seed: int = 1,
    most: int = 10**7,
    spread: float = 1.0,
) -> Forecast:
    """Forecast how many more reports a verdict takes, if nothing changes.

    The study is continued many times, in whole versions, on grids that are drawn around the fit. So
    the band covers both chance and what isn't known yet. Each side is drawn separately: the leader
    with the uncertainty that its reports leave, the other levels also shrunk towards each other, as
    far as the reports suggest.

    Parameters
    ----------
    design, versions, wealth, seen
        The current state; `seen` has all reports.
    reports
        The number of reports so far, at least 1.
    runs, seed
        The number of continuations, and the seed for them.
    most
        The largest number of reports to look ahead.
    spread
        For rewards in a range: the sum of their squares divided by their sum, both scaled to
        [0, 1]. For rewards of 0 and 1 this is 1.

    Notes
    -----
    If the sides are equally hard, which early reports can't show, the forecast tends to be too
    long.

    Examples
    --------
    >>> from rank1 import design
    >>> plan = design.Design([2], first=100)
    >>> versions = {0: design.first_version(plan)}
    >>> rows = [(0, 0, 1.0, 60), (0, 0, 0.0, 40), (0, 1, 1.0, 40), (0, 1, 0.0, 60)]
    >>> counts = design.Counts.of(rows)
    >>> seen = design.totals(plan, versions, counts)
    >>> found = forecast(plan, versions, design.start(plan), seen, reports=200)
    >>> 0 < found.low < found.median < found.high
    True
    """
    checks.integer("reports", reports, 1)
    current = versions[max(versions)]
    if not current.bets:
        current = next_version(design, current, wealth, seen)
    rng = np.random.default_rng(checks.integer("seed", seed, 0))
    state = _Runs(design, current, wealth, seen, checks.integer("runs", runs, 1), spread, rng)
    shortest = 1 + len(design.sizes) * design.grid.arms // 512 + sum(design.sizes) // 16
    growth = max(design.growth, GROWTH)
    passed, ends = 0, [0.0] * state.stopped()
    while len(ends) < runs and passed < most:
        pulls = max(shortest, int(growth * (reports + passed)))
        passed += pulls
        ends += [passed] * state.play(pulls, rng)
    ends += [math.inf] * (runs - len(ends))
    return Forecast(*(float(ends[min(runs - 1, int(part * runs))]) for part in QUANTILES))


class _Runs:
    """Many continuations of a study at once; runs that have stopped are removed."""

    def __init__(
        self,
        design: Design,
        version: Version,
        wealth: Wealth,
        seen: Totals,
        runs: int,
        spread: float,
        rng: np.random.Generator,
    ) -> None:
        numbers = design.split(level_sums(seen.counts.reshape(design.sizes)))
        self.rest = 1.0  # the mean factor of the given sides, over the visitors
        for side in design.given:
            self.rest *= float(version.fit[side] @ numbers[side]) / float(numbers[side].sum())
        self.sides = [
            _Side(design, side, version, wealth, seen, numbers[side], runs, spread, rng)
            for side in design.chosen
        ]

    def stopped(self) -> int:
        """Remove the runs that have a verdict now, and return how many there were."""
        done = np.all([side.settled() for side in self.sides], axis=0)
        for side in self.sides:
            side.keep(~done)
        return int(done.sum())

    def play(self, pulls: int, rng: np.random.Generator) -> int:
        """Play a version, begin the next, and return how many runs have stopped."""
        true = [(side.shares * side.truth).sum(axis=1) for side in self.sides]
        fitted = [(side.shares * side.fit).sum(axis=1) for side in self.sides]
        for k, side in enumerate(self.sides):
            others = [
                self.rest * np.prod([own for e, own in enumerate(means) if e != k], axis=0)
                for means in (true, fitted)
            ]
            true_others, fitted_others = (
                np.broadcast_to(own, len(side.fit))[:, None] for own in others
            )
            side.play(pulls, true_others, fitted_others, rng)
        for side in self.sides:
            side.renew()
        return self.stopped()


class _Side:
    """One side in all runs: a row for each run, a column for each level."""

    def __init__(
        self,
        design: Design,
        side: int,
        version: Version,
        wealth: Wealth,
        seen: Totals,
        number: Floats,
        runs: int,
        spread: float,
        rng: np.random.Generator,
    ) -> None:
        self.design, self.side, self.spread = design, side, spread
        levels = design.sizes[side]
        begin = int(design.sides[side].begin)
        own = slice(begin, begin + levels)
        fit, sums = version.fit[side], seen.sums[own]
        exposed = _exposed(design, version, seen, side)
        leader = version.leaders[side]
        self.truth = _drawn(sums, exposed, number, leader, spread, runs, rng)
        self.logs = np.repeat(wealth.logs[own].T[:, None], runs, axis=1)
        self.pairs = np.zeros((len(design.kappas) if design.min_lift else 0, runs, levels))
        if len(wealth.slots) and wealth.slots[begin + leader] >= 0:
            row = design.pair_rows[side] + wealth.slots[begin + leader] * levels
            self.pairs[:] = wealth.pairs[row : row + levels].T[:, None]
        rows = sums, exposed, fit, version.shares[side], version.living[side] & design.kept[side]
        tiled: list[Any] = [np.tile(row, (runs, 1)) for row in rows]
        self.sums, self.exposed, self.fit, self.shares, self.living = tiled
        self.leader = np.full(runs, leader)

    def keep(self, runs: Bools) -> None:
        """Keep only some runs."""
        for name in ("truth", "sums", "exposed", "fit", "shares", "living", "leader"):
            setattr(self, name, getattr(self, name)[runs])
        self.logs, self.pairs = self.logs[:, runs], self.pairs[:, runs]

    def play(self, pulls: int, true: Floats, fitted: Floats, rng: np.random.Generator) -> None:
        """Draw and fold the reports of a version; `true` and `fitted` are the other sides."""
        number = rng.multinomial(pulls, self.shares)
        chance = np.clip(self.truth * true / self.spread, 0.0, 1.0)
        ones = rng.binomial(number, chance)
        self._fold(number, ones, fitted)
        self.sums += ones * self.spread
        self.exposed += number * fitted

    def _fold(self, number: Ints, ones: Ints, others: Floats) -> None:
        at = self.leader[:, None]
        r_a, f_a = (np.take_along_axis(own, at, axis=1) for own in (self.shares, self.fit))
        n_a, s_a = (np.take_along_axis(own, at, axis=1) for own in (number, ones))
        on = (self.shares > 0) & (r_a > 0) & (np.arange(self.fit.shape[1]) != at)
        rho = np.where(on, self.shares / (r_a + self.shares), 0.5)
        lift = self.design.min_lift
        for logs, more in ((self.logs, 0.0), (self.pairs, lift)):
            # With a smallest lift, the leader's rewards count 1 + lift times.
            mixed = (1 - rho) * (1 + more) * f_a + rho * self.fit
            m = np.clip(mixed * others, LEAST_MEAN, LARGEST_MEAN)
            most = MOST / np.maximum(rho * m, (1 - rho) * (1 - m))
            x, up_to = self.spread, (1 + more) * self.spread
            for k in range(len(logs)):
                c = np.minimum(self.design.kappas[k] / (1 - m), most)
                up, down = c * rho, c * (1 - rho)
                gained = s_a * np.log1p(up * (up_to - m)) + (n_a - s_a) * np.log1p(-up * m)
                gained += ones * np.log1p(-down * (x - m)) + (number - ones) * np.log1p(down * m)
                logs[k] += np.where(on, gained, 0.0)

    def renew(self) -> None:
        """Compute the leaders, the fit and the shares of the next version."""
        log_e = log_average(self.logs)
        least = np.where(self.living, log_e, np.inf).argmin(axis=1)
        self.living &= log_e < self.design.threshold
        last = ~self.living.any(axis=1)  # a side keeps its last level
        self.living[last, least[last]] = True
        g = np.maximum(self.sums.sum(axis=1), 0.5) / self.exposed.sum(axis=1)
        self.fit = (self.sums + PRIOR) / (self.exposed + PRIOR / g[:, None])
        leader = np.where(self.living, self.fit, -1.0).argmax(axis=1)
        if len(self.pairs):
            self.pairs[:, leader != self.leader] = 0.0
        self.leader = leader
        others = self.living & (np.arange(self.fit.shape[1]) != leader[:, None])
        lowest = np.where(others, log_e, np.inf).min(axis=1, keepdims=True, initial=np.inf)
        with np.errstate(invalid="ignore"):
            weights = np.where(others, np.exp(np.maximum(lowest - log_e, -WIDEST)), 0.0)
        own = 1 / (1 + np.sqrt(others.sum(axis=1, keepdims=True)))
        total = weights.sum(axis=1, keepdims=True)
        shares = (1 - own) * np.divide(weights, total, where=total > 0, out=np.zeros_like(weights))
        np.put_along_axis(shares, leader[:, None], own, axis=1)
        self.shares = with_floors(self.design, self.side, shares, leader)

    def settled(self) -> Bools:
        """Tell where each level but the leader is eliminated, or can't exceed it by `min_lift`."""
        levels = self.fit.shape[1]
        open_ = self.living & (np.arange(levels) != self.leader[:, None])
        if len(self.pairs):
            open_ &= log_average(self.pairs) < self.design.threshold + math.log(max(levels - 1, 1))
        return ~open_.any(axis=1)


def _exposed(design: Design, version: Version, seen: Totals, side: int) -> Floats:
    """Return the reports of each level, weighted by the factors of the other sides."""
    cells = seen.counts.reshape(design.sizes)
    for other in reversed(range(len(design.sizes))):
        if other != side:
            cells = np.moveaxis(cells, other, -1) @ version.fit[other]
    return np.asarray(cells)


def _drawn(
    sums: Floats,
    exposed: Floats,
    number: Floats,
    leader: int,
    spread: float,
    runs: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw plausible factors of a side, a row for each run: log-normal around the fit.

    The levels other than the leader are assumed to be normal around a common mean. Their variance
    is estimated from how much more they differ than noise explains (DerSimonian and Laird).
    """
    g = max(float(sums.sum()), 0.5) / float(exposed.sum())
    log_fit = np.log((sums + PRIOR) / (exposed + PRIOR / g))
    mean = np.minimum(np.exp(log_fit) / g * sums.sum() / number.sum(), spread)
    noise = np.sqrt(np.maximum(spread - mean, 0.01 * spread) / (sums + PRIOR))
    chance = rng.standard_normal((runs, len(sums)))
    found = log_fit + noise * chance
    rest = np.arange(len(sums)) != leader
    free = len(sums) - 2
    if free > 0:
        y, weight = log_fit[rest], 1 / noise[rest] ** 2
        center = (weight @ y) / weight.sum()
        apart = weight @ (y - center) ** 2 * free / rng.chisquare(free, (runs, 1))
        scale = weight.sum() - (weight**2).sum() / weight.sum()
        between = np.maximum((apart - free) / scale, 1e-12)
        total = (weight / (1 + between * weight)).sum(axis=1, keepdims=True)
        middle = center + rng.standard_normal((runs, 1)) / np.sqrt(total)
        sure = weight + 1 / between
        found[:, rest] = (weight * y + middle / between) / sure + chance[:, rest] / np.sqrt(sure)
    return np.asarray(np.exp(found))
