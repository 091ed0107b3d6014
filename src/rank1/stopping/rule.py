"""The stopping rule over a table of counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import jit, kernel
from rank1.counts import tables
from rank1.stopping.evalues import DIFFERENCE, REACH, largest_margin, log_e

__all__ = ["Verdict", "leader_of", "log_e_value", "rule_of", "verdict"]

Floats = NDArray[np.float64]


def rule_of(
    shape: tuple[int, ...], confidence: Any, tolerance: Any, rank_one: bool
) -> tuple[float, float, int]:
    """What a rule is made of: the threshold of log E, the tolerance, and the null to reject.

    DIFFERENCE is for all other pairs. REACH is for those of the leader's row and column, except
    in a single line, where these are all, and where every grid has rank one.
    """
    confidence = checks.number("confidence", confidence, 0, 1, above=True, below=True)
    tolerance = checks.number("tolerance", tolerance, 0, 1, below=True)
    checks.boolean("rank_one", rank_one)
    others = shape[0] * shape[1] - 1
    threshold = math.log(others / (1 - confidence)) if others else -math.inf
    return threshold, tolerance, REACH if rank_one and min(shape) > 1 else DIFFERENCE


def leader_of(successes: Floats, failures: Floats) -> tuple[int, int]:
    """The pair of the largest mean among those with a report; of several, the first."""
    trials = successes + failures
    with np.errstate(invalid="ignore"):
        means = np.where(trials > 0, successes / trials, -1.0)
    row, column = np.unravel_index(int(means.argmax()), means.shape)
    return int(row), int(column)


@jit
def is_compared(null: int, row: int, column: int, i: int, j: int) -> bool:
    """Whether the rule compares the leader (row, column) with (i, j)."""
    if i == row and j == column:
        return False
    return null == DIFFERENCE or i == row or j == column


def _weakest(
    s: Floats, f: Floats, row: int, column: int, null: int, margin: float
) -> tuple[float, int, int]:
    """The least log E of the leader's comparisons, and with which pair."""
    least, at_row, at_column = math.inf, -1, -1
    for i in range(s.shape[0]):
        for j in range(s.shape[1]):
            if is_compared(null, row, column, i, j):
                value = log_e(null, margin, s[row, column], f[row, column], s[i, j], f[i, j])
                if value < least or at_row < 0:
                    least, at_row, at_column = value, i, j
    return least, at_row, at_column


def _cost(s: Floats, f: Floats, row: int, column: int, null: int, threshold: float) -> float:
    """The least margin at which every comparison is rejected; at most 1."""
    cost = 0.0
    for i in range(s.shape[0]):
        for j in range(s.shape[1]):
            if is_compared(null, row, column, i, j):
                s_a, f_a, s_b, f_b = s[row, column], f[row, column], s[i, j], f[i, j]
                if not log_e(null, cost, s_a, f_a, s_b, f_b) >= threshold:
                    cost = largest_margin(null, cost, 1.0, threshold, s_a, f_a, s_b, f_b)
    return cost


def _one(null: int, margin: float, s: Floats, f: Floats) -> float:
    return log_e(null, margin, s[0, 0], f[0, 0], s[0, 1], f[0, 1])


def log_e_value(
    leader: tuple[float, float], other: tuple[float, float], margin: float = 0.0
) -> float:
    """The evidence log E against «the other pair's mean is at least the leader's plus a margin».

    Parameters
    ----------
    leader, other
        Successes and failures of each pair. Rewards in [0, 1] count x and 1 − x.
    margin
        In [-1, 1].

    Returns
    -------
    float
        If the statement is true, this reaches log c with probability at most 1/c, at any time and
        however the pairs are chosen. Below 0 where the other pair does look so much better.

    Examples
    --------
    >>> from rank1 import stopping
    >>> round(stopping.log_e_value((60, 40), (40, 60)), 3)
    -1.035
    >>> round(stopping.log_e_value((600, 400), (400, 600)), 3)
    32.911
    >>> round(stopping.log_e_value((60, 40), (40, 60), margin=0.1), 3)
    3.984

    References
    ----------
    Krichevsky, Trofimov: The performance of universal encoding. IEEE Transactions on Information
    Theory 1981. https://doi.org/10.1109/TIT.1981.1056331

    Wasserman, Ramdas, Balakrishnan: Universal inference. PNAS 2020.
    https://arxiv.org/abs/1912.11436
    """
    margin = checks.number("margin", margin, -1, 1)
    s, f = tables([[leader[0], other[0]]], [[leader[1], other[1]]])
    return float(kernel(_one)(DIFFERENCE, margin, s, f))


@dataclass(frozen=True)
class Verdict:
    """May one stop, and why; what `verdict` returns."""

    #: Whether the leader may be called best (up to the tolerance).
    stop: bool
    #: The pair of the largest mean, the first of several, and that mean (NaN without a report).
    leader: tuple[int, int]
    mean: float
    #: The pair whose comparison with the leader is weakest, and its log E; None if there is none.
    weakest: tuple[int, int] | None
    log_e: float
    #: What log E must reach in every comparison.
    threshold: float
    #: The best pair's mean exceeds the leader's by at most this: what stopping now could cost.
    cost: float
    confidence: float
    tolerance: float
    rank_one: bool

    @property
    def reason(self) -> str:
        """The verdict in words."""
        return self.reason_with(lambda row, column: str((row, column)))

    def reason_with(self, name: Callable[[int, int], str]) -> str:
        """The verdict in words, with pairs called by `name(row, column)`.

        >>> from rank1 import stopping
        >>> v = stopping.verdict([[30, 20]], [[70, 80]])
        >>> v.reason_with(lambda row, column: "AB"[column])
        'go on: B may still be better than A, log E is -3.72 and must reach 3.00; stopping now costs at most 0.147 in mean reward'
        """  # noqa: E501
        leader, level = name(*self.leader), f"confidence {100 * self.confidence:g}%"
        if self.weakest is None:
            return f"stop: {leader} is the only pair"
        if math.isnan(self.mean):
            return "go on: nothing is reported yet"
        other = name(*self.weakest)
        where = "its row and column" if self.rank_one else "the grid"
        if self.stop and self.tolerance == 0:
            return (
                f"stop: {leader} is best at {level}, as it beats every other pair of {where}; "
                f"closest is {other}"
            )
        if self.stop:
            return (
                f"stop: {leader} is at most {self.cost:.3g} below the best at {level}, within the "
                f"tolerance of {self.tolerance:g}; closest is {other}"
            )
        if self.tolerance == 0:
            question = f"{other} may still be better than {leader}"
        elif self.rank_one:
            question = f"with {other} in sight, {leader} may still be {self.tolerance:g} too low"
        else:
            question = f"{other} may still be {self.tolerance:g} better than {leader}"
        return (
            f"go on: {question}, log E is {self.log_e:.2f} and must reach {self.threshold:.2f}; "
            f"stopping now costs at most {self.cost:.3g} in mean reward"
        )


def verdict(
    successes: ArrayLike,
    failures: ArrayLike,
    confidence: float = 0.95,
    tolerance: float = 0.0,
    rank_one: bool = True,
) -> Verdict:
    """Whether one may stop and call the pair of the largest mean best.

    However the pairs were chosen, however late rewards came in, and however often one looks: on
    grids of rank one (on any grid, if that is not assumed) the probability that this ever says
    «stop» with a leader that is more than `tolerance` below the best is at most 1 − `confidence`.
    So is the probability that `cost` is ever too small.

    Parameters
    ----------
    successes, failures
        K×L tables of counts. A reward x in [0, 1] adds x to one and 1 − x to the other.
    confidence
        Above 0 and below 1.
    tolerance
        How far below the best the leader may be; at least 0 and below 1.
    rank_one
        Whether means are known to be products u[i]·v[j] of numbers of at least 0. Then only the
        leader's row and column are compared with it, else all other pairs.

    Examples
    --------
    >>> from rank1 import stopping
    >>> successes, failures = [[300, 150], [90, 10]], [[300, 450], [210, 90]]
    >>> stopping.verdict(successes, failures).reason
    'stop: (0, 0) is best at confidence 95%, as it beats every other pair of its row and column; closest is (1, 0)'
    >>> now = stopping.verdict([[30, 15], [9, 0]], [[30, 45], [21, 0]])
    >>> now.stop, now.weakest, round(now.log_e, 2), round(now.threshold, 2), round(now.cost, 2)
    (False, (1, 0), -2.55, 4.09, 0.68)

    References
    ----------
    Krichevsky, Trofimov: The performance of universal encoding. IEEE Transactions on Information
    Theory 1981. https://doi.org/10.1109/TIT.1981.1056331

    Wasserman, Ramdas, Balakrishnan: Universal inference. PNAS 2020.
    https://arxiv.org/abs/1912.11436

    Ville: Étude critique de la notion de collectif. 1939.
    """  # noqa: E501
    s, f = tables(successes, failures)
    threshold, tolerance, null = rule_of(s.shape, confidence, tolerance, rank_one)
    row, column = leader_of(s, f)
    log_least, *weakest = kernel(_weakest)(s, f, row, column, null, tolerance)
    stop = bool(log_least >= threshold)
    cost = float(kernel(_cost)(s, f, row, column, null, threshold))
    trials = s[row, column] + f[row, column]
    return Verdict(
        stop=stop,
        leader=(row, column),
        mean=float(s[row, column] / trials) if trials > 0 else math.nan,
        weakest=(int(weakest[0]), int(weakest[1])) if s.size > 1 else None,
        log_e=float(log_least),
        threshold=threshold,
        cost=min(cost, tolerance) if stop else max(cost, math.nextafter(tolerance, 1)),
        confidence=float(confidence),
        tolerance=tolerance,
        rank_one=bool(rank_one),
    )
