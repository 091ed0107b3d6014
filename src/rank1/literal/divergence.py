"""The Bernoulli divergence, and the ends of a KL interval by bisection."""

from __future__ import annotations

import math

from rank1.compiled import jit
from rank1.divergences import kl

__all__ = ["exploration_level", "kl", "lower_end", "upper_end"]


@jit
def upper_end(mean: float, T: int, level: float) -> float:
    """max{q ≥ mean : T·kl(mean, q) ≤ level}."""
    inside, outside = mean, 1.0
    while True:
        q = (inside + outside) / 2
        if not inside < q < outside:  # no number lies between the two
            return inside
        if T * kl(mean, q) <= level:
            inside = q
        else:
            outside = q


@jit
def lower_end(mean: float, T: int, level: float) -> float:
    """min{q ≤ mean : T·kl(mean, q) ≤ level}: the same with failures instead of successes."""
    return 1 - upper_end(1 - mean, T, level)


@jit
def exploration_level(t: int, c: float) -> float:
    """The level log t + c·log log t; 0 if that is negative or undefined."""
    if t <= 1:
        return 0.0
    return max(0.0, math.log(t) + c * math.log(math.log(t)))
