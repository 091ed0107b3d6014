"""How strong the evidence from the counts of two arms is against "b may be better than a".

The counts of an arm are s and f: the sums of its rewards in [0, 1], and of one minus them. For
means (p, q) of a and b let M(p, q) = KT_a·KT_b / (p^s_a·(1 − p)^f_a·q^s_b·(1 − q)^f_b), where KT =
B(s + ½, f + ½)/B(½, ½) is the likelihood under the mixture of Krichevsky and Trofimov. At the true
means M is a supermartingale that starts at 1, however the arms are chosen, so with probability
1 − 1/c it never reaches c. A *null* is a set of means (p, q), and its e-value is E = inf M over the
null: if E ≥ c, the null is rejected, and a true one is rejected with probability at most 1/c, at
any time. Nulls here have the form "q is at least some increasing function of p", with a number:

- k ≥ 1: q ≥ p·(1 + margin/p)^(1/k). On a grid of rank one an arm x that differs from a on k sides
  has the mean p·∏ q_d/p, where q_d is the mean of the neighbour of a with x's level of side d. So
  x's mean can be p + margin only if one of these neighbours is in this null.
- DIFFERENCE, which is k = 1: q ≥ p + margin,
- RATIO = 0: q ≥ margin·p.

log E = N_a·kl(μ̂_a, p) + N_b·kl(μ̂_b, q) + r_a + r_b at the likeliest (p, q) of the null, where
r = log KT − log of the largest likelihood: the price, about ½·log(πN/2), of not knowing the means.
"""

from __future__ import annotations

import math

from rank1.compiled import jit

__all__ = [
    "DIFFERENCE",
    "RATIO",
    "edge_of",
    "least_of",
    "likeliest",
    "log_e",
    "log_loss",
    "log_price",
]

RATIO, DIFFERENCE = 0, 1

#: From here on Stirling's series has an error below 1e-12.
SERIES_FROM = 10.0
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@jit
def _half(x: float) -> float:
    """The remainder of Stirling's formula: log Γ(x + ½) − x·log x + x − ½·log 2π."""
    if x >= SERIES_FROM:
        y = 1.0 / (x * x)
        series = -1 / 24 + y * (7 / 2880 - y * (31 / 40320 - y * (127 / 215040)))
        return series / x
    return math.lgamma(x + 0.5) - (x * math.log(x) - x if x > 0.0 else 0.0) - HALF_LOG_2PI


@jit
def _whole(x: float) -> float:
    """The same for log Γ(x + 1) − x·log x + x − ½·log 2πx, x > 0."""
    if x >= SERIES_FROM:
        y = 1.0 / (x * x)
        series = 1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680)))
        return series / x
    return math.lgamma(x + 1.0) - x * math.log(x) + x - 0.5 * math.log(x) - HALF_LOG_2PI


@jit
def log_price(s: float, f: float) -> float:
    """The price of not knowing the mean: log KT(s, f) minus the largest log-likelihood; at most 0.

    Computed by Stirling's formula, in which nearly all of both cancels, so it is exact for large
    counts, too.
    """
    n = s + f
    if n == 0.0:
        return 0.0
    return min(0.0, _half(s) + _half(f) - _whole(n) + 0.5 * math.log(2.0 / (math.pi * n)))


@jit
def log_loss(s: float, f: float, p: float) -> float:
    """N·kl(mean, p): the log-likelihood that p loses against the mean."""
    n = s + f
    loss = 0.0
    if (s > 0.0 and p <= 0.0) or (f > 0.0 and p >= 1.0):
        return math.inf
    if s > 0.0:
        loss += s * math.log(s / (n * p))
    if f > 0.0:
        loss += f * math.log(f / (n * (1.0 - p)))
    return max(0.0, loss)


@jit
def least_of(null: int, margin: float, p: float) -> float:
    """The smallest q for which (p, q) is in the null."""
    if null == RATIO:
        return margin * p
    if null == DIFFERENCE:
        return p + margin
    if null == 2:
        return math.sqrt(p * (p + margin))
    return p * ((p + margin) / p) ** (1.0 / null) if p > 0.0 else 0.0


@jit
def edge_of(null: int, margin: float, q: float) -> tuple[float, float, float]:
    """The largest p for which (p, q) is in the null, and its derivatives in q."""
    if null == RATIO:
        return q / margin, 1.0 / margin, 0.0
    if null == DIFFERENCE:
        return q - margin, 1.0, 0.0
    if null == 2:
        half = 0.5 * margin
        root = math.sqrt(q * q + half * half)
        if root == 0.0:
            return 0.0, 1.0, 0.0
        return q * q / (root + half), q / root, half * half / (root * root * root)
    if q <= 0.0:
        return 0.0, 0.0, 0.0
    # (k − 1)·log p + log(p + margin) = k·log q. As a function of x = log(p/q) the left side is
    # convex with a slope of k − 1 to k, so Newton's steps from above fall towards the solution.
    x, ratio = 0.0, margin / q
    if ratio > 1.0:
        x = -math.log(ratio) / (null - 1)
    for _ in range(100):
        y = math.exp(x)
        weight = ratio / (y + ratio)
        step = ((null - 1) * x + math.log(y + ratio)) / (null - weight)
        x -= step
        if not step > 1e-8:  # the remaining error is at most its square
            break
    p = q * math.exp(x)
    weight = margin / (p + margin)
    rate = 1.0 - weight / null  # d log q / d log p
    rise = p / (q * rate)
    bend = rise * weight * weight * (1.0 - 1.0 / null) / (null * rate * rate * q)
    return p, rise, bend


@jit
def _slopes(s: float, f: float, p: float) -> tuple[float, float]:
    """Derivatives of s·log p + f·log(1 − p)."""
    first, second = 0.0, 0.0
    if s > 0.0 and p <= 0.0:
        return math.inf, -math.inf
    if f > 0.0 and p >= 1.0:
        return -math.inf, -math.inf
    if s > 0.0:
        first += s / p
        second -= s / (p * p)
    if f > 0.0:
        first -= f / (1.0 - p)
        second -= f / ((1.0 - p) * (1.0 - p))
    return first, second


@jit
def likeliest(
    null: int, margin: float, s_a: float, f_a: float, s_b: float, f_b: float
) -> tuple[float, float]:
    """The means (p, q) of the null with the largest likelihood.

    If the empirical means are in the null, they are the result. Otherwise it is a point on the
    null's edge, where p is a function of q; along it the log-likelihood is concave in q, because
    log p is concave in q and p is convex. Its maximum lies between those of b alone and a alone.
    """
    n_a, n_b = s_a + f_a, s_b + f_b
    # Without data, an arm has the mean that suits the null best.
    mean_a = s_a / n_a if n_a > 0.0 else 0.0
    mean_b = s_b / n_b if n_b > 0.0 else 1.0
    if n_a > 0.0 and n_b > 0.0 and margin == (1.0 if null == RATIO else 0.0):
        if mean_b >= mean_a:
            return mean_a, mean_b
        pooled = (s_a + s_b) / (n_a + n_b)
        return pooled, pooled
    least = least_of(null, margin, mean_a)
    if mean_b >= least:
        return mean_a, mean_b
    high = min(1.0, least, least_of(null, margin, 1.0))
    low = min(high, max(mean_b, least_of(null, margin, 0.0)))
    q = low + (high - low) * n_a / (n_a + n_b) if n_a > 0.0 else low
    for _ in range(200 if low < high else 0):
        p, rise, bend = edge_of(null, margin, q)
        p = min(max(p, 0.0), 1.0)
        first_a, second_a = _slopes(s_a, f_a, p)
        first_b, second_b = _slopes(s_b, f_b, q)
        first = first_b + rise * first_a
        second = second_b + rise * rise * second_a + bend * first_a
        if first > 0.0:
            low = q
        else:
            high = q
        step = -first / second if second < 0.0 else 0.0
        # How much this step would still add to the log-likelihood.
        if not abs(step * first) > 1e-14 or high - low <= 4e-16 * high:
            break
        q += step
        if not low < q < high:
            q = 0.5 * (low + high)
    p, _, _ = edge_of(null, margin, q)
    return min(max(p, 0.0), 1.0), q


@jit
def log_e(null: int, margin: float, s_a: float, f_a: float, s_b: float, f_b: float) -> float:
    """The logarithm of the e-value of a null about arms a and b."""
    p, q = likeliest(null, margin, s_a, f_a, s_b, f_b)
    lost = log_loss(s_a, f_a, p) + log_loss(s_b, f_b, q)
    return lost + log_price(s_a, f_a) + log_price(s_b, f_b)
