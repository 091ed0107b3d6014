"""gsdesign: a group-sequential test with five looks and an O'Brien–Fleming boundary.

The package integrates. The boundary c·√(5/k) at look k, and the size that keeps a power of 95%, are
from the textbook (Jennison and Turnbull: Group Sequential Methods, 2000). Every pair is compared as
in the fixed-size test, with Bonferroni's correction.
"""

from __future__ import annotations

import math

import numpy as np
from gsdesign import h1, hupdate
from scipy.optimize import brentq
from statsmodels.stats.proportion import proportion_effectsize, proportions_ztest

from benchmarks.compare.game import Game

LOOKS = 5


def _crossing(c: float, drift: float) -> float:
    """Return the probability that the statistic crosses the boundary at one of the looks."""
    bounds = [c * math.sqrt(LOOKS / k) for k in range(1, LOOKS + 1)]
    inside = h1(18, drift, 1 / LOOKS, -math.inf, bounds[0])
    for k in range(1, LOOKS):
        inside = hupdate(18, drift, (k + 1) / LOOKS, -math.inf, bounds[k], drift, k / LOOKS, inside)
    return 1 - float(inside[2].sum())


def _find(game: Game, best: float, second: float) -> tuple[int, int] | None:
    pairs = range(game.K * game.L)
    level = 0.05 / (len(pairs) - 1)
    c = brentq(lambda c: _crossing(c, 0.0) - level, 1, 9)
    drift = brentq(lambda drift: _crossing(c, drift) - 0.95, 0, 20)
    size = math.ceil(2 * (drift / proportion_effectsize(best, second)) ** 2 / LOOKS)
    counts = np.zeros(len(pairs), np.int64)
    for look in range(1, LOOKS + 1):
        counts += game.rounds(pairs, size)
        first, other = np.argsort(-counts, kind="stable")[:2]
        z = proportions_ztest(counts[[first, other]], [look * size] * 2)[0]
        if z >= c * math.sqrt(LOOKS / look):
            return divmod(int(first), game.L)
    return None


def true_gap(game: Game) -> tuple[int, int] | None:
    return _find(game, 0.81, 0.63)


def half_gap(game: Game) -> tuple[int, int] | None:
    return _find(game, 0.81, 0.72)


FIND = {
    "five looks, planned for the true gap": true_gap,
    "five looks, planned for half the gap": half_gap,
}
SHARED = {"_crossing": FIND, "_find": FIND}
