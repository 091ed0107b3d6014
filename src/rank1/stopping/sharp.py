"""The sharper evidence about two arms, for means that stay constant.

An arm has n rewards in [0, 1] with the sum s. For η > 0, exp(±η·s − n·log(1 + m·(e^±η − 1))) is a
supermartingale that starts at 1, with + if the arm's mean is at most m, with − if it is at least m:
e^±ηx is convex in x and so below its chord. E⁺(m) and E⁻(m) are its averages over the eight η of
`TILTS`. Under the null "b's mean is at least h(p)", where p is a's mean and h increases, the
product E⁺_a(p)·E⁻_b(h(p)) is a supermartingale, too, and E = its infimum over p is an e-value,
however the arms are chosen. Unlike in the mixture of `evalues`, each arm pays for one direction
only.

E⁺ falls and E⁻ grows, so the infimum is on the null's edge. Both are log-convex: along a straight
edge Newton's method finds it. The edge of a null k ≥ 2 with a margin is concave; chords below it,
each of which is searched, make the null larger, and E a little smaller.

This relies on each mean being the same for all of its arm's rewards. If all means rise and fall
together, a's rewards may come from better times than b's. Evidence from counts can't see that,
and this kind is wrong even more often than that of `evalues`.
"""

from __future__ import annotations

import math

from rank1.compiled import jit
from rank1.stopping.evalues import DIFFERENCE, RATIO, edge_of, least_of

__all__ = ["TILTS", "log_sharp", "steepest"]

#: η. The size of the lift decides which of them wins; the others cost at most a factor of 8.
TILTS = (0.03, 0.06, 0.11, 0.2, 0.36, 0.65, 1.1, 2.0)
UP = tuple(math.expm1(tilt) for tilt in TILTS)
DOWN = tuple(math.expm1(-tilt) for tilt in TILTS)
LOG_COUNT = math.log(len(TILTS))

#: The ratio of the ends of chords below a bent edge, where p is below BENT·margin.
RATIO_OF_CHORDS = 1.25
BENT = 16.0
#: Below this fraction of the margin there is one chord.
FIRST_CHORD = 1e-3


@jit
def _mixture(up: bool, s: float, n: float, m: float) -> tuple[float, float, float]:
    """The value of log E⁺(m) or log E⁻(m), with its first and second derivatives."""
    top, total, first, second = -math.inf, 0.0, 0.0, 0.0
    for k in range(len(TILTS)):
        tilt, step = (TILTS[k], UP[k]) if up else (-TILTS[k], DOWN[k])
        value = tilt * s - n * math.log1p(m * step)
        rate = step / (1.0 + m * step)
        weight = 1.0
        if value > top:
            scale = math.exp(top - value)
            total, first, second, top = total * scale, first * scale, second * scale, value
        else:
            weight = math.exp(value - top)
        total += weight
        first -= weight * n * rate
        second += weight * n * (n + 1.0) * rate * rate
    first /= total
    return top + math.log(total) - LOG_COUNT, first, second / total - first * first


@jit
def _along(
    low: float, high: float, q: float, slope: float,
    s_a: float, n_a: float, s_b: float, n_b: float,
) -> tuple[float, float]:  # fmt: skip
    """The smallest log E along a straight edge from (low, q) up to p = high, and p there."""
    begin, p = low, 0.5 * (low + high)
    least, at = math.inf, low
    for _ in range(100):
        value_a, first_a, second_a = _mixture(True, s_a, n_a, p)
        value_b, first_b, second_b = _mixture(False, s_b, n_b, q + slope * (p - begin))
        if value_a + value_b < least:
            least, at = value_a + value_b, p
        first = first_a + slope * first_b
        second = second_a + slope * slope * second_b
        if first < 0.0:
            low = p
        else:
            high = p
        step = -first / second if second > 0.0 else 0.0
        # How much this step would still lower the logarithm.
        if abs(step * first) < 1e-13 or high - low <= 4e-16 * high:
            break
        p += step
        if not low < p < high:
            p = 0.5 * (low + high)
    return least, at


@jit
def log_sharp(
    null: int, margin: float, s_a: float, f_a: float, s_b: float, f_b: float
) -> tuple[float, float, float]:
    """The value of log E for a null about arms a and b, and the means (p, q) that attain it."""
    n_a, n_b = s_a + f_a, s_b + f_b
    if null <= DIFFERENCE or margin == 0.0:
        slope, low, high = 1.0, max(0.0, -margin), min(1.0, 1.0 - margin)
        if null == RATIO:
            slope, low, high = margin, 0.0, 1.0 / max(margin, 1.0)
        q = min(max(least_of(null, margin, low), 0.0), 1.0)
        value, p = _along(low, high, q, slope, s_a, n_a, s_b, n_b)
        return value, p, q + slope * (p - low)
    least, at, q_at = math.inf, 0.0, 0.0
    high, _, _ = edge_of(null, margin, 1.0)
    q_high = 1.0
    while high > 0.0:
        low = high / (RATIO_OF_CHORDS if high < BENT * margin else 2.0)
        low = 0.0 if low < FIRST_CHORD * margin else low
        q_low = least_of(null, margin, low)
        # A lower bound on this chord.
        floor = _mixture(True, s_a, n_a, high)[0] + _mixture(False, s_b, n_b, q_low)[0]
        if floor < least:
            slope = (q_high - q_low) / (high - low)
            value, p = _along(low, high, q_low, slope, s_a, n_a, s_b, n_b)
            if value < least:
                least, at, q_at = value, p, q_low + slope * (p - low)
        high, q_high = low, q_low
    return least, at, q_at


@jit
def steepest(up: bool, success: bool, m: float) -> float:
    """The most by which log E⁺(m) or log E⁻(m) can grow with one reward of 1, or of 0.

    For a reward in between, the growth is at most the weighted mean of both.
    """
    k = len(TILTS) - 1 if up == success else 0  # the largest tilt grows, the smallest loses
    tilt, step = (TILTS[k], UP[k]) if up else (-TILTS[k], DOWN[k])
    return (tilt if success else 0.0) - math.log1p(m * step)
