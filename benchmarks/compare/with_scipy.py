"""Confidence sequences by their formula, and a race that drops pairs that are surely worse.

The set of p with B(s + ½, f + ½)/B(½, ½) < p^s·(1 − p)^f/α contains the mean at all times with
probability 1 − α (Robbins 1970; confseq has the same for Bernoulli rewards, as a mixture of Beta
laws). Here α is 5% divided by the number of pairs.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from benchmarks.compare.game import Game


def _bounds(s: np.ndarray, n: int, alpha: float) -> list[np.ndarray]:
    mixture = betaln(s + 0.5, n - s + 0.5) - betaln(0.5, 0.5) + np.log(alpha)
    found = []
    for end in (0.0, 1.0):  # bisect between the mean, which is inside, and the end, which isn't
        inside, outside = s / n, np.full(len(s), end)
        for _ in range(50):
            middle = (inside + outside) / 2
            holds = xlogy(s, middle) + xlog1py(n - s, -middle) > mixture
            inside, outside = np.where(holds, middle, inside), np.where(holds, outside, middle)
        found.append(outside)
    return found


def race(game: Game) -> tuple[int, int]:
    pairs, n = np.arange(game.K * game.L), 0
    s, alpha = np.zeros(len(pairs)), 0.05 / len(pairs)
    while len(pairs) > 1:
        more = max(1, n // 100)
        s, n = s + game.rounds(pairs, more), n + more
        low, high = _bounds(s, n, alpha)
        living = high >= low.max()
        pairs, s = pairs[living], s[living]
    return divmod(int(pairs[0]), game.L)


FIND = {"confidence sequences, those surely worse dropped": race}
SHARED = {"_bounds": FIND}
