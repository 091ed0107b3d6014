from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import xlog1py, xlogy

import rank1
from rank1 import datasets
from rank1.fit import Fit, fit, fixed_design, p_value
from tests.stopping.test_rule import any_tables

Floats = NDArray[np.float64]


def likelihood(s: Floats, f: Floats, means: Floats) -> float:
    return float((xlogy(s, means) + xlog1py(f, -means)).sum())


def sums(values: Any, side: int) -> Any:
    """Add up values over all other sides."""
    return values.sum(axis=tuple(d for d in range(values.ndim) if d != side))


def product(factors: list[Any]) -> Floats:
    return functools.reduce(np.multiply.outer, factors)


@given(any_tables)
def test_it_is_the_optimum(counts: tuple[Floats, Floats]) -> None:
    """Check the Karush–Kuhn–Tucker conditions, which are sufficient for a concave function.

    A level without a success has factor 0. For any other level, the derivative with respect to the
    logarithm of its factor is 0, or at least 0 if one of its means has reached the limit of 1.
    """
    s, f = counts
    found = fit(s, f)
    means = found.means
    assert (means <= 1).all()
    assert (means >= 0).all()
    tops = [factors.max() for factors in found.factors]
    assert tops == pytest.approx([tops[0]] * s.ndim)
    at_limit = means > 1 - 1e-5
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.where(f > 0, f * means / (1 - means), 0.0)
    slope = np.where(s + f > 0, s - lost, 0.0)
    for side, factors in enumerate(found.factors):
        levels = sums(s, side) > 0
        assert (factors[~levels & (sums(s + f, side) > 0)] == 0).all()
        total = sums(slope, side)[levels]
        error = 1e-5 * (1 + s.sum())
        assert (total > -error).all()
        inside = (sums(at_limit, side) == 0)[levels]
        assert (abs(total[inside]) < error).all()


@given(
    st.integers(0, 10**6),
    st.sampled_from([(1,), (4,), (1, 3), (4, 3), (2, 2, 2), (3, 2, 2), (2, 2, 2, 2)]),
    st.sampled_from([5, 40, 3000]),
)
def test_no_other_optimiser_finds_better(seed: int, sizes: tuple[int, ...], size: int) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(1, size, sizes)
    s = rng.binomial(n, rng.random(sizes) ** rng.integers(1, 3)).astype(float)
    s[(0,) * len(sizes)] += 1
    for side, count in enumerate(sizes):
        for level in range(count):  # every level has a success
            line = tuple(level if d == side else 0 for d in range(len(sizes)))
            s[line] += 1
    f = np.maximum(n - s, 0)
    ends = np.cumsum(sizes)[:-1]

    def logs(z: Floats) -> Floats:
        return functools.reduce(np.add.outer, np.split(z, ends))

    def loss(z: Floats) -> float:
        return -likelihood(s, f, np.exp(np.minimum(logs(z), -1e-12))) / n.sum()

    start = np.full(sum(sizes), math.log(0.5) / len(sizes))
    constraint = {"type": "ineq", "fun": lambda z: -logs(z).ravel() - 1e-9}
    with np.errstate(all="ignore"):
        other = minimize(loss, start, method="SLSQP", constraints=constraint, tol=1e-12)
    found = fit(s, f)
    assert found.log_likelihood == pytest.approx(likelihood(s, f, found.means), abs=1e-9 * n.sum())
    assert found.log_likelihood >= -other.fun * n.sum() - 1e-5


def test_three_sides_are_those_of_another_optimiser() -> None:
    """Well inside the limits, both find the same means, and the same likelihood within 1e-6."""
    rng = np.random.default_rng(7)
    true = product([[0.9, 0.5, 0.3], [0.8, 0.6], [0.9, 0.7, 0.4]])
    n = np.full(true.shape, 400)
    s = rng.binomial(n, true).astype(float)

    def means(z: Floats) -> Floats:
        return np.exp(functools.reduce(np.add.outer, np.split(z, [3, 5])))

    def loss(z: Floats) -> float:
        return -likelihood(s, n - s, np.minimum(means(z), 1 - 1e-12))

    other = minimize(loss, np.full(8, -0.3), method="BFGS", options={"gtol": 1e-8})
    for _ in range(3):  # its gradient is a difference quotient, so continue from where it stopped
        other = minimize(loss, other.x, method="Nelder-Mead", options={"xatol": 1e-10})
        other = minimize(loss, other.x, method="BFGS", options={"gtol": 1e-9})
    found = fit(s, n - s)
    assert found.log_likelihood == pytest.approx(-other.fun, abs=1e-6)
    assert found.log_likelihood >= -other.fun - 1e-9
    assert found.means == pytest.approx(means(other.x), abs=1e-5)
    assert found.means == pytest.approx(true, abs=0.1)
    assert found.degrees_of_freedom == 18 - 6


@given(any_tables, st.randoms())
def test_names_of_levels_and_sides_do_not_matter(
    counts: tuple[Floats, Floats], random: Any
) -> None:
    s, f = counts
    order, axes = [list(range(size)) for size in s.shape], list(range(s.ndim))
    for lines in (*order, axes):
        random.shuffle(lines)
    found, mixed = fit(s, f), fit(s[np.ix_(*order)], f[np.ix_(*order)])
    turned = fit(s.transpose(axes), f.transpose(axes))
    assert mixed.deviance == pytest.approx(found.deviance, abs=1e-6)
    assert turned.deviance == pytest.approx(found.deviance, abs=1e-6)
    assert mixed.degrees_of_freedom == turned.degrees_of_freedom == found.degrees_of_freedom


@given(any_tables)
def test_deviance_and_its_parts(counts: tuple[Floats, Floats]) -> None:
    s, f = counts
    found = fit(s, f)
    assert found.deviance == pytest.approx((found.residuals**2).sum(), abs=1e-6 * (1 + s.sum()))
    with np.errstate(invalid="ignore"):
        above = s / (s + f) > found.means + 1e-6
    assert (found.residuals[above] > 0).all()
    assert (found.residuals[s + f == 0] == 0).all()
    assert 0 <= found.chi2_p <= 1
    assert found.explained <= 1 + 1e-9
    worst = [abs(each.residual) for each in found.deviating(99)]
    assert worst == sorted(worst, reverse=True)
    assert [side.shape for side in found.effects] == [(size, 2) for size in s.shape]
    if sum(size > 1 for size in s.shape) <= 1:  # a single line always has rank one
        assert found.deviance == pytest.approx(0, abs=1e-6)
        assert found.degrees_of_freedom == 0


def test_exactly_rank_one_is_found_exactly() -> None:
    u, v = np.array([0.9, 0.5, 0.1]), np.array([0.8, 0.2])
    means = np.outer(u, v)
    found = fit(1000 * means, 1000 * (1 - means))
    assert found.means == pytest.approx(means, abs=1e-8)
    assert found.u.max() == pytest.approx(math.sqrt(0.72))
    assert found.row_effects[:, 0] == pytest.approx(u / 0.9)
    assert found.column_effects[:, 0] == pytest.approx([1, 0.25])
    assert found.deviance == pytest.approx(0, abs=1e-8)
    assert found.degrees_of_freedom == 2


def test_edges() -> None:
    nothing = fit(np.zeros((2, 3)), np.zeros((2, 3)))
    assert nothing.deviance == 0
    assert nothing.degrees_of_freedom == 0
    assert nothing.chi2_p == 1
    failures = fit(np.zeros((2, 2)), np.full((2, 2), 9.0))
    assert (failures.means == 0).all()
    assert failures.deviance == 0
    certain = fit(np.full((2, 2), 9.0), np.zeros((2, 2)))
    assert certain.means == pytest.approx(np.ones((2, 2)), abs=1e-8)
    # A row that always succeeds in both columns leaves the columns no room to differ.
    limit = fit([[90, 90], [10, 40]], [[0, 0], [90, 60]])
    assert limit.means == pytest.approx(np.array([[1, 1], [0.25, 0.25]]), abs=1e-8)
    # An unknown line gets its side's average; a missing pair is predicted from the other three.
    unknown = fit([[30, 15, 0], [10, 0, 0]], [[70, 85, 0], [90, 0, 0]])
    assert unknown.means[1, 1] == pytest.approx(0.05)
    assert unknown.v[1] < unknown.v[2] < unknown.v[0]
    assert unknown.degrees_of_freedom == 0
    assert unknown.column_effects[2, 1] == np.inf
    # Two blocks without a connection: two scales, and no evidence against rank one.
    blocks = fit(np.diag([5, 7]), np.diag([5, 70]))
    assert blocks.deviance == pytest.approx(0, abs=1e-7)
    assert blocks.degrees_of_freedom == 0
    assert blocks.row_effects[:, 1].max() == np.inf


def test_a_failure_that_only_a_limit_holds_back() -> None:
    """Pair (0, 1) never paid and would be 0, but then (1, 0), never tried, would exceed 1."""
    found = fit([[5, 0], [0, 5]], [[5, 20], [0, 5]])
    assert found.means[1, 0] == pytest.approx(1, abs=1e-4)
    assert found.log_likelihood == pytest.approx(
        likelihood(found.successes, found.failures, found.means)
    )


def test_a_fit_of_three_sides() -> None:
    factors = [[0.9, 0.5], [0.8, 0.2, 0.4], [1.0, 0.5]]
    means = product(factors)
    found = fit(1000 * means, 1000 * (1 - means))
    assert found.means == pytest.approx(means, abs=1e-8)
    for side, true in zip(found.effects, factors, strict=True):
        assert side[:, 0] == pytest.approx(np.array(true) / max(true))
        assert np.isfinite(side[:, 1]).all()
    assert found.degrees_of_freedom == 12 - 5
    for name in ("u", "v", "row_effects", "column_effects"):
        with pytest.raises(rank1.InputError, match="sides must be two, rows and columns, got 3"):
            getattr(found, name)
    # Only the three axes were tried: five parameters for five arms leave nothing to test.
    cross = np.zeros(means.shape)
    cross[:, 0, 0] = cross[0, :, 0] = cross[0, 0, :] = 1000
    beside = fit(cross * means, cross * (1 - means))
    assert beside.means == pytest.approx(means, abs=1e-8)
    assert beside.degrees_of_freedom == 0
    # A side with a single level changes nothing.
    again = fit(1000 * means[:, None], 1000 * (1 - means[:, None]))
    assert again.log_likelihood == pytest.approx(found.log_likelihood)
    assert again.degrees_of_freedom == found.degrees_of_freedom


def test_standard_errors_are_those_of_repetitions() -> None:
    """Within 15%, over 400 repetitions (whose own error is about 4%)."""
    rng = np.random.default_rng(1)
    means = np.outer([0.8, 0.5, 0.3], [0.9, 0.6])
    replay = fixed_design(np.full((3, 2), 2000))
    fits = [fit(*replay(means, rng)) for _ in range(400)]
    spread = np.std([np.log(each.row_effects[:, 0]) for each in fits], axis=0)
    assert spread == pytest.approx(fits[0].row_effects[:, 1], rel=0.15, abs=1e-9)
    spread = np.std([np.log(each.column_effects[:, 0]) for each in fits], axis=0)
    assert spread == pytest.approx(fits[0].column_effects[:, 1], rel=0.15, abs=1e-9)


def test_the_law_of_the_deviance() -> None:
    """On rank-one grids its mean is its degrees of freedom, within four standard errors."""
    rng = np.random.default_rng(2)
    means = np.outer([0.8, 0.5, 0.3, 0.2], [0.9, 0.6, 0.5])
    replay = fixed_design(np.full((4, 3), 1000))
    deviances = [fit(*replay(means, rng)).deviance for _ in range(400)]
    assert abs(np.mean(deviances) - 6) < 4 * math.sqrt(12 / 400)


@pytest.mark.validate
def test_the_p_value_of_a_fixed_design() -> None:
    """Test a rank-one grid, and one with a pair that is off."""
    means = np.outer([0.8, 0.5, 0.3], [0.9, 0.6])
    replay = fixed_design(np.full((3, 2), 500))
    rng = np.random.default_rng(3)
    fits = [fit(*replay(means, rng)) for _ in range(40)]
    p = np.array([p_value(each, replay, B=39, seed=k) for k, each in enumerate(fits)])
    assert abs(p.mean() - 0.5) < 4 * math.sqrt(1 / 12 / 40)
    means[0, 0] = 0.4
    assert p_value(fit(*replay(means, rng)), replay, B=59) == 1 / 60


def test_a_small_grid_of_three_sides_is_tested() -> None:
    means = product([[0.9, 0.6], [0.8, 0.5], [0.9, 0.7]])
    replay = fixed_design(np.full(means.shape, 500))
    rng = np.random.default_rng(3)
    fits = [fit(*replay(means, rng)) for _ in range(20)]
    p = np.array([p_value(each, replay, B=19, seed=k) for k, each in enumerate(fits)])
    assert abs(p.mean() - 0.5) < 4 * math.sqrt(1 / 12 / 20)
    means[0, 0, 0] = 0.4
    assert p_value(fit(*replay(means, rng)), replay, B=59) == 1 / 60


@pytest.mark.validate
@pytest.mark.parametrize(
    "factors",
    [[[0.3, 0.2, 0.02], [0.5, 0.1]], [[0.6, 0.3], [0.9, 0.5], [0.8, 0.2]]],
    ids=["two sides", "three sides"],
)
def test_the_level_is_kept(factors: list[list[float]]) -> None:
    """Of 400 rank-one grids, 10% are rejected at a level of 10%, within four standard errors."""
    means = product(factors)
    replay = fixed_design(np.full(means.shape, 60))
    rng = np.random.default_rng(4)
    fits = [fit(*replay(means, rng)) for _ in range(400)]
    rejected = sum(p_value(each, replay, 99, k) <= 0.1 for k, each in enumerate(fits))
    assert abs(rejected - 40) < 4 * math.sqrt(36)


def fit_of(table: datasets.Table) -> Fit:
    return fit(table.successes, table.failures)


@pytest.mark.parametrize(
    ("table", "deviance", "freedom", "p", "explained"),
    [
        (datasets.hillstrom(), 16.5, 12, 0.17, 0.98),
        (datasets.hillstrom("recency"), 33.9, 22, 0.05, 0.96),
        (datasets.facebook_ads(), 110.1, 112, 0.53, 0.95),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_real_grids(
    table: datasets.Table, deviance: float, freedom: int, p: float, explained: float
) -> None:
    found = fit_of(table)
    assert found.deviance == pytest.approx(deviance, abs=0.06)
    assert found.degrees_of_freedom == freedom
    assert found.chi2_p == pytest.approx(p, abs=0.006)
    assert found.explained == pytest.approx(explained, abs=0.006)


def test_upworthy() -> None:
    grids = datasets.upworthy()
    fits = [fit_of(table) for table in grids]
    assert sum(found.chi2_p < 0.05 for found in fits) == 5
    both = zip(grids, fits, strict=True)
    same = sum(table.rates.argmax() == found.means.argmax() for table, found in both)
    assert same / len(grids) == pytest.approx(0.67, abs=0.01)
    assert sum(found.deviance for found in fits) == pytest.approx(89.3, abs=0.1)
    assert sum(found.degrees_of_freedom for found in fits) == 60


def test_refusals() -> None:
    with pytest.raises(rank1.InputError, match=r"failures\[0, 0\] must be a number of at least 0"):
        fit([[1]], [[-1]])
    with pytest.raises(rank1.InputError, match=r"trials must be whole numbers, got 0\.5: pass y"):
        fixed_design([[0.5]])
    with pytest.raises(rank1.InputError, match=r"trials must be .*, got shape \(2, 0, 3\)"):
        fixed_design(np.zeros((2, 0, 3)))
    with pytest.raises(rank1.InputError, match="failures must be of the same shape as successes"):
        fit(np.ones((2, 2, 2)), np.ones((2, 4)))
    with pytest.raises(rank1.InputError, match="B must be a whole number of at least 1, got 0"):
        p_value(fit([[1]], [[1]]), fixed_design([[2]]), B=0)
    with pytest.raises(rank1.InputTypeError, match=r"found must be a Fit, .* got 3"):
        p_value(3, fixed_design([[2]]))  # type: ignore[arg-type]
    with pytest.raises(rank1.InputTypeError, match=r"replay must be a function .*, got None"):
        p_value(fit([[1]], [[1]]), None)  # type: ignore[arg-type]
