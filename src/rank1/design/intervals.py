"""Intervals for lifts, by inverting the bets: valid at any time, and in line with the verdict.

For a ratio s the null says that level l is at least s times as good as level a. The bets of `bets`,
with the rewards of a multiplied by s if s < 1, and those of l divided by s if s > 1, are a
supermartingale under it. The ratios that aren't refuted have an upper end; a and l change places
for the lower one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import kernel_for
from rank1.design.bets import clipped, stake, total_of
from rank1.design.values import Counts, Design, Version, Wealth, checked_counts, checked_version
from rank1.design.versions import verdict
from rank1.errors import InputError

__all__ = ["lifts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Ratios between 2 to the power of −REACH and of REACH are told apart; halvings of the last factor
#: of 2.
REACH, HALVINGS = 10, 16


def lifts(
    design: Design,
    versions: Mapping[int, Version],
    counts: Counts,
    wealth: Wealth,
    over: tuple[int, ...] | None = None,
) -> tuple[Floats, ...]:
    """Intervals for the lift of each level over one level of its side.

    Parameters
    ----------
    design, versions
        As for `fold`; the version with the largest number is the current one.
    counts
        All reports so far.
    wealth
        What `fold` made of them.
    over
        The level of each side that the others are compared with, such as a control; default: the
        current leaders.

    Returns
    -------
    tuple
        For each side an array with a row for each level: the least and the largest lift, relative;
        −1 and infinity where nothing is known. Each interval covers the lift with the design's
        confidence, whenever one looks, as long as the ratio stays the same. Over the leader, the
        interval of a level lies below 0 if the verdict says that the level has gone, and has 0 in
        it if not.

    Examples
    --------
    >>> from rank1 import design
    >>> plan = design.Design([2], first=10)
    >>> versions = {0: design.first_version(plan)}
    >>> counts = design.Counts.of([(0, 0, 1.0, 9), (0, 0, 0.0, 1), (0, 1, 0.0, 10)])
    >>> wealth = design.start(plan)
    >>> seen = design.totals(plan, versions, counts)
    >>> versions[1] = design.next_version(plan, versions[0], wealth, seen)
    >>> rows = [(1, 0, 1.0, 360), (1, 0, 0.0, 40), (1, 1, 1.0, 90), (1, 1, 0.0, 310)]
    >>> more = design.Counts.of(rows)
    >>> wealth = design.fold(plan, wealth, versions, more)
    >>> lifts(plan, versions, more, wealth)[0].round(1).tolist()
    [[0.0, 0.0], [-0.8, -0.7]]
    """
    rows = checked_counts(design, versions, counts)
    for version in versions.values():
        checked_version(design, version)
    current = versions[max(versions)]
    said = verdict(design, current, wealth)
    bases = current.leaders if over is None else over
    if len(bases) != len(design.sizes):
        raise InputError("over", over, f"{len(design.sizes)} levels, one for each side")
    for side, base in enumerate(bases):
        if not -1 <= base < design.sizes[side]:
            raise InputError(f"over[{side}]", base, f"a level in 0 … {design.sizes[side] - 1}")
    pools = _Pools(design, versions, rows)
    threshold = math.log(2 / (1 - design.confidence))
    found = []
    for side, base in enumerate(bases):
        ends = np.tile([-1.0, math.inf], (design.sizes[side], 1))
        for level in range(design.sizes[side]):
            if base < 0:
                continue
            if level == base:
                ends[level] = 0.0
                continue
            upper = pools.upper(side, base, level, threshold)
            lower = 1 / pools.upper(side, level, base, threshold)
            if over is None or base == current.leaders[side]:
                if said.living[side][level]:  # not refuted: it may be as good as the leader
                    lower, upper = min(lower, 1.0), max(upper, 1.0)
                else:
                    # Refuted at this ratio: the best level is better by more than its inverse.
                    upper = min(upper, pools.refuted(side, level, design.threshold))
                    lower = min(lower, upper)
            ends[level] = lower - 1, upper - 1
        found.append(ends)
    return tuple(found)


class _Pools:
    """The reports, and what each version says of two levels."""

    def __init__(self, design: Design, versions: Mapping[int, Version], rows: Counts) -> None:
        betting = [n for n in sorted(versions) if -1 not in versions[n].leaders]
        place = {number: k for k, number in enumerate(betting)}
        kept = np.isin(rows.version, betting)
        self.design = design
        self.arms, self.count = rows.arm[kept], rows.pulls[kept]
        self.x = design.scaled(rows.reward[kept])
        self.place = np.array([place[int(n)] for n in rows.version[kept]], np.int64)
        levels = sum(design.sizes)
        self.shares = np.array([np.concatenate(versions[n].shares) for n in betting])
        self.fits = np.array([np.concatenate(versions[n].fit) for n in betting])
        self.leaders = np.array([versions[n].leaders for n in betting], np.int64)
        self.shares = self.shares.reshape(-1, levels)
        self.fits = self.fits.reshape(-1, levels)
        self.leaders = self.leaders.reshape(-1, len(design.sizes))

    def log_e(self, side: int, a: int, rival: int, ratio: float) -> float:
        """The evidence against "the rival is at least `ratio` times as good as a".

        If a is negative it stands for the level that led in each version.
        """
        logs = np.zeros(len(self.design.kappas))
        of_side = self.design.sides[side]
        shown = self.arms // of_side.stride % of_side.levels
        ahead = self.leaders[self.place, side] if a < 0 else a
        rows = np.nonzero((shown == rival) | (shown == ahead))[0]
        kernel_for(fold_ratio, work=len(rows))(
            self.design.sides, side, a, rival, ratio, self.shares, self.fits, self.leaders,
            self.design.kappas, rows, self.place, self.arms, self.x, self.count, logs,
        )  # fmt: skip
        return float(np.logaddexp.reduce(logs) - math.log(len(logs)))

    def upper(self, side: int, a: int, rival: int, threshold: float) -> float:
        """The largest ratio that isn't refuted."""
        power = REACH
        while power > -REACH and self.log_e(side, a, rival, 2.0**power) >= threshold:
            power -= 1
        if power == REACH:
            return math.inf
        low, high = 2.0**power, 2.0 ** (power + 1)
        for _ in range(HALVINGS):
            middle = math.sqrt(low * high)
            if self.log_e(side, a, rival, middle) >= threshold:
                high = middle
            else:
                low = middle
        return high

    def refuted(self, side: int, rival: int, threshold: float) -> float:
        """The least ratio to the best level that the verdict's own bets refute; at most 1."""
        low, high = 2.0**-REACH, 1.0
        for _ in range(HALVINGS):
            middle = math.sqrt(low * high)
            if self.log_e(side, -1, rival, middle) >= threshold:
                high = middle
            else:
                low = middle
        return high


def fold_ratio(
    sides: Any,
    side: int,
    a: int,
    rival: int,
    ratio: float,
    shares: Floats,
    fits: Floats,
    leaders: Ints,
    kappas: Floats,
    rows: Ints,
    place: Ints,
    arms: Ints,
    x: Floats,
    count: Ints,
    logs: Floats,
) -> None:
    """Bets of a against l at a ratio of their rewards, on all reports that show either."""
    begin, stride, levels = sides[side].begin, sides[side].stride, sides[side].levels
    scale_a, scale_l = min(ratio, 1.0), min(1.0 / ratio, 1.0)
    for row in rows:
        version, arm = place[row], arms[row]
        fit = fits[version]
        ahead = leaders[version, side] if a < 0 else a
        r_a, r_l = shares[version, begin + ahead], shares[version, begin + rival]
        if ahead == rival or r_a == 0.0 or r_l == 0.0:
            continue
        rho = r_l / (r_a + r_l)
        shown = arm // stride % levels
        others = total_of(sides, fit, arm) / fit[begin + shown]
        mixed = (1.0 - rho) * scale_a * fit[begin + ahead] + rho * scale_l * fit[begin + rival]
        m = clipped(mixed * others)
        part = rho * (scale_a * x[row] - m)
        if shown == rival:
            part = (rho - 1.0) * (scale_l * x[row] - m)
        for j in range(len(kappas)):
            c = stake(kappas[j], rho, m, 1.0)
            logs[j] += count[row] * math.log1p(c * part)
