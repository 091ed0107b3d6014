"""statsmodels: a test whose size is fixed in advance, with Bonferroni's correction.

Every pair gets enough pulls to tell the best from the second with power 95%, if their means are as
planned. Then the pair with the most successes is called best, if it is better than each of the
others at a total level of 5%. As all have the same number of pulls, it's enough to test the second.
"""

from __future__ import annotations

import math

import numpy as np
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import proportion_effectsize, proportions_ztest

from benchmarks.compare.game import Game


def _find(game: Game, best: float, second: float) -> tuple[int, int] | None:
    pairs = range(game.K * game.L)
    level, effect = 0.05 / (len(pairs) - 1), proportion_effectsize(best, second)
    power = NormalIndPower().solve_power(effect, alpha=level, power=0.95, alternative="larger")
    size = math.ceil(power)
    counts = game.rounds(pairs, size)
    first, other = np.argsort(-counts, kind="stable")[:2]
    p = proportions_ztest(counts[[first, other]], [size, size], alternative="larger")[1]
    return divmod(int(first), game.L) if p <= level else None


def true_gap(game: Game) -> tuple[int, int] | None:
    return _find(game, 0.81, 0.63)


def half_gap(game: Game) -> tuple[int, int] | None:
    return _find(game, 0.81, 0.72)


FIND = {
    "fixed size, planned for the true gap": true_gap,
    "fixed size, planned for half the gap": half_gap,
}
SHARED = {"_find": FIND}
