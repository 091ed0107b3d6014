"""From counts by version to the next version, and to a verdict. Pure functions over values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rank1.compiled import kernel_for
from rank1.design.bets import (
    LEADERS,
    fold_many,
    fold_pairs,
    give_slots,
    log_means,
    prepare,
)
from rank1.design.shares import drop, find_leaders, fit_factors, set_shares
from rank1.design.values import (
    Bools,
    Counts,
    Design,
    Floats,
    Ints,
    Totals,
    Version,
    Wealth,
    checked_counts,
    checked_version,
)
from rank1.grid import Grid

__all__ = [
    "Verdict",
    "any_grid",
    "first_version",
    "flattened",
    "fold",
    "is_due",
    "next_version",
    "start",
    "totals",
    "verdict",
]

#: Successes that end the first version; rewards in a range count as the part of it that they are.
ENOUGH = 60
#: Passes of the first fit; each later one starts from the one before.
FIRST_PASSES = 8


class Verdict(NamedTuple):
    """What may be said now, at the design's confidence."""

    #: Whether the arm of all leaders may be called best, or close enough to the best.
    stop: bool
    leaders: tuple[int, ...]
    #: For each side, which levels may still be best.
    living: tuple[Bools, ...]
    #: For each side, the log of the evidence against each level.
    log_e: tuple[Floats, ...]


def first_version(design: Design) -> Version:
    """Equal shares, but for those that are fixed; nothing is bet.

    >>> first_version(Design([4], fixed={(0, 0): 0.4})).shares[0].round(3).tolist()
    [0.4, 0.2, 0.2, 0.2]
    """
    shares = np.concatenate([np.full(size, 1 / size) for size in design.sizes])
    ones = design.split(np.ones(len(shares)))
    living = design.split(np.ones(len(shares), np.bool_))
    none = (-1,) * len(design.sizes)
    return Version(0, _with_fixed(design, design.split(shares), none), none, ones, living)


def start(design: Design) -> Wealth:
    """The wealth before the first report."""
    levels, kappas = sum(design.sizes), len(design.kappas)
    led = sum(_pair_sizes(design))
    slots = np.full(levels if led else 0, -1)
    return Wealth(np.zeros((levels, kappas)), slots, np.zeros((led, kappas)))


def totals(design: Design, versions: Mapping[int, Version], counts: Counts) -> Totals:
    """What a fit needs of the reports: hand over those of matured pulls only."""
    rows = checked_counts(design, versions, counts)
    number = np.bincount(rows.arm, rows.pulls, design.grid.arms).astype(np.float64)
    gained = np.bincount(rows.arm, rows.pulls * design.scaled(rows.reward), design.grid.arms)
    cells = gained.reshape(design.sizes)
    every = range(len(design.sizes))
    sums = [cells.sum(axis=tuple(e for e in every if e != side)).ravel() for side in every]
    return Totals(number, np.concatenate(sums))


def fold(
    design: Design,
    wealth: Wealth,
    versions: Mapping[int, Version],
    counts: Counts,
    under: Version | None = None,
) -> Wealth:
    """The wealth after more reports.

    Parameters
    ----------
    design, wealth
        As they are; neither changes.
    versions
        The versions that the counts speak of, by their number.
    counts
        How often each arm, drawn under a version, gave a reward. Each report once.
    under
        The version whose leaders and fit the bets use, such as the current one, which knows more
        where reports are late. It must not depend on these counts. Default: each report's own
        version; then the order in which reports are folded makes no difference.

    Examples
    --------
    >>> design = Design([2], first=10)
    >>> versions = {0: first_version(design)}
    >>> counts = Counts.of([(0, 0, 1.0, 9), (0, 0, 0.0, 1), (0, 1, 1.0, 1), (0, 1, 0.0, 9)])
    >>> wealth = fold(design, start(design), versions, counts)
    >>> versions[1] = next_version(design, versions[0], wealth, totals(design, versions, counts))
    >>> more = Counts.of([(1, 0, 1.0, 36), (1, 0, 0.0, 4), (1, 1, 1.0, 4), (1, 1, 0.0, 36)])
    >>> wealth = fold(design, wealth, versions, more)
    >>> verdict(design, versions[1], wealth).stop
    True
    """
    for number in set(np.asarray(counts.version).tolist()) & set(versions):
        checked_version(design, versions[number])
    rows = checked_counts(design, versions, counts)
    logs, slots, pairs = wealth.logs.copy(), wealth.slots.copy(), wealth.pairs.copy()
    for number in np.unique(rows.version):
        by = under or versions[int(number)]
        if -1 in by.leaders:
            continue
        shares, fit = np.concatenate(versions[int(number)].shares), np.concatenate(by.fit)
        leaders = np.array(by.leaders)
        rho, base = np.zeros((2, len(shares)))
        prepare(design.sides, leaders, shares, fit, rho, base)
        if len(slots):
            give_slots(design.sides, leaders, slots)
        of_it = rows.version == number
        arms, x, count = rows.arm[of_it], design.scaled(rows.reward[of_it]), rows.pulls[of_it]
        work = len(arms) * (len(logs) // len(design.sizes))
        kernel_for(_fold_rows, work=work)(
            design.sides, leaders, rho, base, fit, design.kappas, logs, arms, x, count,
            slots, _pair_rows(design), pairs,
            design.min_lift,
        )  # fmt: skip
    return Wealth(logs, slots, pairs)


def _fold_rows(
    sides: Any, leaders: Ints, rho: Floats, base: Floats, fit: Floats, kappas: Floats, logs: Floats,
    arms: Ints, x: Floats, count: Ints, slots: Ints, rows: Ints,
    pairs: Floats, lift: float,
) -> None:  # fmt: skip
    """Reports under one version."""
    for row in range(len(arms)):
        fold_many(
            sides, leaders, rho, base, fit, kappas, logs, arms[row], x[row], count[row],
        )  # fmt: skip
        if lift > 0.0:
            fold_pairs(
                sides, leaders, rho, base, fit, kappas, slots, rows, pairs, lift, arms[row],
                x[row], count[row],
            )  # fmt: skip


def is_due(design: Design, version: Version, began: int, reports: int, gained: float) -> bool:
    """Whether the next version is due.

    Parameters
    ----------
    design, version
        The version is the current one.
    began, reports
        How many reports were in when it began, and how many are in now.
    gained
        The sum of their scaled rewards: 60 successes end the first version before its time.

    Examples
    --------
    >>> design = Design([2])
    >>> first = first_version(design)
    >>> is_due(design, first, 0, 199, 10), is_due(design, first, 0, 90, 60)
    (False, True)
    """
    if version.number == 0:
        return reports >= design.first or gained >= ENOUGH
    shortest = 1 + len(design.sizes) * design.grid.arms // 512 + sum(design.sizes) // 16
    return reports >= began + max(shortest, int(design.growth * began))


def next_version(design: Design, version: Version, wealth: Wealth, seen: Totals) -> Version:
    """The version after this one.

    Levels that the wealth refutes are gone. `seen` is what the fit uses, all reports or those of
    matured pulls; it needs at least one.
    """
    checked_version(design, version)
    sides = design.sides
    fit, living = np.concatenate(version.fit), np.concatenate(version.living)
    log_e, leaders = _log_e(wealth.logs), np.zeros(len(design.sizes), np.int64)
    drop(sides, log_e, design.threshold, living)
    for _ in range(FIRST_PASSES if -1 in version.leaders else 1):
        work = len(seen.counts) * len(sides) // 8
        kernel_for(fit_factors, work=work)(sides, seen.counts, seen.sums, fit, np.zeros(len(fit)))
    find_leaders(sides, fit, living, leaders)
    shares = np.zeros(len(fit))
    set_shares(sides, leaders, log_e, living, design.floor, shares)
    led = tuple(leaders.tolist())
    split = _with_fixed(design, design.split(shares), led)
    return Version(version.number + 1, split, led, design.split(fit), design.split(living))


def verdict(design: Design, version: Version, wealth: Wealth) -> Verdict:
    """What may be said of the current version's leaders."""
    log_e, living = _log_e(wealth.logs), np.concatenate(version.living)
    drop(design.sides, log_e, design.threshold, living)
    stop = True
    pairs = _log_e(wealth.pairs)
    for d, side in enumerate(design.sides):
        begin, levels, leader = int(side.begin), int(side.levels), version.leaders[d]
        for k in range(levels):
            if k == leader or not living[begin + k]:
                continue
            slot = int(wealth.slots[begin + leader]) if len(wealth.slots) and leader >= 0 else -1
            close = slot >= 0 and pairs[
                _pair_rows(design)[d] + slot * levels + k
            ] >= design.threshold + math.log(levels - 1)
            stop = stop and close
        if levels > 1 and (leader < 0 or not living[begin + leader]):
            stop = False
    return Verdict(bool(stop), version.leaders, design.split(living), design.split(log_e))


def any_grid(design: Design) -> Design:
    """The design that assumes nothing of the grid: all its arms are levels of one side."""
    return Design(
        Grid([design.grid.arms]), design.confidence, design.low, design.high,
        growth=design.growth, min_lift=design.min_lift, first=design.first,
    )  # fmt: skip


def flattened(design: Design, version: Version, seen: Totals, sums: Floats) -> Version:
    """A version as `any_grid(design)` has it: arms with the products of the shares.

    The leader is the arm of the best mean; `sums` has the sum of each arm's scaled rewards. The
    verdict on any grid comes from the same draws, folded under these versions.
    """
    shares = np.ones(1)
    for side in version.shares:
        shares = np.multiply.outer(shares, side).ravel()
    arms = any_grid(design)
    fit, room = np.ones(len(shares)), np.zeros(len(shares))
    kernel_for(fit_factors, work=len(shares) // 8)(arms.sides, seen.counts, sums, fit, room)
    leader = -1 if -1 in version.leaders else int(np.where(shares > 0, fit, -1.0).argmax())
    every = (np.ones(len(shares), np.bool_),)
    return Version(version.number, (shares / shares.sum(),), (leader,), (fit,), every)


def _log_e(logs: Floats) -> Floats:
    found = np.zeros(len(logs))
    log_means(logs, found)
    return found


def _pair_sizes(design: Design) -> list[int]:
    if design.min_lift == 0:
        return []
    return [min(size, LEADERS) * size for size in design.sizes]


def _pair_rows(design: Design) -> Ints:
    return np.cumsum([0, *_pair_sizes(design)])


def _with_fixed(
    design: Design, shares: tuple[Floats, ...], leaders: tuple[int, ...]
) -> tuple[Floats, ...]:
    """Fixed shares in place; what is left goes to the other levels, by their shares."""
    made = []
    for side, own in enumerate(shares):
        fixed = {level: share for (where, level), share in design.fixed.items() if where == side}
        if fixed:
            free = np.array([level not in fixed for level in range(len(own))])
            left = 1 - sum(fixed.values()) - design.floor * free.sum()
            weights = np.where(free, own - design.floor, 0.0)
            new = np.where(free, design.floor, 0.0)
            if weights.sum() > 0:
                new += left * weights / weights.sum()
            else:  # a level whose share is fixed is the only one that lives
                new[leaders[side]] += left
            for level, share in fixed.items():
                new[level] += share
            own = new
        made.append(own)
    return tuple(made)
