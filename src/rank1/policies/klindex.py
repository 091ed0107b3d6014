"""The Bernoulli Kullback-Leibler divergence and the upper end of a KL interval."""

from __future__ import annotations

import math

from rank1.compiled import jit

__all__ = ["kl", "kl_level", "kl_upper"]


@jit
def kl(p: float, q: float) -> float:
    """p·log(p/q) + (1 − p)·log((1 − p)/(1 − q)), also where p or q is 0 or 1."""
    if p == q:
        return 0.0
    if q <= 0.0 or q >= 1.0:
        return math.inf
    # In terms of q − p nothing is lost where p and q are close.
    value = 0.0
    if p > 0.0:
        value -= p * math.log1p((q - p) / p)
    if p < 1.0:
        value -= (1.0 - p) * math.log1p((p - q) / (1.0 - p))
    return value


@jit
def kl_upper(mean: float, divergence: float) -> float:
    """max{q ≥ mean : kl(mean, q) ≤ divergence}.

    Newton's steps from above the solution: kl(mean, ·) is convex and increasing there, so they
    come down to it and never pass it, but for rounding, where they end.
    """
    if mean >= 1.0:
        return 1.0
    if divergence <= 0.0:
        return mean
    if mean <= 0.0:
        return -math.expm1(-divergence)
    # Two upper bounds: Pinsker's inequality, and kl without the term −mean·log q ≥ 0.
    entropy = -mean * math.log(mean) - (1.0 - mean) * math.log1p(-mean)
    q = min(
        mean + math.sqrt(divergence / 2.0),
        -math.expm1(-(divergence + entropy) / (1.0 - mean)),
    )
    while q < 1.0:
        lower = q - (kl(mean, q) - divergence) * q * (1.0 - q) / (q - mean)
        if not mean < lower < q:
            return q
        q = lower
    return 1.0


@jit
def kl_level(t: int, c: float) -> float:
    """The level log t + c·log log t; 0 where it is negative or, for t ≤ 1, not defined."""
    log_t = math.log(t)
    return max(0.0, log_t + c * math.log(log_t)) if log_t > 0.0 else 0.0
