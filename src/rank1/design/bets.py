"""Bets against "this level is best on its side", on one report or on many equal ones at once.

A version of the design gives each side a leader a, shares r and a fit f. Under that version, level
l has a share ρ = r(l)/(r(a) + r(l)) of the pulls that show a or l. A report X in [0, 1] of an arm
x, with m = ((1 − ρ)·f(a) + ρ·f(l))·Π f(x's other levels), multiplies the wealth against l by

    1 + c·ρ·(X − m)        if x shows a
    1 − c·(1 − ρ)·(X − m)  if x shows l

and doesn't change it if x shows another level. If l is best on its side, whatever the other sides
show, this factor has a mean of at most 1, for any m and any c that keeps it positive. So the wealth
is a test supermartingale, and the probability that it ever reaches 1/α is at most α.

The levels of all sides are stored in one row: level k of side d is at `sides[d].begin + k`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit, record
from rank1.grid import Grid

__all__ = [
    "KAPPAS",
    "LEADERS",
    "LONGER",
    "SIDE",
    "Book",
    "clipped",
    "fold_reports",
    "give_slots",
    "log_mean",
    "prepare",
    "show",
    "sides_of",
    "take_logs",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Records = NDArray[Any]

#: The lifts to bet on; the initial wealth is split equally between them.
KAPPAS = (0.03, 0.06, 0.12, 0.25, 0.5, 0.95)
#: The lifts to bet on where rewards are small compared with their range.
LONGER = (*KAPPAS, 3.0, 9.0)
#: A bet never risks more than this fraction of the wealth.
MOST = 0.95
#: The expected reward m is clipped to this interval.
LEAST_MEAN, LARGEST_MEAN = 1e-4, 0.99
#: A product of this many factors neither overflows nor underflows: each is in [0.05, 1000].
FACTORS = 64
#: Up to this many equal factors are multiplied one by one; for more, a logarithm is faster.
FEW = 4

#: How many levels of a side can have a process of their own as leaders.
LEADERS = 64

SIDE = record("levels", "stride", "begin")


class Book(NamedTuple):
    """The bets and the wealth they have made.

    After the levels come rows for the bets against "l exceeds the leader by at least the smallest
    lift": level l of side d is in row `rows[d] + slot·levels + l`. `slots` numbers the levels that
    have led and is −1 for the others. Both are empty if there is no smallest lift.
    """

    sides: Records
    kappas: Floats
    leaders: Ints
    fit: Floats
    logs: Floats  # the wealth of each row and κ is exp(logs)·wealth,
    wealth: Floats
    factors: Ints  # where `wealth` is a product of this many factors
    slots: Ints
    rows: Ints


def sides_of(grid: Grid) -> Records:
    """Return the sides of a grid as records for compiled code.

    >>> sides_of(Grid([2, 3])).tolist()
    [(2, 3, 0), (3, 1, 2)]
    """
    begins = np.cumsum([0, *grid.sizes[:-1]])
    return np.array(list(zip(grid.sizes, grid.strides, begins, strict=True)), SIDE)


@inlined
def clipped(m: float) -> float:
    """Clip a mean to its bounds."""
    return min(max(m, LEAST_MEAN), LARGEST_MEAN)


@jit
def prepare(
    sides: Records, leaders: Ints, shares: Floats, fit: Floats, rho: Floats, base: Floats
) -> None:
    """Compute ρ and (1 − ρ)·f(a) + ρ·f(l) of each level; ρ is 0 where there is no bet.

    No bet needs the leader's own ρ, so it holds the number of levels of its side to bet against.
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
def show(sides: Records, arm: int, shown: Ints) -> None:
    """Find where the levels of an arm are in the row of all levels."""
    for d in range(len(sides)):
        level = arm // sides[d].stride
        arm -= level * sides[d].stride
        shown[d] = sides[d].begin + level


@inlined
def fold_reports(
    book: Any, rho: Floats, base: Floats, shown: Ints, x: float, count: float, ones: int,
    lift: float,
) -> None:  # fmt: skip
    """Fold reports of the arm with these levels: `count` with reward x, `ones` with reward 1.

    `book` is a `Book`, or another tuple with the same fields.
    """
    product = 1.0
    for d in range(len(shown)):
        product *= book.fit[shown[d]]
    for d in range(len(shown)):
        begin, levels, leader = book.sides[d].begin, book.sides[d].levels, book.leaders[d]
        a = begin + leader
        if leader < 0 or rho[a] == 0.0:
            continue
        first, last, ahead = shown[d], shown[d] + 1, shown[d] == a
        others = product / book.fit[first]
        if ahead:
            first, last = begin, begin + levels
        for k in range(first, last):
            r = rho[k]
            if r == 0.0 or k == a:
                continue
            m, part = clipped(base[k] * others), r if ahead else r - 1.0
            scale, most = 1.0 / (1.0 - m), MOST / max(r * m, (1.0 - r) * (1.0 - m))
            multiply(book, k, scale, most, part * (x - m), count)
            multiply(book, k, scale, most, part * (1.0 - m), ones)
            if lift > 0.0 and book.slots[a] >= 0:
                row = book.rows[d] + book.slots[a] * levels + k - begin
                more = 1.0 + lift if ahead else 1.0
                m = clipped((base[k] + (1.0 - r) * lift * book.fit[a]) * others)
                scale, most = 1.0 / (1.0 - m), MOST / max(r * m, (1.0 - r) * (1.0 - m))
                multiply(book, row, scale, most, part * (more * x - m), count)
                multiply(book, row, scale, most, part * (more - m), ones)


@inlined
def multiply(book: Any, k: int, scale: float, most: float, part: float, count: float) -> None:
    """Multiply the wealth of a row by 1 + c·part, `count` times."""
    if count <= FEW and count == int(count):
        for _ in range(int(count)):
            for j in range(len(book.kappas)):
                book.wealth[k, j] *= 1.0 + min(book.kappas[j] * scale, most) * part
        book.factors[k] += int(count)
        if book.factors[k] >= FACTORS:
            take_logs(book.logs, book.wealth, book.factors, k)
    else:
        for j in range(len(book.kappas)):
            book.logs[k, j] += count * math.log1p(min(book.kappas[j] * scale, most) * part)


@jit
def take_logs(logs: Floats, wealth: Floats, factors: Ints, k: int) -> None:
    """Move the products of a row into its logarithms."""
    for j in range(logs.shape[1]):
        logs[k, j] += math.log(wealth[k, j])
        wealth[k, j] = 1.0
    factors[k] = 0


@jit
def log_mean(logs: Floats, wealth: Floats, k: int) -> float:
    """Return the logarithm of a row's average wealth."""
    most, total = logs[k, 0], 0.0
    for j in range(1, logs.shape[1]):
        most = max(most, logs[k, j])
    for j in range(logs.shape[1]):
        total += math.exp(logs[k, j] - most) * wealth[k, j]
    return most + math.log(total / logs.shape[1])


@jit
def give_slots(sides: Records, leaders: Ints, slots: Ints) -> None:
    """Give each level that leads for the first time its own process, if a slot is left."""
    for d in range(len(sides)):
        begin, levels = sides[d].begin, sides[d].levels
        if leaders[d] >= 0 and slots[begin + leaders[d]] < 0:
            given = 0
            for k in range(begin, begin + levels):
                if slots[k] >= 0:
                    given += 1
            if given < LEADERS:
                slots[begin + leaders[d]] = given
