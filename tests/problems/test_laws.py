"""Every law against theory: variances, joint laws, and the law of the parts of a sum.

All tests have fixed seeds and fail beyond 4.5 standard errors or at p < 1e-5. Noise of half the
size, regret without the best pair's noise, Beta(2a, 2b) for Beta(a, b), a narrower interval, a
factor that isn't shared, parts that don't add up or are drawn anew: each turns one of them red.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rank1
from rank1.problems.base import twins
from rank1.problems.laws import Frozen
from rank1.problems.shuffled import Shuffled
from tests.problems.support import assert_moments, draws, moments, tallies
from tests.problems.test_contract import TRIED
from tests.support import few

DRAWS = 40_000

PROBLEMS = TRIED | {
    "gaussian with ties": rank1.Gaussian([0.9, 0.9, 0.1], [0.5, 0.5], sigma=2.0),
    "bernoulli with ties": rank1.Bernoulli([0.6, 0.6, 0.3, 0.3], [0.8, 0.8, 0.5]),
    "all kinds of factors": rank1.Factors(
        [rank1.Beta(0.5, 2), rank1.Interval(0.2, 0.9), rank1.Discrete([0.1, 0.6], [0.3, 0.7])],
        [stats.beta(4, 2), stats.uniform(0.1, 0.4), 0.7],
    ),
    "stars": rank1.Categorical(
        [1, 2, 3, 4, 5], np.random.default_rng(3).dirichlet([0.5] * 5, (2, 3))
    ),
}
EVERY = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


def test_a_law_is_compiled_once() -> None:
    """Whatever the grid, and whether it is shuffled: an array that may not be written to is another
    type to Numba.
    """
    found: dict[type, set[str]] = {}
    typeof: Any = numba.typeof
    more = [
        rank1.Product([[0.8, 0.6]]), rank1.Product([[0.8, 0.6], [0.9], [0.3, 0.5]]),
        rank1.Means([0.2, 0.5]), rank1.Means([[0.5, 0.1], [0.1, 0.52]]),
        rank1.Gaussian(factors=[[0.2, 0.9]]), rank1.Gaussian(factors=[[0.2, 0.9], [0.1], [0.3]]),
    ]  # fmt: skip
    for problem in [*more, *(each for each in PROBLEMS.values() if each.block is None)]:
        for each in (problem, Shuffled(problem, np.random.default_rng(1))):
            found.setdefault(type(each.law), set()).add(str(typeof(each.law)))
    assert len(found) > 4
    assert all(len(types) == 1 for types in found.values()), found


SUMS = {name: problem for name, problem in PROBLEMS.items() if problem.has_tallies}
WITH_SUMS = pytest.mark.parametrize("problem", SUMS.values(), ids=SUMS)


@EVERY
def test_reward_and_regret_have_the_joint_moments_of_the_model(problem: rank1.Problem) -> None:
    for arm in range(problem.arms):
        out = draws(problem, arm, DRAWS, seed=1 + arm)
        assert_moments(out, *moments(problem, arm))


def test_gaussian_rewards_are_normal_and_so_is_the_best_pairs() -> None:
    problem = rank1.Gaussian([0.2, 0.9], [0.5, 0.7], sigma=0.3)
    out = draws(problem, 0, DRAWS, seed=7)
    for values, mean in ((out[:, 0], 0.1), (out.sum(axis=1), 0.63)):
        assert stats.kstest(values, stats.norm(mean, 0.3).cdf).pvalue > 1e-5


def test_categorical_pairs_share_nothing() -> None:
    problem = PROBLEMS["stars"]
    assert isinstance(problem, rank1.Categorical)
    arm = next(arm for arm in range(problem.arms) if arm != problem.best_arm)
    out = draws(problem, arm, DRAWS, seed=2)
    seen = Counter(zip(out[:, 0].tolist(), out.sum(axis=1).tolist(), strict=True))
    joint = np.outer(*problem.probabilities.reshape(-1, 5)[[arm, problem.best_arm]])
    values = problem.values.tolist()
    counts = np.array([[seen[a, b] for b in values] for a in values])
    often = joint * DRAWS >= 5
    assert counts.sum() == DRAWS
    groups = [np.append(x[often], x[~often].sum()) for x in (counts, joint * DRAWS)]
    assert stats.chisquare(*groups).pvalue > 1e-5


@pytest.mark.parametrize(
    ("entry", "law"),
    [
        (rank1.Beta(2, 5), stats.beta(2, 5)),
        (rank1.Beta(0.5, 0.5), stats.beta(0.5, 0.5)),
        (rank1.Interval(0.2, 0.9), stats.uniform(0.2, 0.7)),
        (Frozen(stats.beta(4, 2)), stats.beta(4, 2)),
    ],
)
def test_entries_of_factors_have_their_law(entry: Any, law: Any) -> None:
    values = entry.draw(DRAWS, np.random.default_rng(3))
    assert stats.kstest(values, law.cdf).pvalue > 1e-5
    assert entry.mean == pytest.approx(law.mean())


def test_discrete_entries_have_their_law() -> None:
    values, probabilities = [0.1, 0.6, 1.0], [0.3, 0.2, 0.5]
    entry = rank1.Discrete(values, probabilities)
    seen = Counter(entry.draw(DRAWS, np.random.default_rng(3)).tolist())
    assert set(seen) == set(values)
    expected = [p * DRAWS for p in probabilities]
    assert stats.chisquare([seen[x] for x in values], expected).pvalue > 1e-5
    assert entry.mean == pytest.approx(0.65)


def test_factors_go_through_their_blocks_in_order() -> None:
    """Each row of a block serves one pull, and a new block begins at its first row."""
    problem = rank1.Factors([rank1.Beta(2, 1), 0.3], [["interval", 0.1, 0.5], ["beta", 1, 3]])
    problem.block = 50
    out = draws(problem, 3, 200, seed=5)
    rng = np.random.default_rng(5)
    for first in range(0, 200, 50):
        law = problem.law
        problem.refill(law, rng)
        reward = law.u_block[:, 1] * law.v_block[:, 1]
        best = law.u_block[:, 0] * law.v_block[:, 0]
        np.testing.assert_array_equal(out[first : first + 50, 0], reward)
        np.testing.assert_array_equal(out[first : first + 50, 1], best - reward)


def test_runs_longer_than_a_block_go_on_with_new_vectors() -> None:
    """A run's regret has mean and variance of n independent pulls."""
    problem = rank1.Factors([rank1.Beta(1, 1), rank1.Beta(1, 3)], [0.8])
    problem.block = 64
    n, runs = 1000, 400
    result = rank1.simulate(rank1.Uniform(), problem, n, runs, seed=4, checkpoints=1)
    mean, covariance = moments(problem, 1)
    # Half of the pulls, at random, are of the best row and cost nothing.
    one = covariance[1, 1] / 2 + mean[1] ** 2 / 4
    ends = result.outcomes[0].realised[:, -1:]
    assert_moments(ends, np.array([n * mean[1] / 2]), np.array([[n * one]]))


@WITH_SUMS
@pytest.mark.parametrize("count", few([7, 10**6, 1, 500], 2))
def test_sums_and_their_parts_have_the_moments_of_sums(problem: Any, count: int) -> None:
    """Parts of a sum are sums: of independent pulls, and included in the whole."""
    parts = [part for part in (count // 3, count // 7, 1) if part > 0][: count // 2 + 1]
    size = 8000
    for arm in range(problem.arms):
        out = tallies(problem, arm, count, parts, size, seed=count + 17 * arm)
        mean, one = moments(problem, arm)
        # reward and regret of all pulls; then each part's regret
        members = [count, count, *parts]
        kinds = [0, 1] + [1] * len(parts)
        covariance = np.empty((len(members), len(members)))
        for a, b in product(range(len(members)), repeat=2):
            common = min(members[a], members[b]) if a == b or min(a, b) < 2 else 0
            covariance[a, b] = common * one[kinds[a], kinds[b]]
        means = np.array([m * mean[kind] for m, kind in zip(members, kinds, strict=True)])
        assert_moments(out, means, covariance)


@WITH_SUMS
@pytest.mark.parametrize("count", [2, 9, 60])
def test_sums_and_their_parts_have_the_law_of_sums(problem: Any, count: int) -> None:
    """Against sums of single pulls: two-sample tests of the first part, the rest, and the reward.

    The last two look at joint laws.
    """
    size, part = 3000, max(1, count // 3)
    for arm in range(problem.arms):
        single = draws(problem, arm, size * count, seed=count).reshape(size, count, 2)
        first, whole = single[:, :part, 1].sum(axis=1), single.sum(axis=1)
        added = np.column_stack([whole, first])
        ours = tallies(problem, arm, count, [part], size, seed=count + 1)
        for weights in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, -2), (1, 0, 1), (1, 1, 0)):
            a, b = added @ weights, ours @ weights
            assert stats.ks_2samp(np.round(a, 9), np.round(b, 9), method="asymp").pvalue > 1e-5


@WITH_SUMS
def test_parts_add_up_to_the_whole(problem: Any) -> None:
    for arm in range(problem.arms):
        out = tallies(problem, arm, 1000, [1, 0, 99, 400, 500], 300, seed=3)
        np.testing.assert_allclose(out[:, 2:].sum(axis=1), out[:, 1], atol=1e-9)
        assert np.all(out[:, 3] == 0)  # the part of no pulls
        if arm == problem.best_arm:
            assert np.all(out[:, 1:] == 0)


def test_parts_of_bernoulli_sums_are_possible() -> None:
    """One pull costs 1, gains 1, or neither; and a pull of the whole can't do both."""
    problem = PROBLEMS["bernoulli with ties"]
    for arm in range(problem.arms):
        out = tallies(problem, arm, 5, [1] * 5, 2000, seed=1)
        assert np.isin(out[:, 2:], (-1, 0, 1)).all()
        gains = np.sum(out[:, 2:] == -1, axis=1)
        assert np.all(gains <= out[:, 0])  # each gain is a reward of 1


@pytest.mark.parametrize("problem", [rank1.spike(3, 4, 0.3, 0.5, 0.4, 0.2), PROBLEMS["stars"]])
def test_interpreted_and_compiled_sums_agree(problem: Any) -> None:
    arm = problem.arms - 1
    compiled = tallies(problem, arm, 300, [50, 100], 50, seed=4)
    law, rng, other = problem.law, np.random.default_rng(4), np.random.default_rng(4 + 10**6)
    room = np.zeros(law.tally_size)
    for k in range(50):
        assert law.tally(arm, 300, rng, room) == tuple(compiled[k, :2])
        assert law.split(arm, 300, 50, other, room) == compiled[k, 2]
        assert law.split(arm, 250, 100, other, room) == compiled[k, 3]


TWO_SIDED = {name: one for name, one in SUMS.items() if len(one.grid.sizes) == 2}


@pytest.mark.parametrize("problem", TWO_SIDED.values(), ids=TWO_SIDED)
def test_twins_have_the_same_law_and_the_best_line_has_none(problem: Any) -> None:
    law = problem.law
    for axis, (twin, best) in enumerate(
        zip((law.row_twin, law.column_twin), problem.best_pair, strict=True)
    ):
        assert [k for k in range(len(twin)) if twin[k] == best] == [best]
        for line, other in enumerate(twin):
            assert twin[other] == other
            for across in range(problem.means.shape[1 - axis]):
                pairs = [(k, across) if axis == 0 else (across, k) for k in (line, other)]
                both = (moments(problem, problem.grid.arm(pair)) for pair in pairs)
                for ours, theirs in zip(*both, strict=True):
                    np.testing.assert_array_equal(ours, theirs)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.data())
def test_twins_are_all_lines_of_a_mean_but_the_best(values: list[int], data: Any) -> None:
    best = data.draw(st.sampled_from([k for k, x in enumerate(values) if x == max(values)]))
    twin = twins(np.array(values) / 3, best)
    for k, x in enumerate(values):
        alike = [i for i, y in enumerate(values) if y == x and i != best]
        assert twin[k] == (best if k == best else alike[0])


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
        out = draws(problem, 2 * row + column, DRAWS, seed=3)
        for (reward, regret), p in exact.items():
            seen = np.mean((out[:, 0] == reward) & (out[:, 1] == regret))
            assert abs(seen - p) <= 4.5 * math.sqrt(p * (1 - p) / DRAWS) + 1e-12


def test_correlated_rows_are_correlated() -> None:
    """Rows that always move together never differ, so the realised regret has one sign."""

    def rows(size: int, rng: np.random.Generator) -> Any:
        return rng.random((size, 1)) * np.array([[1.0, 0.5]])

    problem = rank1.Factors(rank1.Sampler(rows, mean=[0.5, 0.25]), [rank1.Beta(1, 1)])
    out = draws(problem, 1, DRAWS, seed=1)
    np.testing.assert_allclose(out[:, 1], out[:, 0])  # u* v − u*/2·v = the reward itself
    assert out[:, 1].mean() == pytest.approx(0.125, abs=4 * out[:, 1].std() / 200)


def test_scipy_laws() -> None:
    problem = rank1.Factors([stats.beta(2, 5), stats.uniform(0, 0.5)], [stats.bernoulli(0.3)])
    np.testing.assert_allclose(problem.u, [2 / 7, 0.25])
    out = draws(problem, 0, DRAWS, seed=1)
    assert abs(out[:, 0].mean() - 0.6 / 7) < 4.5 * out[:, 0].std() / 200
