"""The upper end of a KL interval of Bernoulli means."""

from __future__ import annotations

import math

from rank1.compiled import jit

__all__ = ["kl_level", "kl_upper"]


@jit
def kl_upper(mean: float, divergence: float) -> float:
    """max{q ≥ mean : kl(mean, q) ≤ divergence}, right to some units in the last place.

    Newton's steps for d = q − mean from above the solution: kl(mean, ·) is convex and increasing
    there, so they come down to it and never pass it, but for rounding.
    """
    if mean >= 1.0:
        return 1.0
    if divergence <= 0.0:
        return mean
    if mean < 1e-200:  # as good as 0: kl(0, q) = −log(1 − q)
        return -math.expm1(-divergence)
    rest = 1.0 - mean
    # kl(mean, q) = ∫ (z − mean)/(z(1 − z)) dz ≥ d²/(2·variance), where the variance is the largest
    # z(1 − z) between mean and q. With a variance of 1/4 this is Pinsker's inequality.
    z = max(mean, min(0.5, mean + math.sqrt(0.5 * divergence)))
    d = math.sqrt(2.0 * divergence * z * (1.0 - z))
    if d >= 0.5 * rest:
        # Near 1, kl without the term −mean·log q ≥ 0 is a better bound.
        entropy = -mean * math.log(mean) - rest * math.log(rest)
        y = math.exp(-(divergence + entropy) / rest)
        if y < 1e-16:
            return 1.0
        d = min(d, rest - y)
    for _ in range(100):
        y = rest - d
        excess = -mean * math.log1p(d / mean) - rest * math.log1p(-d / rest) - divergence
        step = excess * (mean + d) * y / d
        d -= step
        # Then at most some step²·(1/d + 1/y)/2 is missing still, which counts relative to q.
        if step * step * rest <= 1e-16 * (mean + d) * d * y:
            break
    return min(mean + d, 1.0)


@jit
def kl_level(t: int, c: float) -> float:
    """The level log t + c·log log t; 0 where it is negative or, for t ≤ 1, not defined."""
    log_t = math.log(t)
    return max(0.0, log_t + c * math.log(log_t)) if log_t > 0.0 else 0.0
