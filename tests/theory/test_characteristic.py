from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

import rank1
from rank1 import theory
from rank1.fit import fit

Floats = NDArray[np.float64]
exactly = settings(max_examples=40)
sides = st.lists(st.integers(1, 99).map(lambda k: k / 100), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("spike", "pulls"),
    [
        ((4, 4, 0.5, 0.5, 0.2, 0.2), 888),
        ((8, 8, 0.5, 0.5, 0.2, 0.2), 1681),
        ((8, 8, 0.1, 0.3, 0.05, 0.1), 23969),
    ],
)
def test_reference_values(spike: tuple[float, ...], pulls: float) -> None:
    found = theory.characteristic_time(rank1.spike(*spike))  # type: ignore[arg-type]
    assert found.pulls(0.95) == pytest.approx(pulls, rel=1e-4, abs=0.5)


def evidence(problem: rank1.Problem, w: Floats) -> float:
    """The least evidence against a neighbour of the best arm, by the definition."""
    d = theory.divergence(problem)
    assert d is not None
    at = problem.grid.levels(problem.best_arm)
    a, best = w[at], problem.means[at]
    values = []
    for x in np.ndindex(*w.shape):
        if sum(one != other for one, other in zip(x, at, strict=True)) == 1:
            m = (a * best + w[x] * problem.means[x]) / (a + w[x])
            values.append(a * d.of(best, m) + w[x] * d.of(problem.means[x], m))
    return float(min(values))


@exactly
@given(st.lists(sides, min_size=1, max_size=3), st.booleans(), st.integers(0, 10**6))
def test_the_shares_attain_it_and_no_others_do_better(
    factors: list[list[float]], gaussian: bool, seed: int
) -> None:
    problem: rank1.Problem = rank1.Product(factors)
    if gaussian and len(factors) == 2:
        problem = rank1.Gaussian(u=factors[0], v=factors[1], sigma=0.3)
    assume(theory.has_unique_best_arm(problem) and problem.arms > 1)
    found = theory.characteristic_time(problem)
    assert found.shares.sum() == pytest.approx(1)
    assert found.value * evidence(problem, found.shares) == pytest.approx(1, rel=1e-6)
    rng = np.random.default_rng(seed)
    for size in (0.01, 0.1, 1.0):
        other = found.shares * np.exp(size * rng.standard_normal(found.shares.shape))
        assert found.value * evidence(problem, other / other.sum()) <= 1 + 1e-6


@pytest.mark.parametrize(("K", "L"), [(2, 1), (4, 4), (3, 9)])
def test_alike_neighbours_in_closed_form(K: int, L: int) -> None:
    """For Gaussian rewards the best pair's share is exactly 1/(1 + √(K + L − 2))."""
    u, v = np.full(K, 0.5), np.full(L, 0.5)
    u[0] = 0.75
    v[0] = 0.75 if L > 1 else 0.5
    problem = rank1.Gaussian(u, v, sigma=0.5)
    found = theory.characteristic_time(problem)
    others = K + L - 2
    share = 1 / (1 + math.sqrt(others))
    assert found.shares[0, 0] == pytest.approx(share)
    gap = problem.best_mean - problem.means[1, 0]
    assert found.value == pytest.approx(2 * 0.25 / gap**2 * (1 + math.sqrt(others)) ** 2)
    bernoulli = theory.characteristic_time(rank1.Bernoulli(u, v))
    assert bernoulli.shares[0, 0] == pytest.approx(share, rel=0.02)


def test_rank_one_itself_needs_less() -> None:
    """Shares for which every rank-one grid with another best pair is told apart sooner.

    The closest such grid has one row (or column) equal to the best: the rank-one fit of the
    expected counts after adding the two rows up.
    """
    problem = rank1.spike(4, 4, 0.5, 0.5, 0.2, 0.2)
    w = np.full((4, 4), 0.3031 / 9)
    w[0], w[:, 0], w[0, 0] = 0.2593 / 3, 0.2593 / 3, 0.1783
    w *= 1e6 / w.sum()
    s, f = w * problem.means, w * (1 - problem.means)
    merged = fit(np.vstack([s[0] + s[1], s[2:]]), np.vstack([f[0] + f[1], f[2:]]))
    own = float((xlogy(s, problem.means) + xlog1py(f, -problem.means)).sum())
    pulls = 1e6 / (own - merged.log_likelihood) * math.log(20)
    assert pulls == pytest.approx(739, abs=1)
    assert pulls < 0.84 * theory.characteristic_time(problem).pulls(0.95)


def test_edges() -> None:
    one = theory.characteristic_time(rank1.Bernoulli([0.5], [0.5]))
    assert one.value == 0
    assert one.shares == pytest.approx(np.ones((1, 1)))
    with pytest.raises(rank1.InputError, match="must be one with a single best arm"):
        theory.characteristic_time(rank1.Bernoulli([0.5, 0.5], [0.5]))
    with pytest.raises(rank1.InputTypeError, match=r"must be a rank1\.Product or rank1\.Bernoulli"):
        theory.characteristic_time(rank1.Categorical([0, 1], [[[0.5, 0.5]]]))
    for confidence in (1, 2, -0.1):
        with pytest.raises(rank1.InputError, match=r"confidence must be .* at least 0 and below 1"):
            one.pulls(confidence)
    tiny = theory.characteristic_time(rank1.Bernoulli([0.5, 0.5 - 1e-7], [0.5]))
    assert 1e14 < tiny.value < 1e16
