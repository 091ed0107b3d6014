"""Bets against "this level is best on its side", one report at a time or many alike at once.

A version of the design gives, for each side, a leader a, the shares r and a fit f. While it lasts a
level l has a share ρ = r(l)/(r(a) + r(l)) of the pulls that show a or l. A report X in [0, 1] of an
arm x, with m = ((1 − ρ)·f(a) + ρ·f(l))·Π f(x's other levels), multiplies the wealth against l by

    1 + c·ρ·(X − m)        if x shows a
    1 − c·(1 − ρ)·(X − m)  if x shows l

and leaves it as it is for any other level. If l is best on its side, whatever the other sides show,
the mean of this factor is at most 1, for any m and any c that keeps it positive. So the wealth is a
test supermartingale, and the chance that it ever reaches 1/α is at most α.

Levels of all sides stand in one row: level k of side d is at `sides[d].begin + k`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit, record
from rank1.grid import Grid

__all__ = [
    "KAPPAS",
    "LEADERS",
    "LONGER",
    "SIDE",
    "clipped",
    "fold_many",
    "fold_pairs",
    "fold_report",
    "give_slots",
    "log_means",
    "prepare",
    "sides_of",
    "stake",
    "take_logs",
    "total_of",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Records = NDArray[Any]

#: The lifts that are bet on, with equal parts of the first wealth.
KAPPAS = (0.03, 0.06, 0.12, 0.25, 0.5, 0.95)
#: The same where rewards are small against their range.
LONGER = (*KAPPAS, 3.0, 9.0)
#: A bet never risks more than this part of the wealth.
MOST = 0.95
#: The expected reward m is kept within these.
LEAST_MEAN, LARGEST_MEAN = 1e-4, 0.99
#: A product of this number of factors neither overflows nor vanishes: each is in [0.05, 1000].
FACTORS = 64

#: Levels that may lead a side, one after another, with a process of their own.
LEADERS = 64

SIDE = record("levels", "stride", "begin")


def sides_of(grid: Grid) -> Records:
    """The sides of a grid for compiled code.

    >>> sides_of(Grid([2, 3])).tolist()
    [(2, 3, 0), (3, 1, 2)]
    """
    begins = np.cumsum([0, *grid.sizes[:-1]])
    return np.array(list(zip(grid.sizes, grid.strides, begins, strict=True)), SIDE)


@inlined
def stake(kappa: float, rho: float, m: float, top: float) -> float:
    """How much is bet: c, for rewards of at most `top` where l is shown."""
    c = kappa / (1.0 - m)
    lost = c * rho * m
    if lost > MOST:
        c *= MOST / lost
    lost = c * (1.0 - rho) * (top - m)
    if lost > MOST:
        c *= MOST / lost
    return c


@inlined
def clipped(m: float) -> float:
    """A mean within the bounds."""
    return min(max(m, LEAST_MEAN), LARGEST_MEAN)


@jit
def prepare(
    sides: Records, leaders: Ints, shares: Floats, fit: Floats, rho: Floats, base: Floats
) -> None:
    """Compute ρ and (1 − ρ)·f(a) + ρ·f(l) of each level; ρ is 0 where nothing is bet.

    The leader's own ρ, which no bet needs, is how many levels of its side are bet against.
    """
    for d in range(len(sides)):
        begin, leader = sides[d].begin, leaders[d]
        for k in range(begin, begin + sides[d].levels):
            rho[k] = base[k] = 0.0
        for k in range(begin, begin + sides[d].levels):
            if leader >= 0 and k != begin + leader and shares[k] > 0.0:
                a = begin + leader
                if shares[a] > 0.0:
                    rho[a] += 1.0
                    rho[k] = shares[k] / (shares[a] + shares[k])
                    base[k] = (1.0 - rho[k]) * fit[a] + rho[k] * fit[k]


@inlined
def total_of(sides: Records, fit: Floats, arm: int) -> float:
    """The product of all factors of an arm."""
    product = 1.0
    for d in range(len(sides)):
        product *= fit[sides[d].begin + arm // sides[d].stride % sides[d].levels]
    return product


@inlined
def multiply(
    k: int, sign: float, rho: float, m: float, x: float, kappas: Floats, wealth: Floats
) -> None:
    """Multiply the wealths of a level; `sign` is 1 where a was shown, −1 where l was."""
    part = (rho if sign > 0.0 else rho - 1.0) * (x - m)
    # As `stake`, with the divisions done once.
    scale = 1.0 / (1.0 - m)
    most = MOST / max(rho * m, (1.0 - rho) * (1.0 - m))
    for j in range(len(kappas)):
        wealth[k, j] *= 1.0 + min(kappas[j] * scale, most) * part


@inlined
def fold_report(
    sides: Records,
    leaders: Ints,
    rho: Floats,
    base: Floats,
    fit: Floats,
    kappas: Floats,
    logs: Floats,
    wealth: Floats,
    factors: Ints,
    arm: int,
    x: float,
) -> None:
    """Fold one report. The wealth is exp(logs)·wealth; `factors` counts those in `wealth`."""
    product = total_of(sides, fit, arm)
    for d in range(len(sides)):
        leader, begin = leaders[d], sides[d].begin
        if leader < 0 or rho[begin + leader] == 0.0:
            continue
        shown = begin + arm // sides[d].stride % sides[d].levels
        others = product / fit[shown]
        if shown != begin + leader:
            if rho[shown] > 0.0:
                m = clipped(base[shown] * others)
                multiply(shown, -1.0, rho[shown], m, x, kappas, wealth)
                factors[shown] += 1
                if factors[shown] >= FACTORS:
                    take_logs(shown, logs, wealth, factors)
            continue
        for k in range(begin, begin + sides[d].levels):
            if rho[k] > 0.0 and k != shown:
                multiply(k, 1.0, rho[k], clipped(base[k] * others), x, kappas, wealth)
                factors[k] += 1
                if factors[k] >= FACTORS:
                    take_logs(k, logs, wealth, factors)


@jit
def take_logs(k: int, logs: Floats, wealth: Floats, factors: Ints) -> None:
    """Move a level's products into its logarithms."""
    for j in range(logs.shape[1]):
        logs[k, j] += math.log(wealth[k, j])
        wealth[k, j] = 1.0
    factors[k] = 0


@jit
def fold_many(
    sides: Records,
    leaders: Ints,
    rho: Floats,
    base: Floats,
    fit: Floats,
    kappas: Floats,
    logs: Floats,
    arm: int,
    x: float,
    count: float,
) -> None:
    """Fold `count` reports of one arm, all with the reward x, straight into the logarithms."""
    product = total_of(sides, fit, arm)
    for d in range(len(sides)):
        leader, begin = leaders[d], sides[d].begin
        if leader < 0 or rho[begin + leader] == 0.0:
            continue
        shown = begin + arm // sides[d].stride % sides[d].levels
        others = product / fit[shown]
        first, last, ahead = shown, shown + 1, False
        if shown == begin + leader:
            first, last, ahead = begin, begin + sides[d].levels, True
        for k in range(first, last):
            r = rho[k]
            if r == 0.0 or k == begin + leader:
                continue
            m = clipped(base[k] * others)
            part = (r if ahead else r - 1.0) * (x - m)
            scale, most = 1.0 / (1.0 - m), MOST / max(r * m, (1.0 - r) * (1.0 - m))
            for j in range(len(kappas)):
                logs[k, j] += count * math.log1p(min(kappas[j] * scale, most) * part)


@jit
def fold_pairs(
    sides: Records,
    leaders: Ints,
    rho: Floats,
    base: Floats,
    fit: Floats,
    kappas: Floats,
    slots: Ints,
    rows: Ints,
    pairs: Floats,
    lift: float,
    arm: int,
    x: float,
    count: float,
) -> None:
    """Fold `count` equal reports into the bets against "l exceeds the leader by the lift".

    `slots` has the number of each level among those that have led, −1 for none; row
    `rows[d] + slot·levels + l` of `pairs` has what was won against l.
    """
    product = total_of(sides, fit, arm)
    for d in range(len(sides)):
        leader, begin, levels = leaders[d], sides[d].begin, sides[d].levels
        if leader < 0 or slots[begin + leader] < 0:
            continue
        a = begin + leader
        shown = begin + arm // sides[d].stride % levels
        others = product / fit[shown]
        first, last = shown, shown + 1
        if shown == a:
            first, last = begin, begin + levels
        for k in range(first, last):
            if rho[k] > 0.0 and k != a:
                m = clipped((base[k] + (1.0 - rho[k]) * lift * fit[a]) * others)
                part = (rho[k] - 1.0) * (x - m)
                if shown == a:
                    part = rho[k] * ((1.0 + lift) * x - m)
                row = rows[d] + slots[a] * levels + k - begin
                for j in range(len(kappas)):
                    c = stake(kappas[j], rho[k], m, 1.0)
                    pairs[row, j] += count * math.log1p(c * part)


@jit
def give_slots(sides: Records, leaders: Ints, slots: Ints) -> None:
    """A level that leads for the first time gets a process of its own, if one is left."""
    for d in range(len(sides)):
        begin, levels = sides[d].begin, sides[d].levels
        if leaders[d] >= 0 and slots[begin + leaders[d]] < 0:
            given = 0
            for k in range(begin, begin + levels):
                if slots[k] >= 0:
                    given += 1
            if given < LEADERS:
                slots[begin + leaders[d]] = given


@jit
def log_means(logs: Floats, found: Floats) -> None:
    """The logarithm of each row's average wealth."""
    for k in range(len(logs)):
        most = logs[k, 0]
        for j in range(1, logs.shape[1]):
            most = max(most, logs[k, j])
        total = 0.0
        for j in range(logs.shape[1]):
            total += math.exp(logs[k, j] - most)
        found[k] = most + math.log(total / logs.shape[1])
