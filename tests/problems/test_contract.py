"""What every problem must do. A new one is found through `PROBLEMS` and needs an example here."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

import rank1
from rank1.compiled import kernel, method
from rank1.problems import PROBLEMS

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
EVERY_PROBLEM = pytest.mark.parametrize("problem", EXAMPLES.values(), ids=EXAMPLES)
DRAWS = 40_000


def test_every_problem_has_an_example() -> None:
    assert set(EXAMPLES) == set(PROBLEMS)


draw = method("draw")
draw_many = method("draw_many", inline=False)


def _draws(law: Any, row: int, column: int, rng: Any, out: Any) -> None:
    for k in range(len(out)):
        reward, regret = draw(law, row, column, rng)
        out[k, 0] = reward
        out[k, 1] = regret


def _sums(law: Any, row: int, column: int, count: int, rng: Any, out: Any) -> None:
    for k in range(len(out)):
        reward, regret = draw_many(law, row, column, count, rng)
        out[k, 0] = reward
        out[k, 1] = regret


def draws(problem: rank1.Problem, row: int, column: int, size: int, seed: int) -> Any:
    rng, law = np.random.default_rng(seed), problem.law
    out = np.zeros((size, 2))
    block = problem.block or size
    for first in range(0, size, block):
        problem.refill(law, rng)
        kernel(_draws, law)(law, row, column, rng, out[first : first + block])
    return out


@EVERY_PROBLEM
def test_draws_have_the_means_that_it_claims(problem: rank1.Problem) -> None:
    for row, column in product(range(problem.K), range(problem.L)):
        out = draws(problem, row, column, DRAWS, seed=row + 10 * column)
        for k, mean in enumerate(
            (problem.means[row, column], problem.best_mean - problem.means[row, column])
        ):
            error = out[:, k].std() / math.sqrt(DRAWS)
            assert abs(out[:, k].mean() - mean) <= 4.5 * error + 1e-12
        gap = type(problem.law).gap(problem.law, row, column)
        assert gap == pytest.approx(problem.best_mean - problem.means[row, column], abs=1e-12)


@EVERY_PROBLEM
def test_realised_regret_of_the_best_pair_is_exactly_zero(problem: rank1.Problem) -> None:
    assert np.all(draws(problem, *problem.best_pair, 1000, seed=1)[:, 1] == 0)


@EVERY_PROBLEM
def test_interpreted_and_compiled_draws_agree(problem: rank1.Problem) -> None:
    row, column = problem.K - 1, problem.L - 1
    compiled = draws(problem, row, column, 200, seed=4)
    rng, law = np.random.default_rng(4), problem.law
    problem.refill(law, rng)
    plain = np.array([law.draw(row, column, rng) for _ in range(200)])
    np.testing.assert_array_equal(plain, compiled)


@EVERY_PROBLEM
def test_draws_from_python(problem: rank1.Problem) -> None:
    reward, regret = problem.draw(0, 0, np.random.default_rng(1))
    assert isinstance(reward, float)
    assert isinstance(regret, float)
    with pytest.raises(IndexError, match=r"row must lie in 0 … \d, got -1"):
        problem.draw(-1, 0, np.random.default_rng(1))


@EVERY_PROBLEM
def test_geometry(problem: rank1.Problem) -> None:
    assert problem.means.shape == (problem.K, problem.L)
    assert problem.best_mean == pytest.approx(problem.means.max())
    assert problem.lowest_mean == pytest.approx(problem.means.min())
    assert problem.means[problem.best_pair] == pytest.approx(problem.means.max())
    assert problem.best_pair == problem.best_pairs[0]
    assert problem.row_gaps.min() == 0
    assert problem.min_row_gap == min((g for g in problem.row_gaps if g > 0), default=math.inf)
    assert problem.mu == pytest.approx(min(problem.u.mean(), problem.v.mean()))
    np.testing.assert_allclose(
        problem.row_means(np.array([0, problem.L - 1])),
        problem.means[:, [0, problem.L - 1]].mean(axis=1),
    )
    np.testing.assert_allclose(
        problem.column_means(np.array([0, 0])), problem.means[[0, 0]].mean(axis=0)
    )


@EVERY_PROBLEM
def test_description_builds_it_again(problem: rank1.Problem) -> None:
    about = json.loads(json.dumps(problem.description, allow_nan=False))
    again = PROBLEMS[about["name"]](**about["settings"])
    np.testing.assert_array_equal(again.means, problem.means)


@EVERY_PROBLEM
@pytest.mark.parametrize("count", [1, 7, 500])
def test_sums_have_the_law_of_sums(problem: rank1.Problem, count: int) -> None:
    if not hasattr(problem.law, "draw_many"):
        assert problem.description["name"] == "factors"
        return
    size = 3000
    for row, column in product(range(problem.K), range(problem.L)):
        single = draws(problem, row, column, size * count, seed=count)
        added = single.reshape(size, count, 2).sum(axis=1)
        sums = np.zeros((size, 2))
        rng, law = np.random.default_rng(count + 1), problem.law
        kernel(_sums, law)(law, row, column, count, rng, sums)
        for a, b in (
            (added[:, 0], sums[:, 0]),
            (added[:, 1], sums[:, 1]),
            (added.sum(axis=1), sums.sum(axis=1)),
        ):  # the last looks at the joint law
            assert stats.ks_2samp(np.round(a, 9), np.round(b, 9), method="asymp").pvalue > 1e-4
            spread = np.sqrt((a.var() + b.var()) / size)
            assert abs(a.mean() - b.mean()) <= 4.5 * spread + 1e-9
        if count > 1 and sums[:, 0].std() > 0 and sums[:, 1].std() > 0:
            ours, theirs = (np.corrcoef(x.T)[0, 1] for x in (sums, added))
            assert abs(ours - theirs) < 4.5 * math.sqrt(2 / size)


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
