"""The stopping rule over an array of counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import kernel_for
from rank1.counts import distinct, tables
from rank1.grid import Grid
from rank1.stopping.evalues import DIFFERENCE
from rank1.stopping.evidence import evidence, kind_of

__all__ = ["Rule", "Verdict", "leader_of", "log_e_value", "rule_of", "verdict"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The number of comparisons that take as long in Python as an event of `compiled.kernel_for`.
COMPARISONS = 20


class Rule(NamedTuple):
    """The parts of a stopping rule."""

    #: The value that log E must reach in every comparison.
    threshold: float
    tolerance: float
    #: The leader is compared with its neighbours on this grid.
    grid: Grid
    #: The kind of evidence, see `rank1.stopping.evidence`.
    kind: int

    @property
    def null(self) -> int:
        """The null to reject: on how many sides the best arm may differ, see `evalues`."""
        return len(self.grid.sizes)


def rule_of(
    sizes: Sequence[int], confidence: Any, tolerance: Any, rank_one: bool, rule: Any = "kt"
) -> Rule:
    """The rule for a grid of these sizes.

    With rank one, comparisons are along the sides with more than one level; without, the grid has
    one side, with a level for each arm.
    """
    confidence = checks.number("confidence", confidence, 0, 1, above=True, below=True)
    tolerance = checks.number("tolerance", tolerance, 0, 1, below=True)
    checks.boolean("rank_one", rank_one)
    grid = Grid([size for size in sizes if size > 1] or [1])
    threshold = math.log((grid.arms - 1) / (1 - confidence)) if grid.arms > 1 else -math.inf
    grid = grid if rank_one else Grid([grid.arms])
    return Rule(threshold, tolerance, grid, kind_of(rule))


def leader_of(successes: Floats, failures: Floats) -> int:
    """The arm with the largest mean among those with a report; the first, if tied."""
    tried = np.flatnonzero((successes > 0) | (failures > 0))
    if not len(tried):
        return 0
    return int(tried[(successes[tried] / (successes[tried] + failures[tried])).argmax()])


def compared(s: Floats, f: Floats, leader: int, grid: Grid) -> tuple[Ints, Floats, Floats, Ints]:
    """The arms to compare a leader with, their distinct counts, and the index of each arm's."""
    others = grid.neighbours(leader)
    return others, *distinct(s[others], f[others])


def _evidence(
    s: Floats, f: Floats, s_a: float, f_a: float, kind: int, null: int, margin: float, found: Floats
) -> None:
    """The log E of the leader's comparisons with arms that have these counts."""
    for b in range(len(s)):  # Python's floats are faster than NumPy's
        found[b] = evidence(kind, null, margin, s_a, f_a, float(s[b]), float(f[b]))


def _one(kind: int, null: int, margin: float, s: Floats, f: Floats) -> float:
    return evidence(kind, null, margin, float(s[0]), float(f[0]), float(s[1]), float(f[1]))


def log_e_value(
    leader: tuple[float, float],
    other: tuple[float, float],
    margin: float = 0.0,
    rule: str = "kt",
) -> float:
    """The evidence log E against "the other arm's mean is at least the leader's plus a margin".

    Parameters
    ----------
    leader, other
        Successes and failures of each arm. Rewards in [0, 1] count x and 1 − x.
    margin
        In [-1, 1].
    rule
        "kt" or "sharp", see `verdict`.

    Returns
    -------
    float
        If the statement is true, this reaches log c with probability at most 1/c, at any time and
        however the arms are chosen. Below 0 if the other arm does look that much better.

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
    s, f = tables([leader[0], other[0]], [leader[1], other[1]])
    return float(kernel_for(_one, work=0)(kind_of(rule), DIFFERENCE, margin, s, f))


@dataclass(frozen=True)
class Verdict:
    """Whether you may stop, and why, from `verdict`. Arms are given by their levels."""

    #: Whether the leader can be declared the best (up to the tolerance).
    stop: bool
    #: The arm with the largest mean (the first, if tied), and that mean (NaN without a report).
    leader: tuple[Any, ...]
    mean: float
    #: The arm whose comparison with the leader is weakest, and its log E; None if there is none.
    weakest: tuple[Any, ...] | None
    log_e: float
    #: The value that log E must reach in every comparison.
    threshold: float
    confidence: float
    tolerance: float
    rank_one: bool
    #: The evidence: "kt" or "sharp".
    rule: str = "kt"

    @property
    def reason(self) -> str:
        """The verdict in words."""
        return self.reason_with(lambda *levels: str(levels))

    def reason_with(self, name: Callable[..., str]) -> str:
        """The verdict in words, with arms named by `name(*levels)`.

        >>> from rank1 import stopping
        >>> v = stopping.verdict([30, 20], [70, 80])
        >>> v.reason_with(lambda level: "AB"[level]).split(':')[:2]
        ['keep going', ' B may still be better than A']
        """
        leader, level = name(*self.leader), f"confidence {100 * self.confidence:g}%"
        arm, beaten = "arm", "every arm that differs from it in one level"
        if len(self.leader) == 2:
            arm, beaten = "pair", "every other pair of its row and column"
        if len(self.leader) == 1 or not self.rank_one:
            beaten = f"every other {arm} of the grid"
        if self.weakest is None:
            return f"stop: {leader} is the only {arm}"
        if math.isnan(self.mean):
            return "keep going: no results yet"
        other = name(*self.weakest)
        if self.stop and self.tolerance == 0:
            best = f"{leader} is best at {level}, because it beats {beaten}"
            return f"stop: {best}; the closest is {other}"
        if self.stop:
            return (
                f"stop: {leader} is within the tolerance of {self.tolerance:g} of the best at "
                f"{level}; the closest is {other}"
            )
        if self.tolerance == 0:
            question = f"{other} may still be better than {leader}"
        elif self.rank_one:
            question = (
                f"{leader} may still be {self.tolerance:g} below the best, judging by {other}"
            )
        else:
            question = f"{other} may still be {self.tolerance:g} better than {leader}"
        return f"keep going: {question}: {odds_of(self.log_e, self.threshold)}"


def odds_of(log_e: float, threshold: float) -> str:
    """The strength of the evidence, as the odds of a bet.

    >>> odds_of(-1.2, 3.0)
    'the evidence against that is 0.3 to 1, and 20 to 1 is required'
    """
    odds, needed = (math.exp(min(each, 300.0)) for each in (log_e, threshold))
    return f"the evidence against that is {_odds(odds)} to 1, and {_odds(needed)} to 1 is required"


def _odds(odds: float) -> str:
    return f"{odds:.1g}" if odds < 1 else f"{odds:.2g}" if odds < 10 else f"{odds:,.0f}"


def verdict(
    successes: ArrayLike,
    failures: ArrayLike,
    confidence: float = 0.95,
    tolerance: float = 0.0,
    rank_one: bool = True,
    rule: str = "kt",
) -> Verdict:
    """Whether you may stop and declare the arm with the largest mean the best.

    However the arms were chosen, however late rewards arrived, and however often you look: on grids
    of rank one (on any grid, if that is not assumed) the probability that this ever says "stop"
    with a leader more than `tolerance` below the best is at most 1 − `confidence`.

    Parameters
    ----------
    successes, failures
        Arrays of counts with one axis per side, 1 to 16: K×L for two sides. A reward x in [0, 1]
        adds x to one and 1 − x to the other.
    confidence
        Above 0 and below 1.
    tolerance
        How far the leader may be below the best; at least 0 and below 1.
    rank_one
        Whether means are known to be products of nonnegative factors, one for each level. Then the
        leader is compared only with its neighbours, which differ from it in one level (for two
        sides: its row and column); otherwise with all other arms.
    rule
        The evidence: "kt" is the mixture of Krichevsky and Trofimov; "sharp" needs about a quarter
        fewer reports, but only for means that stay constant, see the warning.

    Warnings
    --------
    Both rules are proved for means that never change. If all means rise and fall together, both can
    be wrong more often than promised, especially "sharp". Don't use "sharp" on counts of live
    traffic, which has busy hours and seasons. See "Two kinds of evidence" in docs/stopping.md.

    Notes
    -----
    The error probability relies only on this: an arm that isn't the best has a neighbour that is at
    least as good. It has a *better* one if the factors of all sides but one are strictly positive.
    If two sides have factors of 0, arms with both of them lie on a plateau of mean 0, which
    policies that move from neighbour to neighbour may not leave.

    With a tolerance ε, let a be the leader and p its mean. If each of the D neighbours towards the
    best arm exceeds p by at most ε′, the best exceeds it by at most p·((1 + ε′/p)^D − 1), which is
    ε′·(2 + ε′/p) for two sides. The rule rejects the ε′ for which this is ε.

    Examples
    --------
    >>> from rank1 import stopping
    >>> successes, failures = [[300, 150], [90, 10]], [[300, 450], [210, 90]]
    >>> stopping.verdict(successes, failures).reason
    'stop: (0, 0) is best at confidence 95%, because it beats every other pair of its row and column; the closest is (1, 0)'
    >>> now = stopping.verdict([[30, 15], [9, 0]], [[30, 45], [21, 0]])
    >>> now.stop, now.weakest, round(now.log_e, 2), round(now.threshold, 2)
    (False, (1, 0), -2.55, 4.09)
    >>> round(stopping.verdict([[30, 15], [9, 0]], [[30, 45], [21, 0]], rule="sharp").log_e, 2)
    0.42

    Three sides, the last two of which were tried beside the leader only:

    >>> won, lost = [[[90, 20], [25, 0]], [[30, 0], [0, 0]]], [[[60, 80], [75, 0]], [[70, 0], [0, 0]]]
    >>> stopping.verdict(won, lost).reason
    'stop: (0, 0, 0) is best at confidence 95%, because it beats every arm that differs from it in one level; the closest is (1, 0, 0)'

    References
    ----------
    Krichevsky, Trofimov: The performance of universal encoding. IEEE Transactions on Information
    Theory 1981. https://doi.org/10.1109/TIT.1981.1056331

    Wasserman, Ramdas, Balakrishnan: Universal inference. PNAS 2020.
    https://arxiv.org/abs/1912.11436

    Ville: Étude critique de la notion de collectif. 1939.
    """  # noqa: E501
    won, lost = tables(successes, failures)
    s, f = won.ravel(), lost.ravel()
    made = rule_of(won.shape, confidence, tolerance, rank_one, rule)
    leader = leader_of(s, f)
    others, s_b, f_b, which = compared(s, f, leader, made.grid)
    found, first = np.empty(len(s_b)), (float(s[leader]), float(f[leader]))
    by = made.kind, made.null, made.tolerance
    kernel_for(_evidence, work=len(s_b) // COMPARISONS)(s_b, f_b, *first, *by, found)
    log_least, trials = float(found.min(initial=math.inf)), sum(first)
    grid = Grid(won.shape)
    return Verdict(
        stop=log_least >= made.threshold,
        leader=grid.levels(leader),
        mean=first[0] / trials if trials > 0 else math.nan,
        weakest=grid.levels(others[(found == log_least)[which]].min()) if s.size > 1 else None,
        log_e=log_least,
        threshold=made.threshold,
        confidence=float(confidence),
        tolerance=made.tolerance,
        rank_one=bool(rank_one),
        rule=rule,
    )
