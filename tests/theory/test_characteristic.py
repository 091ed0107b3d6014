from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy
from tests.support import examples

import rank1
from rank1 import theory
from rank1.fit import fit
from rank1.theory.characteristic import STRUCTURES

Floats = NDArray[np.float64]
exactly = examples(15)
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


def closest(problem: rank1.Product, w: Floats) -> float:
    """The least evidence against a rank-one grid with another best arm, by `rank1.fit`.

    The closest such grid has a level that is as good as the best one of its side: it is the fit to
    the expected counts after adding these two levels up.
    """
    counts = 1e6 * w
    s, f = counts * problem.means, counts * (1 - problem.means)
    own = float((xlogy(s, problem.means) + xlog1py(f, -problem.means)).sum())
    values = []
    for side, best in enumerate(problem.grid.levels(problem.best_arm)):
        for level in range(problem.grid.sizes[side]):
            if level != best:
                pooled = []
                for each in (s, f):
                    lines = np.moveaxis(each, side, 0).copy()
                    lines[best] += lines[level]
                    pooled.append(np.delete(lines, level, axis=0))
                values.append((own - fit(*pooled).log_likelihood) / 1e6)
    return min(values)


@pytest.mark.parametrize(
    ("factors", "reference"),
    [
        ([[0.7] + [0.5] * 3] * 2, 739 / math.log(20)),
        ([[0.7] + [0.5] * 7] * 2, 464),
        ([[0.8] + [0.6] * 4] * 3, None),
        ([[0.3, 0.7, 0.5, 0.6], [0.2, 0.9, 0.85]], None),
        ([[0.9, 0.0, 0.3], [0.5, 0.4]], None),
    ],
    ids=["4×4", "8×8", "5×5×5", "all different", "zero"],
)
def test_rank_one(factors: list[list[float]], reference: float | None) -> None:
    """The shares attain it by an independent fit, others don't do better, and it is the least."""
    problem = rank1.Product(factors)
    found = theory.characteristic_time(problem, "rank_one")
    if reference is not None:
        assert found.value == pytest.approx(reference, rel=1e-3)
    assert found.shares.shape == problem.grid.sizes
    assert found.shares.sum() == pytest.approx(1)
    rng = np.random.default_rng(1)
    if all(map(all, factors)):  # a fit needs successes in each line
        assert found.value * closest(problem, found.shares) == pytest.approx(1, rel=1e-4)
        for size in (0.1, 0.5):
            other = found.shares * np.exp(size * rng.standard_normal(found.shares.shape))
            assert found.value * closest(problem, other / other.sum()) <= 1 + 1e-5
    neighbours = theory.characteristic_time(problem).value
    assert found.value < neighbours < theory.characteristic_time(problem, "any").value


def test_independent_draws_nearly_attain_it() -> None:
    """On the 8×8 spike, with a leader's share of .339 on either side: 465 against 464."""
    problem = rank1.Product([[0.7] + [0.5] * 7] * 2)
    side = np.array([0.339] + [0.661 / 7] * 7)
    assert 1 / closest(problem, np.outer(side, side)) == pytest.approx(465, abs=0.5)


def test_one_side_is_the_same_whatever_is_known() -> None:
    """An A/B/n test: the neighbours of the best arm are all the others."""
    problem = rank1.Product([[0.036, 0.030, 0.032]])
    times = [theory.characteristic_time(problem, each).value for each in STRUCTURES]
    assert times == pytest.approx([times[0]] * 3, rel=1e-4)
    means = rank1.Means([0.036, 0.030, 0.032])
    assert theory.characteristic_time(means, "any").value == pytest.approx(times[2])


def test_edges() -> None:
    one = theory.characteristic_time(rank1.Bernoulli([0.5], [0.5]))
    assert one.value == 0
    assert one.shares == pytest.approx(np.ones((1, 1)))
    with pytest.raises(rank1.InputError, match="must be one with a single best arm"):
        theory.characteristic_time(rank1.Bernoulli([0.5, 0.5], [0.5]))
    with pytest.raises(rank1.InputTypeError, match=r"must be a rank1\.Product or rank1\.Bernoulli"):
        theory.characteristic_time(rank1.Categorical([0, 1], [[[0.5, 0.5]]]))
    with pytest.raises(rank1.InputError, match="structure must be one of rank_one, unimodal, any"):
        theory.characteristic_time(rank1.Bernoulli([0.5], [0.5]), "rank-one")
    gaussian = rank1.Gaussian([0.5, 0.2], [0.5], sigma=1.0)
    with pytest.raises(rank1.InputTypeError, match=r"for the structure rank_one.*use unimodal"):
        theory.characteristic_time(gaussian, "rank_one")
    with pytest.raises(rank1.InputError, match="single best arm"):
        theory.characteristic_time(rank1.Means([[0.5, 0.1], [0.1, 0.5]]), "any")
    for confidence in (1, 2, -0.1):
        with pytest.raises(rank1.InputError, match=r"confidence must be .* at least 0 and below 1"):
            one.pulls(confidence)
    tiny = theory.characteristic_time(rank1.Bernoulli([0.5, 0.5 - 1e-7], [0.5]))
    assert 1e14 < tiny.value < 1e16
