"""Both kinds of evidence about two arms, and the margin at which they reject a null."""

from __future__ import annotations

import math
from typing import Any

from rank1 import checks
from rank1.compiled import jit
from rank1.stopping.evalues import log_e, log_price
from rank1.stopping.sharp import log_sharp

__all__ = ["KT", "SHARP", "evidence", "kind_of", "largest_margin"]

#: Kinds of evidence, see `evalues` and `sharp`; `RULES` has their names in the same order.
RULES = ("kt", "sharp")
KT, SHARP = 0, 1


def kind_of(rule: Any) -> int:
    """The kind of evidence with this name.

    >>> kind_of("sharp") == SHARP
    True
    """
    return RULES.index(checks.one_of("rule", rule, RULES))


@jit
def evidence(
    kind: int, null: int, margin: float, s_a: float, f_a: float, s_b: float, f_b: float
) -> float:
    """The logarithm of the e-value of a null about arms a and b."""
    if kind == SHARP:
        return log_sharp(null, margin, s_a, f_a, s_b, f_b)[0]
    return log_e(null, margin, s_a, f_a, s_b, f_b)


@jit
def largest_margin(
    kind: int,
    null: int,
    low: float,
    high: float,
    threshold: float,
    s_a: float,
    f_a: float,
    s_b: float,
    f_b: float,
) -> float:
    """The smallest margin in (low, high] at which the null is rejected, log E ≥ threshold; or high.

    It must not be rejected at `low`. E grows with the margin, because the null shrinks. The
    returned margin is rejected, unless none is. Uses false position (with the Illinois rule) on
    √(log E + the price), which is nearly a straight line.
    """
    price = 0.0 if kind == SHARP else log_price(s_a, f_a) + log_price(s_b, f_b)
    goal = math.sqrt(max(0.0, threshold - price))
    value = evidence(kind, null, high, s_a, f_a, s_b, f_b)
    if not value >= threshold:
        return high
    above = math.sqrt(max(0.0, value - price)) - goal
    value = evidence(kind, null, low, s_a, f_a, s_b, f_b)
    below = math.sqrt(max(0.0, value - price)) - goal
    moved = 0
    for k in range(200):
        margin = low - below * (high - low) / (above - below) if above > below else low
        if k % 8 == 7 or not low < margin < high:  # make sure that the bracket shrinks
            margin = 0.5 * (low + high)
        if high - low <= 1e-12 * (abs(low) + abs(high)) or not low < margin < high:
            break
        value = evidence(kind, null, margin, s_a, f_a, s_b, f_b)
        excess = math.sqrt(max(0.0, value - price)) - goal
        if value >= threshold:
            below *= 0.5 if moved > 0 else 1.0
            high, above, moved = margin, excess, 1
        else:
            above *= 0.5 if moved < 0 else 1.0
            low, below, moved = margin, excess, -1
    return high
