"""Hypergeometric numbers in compiled code, exact even for populations of 10¹⁵.

How many members of a random sample are marked? This is all that is needed to split the outcome of
many pulls into that of the first ones and the rest.
"""

from __future__ import annotations

import math

import numpy as np

from rank1.compiled import jit

__all__ = ["hypergeometric"]

#: Samples up to this size are drawn one by one.
FEW = 20
#: Below this mean the distribution function is inverted, in about as many steps as the mean.
SMALL_MEAN = 6.0
#: 2·√(2/e) and 3 − 2·√(3/e), the constants of the table mountain in the ratio of uniforms.
WIDTH, SHIFT = 1.7155277699214135, 0.8989161620588988

#: The values of `shift` for small k, where its series isn't exact.
_CORRECTIONS = np.array(
    [
        math.lgamma(k + 1.0) - (k + 0.5) * math.log(k + 0.5) + k + 0.5 - math.log(2 * math.pi) / 2
        for k in range(16)
    ]
)


@jit
def hypergeometric(population: int, marked: int, sample: int, rng: np.random.Generator) -> int:
    """The number of marked members of a sample drawn without replacement.

    >>> rng = np.random.default_rng(1)
    >>> hypergeometric(10, 10, 4, rng), hypergeometric(10, 3, 10, rng)
    (4, 3)

    References
    ----------
    Kachitvichyanukul, Schmeiser: Computer generation of hypergeometric random variates. Journal of
    Statistical Computation and Simulation 22, 1985. (Inversion, and the symmetries.)

    Stadlober: The ratio of uniforms approach for generating discrete random variates. Journal of
    Computational and Applied Mathematics 31, 1990. (For all but small means.)
    """
    # Swapping marked and unmarked, drawn and left, or marked and drawn doesn't change the law; so
    # make both numbers at most half of the population, and the sample the smaller one.
    few = min(marked, population - marked)
    drawn = min(sample, population - sample)
    size, other = min(few, drawn), max(few, drawn)
    if size == 0:
        found = 0
    elif size <= FEW:
        found = one_by_one(population, other, size, rng)
    elif float(size) * float(other) < SMALL_MEAN * population:
        found = inverted(population, other, size, rng)
    else:
        found = from_ratio(population, other, size, rng)
    if drawn != sample:
        found = few - found
    return found if few == marked else sample - found


@jit
def one_by_one(population: int, marked: int, sample: int, rng: np.random.Generator) -> int:
    """Draw from an urn, one by one."""
    left = marked
    for k in range(sample):
        if rng.random() * (population - k) < left:
            left -= 1
    return marked - left


@jit
def inverted(population: int, marked: int, sample: int, rng: np.random.Generator) -> int:
    """Subtract the probabilities of 0, 1, … from a uniform number until it is used up."""
    # P(0) = (population − marked)! (population − sample)! / ((population − marked − sample)! …)
    total, rest = population + 0.5, population - marked + 0.5
    log_p = (
        total * bend(-sample / total)
        - rest * bend(-sample / rest)
        + sample * math.log1p(-marked / (total - sample))
        - shift(total)
        + shift(total - sample)
        + shift(rest)
        - shift(rest - sample)
    )
    p = math.exp(log_p)
    x = rng.random()
    found = 0
    while x >= p and found < sample:
        x -= p
        p *= float(marked - found) * float(sample - found)
        found += 1
        p /= float(found) * float(population - marked - sample + found)
    return found


@jit
def from_ratio(population: int, marked: int, sample: int, rng: np.random.Generator) -> int:
    """Ratio of uniforms, with Stadlober's region around the probabilities; sample ≤ marked."""
    N, M, n = float(population), float(marked), float(sample)
    mean = n * (M / N)
    variance = mean * (1.0 - M / N) * ((N - n) / (N - 1.0))
    centre = mean + 0.5
    width = WIDTH * math.sqrt(variance + 0.5) + SHIFT
    mode = math.floor((n + 1.0) * ((M + 1.0) / (N + 2.0)))
    # P(k) is a constant over a!·b!·c!·e!; here are a + ½ and so on at the mode.
    a, b, c, e = mode + 0.5, M - mode + 0.5, n - mode + 0.5, N - M - n + mode + 0.5
    a1, b1, c1, e1 = 1.0 / a, 1.0 / b, 1.0 / c, 1.0 / e
    # With t = ½, 1½, … the logarithm of P(mode + d)/P(mode) is, for d > 0, the sum over d values of
    # t of log((b − t)(c − t)/((a + t)(e + t))). The series of log(1 ± t/y) up to (t/y)² gives an
    # upper bound; minus the terms in (t/y)³, doubled to cover later terms, it is a lower bound.
    slope = math.log((b * a1) * (c * e1))
    square = (a1 + b1 + c1 + e1) / 2.0
    cube = (b1 * b1 + c1 * c1 - a1 * a1 - e1 * e1) / 6.0
    slack = (a1 * a1 * a1 + b1 * b1 * b1 + c1 * c1 * c1 + e1 * e1 * e1) / 6.0
    safe = min(min(a, b), min(c, e)) / 2.0  # up to here (t/y)³ is small
    while True:
        u = rng.random()
        x = centre + width * (rng.random() - 0.5) / u
        if not 0.0 <= x < n + 1.0:  # also if u = 0
            continue
        d = math.floor(x) - mode
        upper = d * (slope + cube / 4.0 - d * (square + d * cube))
        lower = upper - slack * d * d * d * d
        if abs(d) > safe:
            upper = lower = log_probability_ratio(a, b, c, e, d)
        # Accept if u² is at most the ratio; bounds on 2·log u often avoid the logarithm.
        if u * (4.0 - u) - 3.0 <= lower:
            return int(mode + d)
        if u * (u - upper) >= 1.0:
            continue
        log_u2 = 2.0 * math.log(u)
        if log_u2 <= lower:
            return int(mode + d)
        if log_u2 <= upper and log_u2 <= log_probability_ratio(a, b, c, e, d):
            return int(mode + d)


@jit
def log_probability_ratio(a: float, b: float, c: float, e: float, d: float) -> float:
    """Logarithm of P(mode + d)/P(mode), without differences of large numbers.

    (k + d)!/k! is decomposed into terms that are small if d is: with y = k + ½ its logarithm is
    y·(log(1 + d/y) − d/y) + d·log(y + d), up to small corrections.
    """
    bends = a * bend(d / a) + b * bend(-d / b) + c * bend(-d / c) + e * bend(d / e)
    before = shift(a) + shift(b) + shift(c) + shift(e)
    after = shift(a + d) + shift(b - d) + shift(c - d) + shift(e + d)
    slope = math.log(((b - d) / (a + d)) * ((c - d) / (e + d)))
    return d * slope - bends + before - after


@jit
def bend(x: float) -> float:
    """log(1 + x) − x."""
    if abs(x) > 0.2:
        return math.log1p(x) - x
    # 2·artanh(s) is log(1 + x), and 2·s − x is −x·s
    s = x / (2.0 + x)
    q = s * s
    series = 1 / 9 + q * (1 / 11 + q * (1 / 13 + q * (1 / 15 + q / 17)))
    return -x * s + 2.0 * s * q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * series)))


@jit
def shift(y: float) -> float:
    """The difference between log k! and y·log y − y + ½·log 2π, where y = k + ½."""
    if y < 16.0:
        return _CORRECTIONS[int(y)]
    q = 1.0 / (y * y)
    return -(1 / 24 - q * (7 / 2880 - q * (31 / 40320 - q * (127 / 215040)))) / y
