from __future__ import annotations

import math
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rank1
from rank1 import theory

#: Hundredths, so that ties happen and are exact.
sides = st.lists(st.integers(0, 100).map(lambda k: k / 100), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("K", "theorem1", "theorem2", "theorem3"),
    [(8, 848002.3, 414.21, 564.23), (16, 1756032.1, 887.59, 1209.05)],
)
def test_reference_values(K: int, theorem1: float, theorem2: float, theorem3: float) -> None:
    n = 2_000_000
    spike = rank1.spike(K, K, 0.7, 0.7, 0.2, 0.2)
    gaussian = rank1.Gaussian(spike.u, spike.v, sigma=0.5)
    assert theory.upper_bound(spike, n) == pytest.approx(theorem1, abs=0.05)
    assert theory.lower_bound(spike) * math.log(n) == pytest.approx(theorem2, abs=0.005)
    assert theory.lower_bound(gaussian) * math.log(n) == pytest.approx(theorem3, abs=0.005)


@given(sides, sides, st.integers(1, 10**7))
def test_theorem_1_literally(u: list[float], v: list[float], n: int) -> None:
    """As printed, in exact arithmetic; the minimum over no gaps is infinite."""
    rows, columns = [Fraction(x) for x in u], [Fraction(x) for x in v]
    mu = min(sum(rows) / len(rows), sum(columns) / len(columns))
    assume(mu > 0)
    row_gaps, column_gaps = ([max(s) - x for x in s] for s in (rows, columns))
    sums = []
    for own, other in ((row_gaps, column_gaps), (column_gaps, row_gaps)):
        least = min((gap for gap in other if gap > 0), default=None)
        barred = [gap if gap > 0 else least for gap in own]
        sums.append(sum(Fraction(384) / gap for gap in barred if gap is not None) / mu**2)
    terms = theory.upper_bound_terms(rank1.Bernoulli(u, v), n)
    assert terms.rows == pytest.approx(float(sums[0]) * math.log(n), rel=1e-9)
    assert terms.columns == pytest.approx(float(sums[1]) * math.log(n), rel=1e-9)
    assert terms.constant == 3 * (len(u) + len(v))
    assert theory.upper_bound(rank1.Bernoulli(u, v), n) == sum(terms)


@given(sides, sides, st.floats(0.05, 5))
def test_theorems_2_and_3_literally(u: list[float], v: list[float], sigma: float) -> None:
    assume(u.count(max(u)) == v.count(max(v)) == 1)
    assume(0 < max(u) * max(v) < 1)
    i, j, best = u.index(max(u)), v.index(max(v)), max(u) * max(v)

    def term(mean: float) -> float:
        d = (1 - mean) * math.log((1 - mean) / (1 - best))
        return (best - mean) / (d + (mean * math.log(mean / best) if mean > 0 else 0))

    rows = sum(term(x * v[j]) for k, x in enumerate(u) if k != i)
    columns = sum(term(u[i] * x) for k, x in enumerate(v) if k != j)
    terms = theory.lower_bound_terms(rank1.Bernoulli(u, v))
    assert terms.rows == pytest.approx(rows, rel=1e-8)
    assert terms.columns == pytest.approx(columns, rel=1e-8)
    assert theory.lower_bound(rank1.Bernoulli(u, v)) == sum(terms)

    rows = 2 * sigma**2 / v[j] * sum(1 / (u[i] - x) for k, x in enumerate(u) if k != i)
    columns = 2 * sigma**2 / u[i] * sum(1 / (v[j] - x) for k, x in enumerate(v) if k != j)
    terms = theory.lower_bound_terms(rank1.Gaussian(u, v, sigma))
    assert terms.rows == pytest.approx(rows, rel=1e-9)
    assert terms.columns == pytest.approx(columns, rel=1e-9)


def test_hardness_at_the_edges() -> None:
    one_row = theory.hardness(rank1.Bernoulli([0.5], [0.75, 0.25]))
    assert one_row.min_row_gap == math.inf
    assert one_row.barred_row_gaps.tolist() == [0.5]
    assert one_row.barred_column_gaps.tolist() == [math.inf, 0.5]
    ties = theory.hardness(rank1.Bernoulli([0.5, 0.5, 0.25], [0.75, 0.25]))
    assert ties.barred_row_gaps.tolist() == [0.5, 0.5, 0.25]
    assert ties.barred_column_gaps.tolist() == [0.25, 0.5]
    alike = theory.hardness(rank1.Bernoulli([0.5, 0.5], [0.75]))
    assert alike.barred_row_gaps.tolist() == [math.inf, math.inf]
    assert alike.mu == 0.5


def test_theorem_1_at_the_edges() -> None:
    # nothing to lose: only the constant remains
    assert theory.upper_bound(rank1.Bernoulli([0.5, 0.5], [0.75]), 1000) == 9
    # one row: the columns' gaps, and the row in the guise of the smallest of them
    terms = theory.upper_bound_terms(rank1.Bernoulli([0.5], [0.75, 0.25]), 1000)
    assert terms.rows == terms.columns == pytest.approx(384 / 0.5 / 0.5**2 * math.log(1000))
    # μ = 0
    assert theory.upper_bound(rank1.Bernoulli([0.0, 0.0], [0.5, 0.1]), 1000) == math.inf
    assert theory.upper_bound(rank1.Bernoulli([0.0], [0.5]), 1000) == math.inf
    assert theory.upper_bound(rank1.Bernoulli([1e-200], [0.5, 1.0]), 2) == math.inf  # as a double
    assert theory.upper_bound(rank1.Bernoulli([1e-200], [0.5, 1.0]), 1) == 9
    # one step
    assert theory.upper_bound(rank1.Bernoulli([0.5, 0.1], [0.75]), 1) == 9


def test_theorem_1_is_for_products_in_the_unit_interval() -> None:
    factors = rank1.Factors([["beta", 3, 1], ["beta", 1, 1]], [["interval", 0, 1]])
    same_means = rank1.Bernoulli([0.75, 0.5], [0.5])
    assert theory.upper_bound(factors, 100) == theory.upper_bound(same_means, 100)
    with pytest.raises(TypeError, match=r"rewards in \[0, 1\].*<gaussian 2×1"):
        theory.upper_bound(rank1.Gaussian([0.75, 0.5], [0.5], sigma=0.1), 100)
    with pytest.raises(TypeError, match=r"a rank1\.RankOne, .* products.*<categorical 1×2"):
        theory.upper_bound(rank1.Categorical([0, 1], [[[0.5, 0.5], [0.1, 0.9]]]), 100)
    with pytest.raises(ValueError, match="n must be a whole number of at least 1, got 0"):
        theory.upper_bound(same_means, 0)
    with pytest.raises(TypeError, match=r"problem must be a problem such as .*, got \[\[1\]\]"):
        theory.upper_bound([[1]], 100)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("problem", "error", "message"),
    [
        (rank1.Bernoulli([0.5, 0.5], [0.5, 0.1]), ValueError, "a single best arm for Theorem 2"),
        (rank1.Gaussian([0.5], [0.5, 0.5], 1.0), ValueError, "a single best arm for Theorem 3"),
        (rank1.Bernoulli([0.5, 0.1], [0.0, 0.0]), ValueError, "a single best arm for Theorem 2"),
        (rank1.Bernoulli([1.0, 0.1], [1.0]), ValueError, "best mean below 1 for Theorem 2"),
        (
            rank1.Bernoulli([0.53, np.nextafter(0.53, 0)], [0.95]),
            ValueError,
            "divergences above 0 and below infinity for Theorem 2",
        ),
        (
            rank1.Factors([0.5, 0.4], [0.5]),
            TypeError,
            r"rank1\.Product\(problem\.factors\) has the",
        ),
        (
            rank1.Categorical([0, 1], [[[0.5, 0.5], [0.1, 0.9]]]),
            TypeError,
            r"\(Theorem 3\) problem, got <categorical 1×2.*may not have rank one",
        ),
    ],
    ids=lambda value: repr(value) if isinstance(value, rank1.Problem) else "",
)
def test_what_the_lower_bound_requires_is_named(
    problem: rank1.Problem, error: type[Exception], message: str
) -> None:
    for function in (theory.lower_bound, theory.relaxed, theory.graves_lai):
        with pytest.raises(error, match=message):
            function(problem)


def test_three_sides() -> None:
    """The paper's theorems are for two; neighbours are to be had on any number."""
    problem = rank1.Product([[0.8, 0.6, 0.3], [0.5, 0.9], [0.7, 0.7 - 0.1]])
    for call in (theory.lower_bound, theory.lower_bound_terms):
        with pytest.raises(
            rank1.InputError, match=r"sides must be 2 for Theorem 2, got 3 \(3×2×2\)"
        ):
            call(problem)
    with pytest.raises(rank1.InputError, match=r"sides must be 2 for Theorem 1, got 3 \(3×2×2\)"):
        theory.upper_bound(problem, 100)
    best = 0.8 * 0.9 * 0.7
    means = np.array([0.6 * 0.9 * 0.7, 0.3 * 0.9 * 0.7, 0.8 * 0.5 * 0.7, 0.8 * 0.9 * 0.6])
    closed = ((best - means) / theory.kl_bernoulli(means, best)).sum()
    assert theory.unimodal_bound(problem) == pytest.approx(closed)
    hard = theory.hardness(problem)
    assert [side.max() for side in hard.gaps] == pytest.approx([0.5, 0.4, 0.1])
    assert hard.min_gaps == pytest.approx((0.2, 0.4, 0.1))
    assert hard.mu == pytest.approx(1.7 / 3)
    with pytest.raises(rank1.InputError, match="sides must be two, rows and columns, got 3"):
        hard.barred_row_gaps  # noqa: B018


@pytest.mark.parametrize("sides", [1, 2, 4])
def test_a_side_without_a_choice_changes_no_bound(sides: int) -> None:
    factors = [[0.9, 0.5, 0.2], [0.8, 0.7]][:sides]
    less = rank1.Product(factors)
    more = rank1.Product([*factors, [1.0]])
    assert theory.unimodal_bound(more) == pytest.approx(theory.unimodal_bound(less))
    time = theory.characteristic_time(more).value
    assert time == pytest.approx(theory.characteristic_time(less).value)


def test_lower_bound_at_the_edges() -> None:
    assert theory.lower_bound(rank1.Bernoulli([0.5], [0.5])) == 0
    assert theory.lower_bound(rank1.Gaussian([0.0], [0.0], sigma=1.0)) == 0
    # a factor may be 1 as long as the best mean isn't, and a mean may be 0
    some = rank1.Bernoulli([1.0, 0.0], [0.5])
    assert theory.lower_bound(some) == pytest.approx(0.5 / math.log(2), rel=1e-14)
    # subclasses are Bernoulli problems
    assert theory.lower_bound(rank1.PositionBased([1.0, 0.0], [0.5])) == theory.lower_bound(some)


def test_unique_best_pair() -> None:
    assert theory.has_unique_best_arm(rank1.Bernoulli([0.0], [0.0]))
    assert not theory.has_unique_best_arm(rank1.Bernoulli([0.0, 0.0], [0.3]))
    grid = [[[0.5, 0.5], [0.1, 0.9]], [[0.1, 0.9], [0.5, 0.5]]]
    assert not theory.has_unique_best_arm(rank1.Categorical([0, 1], grid))
    assert theory.has_unique_best_arm(rank1.Categorical([0, 1], grid[:1]))


class Grid(rank1.Problem):
    """Means alone, of any rank: nothing here has factors."""

    def __init__(self, means: list[list[float]]) -> None:
        self.means = np.array(means)
        self.description = {"name": "grid", "settings": {}}


def test_a_grid_without_factors_has_the_hardness_of_its_averages() -> None:
    grid = Grid([[0.75, 0.5, 0.25], [0.0, 0.5, 0.25]])
    hard = theory.hardness(grid)
    averages = theory.hardness(rank1.Bernoulli([0.5, 0.25], [0.375, 0.5, 0.25]))
    for mine, theirs in zip(hard.gaps, averages.gaps, strict=True):
        np.testing.assert_allclose(mine, theirs)
    assert hard.mu == averages.mu
    assert hard.min_gaps == (hard.min_row_gap, hard.min_column_gap) == (0.25, 0.125)
    assert theory.has_unique_best_arm(grid)
    assert not theory.has_unique_best_arm(Grid([[0.75, 0.75]]))
    # Averages are no factors: the theorems say nothing of it.
    with pytest.raises(rank1.InputTypeError, match=r"must be a rank1\.RankOne.* <grid 2×3"):
        theory.upper_bound(grid, 100)
    with pytest.raises(rank1.InputTypeError, match=r"<grid 2×3.* may not have rank one"):
        theory.lower_bound(grid)
    notes = theory.table(grid, 100)["notes"]
    assert "gaps, mu: of the averages over each level's arms; this grid has no factors" in notes


def test_large_grids_cost_neither_time_nor_memory() -> None:
    rng = np.random.default_rng(1)
    problem = rank1.Bernoulli(rng.random(4096), rng.random(4096))
    begin = time.process_time()
    theory.upper_bound(problem, 2_000_000)
    theory.lower_bound(problem)
    theory.hardness(problem)
    assert time.process_time() - begin < 1
    assert "means" not in vars(problem)  # 4096² numbers were never made


def test_import_is_light() -> None:
    code = "import sys, rank1.theory; sys.exit('scipy.optimize' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_noise_that_is_too_little_is_not_called_closeness() -> None:
    with pytest.raises(ValueError, match=r"got inf: means .* too far apart for the noise"):
        theory.lower_bound(rank1.Gaussian([0.5, 0.4], [0.5], sigma=1e-200))
