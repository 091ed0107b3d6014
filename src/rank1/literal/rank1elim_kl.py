"""Rank1ElimKL, literally: Algorithm 1 with other stages, and intervals found by bisection."""

from __future__ import annotations

import math
from collections.abc import Callable

from rank1.literal.rank1elim import LiteralRank1Elim


def kl(p: float, q: float) -> float:
    first = 0.0 if p == 0 else p * math.log(p / q) if q > 0 else math.inf
    second = 0.0 if p == 1 else (1 - p) * math.log((1 - p) / (1 - q)) if q < 1 else math.inf
    return first + second


def bisect(inside: Callable[[float], bool], good: float, bad: float) -> float:
    for _ in range(200):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if inside(middle) else (good, middle)
    return good


class LiteralRank1ElimKL(LiteralRank1Elim):
    def stage_length(self, gap: float) -> int:
        return max(1, math.ceil(16 * gap**-2 * math.log(self.n)))

    def holds(self, mean: float, n_stage: int) -> Callable[[float], bool]:
        level = math.log(self.n) + 3 * math.log(math.log(self.n))
        return lambda q: n_stage * kl(mean, q) <= level

    def upper(self, mean: float, n_stage: int) -> float:
        return bisect(self.holds(mean, n_stage), mean, 1.0)

    def lower(self, mean: float, n_stage: int) -> float:
        return bisect(self.holds(mean, n_stage), mean, 0.0)
