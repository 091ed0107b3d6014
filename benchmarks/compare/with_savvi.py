"""savvi: the always-valid test of conversion rates by Lindon and Malek (2022), between two pairs.

Compares the pair with the most successes with each of the others, with Bonferroni's correction, and
drops pairs that are surely worse. Tests whenever the pulls of a pair have grown by 20%.
"""

from __future__ import annotations

import numpy as np
from savvi.multinomial import InhomogeneousBernoulliProcess

from benchmarks.compare.game import Game

SHARES, CONTRAST = np.array([0.5, 0.5]), np.array([[1.0, -1.0]])


def _is_worse(successes: int, most: int, alpha: float) -> bool:
    test = InhomogeneousBernoulliProcess(alpha, SHARES, lambda delta: [], CONTRAST)
    test.counts = np.array([successes, most])
    return bool(test.calculate_conf_int()[0, 1] < 0)


def lindon_malek(game: Game) -> tuple[int, int]:
    pairs, shown = np.arange(game.K * game.L), 0
    successes, alpha = np.zeros(len(pairs), np.int64), 0.05 / (len(pairs) - 1)
    while len(pairs) > 1:
        more = max(10, shown // 5)
        successes, shown = successes + game.rounds(pairs, more), shown + more
        most, worse = successes.max(), np.zeros(len(pairs), np.bool_)
        for k in np.argsort(successes):  # if one isn't worse, nor are those with more successes
            if not _is_worse(successes[k], most, alpha):
                break
            worse[k] = True
        pairs, successes = pairs[~worse], successes[~worse]
    return divmod(int(pairs[0]), game.L)


FIND = {"InhomogeneousBernoulliProcess, those surely worse dropped": lindon_malek}
SHARED = {"_is_worse": FIND}
