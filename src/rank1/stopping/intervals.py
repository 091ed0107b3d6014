"""Intervals that are valid at any time, and that agree with the stopping rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import jit, kernel_for
from rank1.counts import distinct, tables
from rank1.grid import Grid, two_sides
from rank1.stopping.evalues import DIFFERENCE, RATIO, log_price
from rank1.stopping.evidence import evidence, largest_margin
from rank1.stopping.rule import Rule, compared, leader_of, rule_of

__all__ = ["Effects", "RelativeIntervals", "effects", "mean_intervals", "relative_intervals"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: The number of events of `compiled.kernel_for` that take as long as finding a margin.
MARGINS = 10


@jit
def _upper(
    kind: int, null: int, pivot: float, threshold: float,
    s_a: float, f_a: float, s_b: float, f_b: float,
) -> float:  # fmt: skip
    """The smallest margin at which a null is rejected; at most `pivot` iff it is rejected there."""
    low = -1.0 if null == DIFFERENCE else 0.0
    if evidence(kind, null, pivot, s_a, f_a, s_b, f_b) >= threshold:
        return largest_margin(kind, null, low, pivot, threshold, s_a, f_a, s_b, f_b)
    high = 1.0
    if null == RATIO:
        low, high = pivot, 2.0 * pivot
        while high < 1e9 and not evidence(kind, null, high, s_a, f_a, s_b, f_b) >= threshold:
            low, high = high, 2.0 * high
        if high >= 1e9:
            return math.inf
        return largest_margin(kind, null, low, high, threshold, s_a, f_a, s_b, f_b)
    return largest_margin(kind, null, pivot, high, threshold, s_a, f_a, s_b, f_b)


@jit
def _reach(
    kind: int, null: int, pivot: float, threshold: float,
    s_a: float, f_a: float, s_b: float, f_b: float,
) -> float:  # fmt: skip
    """How far an arm reached via this one may exceed the leader; its own margin if below 0."""
    if evidence(kind, null, 0.0, s_a, f_a, s_b, f_b) >= threshold:
        return _upper(kind, DIFFERENCE, 0.0, threshold, s_a, f_a, s_b, f_b)
    return _upper(kind, null, pivot, threshold, s_a, f_a, s_b, f_b)


def _uppers(
    s: Floats,
    f: Floats,
    s_a: float,
    f_a: float,
    kind: int,
    null: int,
    threshold: float,
    tolerance: float,
    upper: Floats,
    reach: Floats,
) -> None:
    """The most by which arms with these counts may exceed the leader, and their reach."""
    for b in range(len(s)):
        s_b, f_b = float(s[b]), float(f[b])  # Python's floats are faster than NumPy's
        upper[b] = _upper(kind, DIFFERENCE, tolerance, threshold, s_a, f_a, s_b, f_b)
        if null != DIFFERENCE:
            reach[b] = _reach(kind, null, tolerance, threshold, s_a, f_a, s_b, f_b)


def _lowers(
    s: Floats, f: Floats, s_a: float, f_a: float, kind: int, threshold: float, lower: Floats
) -> None:
    """The least by which arms with these counts exceed the leader."""
    for b in range(len(s)):
        lower[b] = -_upper(kind, DIFFERENCE, 0.0, threshold, float(s[b]), float(f[b]), s_a, f_a)


def _above(s: Floats, f: Floats, made: Rule, leader: int) -> tuple[Ints, Floats, Floats]:
    """The leader's neighbours, the most by which they may exceed it, and their reach."""
    others, s_b, f_b, which = compared(s, f, leader, made.grid)
    upper, reach = np.full((2, len(s_b)), -np.inf)
    first, level = (float(s[leader]), float(f[leader])), (made.threshold, made.tolerance)
    kernel = kernel_for(_uppers, work=len(s_b) * MARGINS)
    kernel(s_b, f_b, *first, made.kind, made.null, *level, upper, reach)
    return others, upper[which], reach[which]


@dataclass(frozen=True)
class RelativeIntervals:
    """Every arm compared with the leader, from `relative_intervals`."""

    #: The leader's levels.
    leader: tuple[int, ...]
    #: The leader's mean plus the tolerance. An arm is ruled out if its `upper` is at most this.
    mark: float
    #: Shaped like the counts. The leader's own interval is just its mean.
    lower: Floats
    upper: Floats

    @property
    def out(self) -> Bools:
        """Which arms are ruled out. You may stop if and only if all but the leader are."""
        out = self.upper <= self.mark
        out[self.leader] = False
        return out


def relative_intervals(
    successes: ArrayLike,
    failures: ArrayLike,
    confidence: float = 0.95,
    tolerance: float = 0.0,
    rank_one: bool = True,
    rule: str = "kt",
) -> RelativeIntervals:
    """An interval for every arm that lies below the leader's mark iff the arm is ruled out.

    `upper` is the leader's mean plus the most by which the arm's mean may exceed it. So the picture
    shows *differences to the leader*, which is what stopping is about, and the intervals separate
    exactly when `verdict` with the same arguments says "stop". If rank one is assumed, an arm that
    differs from the leader on several sides is compared through the leader's neighbours that have
    one of its levels; otherwise directly. For a given leader all upper ends hold at once, at any
    time, with probability `confidence`; so do all lower ends.

    Parameters
    ----------
    successes, failures, confidence, tolerance, rank_one, rule
        As for `verdict`.

    Examples
    --------
    >>> from rank1 import stopping
    >>> drawn = stopping.relative_intervals([[300, 150], [90, 10]], [[300, 450], [210, 90]])
    >>> drawn.mark, drawn.upper.round(2)
    (0.5, array([[0.5 , 0.38],
           [0.46, 0.46]]))
    >>> drawn.out
    array([[False,  True],
           [ True,  True]])
    """
    won, lost = tables(successes, failures)
    s, f = won.ravel(), lost.ravel()
    made = rule_of(won.shape, confidence, tolerance, rank_one, rule)
    leader, mark = leader_of(s, f), made.tolerance
    others, uppers, reaches = _above(s, f, made, leader)
    upper = np.zeros(s.size)
    if made.null != DIFFERENCE:
        upper = reduce(np.maximum.outer, _lines(reaches, made.grid, leader)).ravel()
    upper[others] = uppers
    s_b, f_b, which = distinct(s, f)
    least, (s_a, f_a) = np.empty(len(s_b)), (float(s[leader]), float(f[leader]))
    kernel = kernel_for(_lowers, work=len(s_b) * MARGINS)
    kernel(s_b, f_b, s_a, f_a, made.kind, made.threshold, least)
    lower = least[which]
    mean = s_a / (s_a + f_a) if s_a + f_a > 0 else math.nan
    # Adding the mean rounds, which must not change which arms are ruled out.
    below = np.minimum(mean + upper, mean + mark)
    above = np.maximum(mean + upper, np.nextafter(mean + mark, 2))
    drawn = np.where(upper <= mark, below, above)
    drawn[leader] = mean
    lower = mean + np.minimum(lower, upper)
    lower[leader] = mean
    shape = won.shape
    at = Grid(shape).levels(leader)
    return RelativeIntervals(at, float(mean + mark), lower.reshape(shape), drawn.reshape(shape))


def _lines(reaches: Floats, grid: Grid, leader: int) -> list[Floats]:
    """The reach of the leader's neighbours, by side and level; its own levels add nothing."""
    sides = np.split(reaches, np.cumsum([size - 1 for size in grid.sizes])[:-1])
    levels = grid.levels(leader)
    return [np.insert(side, level, -np.inf) for side, level in zip(sides, levels, strict=True)]


def ruled_out(
    successes: ArrayLike, failures: ArrayLike, confidence: float = 0.95, tolerance: float = 0.0
) -> Bools:
    """Which arms `relative_intervals` rules out, computed from the leader's neighbours alone.

    >>> ruled_out([[300, 150], [90, 10]], [[300, 450], [210, 90]])
    array([[False,  True],
           [ True,  True]])
    """
    won, lost = tables(successes, failures)
    s, f = won.ravel(), lost.ravel()
    made = rule_of(won.shape, confidence, tolerance, rank_one=True)
    leader = leader_of(s, f)
    others, uppers, reaches = _above(s, f, made, leader)
    lines = [line <= made.tolerance for line in _lines(reaches, made.grid, leader)]
    out: Bools = reduce(np.logical_and.outer, lines).ravel()
    out[others], out[leader] = uppers <= made.tolerance, False
    return out.reshape(won.shape)


@dataclass(frozen=True)
class Effects:
    """Levels compared with the leader's, for each side, from `effects`."""

    #: The leader's levels.
    leader: tuple[int, ...]
    #: For each side, the effects of its levels, f[level]/f[leader's level], with intervals: an
    #: array with the estimate and the lower and upper end for each level.
    sides: tuple[Floats, ...]

    @property
    def rows(self) -> Floats:
        """The first of two sides."""
        return two_sides(self.sides)[0]

    @property
    def columns(self) -> Floats:
        """The second of two sides."""
        return two_sides(self.sides)[1]


def _ratios(
    s: Floats, f: Floats, s_a: float, f_a: float, kind: int, threshold: float, found: Floats
) -> None:
    """The means of arms with these counts relative to the leader's, with intervals."""
    for k in range(len(s)):
        s_b, f_b = float(s[k]), float(f[k])
        tried = s_b + f_b > 0.0 and s_a > 0.0
        found[k, 0] = s_b / (s_b + f_b) / (s_a / (s_a + f_a)) if tried else math.nan
        found[k, 1] = 1.0 / _upper(kind, RATIO, 1.0, threshold, s_b, f_b, s_a, f_a)
        found[k, 2] = _upper(kind, RATIO, 1.0, threshold, s_a, f_a, s_b, f_b)


def effects(
    successes: ArrayLike, failures: ArrayLike, confidence: float = 0.95, rule: str = "kt"
) -> Effects:
    """How much worse each level of a side is than the leader's level, as a ratio.

    In a grid of rank one a level's effect doesn't depend on what the other sides show. It is
    estimated from the leader's neighbours, like the stopping rule: a level's upper end is at most 1
    exactly if the leader's neighbour with that level is ruled out, at tolerance 0. Valid at any
    time, like `relative_intervals`. (`rank1.fit` estimates effects from all arms, for a fixed
    design.)

    Parameters
    ----------
    successes, failures, confidence, rule
        As for `verdict`.

    Examples
    --------
    >>> from rank1 import stopping
    >>> found = stopping.effects([[300, 150], [90, 10]], [[300, 450], [210, 90]])
    >>> found.rows.round(2)
    array([[1.  , 1.  , 1.  ],
           [0.6 , 0.37, 0.91]])
    """
    won, lost = tables(successes, failures)
    s, f = won.ravel(), lost.ravel()
    made = rule_of(won.shape, confidence, 0.0, True, rule)
    leader, grid = leader_of(s, f), Grid(won.shape)
    levels, found = grid.levels(leader), []
    by = float(s[leader]), float(f[leader]), made.kind, made.threshold
    for level, size, stride in zip(levels, grid.sizes, grid.strides, strict=True):
        others = leader + (np.arange(size) - level) * stride
        s_b, f_b, which = distinct(s[others], f[others])
        table = np.empty((len(s_b), 3))
        kernel_for(_ratios, work=len(s_b) * MARGINS)(s_b, f_b, *by, table)
        found.append(table[which])
        found[-1][level] = 1.0
    return Effects(levels, tuple(found))


def _ends(won: Floats, lost: Floats, least: Floats, edge: float) -> Floats:
    """Where, between the mean and an edge of [0, 1], p loses `least` in log-likelihood."""
    n = np.maximum(won + lost, 1e-9)  # also works for untried arms
    inside, outside = won / n, np.full(len(n), edge)
    never = won if edge == 0.0 else lost  # if there are none, p may reach the edge

    def loss(p: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = won * np.log(won / (n * p)), lost * np.log(lost / (n * (1 - p)))
        return np.where(won > 0, parts[0], 0.0) + np.where(lost > 0, parts[1], 0.0)

    kept = (never == 0) & (loss(outside) < least)
    for _ in range(54):  # halvings, to full double precision
        middle = 0.5 * (inside + outside)
        within = loss(middle) < least
        inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
    return np.where(kept, edge, outside)


def mean_intervals(
    successes: ArrayLike, failures: ArrayLike, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Intervals that contain all the arms' means, at any time, with the given probability.

    They show how well each mean is known. If two of them overlap, the rule may still be able to
    distinguish the arms; see `relative_intervals` for that.

    Parameters
    ----------
    successes, failures
        Arrays of counts, as for `verdict`.
    confidence
        The joint confidence of all intervals, above 0 and below 1.

    Returns
    -------
    tuple
        Lower and upper ends, shaped like the counts.

    Examples
    --------
    >>> from rank1 import stopping
    >>> lower, upper = stopping.mean_intervals([[300, 150]], [[300, 450]])
    >>> lower.round(3), upper.round(3)
    (array([[0.423, 0.188]]), array([[0.577, 0.32 ]]))

    References
    ----------
    Krichevsky, Trofimov: The performance of universal encoding. IEEE Transactions on Information
    Theory 1981. https://doi.org/10.1109/TIT.1981.1056331

    Wasserman, Ramdas, Balakrishnan: Universal inference. PNAS 2020.
    https://arxiv.org/abs/1912.11436
    """
    s, f = tables(successes, failures)
    confidence = checks.number("confidence", confidence, 0, 1, above=True, below=True)
    won, lost, which = distinct(s.ravel(), f.ravel())
    prices = np.array([log_price(*each) for each in zip(won.tolist(), lost.tolist(), strict=True)])
    least = math.log(s.size / (1 - confidence)) - prices
    lower, upper = (_ends(won, lost, least, edge)[which].reshape(s.shape) for edge in (0.0, 1.0))
    return lower, upper
