"""The sequence of versions: which levels are living, which lead, and the share of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rank1.compiled import kernel_for
from rank1.design.shares import FIRST_PASSES, drop, find_leaders, fit_factors, set_shares
from rank1.design.values import Design, Floats, Ints, Totals, Version, Wealth, checked_version
from rank1.design.wealth import log_e_of
from rank1.errors import InputError

__all__ = ["first_version", "is_due", "next_version", "padded", "restarted", "with_floors"]

#: Successes that end the first version; a reward in a range counts as a fraction of a success.
ENOUGH = 60


def first_version(design: Design) -> Version:
    """Return the first version: equal shares, except for fixed ones, and no bets.

    >>> first_version(Design([4], fixed={(0, 0): 0.4})).shares[0].round(3).tolist()
    [0.4, 0.2, 0.2, 0.2]
    """
    ones = tuple(np.ones(size) for size in design.sizes)
    none = (-1,) * len(design.sizes)
    living = tuple(kept.copy() for kept in design.kept)
    equal = tuple(kept / kept.sum() for kept in design.kept)
    return Version(0, _with_floors(design, equal, none), none, ones, living)


def is_due(design: Design, version: Version, began: int, reports: int, gained: float) -> bool:
    """Tell whether the next version is due.

    Parameters
    ----------
    design, version
        The design and the current version.
    began, reports
        The number of reports when the version began, and now.
    gained
        The sum of their scaled rewards; 60 successes end the first version early.

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
    """Return the version after this one.

    Levels that the wealth refutes are eliminated; levels that aren't living in `version` stay so.
    The fit uses `seen`, which has all reports or those of matured pulls, and at least one.
    """
    checked_version(design, version)
    sides = design.sides
    fit, living = np.concatenate(version.fit), np.concatenate(version.living)
    living &= np.concatenate(design.kept)
    for side, own in enumerate(design.split(living)):
        if not own.any():
            hint = "see restarted, for a side whose last living level is retired"
            raise InputError(f"living[{side}]", own.tolist(), "a side with a living level", hint)
    log_e, leaders = log_e_of(wealth.logs), np.zeros(len(design.sizes), np.int64)
    drop(sides, log_e, design.threshold, living)
    for _ in range(1 if version.bets else FIRST_PASSES):
        work = len(seen.counts) * len(sides) // 8
        kernel_for(fit_factors, work=work)(sides, seen.counts, seen.sums, fit, np.zeros(len(fit)))
    find_leaders(sides, fit, living, leaders)
    shares = np.zeros(len(fit))
    set_shares(sides, leaders, log_e, living, 0.0, shares)
    leaders[list(design.given)] = -1
    led = tuple(leaders.tolist())
    split = _with_floors(design, design.split(shares), led)
    return Version(version.number + 1, split, led, design.split(fit), design.split(living))


def padded(version: Version, sizes: Sequence[int]) -> Version:
    """Extend a version to sides to which levels were added at the end.

    An added level is living, has no share, and gets the mean of its side's factors.

    >>> longer = padded(first_version(Design([2])), [3])
    >>> longer.shares[0].tolist(), longer.fit[0].tolist(), longer.living[0].tolist()
    ([0.5, 0.5, 0.0], [1.0, 1.0, 1.0], [True, True, True])
    """
    shares, fit, living = [], [], []
    for side, n in enumerate(_added([len(own) for own in version.shares], sizes)):
        shares.append(np.append(version.shares[side], np.zeros(n)))
        fit.append(np.append(version.fit[side], np.full(n, version.fit[side].mean())))
        living.append(np.append(version.living[side], np.ones(n, np.bool_)))
    return Version(version.number, tuple(shares), version.leaders, tuple(fit), tuple(living))


def restarted(
    design: Design, version: Version, wealth: Wealth, side: int
) -> tuple[Version, Wealth]:
    """Return the version and the wealth with the evidence of one side reset.

    Use this for a side whose retired level has led. The wealth that it won against the others shows
    that they aren't best of all, but one of them may be the best of those that are left. So all
    levels that aren't retired are living again, and the bets on this side start over.
    """
    living = list(version.living)
    living[side] = design.kept[side].copy()
    own = np.concatenate([np.full(size, d == side) for d, size in enumerate(design.sizes)])
    logs, slots, pairs = wealth.logs.copy(), wealth.slots.copy(), wealth.pairs.copy()
    logs[own] = 0.0
    if len(slots):
        slots[own] = -1
        rows = design.pair_rows
        pairs[rows[side] : rows[side + 1]] = 0.0
    changed = Version(version.number, version.shares, version.leaders, version.fit, tuple(living))
    return changed, Wealth(logs, slots, pairs)


def _added(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Return the number of levels to add to each side."""
    if len(before) != len(after) or any(m < n for n, m in zip(before, after, strict=False)):
        expected = f"at least {tuple(before)}, side by side"
        raise InputError("sizes", tuple(after), expected)
    return [m - n for n, m in zip(before, after, strict=True)]


def _with_floors(
    design: Design, shares: tuple[Floats, ...], leaders: tuple[int, ...]
) -> tuple[Floats, ...]:
    """Apply floors and fixed shares; a given side has equal shares, which are never used."""
    return tuple(
        np.full(len(own), 1 / len(own))
        if side in design.given
        else with_floors(design, side, own, np.array(leaders[side]))
        for side, own in enumerate(shares)
    )


def with_floors(design: Design, side: int, shares: Floats, leaders: Ints) -> Floats:
    """Apply a side's floors and fixed shares, and split the rest by the shares in each row."""
    kept = design.kept[side]
    fixed = np.zeros(len(kept))
    for (where, level), share in design.fixed.items():
        if where == side and kept[level]:
            fixed[level] = share
    free = kept & (fixed == 0)
    weights = np.where(free, shares, 0.0)
    # If the only living level has a fixed share, it gets the rest.
    alone = np.where(leaders[..., None] >= 0, np.arange(len(kept)) == leaders[..., None], fixed)
    weights = np.where(weights.sum(axis=-1, keepdims=True) > 0, weights, alone)
    least = np.where(free, design.floor, fixed)
    return least + (1 - least.sum()) * weights / weights.sum(axis=-1, keepdims=True)
