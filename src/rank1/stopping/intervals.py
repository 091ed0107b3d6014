"""Intervals that are valid at any time, and that agree with the stopping rule."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import jit, kernel
from rank1.counts import tables
from rank1.stopping.evalues import (
    DIFFERENCE,
    RATIO,
    REACH,
    largest_margin,
    log_e,
    log_loss,
    log_price,
)
from rank1.stopping.rule import leader_of, rule_of

__all__ = ["Effects", "RelativeIntervals", "effects", "mean_intervals", "relative_intervals"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@jit
def _upper(
    null: int, pivot: float, threshold: float, s_a: float, f_a: float, s_b: float, f_b: float
) -> float:
    """The least margin at which a null is rejected; at most `pivot` exactly if it is so there."""
    low = -1.0 if null == DIFFERENCE else 0.0
    if log_e(null, pivot, s_a, f_a, s_b, f_b) >= threshold:
        return largest_margin(null, low, pivot, threshold, s_a, f_a, s_b, f_b)
    high = 1.0
    if null == RATIO:
        low, high = pivot, 2.0 * pivot
        while high < 1e9 and not log_e(null, high, s_a, f_a, s_b, f_b) >= threshold:
            low, high = high, 2.0 * high
        if high >= 1e9:
            return math.inf
        return largest_margin(null, low, high, threshold, s_a, f_a, s_b, f_b)
    return largest_margin(null, pivot, high, threshold, s_a, f_a, s_b, f_b)


@jit
def _reach(pivot: float, threshold: float, s_a: float, f_a: float, s_b: float, f_b: float) -> float:
    """How far above the leader a pair may be to which this one leads; its own margin if below 0."""
    if log_e(REACH, 0.0, s_a, f_a, s_b, f_b) >= threshold:
        return _upper(DIFFERENCE, 0.0, threshold, s_a, f_a, s_b, f_b)
    return _upper(REACH, pivot, threshold, s_a, f_a, s_b, f_b)


def _relative(
    s: Floats,
    f: Floats,
    row: int,
    column: int,
    null: int,
    threshold: float,
    tolerance: float,
    lower: Floats,
    upper: Floats,
    reach: Floats,
) -> None:
    """Fill in differences to the leader's mean; `reach` has K entries, then L."""
    rows, columns = s.shape
    s_a, f_a = s[row, column], f[row, column]
    if null == REACH:
        for i in range(rows):
            if i != row:
                reach[i] = _reach(tolerance, threshold, s_a, f_a, s[i, column], f[i, column])
        for j in range(columns):
            if j != column:
                reach[rows + j] = _reach(tolerance, threshold, s_a, f_a, s[row, j], f[row, j])
    for i in range(rows):
        for j in range(columns):
            if i == row and j == column:
                lower[i, j] = upper[i, j] = 0.0
                continue
            s_b, f_b = s[i, j], f[i, j]
            lower[i, j] = -_upper(DIFFERENCE, 0.0, threshold, s_b, f_b, s_a, f_a)
            if null == DIFFERENCE or i == row or j == column:
                upper[i, j] = _upper(DIFFERENCE, tolerance, threshold, s_a, f_a, s_b, f_b)
            else:
                upper[i, j] = max(reach[i], reach[rows + j])
            lower[i, j] = min(lower[i, j], upper[i, j])


@dataclass(frozen=True)
class RelativeIntervals:
    """Every pair beside the leader; what `relative_intervals` returns."""

    leader: tuple[int, int]
    #: The leader's mean plus the tolerance. A pair is out where `upper` is at most this.
    mark: float
    #: K×L. The leader's own interval is its mean alone.
    lower: Floats
    upper: Floats

    @property
    def out(self) -> Bools:
        """K×L: which pairs are out. If all but the leader are, and only then, one may stop."""
        out = self.upper <= self.mark
        out[self.leader] = False
        return out


def relative_intervals(
    successes: ArrayLike,
    failures: ArrayLike,
    confidence: float = 0.95,
    tolerance: float = 0.0,
    rank_one: bool = True,
) -> RelativeIntervals:
    """An interval for every pair that lies below the leader's mark exactly where the pair is out.

    `upper` is the leader's mean plus the most by which the pair's mean may exceed the leader's; so
    the picture is of *differences to the leader*, which is what stopping is about, and separation
    is seen exactly when `verdict` with the same arguments says «stop». A pair outside the leader's
    row and column is compared through the two pairs by which it can be reached in them, if rank one
    is assumed, and directly if not. For a given leader all intervals hold at once, at any time,
    with probability `confidence` for the upper ends, and likewise for the lower ones.

    Parameters
    ----------
    successes, failures, confidence, tolerance, rank_one
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
    s, f = tables(successes, failures)
    threshold, tolerance, null = rule_of(s.shape, confidence, tolerance, rank_one)
    row, column = leader_of(s, f)
    lower, upper, reach = np.empty(s.shape), np.empty(s.shape), np.zeros(sum(s.shape))
    kernel(_relative)(s, f, row, column, null, threshold, tolerance, lower, upper, reach)
    trials = s[row, column] + f[row, column]
    mean = s[row, column] / trials if trials > 0 else math.nan
    mark = mean + tolerance
    # Adding the mean rounds; who is out must not depend on it.
    out = upper <= tolerance
    drawn = np.where(
        out, np.minimum(mean + upper, mark), np.maximum(mean + upper, np.nextafter(mark, 2))
    )
    drawn[row, column] = mean
    return RelativeIntervals((row, column), float(mark), mean + lower, drawn)


@dataclass(frozen=True)
class Effects:
    """Rows and columns beside the leader's; what `effects` returns."""

    leader: tuple[int, int]
    #: Effects u[i]/u[leader's row] with their intervals: (K, 3), estimate, lower and upper end.
    rows: Floats
    #: Likewise v[j]/v[leader's column]: (L, 3).
    columns: Floats


def _ratios(
    s: Floats, f: Floats, row: int, column: int, threshold: float, rows: Floats, columns: Floats
) -> None:
    s_a, f_a = s[row, column], f[row, column]
    for side in range(2):
        table = rows if side == 0 else columns
        for k in range(len(table)):
            i, j = (k, column) if side == 0 else (row, k)
            if i == row and j == column:
                table[k, 0] = table[k, 1] = table[k, 2] = 1.0
                continue
            s_b, f_b = s[i, j], f[i, j]
            table[k, 0] = s_b / (s_b + f_b) / (s_a / (s_a + f_a))
            table[k, 1] = 1.0 / _upper(RATIO, 1.0, threshold, s_b, f_b, s_a, f_a)
            table[k, 2] = _upper(RATIO, 1.0, threshold, s_a, f_a, s_b, f_b)


def effects(successes: ArrayLike, failures: ArrayLike, confidence: float = 0.95) -> Effects:
    """How much worse than the leader's row is each row, and than its column each column?

    In a grid of rank one a row's effect is the same in every column. It is read off the leader's
    column here, because that is what the stopping rule looks at: a row's upper end is at most 1
    exactly where its pair in the leader's column is out, at tolerance 0. Valid at any time, like
    `relative_intervals`. (`rank1.fit` estimates effects from all pairs, under a fixed design.)

    Parameters
    ----------
    successes, failures, confidence
        As for `verdict`.

    Examples
    --------
    >>> from rank1 import stopping
    >>> found = stopping.effects([[300, 150], [90, 10]], [[300, 450], [210, 90]])
    >>> found.rows.round(2)
    array([[1.  , 1.  , 1.  ],
           [0.6 , 0.37, 0.91]])
    """
    s, f = tables(successes, failures)
    threshold, _, _ = rule_of(s.shape, confidence, 0.0, True)
    row, column = leader_of(s, f)
    rows, columns = np.empty((s.shape[0], 3)), np.empty((s.shape[1], 3))
    kernel(_ratios)(s, f, row, column, threshold, rows, columns)
    return Effects((row, column), rows, columns)


@jit
def _end(s: float, f: float, threshold: float, p: float, edge: float) -> float:
    """Between the mean p and an edge of [0, 1], where log KT − log-likelihood is the threshold."""
    price = log_price(s, f)
    if (s if edge == 0.0 else f) == 0.0 and log_loss(s, f, edge) + price < threshold:
        return edge
    outside = edge
    for _ in range(54):  # halvings: as exact as a double
        middle = 0.5 * (p + outside)
        if log_loss(s, f, middle) + price < threshold:
            p = middle
        else:
            outside = middle
    return outside


def _means(s: Floats, f: Floats, threshold: float, lower: Floats, upper: Floats) -> None:
    for i in range(s.shape[0]):
        for j in range(s.shape[1]):
            n = s[i, j] + f[i, j]
            lower[i, j], upper[i, j] = 0.0, 1.0
            if n > 0.0:
                lower[i, j] = _end(s[i, j], f[i, j], threshold, s[i, j] / n, 0.0)
                upper[i, j] = _end(s[i, j], f[i, j], threshold, s[i, j] / n, 1.0)


def mean_intervals(
    successes: ArrayLike, failures: ArrayLike, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Intervals that hold all the pairs' means, at any time, with the given probability.

    They say how well each mean is known. That two of them overlap does not mean that the rule can't
    tell the pairs apart; for that there is `relative_intervals`.

    Parameters
    ----------
    successes, failures
        K×L tables of counts, as for `verdict`.
    confidence
        Of all K·L intervals together; above 0 and below 1.

    Returns
    -------
    tuple
        Lower and upper ends, K×L each.

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
    lower, upper = np.empty(s.shape), np.empty(s.shape)
    kernel(_means)(s, f, math.log(s.size / (1 - confidence)), lower, upper)
    return lower, upper
