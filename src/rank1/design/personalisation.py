"""Does it pay to personalise: does the best level differ between segments?

If one order holds, the best level is best in every segment. For each level l, the null hypothesis
says exactly that. In segment i, bets are on the segment's own leader against l, as in `bets`. Under
the null their wealth E(l, i) is a supermartingale, and so is E(l) = Π (½ + ½·E(l, i)), because a
report changes only one factor. If some level is best in every segment, its own E ever reaches 1/α
with probability at most α. So if the E of all levels reach 1/α, no level is best everywhere, with
confidence 1 − α and without a union bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rank1.design.bets import LARGEST_MEAN, LEAST_MEAN, MOST
from rank1.design.counts import Counts, checked_counts, tally
from rank1.design.shares import PRIOR
from rank1.design.values import Bools, Design, Floats, Ints, Version
from rank1.errors import InputError

__all__ = ["Gain", "Personalised", "gain", "personalise"]

#: The largest number of versions × segments × levels to process at once.
ROOM = 2**20
#: A segment supports personalising if its evidence against the common leader is at least this.
SPEAKS = math.log(3)


class Personalised(NamedTuple):
    """Whether it pays to personalise, at the design's confidence."""

    #: Whether no level is best in every segment. If False, there is no evidence that it pays.
    pays: bool
    #: The levels that are shown not to be best in every segment.
    rejected: Bools
    #: The level to show to everyone: the one with the least evidence against it.
    common: int
    #: The level that leads in each segment.
    leaders: Ints
    #: The segments whose own evidence says that another level is better than the common one.
    segments: tuple[int, ...]
    #: The log of the evidence against each level.
    log_e: Floats
    #: The log of the evidence by level and segment.
    by_segment: Floats


def personalise(
    design: Design, versions: Mapping[int, Version], counts: Counts, side: int, by: int
) -> Personalised:
    """Test whether it pays to choose the level of one side by the level of another.

    Parameters
    ----------
    design, versions, counts
        As in `fold`.
    side
        A chosen side, not a given one.
    by
        The side whose levels are the segments, given or chosen.

    Examples
    --------
    >>> from rank1 import design
    >>> plan = design.Design([2, 2], given=[0])
    >>> versions = {0: design.first_version(plan)}
    >>> first = [(0, arm, float(arm in (0, 3)), 20) for arm in range(4)]
    >>> seen = design.totals(plan, versions, design.Counts.of(first))
    >>> versions[1] = design.next_version(plan, versions[0], design.start(plan), seen)
    >>> more = [(1, arm, float(arm in (0, 3)), 50) for arm in range(4)]
    >>> found = personalise(plan, versions, design.Counts.of(first + more), side=1, by=0)
    >>> found.pays, found.leaders.tolist()
    (True, [0, 1])
    """
    table = _Table(design, versions, counts, side, by)
    levels, segments = design.sizes[side], design.sizes[by]
    over_time, by_segment = (
        np.zeros((len(table.arrivals) + 1, levels)),
        np.zeros((levels, segments)),
    )
    leaders = np.zeros(segments, np.int64)
    step = max(1, ROOM // (len(over_time) * levels))
    for begin in range(0, segments, step):
        block = slice(begin, begin + step)
        means = table.means(block)
        leaders[block] = _leaders(means[-1:], table.drawn[-1:])[0]
        for level in range(levels):
            log_e = table.log_e(block, means, level)
            over_time[1:, level] += (np.logaddexp(0.0, log_e) - math.log(2)).sum(axis=1)
            by_segment[level, block] = log_e[-1] if len(log_e) else 0.0
    # The maximum over time: a level that was refuted once stays refuted.
    most, kept = over_time.max(axis=0), design.kept[side]
    rejected = most >= -math.log(1 - design.confidence)
    common = int(np.where(kept, most, math.inf).argmin())
    against = tuple(np.nonzero(by_segment[common] >= SPEAKS)[0].tolist())
    pays = bool(rejected[kept].all())
    return Personalised(pays, rejected, common, leaders, against, over_time[-1], by_segment)


class _Table:
    """Reports by segment and level, in order of arrival."""

    def __init__(
        self, design: Design, versions: Mapping[int, Version], counts: Counts, side: int, by: int
    ) -> None:
        if side not in design.chosen:
            raise InputError("side", side, "a side that is chosen")
        if by == side or not 0 <= by < len(design.sizes):
            raise InputError("by", by, f"another side than {side}")
        if not versions:
            raise InputError("versions", {}, "at least one version")
        rows = checked_counts(design, versions, counts)
        numbers, self.at = np.unique(rows.arrived, return_inverse=True)
        self.arrivals = [versions[number] for number in numbers.tolist()]
        #: The version at each arrival, then the current version.
        self.by = [*self.arrivals, versions[max(versions)]]
        self.drawn = np.array([version.shares[side] > 0 for version in self.by])
        self.design, self.size = design, (design.sizes[by], design.sizes[side])
        self.fits = [np.array([version.fit[d] for version in self.by]) for d in (by, side)]
        self.level = rows.arm // design.grid.strides[side] % design.sizes[side]
        self.segment = rows.arm // design.grid.strides[by] % design.sizes[by]
        self.x, self.pulls = design.scaled(rows.reward), rows.pulls
        self.shares, self.others = self._drawn_by(versions, rows.version, side, by)

    def _drawn_by(
        self, versions: Mapping[int, Version], own: Ints, side: int, by: int
    ) -> tuple[Floats, Floats]:
        """Return, for each row, the levels' shares and the mean factor of the remaining sides."""
        numbers, place = np.unique(own, return_inverse=True)
        own_versions = [versions[number] for number in numbers.tolist()]
        shares = np.array([version.shares[side] for version in own_versions])
        others = np.ones(len(own))
        for other in range(len(self.design.sizes)):
            if other in (side, by):
                continue
            fit = np.array([version.fit[other] for version in self.arrivals])
            if other in self.design.given:
                others *= fit.mean(axis=1)[self.at]
            else:
                weights = np.array([version.shares[other] for version in own_versions])
                others *= (weights @ fit.T)[place, self.at]
        return shares.reshape(-1, self.size[1])[place], others

    def means(self, block: slice) -> Floats:
        """Return the factors by segment and level before each arrival, and after the last.

        They start from the rank-one fit.
        """
        sums = self._before(block, self.pulls * self.x)
        exposed = self._before(block, self.pulls * self.others)
        product = self.fits[0][:, block, None] * self.fits[1][:, None, :]
        return np.asarray((sums + PRIOR) / (exposed + PRIOR / product))

    def total(self, weights: Floats) -> Floats:
        """Add up the weights of all pulls by segment and level."""
        cell = self.segment * self.size[1] + self.level
        return tally(cell, self.pulls * weights, math.prod(self.size)).reshape(self.size)

    def _before(self, block: slice, weights: Floats) -> Floats:
        """Add up the weights of all rows before each arrival, and of all rows, like `total`."""
        rows = self._rows(block)
        segments, levels = len(range(*block.indices(self.size[0]))), self.size[1]
        cell = (self.at[rows] * segments + self.segment[rows] - block.start) * levels
        found = tally(
            cell + self.level[rows], weights[rows], len(self.arrivals) * segments * levels
        )
        found = np.append(np.zeros(segments * levels), found).reshape(-1, segments, levels)
        return np.asarray(np.cumsum(found, axis=0))

    def log_e(self, block: slice, means: Floats, rival: int) -> Floats:
        """Return the log evidence against a level in each segment after each arrival."""
        ahead = _leaders(means, self.drawn)
        rows, segments = self._rows(block), means.shape[1]
        at, segment = self.at[rows], self.segment[rows] - block.start
        lead, shown, shares = ahead[at, segment], self.level[rows], self.shares[rows]
        r_a, r_l = shares[np.arange(len(lead)), lead], shares[:, rival]
        betting = np.array([version.bets for version in self.by])[at]
        on = betting & ((shown == lead) | (shown == rival)) & (lead != rival)
        on &= (r_a > 0) & (r_l > 0)
        rho = r_l[on] / (r_a[on] + r_l[on])
        at, segment, lead, shown = at[on], segment[on], lead[on], shown[on]
        mixed = (1 - rho) * means[at, segment, lead] + rho * means[at, segment, rival]
        m = np.clip(mixed * self.others[rows][on], LEAST_MEAN, LARGEST_MEAN)
        part = np.where(shown == rival, rho - 1, rho) * (self.x[rows][on] - m)
        most = MOST / np.maximum(rho * m, (1 - rho) * (1 - m))
        logs = []
        for kappa in self.design.kappas:
            gained = self.pulls[rows][on] * np.log1p(np.minimum(kappa / (1 - m), most) * part)
            logs.append(tally(at * segments + segment, gained, len(self.arrivals) * segments))
        over_time = np.cumsum(np.array(logs).reshape(len(logs), -1, segments), axis=1)
        return np.asarray(np.logaddexp.reduce(over_time, axis=0) - math.log(len(logs)))

    def _rows(self, block: slice) -> Ints:
        stop = min(block.stop, self.size[0])
        return np.nonzero((self.segment >= block.start) & (self.segment < stop))[0]


def _leaders(means: Floats, drawn: Bools) -> Ints:
    """Return the level with the best mean in each segment, among those that the version draws."""
    return np.where(drawn[:, None, :], means, -1.0).argmax(axis=2)


class Gain(NamedTuple):
    """What personalising could gain over one level for everyone: an estimate, not a proof."""

    estimate: float
    #: The ends of a basic parametric-bootstrap interval, at least 0.
    low: float
    high: float
    method: str = "plug-in with a parametric bootstrap"


def gain(
    design: Design,
    versions: Mapping[int, Version],
    counts: Counts,
    side: int,
    by: int,
    runs: int = 500,
    seed: int = 1,
) -> Gain:
    """Estimate the gain from showing each segment its own leader instead of one level to everyone.

    The estimate uses the observed mean of each segment and level, shrunk a little towards rank one,
    and the observed frequency of each segment. The interval, at the design's confidence, is a
    bootstrap interval: it holds for a single look at many reports. Decide by `personalise`.

    Parameters
    ----------
    design, versions, counts, side, by
        As in `personalise`.
    runs, seed
        The number of bootstrap samples, and the seed for them.
    """
    table = _Table(design, versions, counts, side, by)
    number, exposed, sums = (table.total(own) for own in (np.ones(1), table.others, table.x))
    means = (sums + PRIOR) / (exposed + PRIOR / np.multiply.outer(*(fit[-1] for fit in table.fits)))
    traffic = number.sum(axis=1) / max(number.sum(), 1)
    shown = table.drawn[-1]
    estimate = _gained(means, traffic, shown)
    # A report with mean p has variance p·(d − p); d is 1 for rewards of 0 and 1.
    total = float(table.pulls @ table.x)
    spread = float(table.pulls @ table.x**2) / total if total > 0 else 1.0
    others = np.divide(exposed, number, where=number > 0, out=np.zeros_like(number))
    p = np.clip(means * others, 0, spread)
    noise = np.sqrt(number * p * (spread - p)) / (exposed + PRIOR / means)
    rng, again = np.random.default_rng(seed), np.zeros(runs)
    for run in range(runs):
        drawn = means + noise * rng.standard_normal(means.shape)
        again[run] = _gained(np.maximum(drawn, 0.0), traffic, shown)
    alpha = 1 - design.confidence
    small, large = np.quantile(again, [alpha / 2, 1 - alpha / 2]).tolist()
    return Gain(estimate, max(0.0, 2 * estimate - large), max(0.0, 2 * estimate - small))


def _gained(means: Floats, traffic: Floats, shown: Bools) -> float:
    """Return the gain for these means by segment and level."""
    weighted = traffic[:, None] * means[:, shown]
    common = float(weighted.sum(axis=0).max())
    return float(weighted.max(axis=1).sum()) / common - 1 if common > 0 else 0.0
