"""Intervals for lifts, by inverting bets: valid at any time, and consistent with the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rank1.design.counts import Counts
from rank1.design.ratios import History, Shown, largest_ratio
from rank1.design.values import Design, Floats, Version, Wealth
from rank1.design.wealth import Verdict, verdict
from rank1.errors import InputError

__all__ = ["ArmLift", "arm_lift", "lifts"]

#: Just below 1, so that the interval excludes a lift of 0.
ALMOST = float(np.nextafter(1.0, 0.0))


def lifts(
    design: Design,
    versions: Mapping[int, Version],
    counts: Counts,
    wealth: Wealth,
    over: tuple[int, ...] | None = None,
) -> tuple[Floats, ...]:
    """Return intervals for the lift of each level over one level of its side.

    Parameters
    ----------
    design, versions
        As in `fold`; the version with the largest number is the current one.
    counts
        All reports so far.
    wealth
        The wealth that `fold` returned for these counts.
    over
        The level of each side to compare the others with, such as a control; default: the current
        leaders. Use -1 for a given side.

    Returns
    -------
    tuple
        For each side, an array with a row for each level: the lower and upper end of its relative
        lift; −1 and infinity where nothing is known. Each interval covers the lift with the
        design's confidence, at any time, as long as the ratio doesn't change. A level's interval
        over the leader lies below 0 if the verdict has eliminated the level, and contains 0
        otherwise. Likewise, the leader's interval over a level lies above 0, or contains 0.

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
    current = versions[max(versions)]
    bases = current.leaders if over is None else _checked_arm(design, over)
    history, said = History(design, versions, counts), verdict(design, current, wealth)
    threshold = math.log(2 / (1 - design.confidence))
    return tuple(
        _ratios(history, said, side, base, threshold) - 1 for side, base in enumerate(bases)
    )


class ArmLift(NamedTuple):
    """The lift of the leaders' arm over another arm, with an interval."""

    #: The other arm; -1 for a given side.
    over: tuple[int, ...]
    #: From the fit, which uses all rewards, clipped to the interval.
    estimate: float
    low: float
    high: float


def arm_lift(
    design: Design,
    versions: Mapping[int, Version],
    counts: Counts,
    wealth: Wealth,
    over: tuple[int, ...] | None = None,
) -> ArmLift:
    """Return the lift of the leaders' arm over another arm.

    Parameters
    ----------
    design, versions, counts, wealth
        As in `lifts`.
    over
        The other arm, such as the control, with a level for each side; default: the runner-up,
        which is the best arm that differs from the leaders' arm in one level.

    Notes
    -----
    The lift of an arm is the product of the ratios of its sides, so this assumes rank one. Each
    side's interval has the level α/D, so together they cover with the design's confidence.

    Examples
    --------
    >>> from rank1 import design
    >>> plan = design.Design([2])
    >>> living, half = (np.ones(2, np.bool_),), (np.array([0.5, 0.5]),)
    >>> versions = {1: design.Version(1, half, (0,), (np.array([0.6, 0.5]),), living)}
    >>> counts = design.Counts.of([(1, 0, 1.0, 600), (1, 0, 0.0, 400), (1, 1, 1.0, 500), (1, 1, 0.0, 500)])
    >>> wealth = design.fold(plan, design.start(plan), versions, counts)
    >>> found = arm_lift(plan, versions, counts, wealth)
    >>> found.over, round(found.estimate, 2), round(found.low, 2), round(found.high, 2)
    ((1,), 0.2, 0.06, 0.37)
    """  # noqa: E501
    current = versions[max(versions)]
    leaders, fit = current.leaders, current.fit
    other = _runner_up(design, current) if over is None else _checked_arm(design, over)
    history, said = History(design, versions, counts), verdict(design, current, wealth)
    many = max(1, sum(design.sizes[side] > 1 for side in design.chosen))
    threshold = math.log(2 * many / (1 - design.confidence))
    estimate = low = high = 1.0
    for side in design.chosen:
        leader, base = leaders[side], other[side]
        if -1 not in (leader, base) and leader != base:
            ends = _ratios(history, said, side, base, threshold)[leader]
            estimate *= float(fit[side][leader] / fit[side][base])
            low, high = low * float(ends[0]), high * float(ends[1])
    return ArmLift(other, min(max(estimate, low), high) - 1, low - 1, high - 1)


def _ratios(history: History, said: Verdict, side: int, base: int, threshold: float) -> Floats:
    """Return the smallest and the largest ratio of each level of a side to the base."""
    design, leader = history.design, said.leaders[side]
    if base < 0:
        return np.tile([0.0, math.inf], (design.sizes[side], 1))
    every, others = history.shown(side)
    alone = every.take(np.s_[:, base : base + 1])
    lower = 1 / largest_ratio(design, every, alone, others, threshold)
    upper = largest_ratio(design, alone, every, others, threshold)
    gone = ~said.living[side] & design.kept[side]
    refuted = _refuted(history, side, every, others) if gone.any() else upper

    def agreed(level: int, low: float, high: float) -> tuple[float, float]:
        """Make the ratio of a level to the leader consistent with the verdict."""
        if gone[level]:
            high = min(high, refuted[level], ALMOST)
            return min(low, high), high
        if design.kept[side][level]:  # not eliminated, so it may be as good as the leader
            return min(low, 1.0), max(high, 1.0)
        return low, high

    if base == leader:
        for level in range(design.sizes[side]):
            lower[level], upper[level] = agreed(level, lower[level], upper[level])
    elif leader >= 0:
        # Invert the base's ratio to the leader.
        with np.errstate(divide="ignore"):
            low, high = agreed(base, *(1 / np.array([upper[leader], lower[leader]])))
            lower[leader], upper[leader] = 1 / np.array([high, low])
    lower[base] = upper[base] = 1.0
    return np.column_stack([lower, upper])


def _refuted(history: History, side: int, every: Shown, others: Floats) -> Floats:
    """Return, for each level, the ratio to the best level that bets like the verdict's refute.

    The bets are on the level that led in each version.
    """
    leaders = history.leaders[:, side : side + 1]
    at = np.maximum(leaders, 0)
    ahead = Shown(
        np.where(leaders >= 0, np.take_along_axis(every.shares, at, axis=1), 0.0),
        np.take_along_axis(every.fit, at, axis=1),
        [np.take_along_axis(sums, at, axis=1) for sums in every.moments],
    )
    rivals = every._replace(
        shares=np.where(np.arange(every.shares.shape[1]) == leaders, 0.0, every.shares)
    )
    return largest_ratio(history.design, ahead, rivals, others, history.design.threshold)


def _runner_up(design: Design, version: Version) -> tuple[int, ...]:
    """Return the best arm that differs from the leaders' arm in one level and may be shown."""
    best, other = 0.0, version.leaders
    for side in design.chosen:
        leader, factors = version.leaders[side], version.fit[side]
        for level in np.nonzero(design.kept[side])[0].tolist():
            if level != leader >= 0 and factors[level] / factors[leader] > best:
                best = factors[level] / factors[leader]
                other = (*version.leaders[:side], level, *version.leaders[side + 1 :])
    return other


def _checked_arm(design: Design, over: tuple[int, ...]) -> tuple[int, ...]:
    if len(over) != len(design.sizes):
        raise InputError("over", over, f"{len(design.sizes)} levels, one for each side")
    for side, level in enumerate(over):
        if not -1 <= level < design.sizes[side]:
            raise InputError(f"over[{side}]", level, f"a level in 0 … {design.sizes[side] - 1}")
    return tuple(over)
