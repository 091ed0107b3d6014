"""What every problem must do. A new one is found through `PROBLEMS` and needs an example here."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

import rank1
from rank1.problems import PROBLEMS
from rank1.testing import PROBLEM_CHECKS, check_problem
from rank1.testing.problems import draws

RNG = np.random.default_rng(2)
EXAMPLES: dict[str, rank1.Problem] = {
    "spike": rank1.spike(3, 4, 0.3, 0.5, 0.4, 0.2),
    "bernoulli": rank1.Bernoulli([0.2, 0.9, 0.9], [1.0, 0.0]),
    "gaussian": rank1.Gaussian([0.2, 0.9], [0.5, 0.7], sigma=0.3),
    "factors": rank1.Factors([rank1.Beta(2, 1), 0.3], [["interval", 0.1, 0.5], ["beta", 1, 3]]),
    "categorical": rank1.Categorical([0, 0.25, 1], RNG.dirichlet([1, 1, 1], (3, 2))),
    "position_based": rank1.PositionBased([0.3, 0.7], [0.9, 0.4]),
    "campaign": rank1.Campaign({"a": 0.3, "b": 0.7}, {"x": 0.9, "y": 0.4}),
}
DRAWS = 40_000


def test_every_problem_has_an_example() -> None:
    assert set(EXAMPLES) == set(PROBLEMS)


@pytest.mark.parametrize("check", PROBLEM_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("problem", EXAMPLES.values(), ids=EXAMPLES)
def test_contract(problem: rank1.Problem, check: Callable[[rank1.Problem], None]) -> None:
    check(problem)


def test_all_but_factors_draw_sums() -> None:
    assert [n for n, p in EXAMPLES.items() if not hasattr(p.law, "draw_many")] == ["factors"]


class Overstated(rank1.Bernoulli):
    """Claims better rows than its law has."""

    @property
    def law(self) -> Any:
        return rank1.Bernoulli(0.9 * self.u, self.v).law


def test_a_problem_that_does_not_keep_its_word_is_told_so() -> None:
    with pytest.raises(AssertionError, match=r"2×2.*: Averages of draws .* has mean reward 0\.54"):
        check_problem(Overstated([0.6, 0.3], [0.9, 0.4]))


def test_a_shared_factor_is_shared() -> None:
    """The law of (reward, best reward), by going through all values of the four factors."""
    problem = rank1.Bernoulli([0.7, 0.4], [0.2, 0.6])
    best_row, best_column = problem.best_pair
    for row, column in product(range(2), range(2)):
        exact: dict[tuple[float, float], float] = {}
        for u in product((0, 1), repeat=2):
            for v in product((0, 1), repeat=2):
                p = float(math.prod(m if x else 1 - m for m, x in zip(problem.u, u, strict=True)))
                p *= math.prod(m if x else 1 - m for m, x in zip(problem.v, v, strict=True))
                reward = float(u[row] * v[column])
                key = (reward, u[best_row] * v[best_column] - reward)
                exact[key] = exact.get(key, 0) + p
        out = draws(problem, row, column, DRAWS, seed=3)
        for (reward, regret), p in exact.items():
            seen = np.mean((out[:, 0] == reward) & (out[:, 1] == regret))
            assert abs(seen - p) <= 4.5 * math.sqrt(p * (1 - p) / DRAWS) + 1e-12


def test_correlated_rows_are_correlated() -> None:
    """Rows that always move together never differ, so the realised regret has one sign."""

    def rows(size: int, rng: np.random.Generator) -> Any:
        return rng.random((size, 1)) * np.array([[1.0, 0.5]])

    problem = rank1.Factors(rank1.Sampler(rows, mean=[0.5, 0.25]), [rank1.Beta(1, 1)])
    out = draws(problem, 1, 0, DRAWS, seed=1)
    np.testing.assert_allclose(out[:, 1], out[:, 0])  # u* v − u*/2·v = the reward itself
    assert out[:, 1].mean() == pytest.approx(0.125, abs=4 * out[:, 1].std() / 200)


def test_scipy_laws() -> None:
    problem = rank1.Factors([stats.beta(2, 5), stats.uniform(0, 0.5)], [stats.bernoulli(0.3)])
    np.testing.assert_allclose(problem.u, [2 / 7, 0.25])
    out = draws(problem, 0, 0, DRAWS, seed=1)
    assert abs(out[:, 0].mean() - 0.6 / 7) < 4.5 * out[:, 0].std() / 200


def test_ties_and_zeros() -> None:
    tied = rank1.Bernoulli([0.5, 0.9, 0.9], [0.2, 0.2])
    assert tied.best_pairs == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert tied.best_pair == (1, 0)
    assert tied.min_column_gap == math.inf
    nothing = rank1.Bernoulli([0.0, 0.5], [0.0, 0.0])
    assert nothing.best_pair == (0, 0)
    assert len(nothing.best_pairs) == 4
    assert nothing.mu == 0


def test_labels() -> None:
    campaign = rank1.Campaign({"old": 0.1, "young": 0.2}, {"mail": 0.5})
    assert campaign.row_labels == ["old", "young"]
    assert campaign.best_labels == ("young", "mail")


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rank1.Bernoulli([0.5, NAN], [0.5]), r"u\[1\] must be a number in .*, got nan"),
        (lambda: rank1.Bernoulli([0.5], [INF]), r"v\[0\] must be a number in \[0, 1\], got inf"),
        (lambda: rank1.Bernoulli([0.5], [-0.1]), r"v\[0\] must be .* got -0.1"),
        (lambda: rank1.Bernoulli([], [0.5]), "u must be a list of at least one number"),
        (lambda: rank1.Bernoulli([[0.5]], [0.5]), "u must be a list of at least one number"),
        (lambda: rank1.Bernoulli(["x"], [0.5]), "u must be a list of numbers"),
        (lambda: rank1.spike(0, 1, 0.1, 0.1, 0.1, 0.1), "K must be a whole number of at least 1"),
        (lambda: rank1.spike(1, 2.5, 0.1, 0.1, 0.1, 0.1), "L must be a whole number"),  # type: ignore[arg-type]
        (lambda: rank1.spike(1, 1, 1.1, 0.1, 0.1, 0.1), "p_u must be .* at most 1, got 1.1"),
        (lambda: rank1.spike(1, 1, 0.9, 0.1, 0.2, 0.1), "p_u . delta_u is a probability"),
        (lambda: rank1.spike(1, 1, 0.9, 0.1, 0.1, NAN), "delta_v must be a number"),
        (lambda: rank1.Gaussian([0.5], [0.5], 0), "sigma must be a number above 0 .*, got 0"),
        (lambda: rank1.Gaussian([0.5], [0.5], INF), "sigma must be .*, got inf"),
        (lambda: rank1.Categorical([0, 1], [[[0.5, 0.4]]]), r"\[0, 0\] must add up to 1, got 0.9"),
        (lambda: rank1.Categorical([0, 1], [[[1.5, -0.5]]]), r"probabilities\[0, 0, 0\] must be"),
        (lambda: rank1.Categorical([0, 1], [[0.5, 0.5]]), r"shape \(K, L, 2\), one per value"),
        (lambda: rank1.Categorical([0, NAN], [[[1, 0]]]), r"values\[1\] must be a number"),
        (lambda: rank1.Campaign([0.5], {"a": 0.5}), "segments must map labels to probabilities"),  # type: ignore[arg-type]
        (lambda: rank1.PositionBased([2.0], [0.5]), r"attraction\[0\] must be a number"),
        (lambda: rank1.Factors([], [0.5]), "u_law must be a Sampler or a list"),
        (lambda: rank1.Factors([["gamma", 1]], [0.5]), r"u_law\[0\]\[0\] must be one of beta"),
        (lambda: rank1.Factors([["beta", 0, 1]], [0.5]), r"u_law\[0\]: a must be a number above 0"),
        (lambda: rank1.Factors([stats.norm()], [0.5]), r"u_law\[0\] must be a law on \[0, 1\]"),
        (lambda: rank1.Factors([None], [0.5]), r"u_law\[0\] must be a Beta"),
        (lambda: rank1.Discrete([0, 1], [0.5]), "probabilities must be 2 numbers"),
        (lambda: rank1.Discrete([0, 1], [0.5, 0.2]), "probabilities must add up to 1, got 0.7"),
        (lambda: rank1.Interval(0.5, 0.2), "high must be a number of at least 0.5"),
    ],
)  # fmt: skip
def test_bad_input(make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_a_sampler_must_keep_its_word() -> None:
    rng = np.random.default_rng(1)
    wrong_shape = rank1.Factors(rank1.Sampler(lambda size, rng: np.zeros(size), [0.5]), [0.5])
    with pytest.raises(ValueError, match=r"u_law: the sampler must return an array of shape"):
        wrong_shape.draw(0, 0, rng)
    outside = rank1.Factors(rank1.Sampler(lambda size, rng: np.full((size, 1), 2.0), [0.5]), [0.5])
    with pytest.raises(ValueError, match=r"u_law must only give values in \[0, 1\], got 2.0"):
        outside.draw(0, 0, rng)
