from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rank1
from rank1.theory import divergence, kl_bernoulli, kl_gaussian

inside = st.floats(1e-30, 1 - 1e-16)
unit = st.floats(0, 1)


def literal(p: float, q: float) -> float:
    """The definition with 150 digits."""
    with localcontext() as context:
        context.prec = 150
        one, a, b = Decimal(1), Decimal(p), Decimal(q)
        total = Decimal(0)
        if a > 0:
            total += a * (a / b).ln()
        if a < 1:
            total += (one - a) * ((one - a) / (one - b)).ln()
        return float(total)


@given(inside, inside)
def test_bernoulli_is_the_definition(p: float, q: float) -> None:
    assert kl_bernoulli(p, q) == pytest.approx(literal(p, q), rel=5e-15)


@given(inside, st.floats(-1, 1), st.integers(0, 60))
def test_bernoulli_where_the_arguments_nearly_agree(p: float, step: float, bits: int) -> None:
    q = p * (1 + step * 2.0**-bits)
    assume(1e-30 <= q < 1)
    assert kl_bernoulli(p, q) == pytest.approx(literal(p, q), rel=5e-15)


@pytest.mark.parametrize("step", [-0.299, -0.25, -0.1, 0.1, 0.25, 0.299])
@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.7])
def test_bernoulli_where_the_series_needs_all_its_terms(p: float, step: float) -> None:
    assert kl_bernoulli(p, p * (1 + step)) == pytest.approx(literal(p, p * (1 + step)), rel=5e-15)


def test_bernoulli_at_the_ends() -> None:
    assert kl_bernoulli(0.0, 0.0) == kl_bernoulli(1.0, 1.0) == 0
    assert kl_bernoulli(0.0, 0.25) == pytest.approx(-math.log(0.75), rel=1e-15)
    assert kl_bernoulli(1.0, 0.25) == pytest.approx(math.log(4), rel=1e-15)
    assert kl_bernoulli(0.0, 1e-20) == pytest.approx(1e-20, rel=1e-15)
    for p, q in ((0.5, 0.0), (0.5, 1.0), (0.0, 1.0), (1.0, 0.0)):
        assert kl_bernoulli(p, q) == math.inf
    # so small that p/q or q/p leaves the range of doubles
    assert kl_bernoulli(5e-324, 0.5) == pytest.approx(math.log(2), rel=1e-15)
    assert kl_bernoulli(0.5, 5e-324) == pytest.approx(literal(0.5, 5e-324), rel=1e-14)


@given(unit, unit)
def test_bernoulli_is_a_divergence(p: float, q: float) -> None:
    d = kl_bernoulli(p, q)
    assert d >= 2 * (p - q) ** 2 * (1 - 1e-12)  # Pinsker
    assert kl_bernoulli(p, p) == 0
    if 0 < q < 1:  # used in the paper's discussion; χ² dominates
        # not squared, which may be too small a number
        assert d <= abs(p - q) / q * abs(p - q) / (1 - q) * (1 + 1e-12) + 1e-300


def test_arrays_and_numbers() -> None:
    grid = kl_bernoulli([[0.1], [0.2]], [0.3, 0.4, 0.5])
    assert grid.shape == (2, 3)
    assert grid[1, 2] == kl_bernoulli(0.2, 0.5)
    assert isinstance(kl_bernoulli(0.2, 0.5), float)
    assert isinstance(kl_gaussian(0.2, 0.5, 1.0), float)
    assert kl_bernoulli(np.zeros(0), np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_a_mean_outside_of_the_interval_is_named(bad: float) -> None:
    with pytest.raises(ValueError, match=r"q must be a mean in \[0, 1\], got"):
        kl_bernoulli(0.5, bad)


def test_sigma_is_checked() -> None:
    with pytest.raises(ValueError, match="sigma must be a number above 0, got 0"):
        kl_gaussian(0.1, 0.2, 0)


def problems() -> list[rank1.Problem]:
    return [rank1.Bernoulli([0.9, 0.2], [0.5]), rank1.Gaussian([0.9, 0.2], [0.5], sigma=0.3)]


@pytest.mark.parametrize("problem", problems(), ids=repr)
def test_slope_is_the_derivative(problem: rank1.Problem) -> None:
    d = divergence(problem)
    assert d is not None
    for p in (0.0, 0.1, 0.5, 0.99):
        for q in (0.05, 0.1, 0.5, 0.9):
            numeric = (d.of(p, q + 1e-6) - d.of(p, q - 1e-6)) / 2e-6
            assert d.slope(p, q) == pytest.approx(numeric, rel=1e-5, abs=1e-5)
    assert divergence(rank1.Factors([0.5], [0.5])) is None


# The paper's lemma: for fixed p and q in (0, 1), α ↦ d(αp, αq) is convex and increasing on (0, 1).
alphas = st.lists(st.floats(1e-3, 1), min_size=3, max_size=3, unique=True).map(sorted)
lemma_means = st.floats(1e-3, 0.999)


@given(lemma_means, lemma_means, alphas)
def test_lemma_increasing(p: float, q: float, alpha: list[float]) -> None:
    assume(abs(p - q) > 1e-6)
    assume(alpha[1] - alpha[0] > 1e-6)
    assert kl_bernoulli(alpha[0] * p, alpha[0] * q) < kl_bernoulli(alpha[1] * p, alpha[1] * q)


@given(lemma_means, lemma_means, alphas)
def test_lemma_convex(p: float, q: float, alpha: list[float]) -> None:
    assume(abs(p - q) > 1e-6)
    low, middle, high = (kl_bernoulli(a * p, a * q) for a in alpha)
    weight = (alpha[1] - alpha[0]) / (alpha[2] - alpha[0])
    assert middle <= (1 - weight) * low + weight * high + 1e-9 * high


@given(lemma_means, lemma_means, st.floats(1e-3, 1))
def test_lemma_consequence_of_which_the_proof_makes_use(p: float, q: float, alpha: float) -> None:
    assume(abs(p - q) > 1e-6)
    assert kl_bernoulli(alpha * p, alpha * q) <= alpha * kl_bernoulli(p, q) * (1 + 1e-9)
