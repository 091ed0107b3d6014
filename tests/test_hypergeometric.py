"""Hypergeometric draws against SciPy's distribution, and their logarithms against whole numbers.

Chi-square tests of 20,000 draws each, with fixed seeds; they fail at p < 1e-5. They detect a mode
that is off by one, a missing symmetry, and a wrong constant in the table mountain.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rank1.compiled import kernel
from rank1.hypergeometric import (
    FEW,
    SHIFT,
    SMALL_MEAN,
    WIDTH,
    bend,
    from_ratio,
    hypergeometric,
    inverted,
    log_probability_ratio,
    one_by_one,
    shift,
)

DRAWS = 20_000


@kernel
def fill(population: int, marked: int, sample: int, rng: np.random.Generator, out: Any) -> None:
    for k in range(len(out)):
        out[k] = hypergeometric(population, marked, sample, rng)


def drawn(population: int, marked: int, sample: int, seed: int = 1) -> Any:
    out = np.empty(DRAWS, np.int64)
    fill(population, marked, sample, np.random.default_rng(seed), out)
    return out


def assert_law(out: Any, values: Any, probabilities: Any) -> None:
    """Run a chi-square test; neighbouring values are merged until each group expects 40 draws.

    Values that aren't listed must not occur.
    """
    assert np.isin(out, values).all()
    seen = np.bincount(out - values[0], minlength=len(values))
    edges, expected = [0], 0.0
    for k, p in enumerate(probabilities * len(out)):
        expected += p
        if expected >= 40:
            edges.append(k + 1)
            expected = 0.0
    edges[-1] = len(values)
    if len(edges) < 3:
        assert out.min() >= values[0]
        return
    groups = [np.add.reduceat(x, edges[:-1]) for x in (seen, probabilities * len(out))]
    groups[1] *= len(out) / groups[1].sum()
    assert stats.chisquare(*groups).pvalue > 1e-5


CORNERS = [
    # one by one
    (10, 5, 5), (7, 3, 1), (50, 20, 20), (100, 80, 19), (1000, 1, 999), (10**9, 10**8, 15),
    (10**9, 10**9 - 10, 10**8), (41, 20, 21),
    # small means
    (1000, 100, 30), (1000, 900, 30), (1000, 100, 970), (1000, 900, 970), (10**6, 2000, 2000),
    (10**9, 70_000, 70_000), (10**9, 10**9 - 70_000, 70_000), (200, 21, 50), (130, 25, 30),
    # ratio of uniforms
    (42, 21, 21), (100, 30, 40), (100, 50, 50), (100, 70, 60), (1000, 500, 100), (1000, 30, 500),
    (1000, 970, 500), (10_000, 3000, 9000), (10**5, 30_000, 5000), (10**5, 70_000, 95_000),
    (10**6, 100, 10**5), (10**9, 3 * 10**8, 200), (10**9, 5 * 10**8, 10**6),
    (10**9, 3 * 10**8, 10**7), (10**9, 9 * 10**8, 10**9 - 10**6), (10**9, 10**5, 10**6),
]  # fmt: skip


@pytest.mark.parametrize(("population", "marked", "sample"), CORNERS)
def test_has_the_law_that_scipy_says(population: int, marked: int, sample: int) -> None:
    out = drawn(population, marked, sample)
    law = stats.hypergeom(population, marked, sample)
    low, high = (round(law.mean() + sign * 9 * law.std()) for sign in (-1, 1))
    low, high = max(low - 9, 0, sample + marked - population), min(high + 9, sample, marked)
    values = np.arange(low, high + 1)
    assert_law(out, values, law.pmf(values))
    error = law.std() / math.sqrt(DRAWS)
    assert abs(out.mean() - law.mean()) <= 4.5 * error
    assert abs(out.var() / law.var() - 1) <= 4.5 * math.sqrt((law.stats("k") + 2) / DRAWS)


def test_the_corners_try_all_three_methods() -> None:
    kinds = set()
    for population, marked, sample in CORNERS:
        size, other = sorted(min(x, population - x) for x in (marked, sample))
        kinds.add("few" if size <= FEW else size * other < SMALL_MEAN * population)
    assert kinds == {"few", True, False}


@pytest.mark.parametrize("sample", [10, 60, 1000, 10**5, 10**9])
def test_the_largest_populations_are_like_drawing_with_replacement(sample: int) -> None:
    """SciPy loses digits there; the distribution is binomial up to one part in a million."""
    population, marked = 9 * 10**15, 9 * 10**14 if sample > 60 else 9 * 10**12
    out = drawn(population, marked, sample)
    law = stats.binom(sample, marked / population)
    low, high = (round(law.mean() + sign * 9 * law.std()) for sign in (-1, 1))
    values = np.arange(max(low - 9, 0), min(high + 9, sample) + 1)
    assert_law(out, values, law.pmf(values))


@pytest.mark.parametrize(
    ("arguments", "found"),
    [((5, 0, 3), 0), ((5, 5, 3), 3), ((5, 2, 5), 2), ((5, 2, 0), 0), ((10**15, 10**15, 9), 9)],
)
def test_what_is_certain_takes_no_random_number(
    arguments: tuple[int, int, int], found: int
) -> None:
    rng, untouched = np.random.default_rng(1), np.random.default_rng(1)
    assert hypergeometric(*arguments, rng) == found
    assert rng.random() == untouched.random()


@pytest.mark.parametrize("method", [one_by_one, inverted, from_ratio])
def test_each_method_has_the_law_by_itself(method: Any) -> None:
    rng, method = np.random.default_rng(5), kernel(method)
    out = np.array([method(200, 60, 40, rng) for _ in range(DRAWS)])
    values = np.arange(41)
    assert_law(out, values, stats.hypergeom(200, 60, 40).pmf(values))


@pytest.mark.parametrize(
    "numbers", [(42, 21, 21), (200, 60, 40), (400, 200, 190), (900, 300, 100), (2000, 990, 30)]
)
def test_bounds_on_the_probabilities_decide_as_the_probabilities_do(
    numbers: tuple[int, int, int],
) -> None:
    """Compare with a ratio of uniforms that always computes the exact probabilities."""
    population, marked, sample = numbers
    ways = [
        math.comb(marked, k) * math.comb(population - marked, sample - k)
        for k in range(min(marked, sample) + 1)
    ]
    ratios = [float(Fraction(way, max(ways))) for way in ways]
    law = stats.hypergeom(*numbers)
    centre, width = law.mean() + 0.5, WIDTH * math.sqrt(law.var() + 0.5) + SHIFT
    ours, theirs = np.random.default_rng(8), np.random.default_rng(8)
    compiled = kernel(from_ratio)
    for _ in range(2000):
        while True:
            u = theirs.random()
            x = centre + width * (theirs.random() - 0.5) / u
            if 0 <= x < len(ratios) and u * u <= ratios[math.floor(x)]:
                break
        assert compiled(*numbers, ours) == math.floor(x)


def test_the_region_holds_all_probabilities() -> None:
    """Ratio of uniforms is exact only if u²·max P ≤ P stays within the sides of the region."""
    for population, marked, sample in [(42, 21, 21), (200, 60, 40), (900, 300, 100)]:
        law = stats.hypergeom(population, marked, sample)
        k = np.arange(sample + 1)
        u = np.sqrt(law.pmf(k) / law.pmf(k).max())
        width = WIDTH * math.sqrt(law.var() + 0.5) + SHIFT
        # v = (x − centre)·u at the ends of [k, k + 1)
        for end in (k, k + 1):
            assert np.all(np.abs(end - law.mean() - 0.5) * u <= width / 2 * (1 + 1e-9))


@pytest.mark.parametrize(
    ("N", "M", "n"),
    [(60, 30, 25), (1000, 300, 200), (10**6, 10**5, 10**4), (10**15, 10**14, 10**7)],
)
def test_logarithms_of_probabilities(N: int, M: int, n: int) -> None:
    mode = (n + 1) * (M + 1) // (N + 2)
    a, b, c, e = (x + 0.5 for x in (mode, M - mode, n - mode, N - M - n + mode))
    deviation = math.sqrt(n * (M / N) * (1 - M / N) * (N - n) / N)
    for d in {round(k * deviation) for k in (-3, -1, 1, 4)}:
        exact = Fraction(1)  # the product of the ratios of neighbours
        for k in range(min(mode, mode + d), max(mode, mode + d)):
            exact *= Fraction((M - k) * (n - k), (k + 1) * (N - M - n + k + 1))
            exact = Fraction(round(exact * 2**200), 2**200)  # sixty digits are enough
        log = math.log(exact) if d > 0 else -math.log(exact)
        assert log_probability_ratio(a, b, c, e, float(d)) == pytest.approx(log, abs=1e-11)


def test_small_helpers() -> None:
    for k in (0, 1, 5, 15, 16, 40, 1000):
        y = k + 0.5
        rest = math.lgamma(k + 1.0) - (y * math.log(y) - y + math.log(2 * math.pi) / 2)
        assert shift(y) == pytest.approx(rest, abs=1e-12)
    for x in (-0.9, -0.3, -0.2, -0.01, 1e-9, 0.15, 0.5, 3.0):
        exact = math.log1p(x) - x if abs(x) > 1e-3 else -x * x / 2 + x**3 / 3
        assert bend(x) == pytest.approx(exact, rel=1e-12)
