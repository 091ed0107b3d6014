"""Thompson sampling against one Beta sample of every pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

import rank1
from rank1.compiled import kernel
from rank1.policies.base import Known, choose
from rank1.testing import play_plain
from tests.policies.test_betas import assert_frequencies, chances
from tests.support import few, literal_of, others_uncompiled, play_policy, start

PROBLEMS = [
    rank1.spike(4, 6, 0.3, 0.5, 0.6, 0.45),
    rank1.Bernoulli([0.9, 0.9, 0.1], [0.8, 0.2, 0.8, 0.1]),  # ties for the best pair
    rank1.Bernoulli([0.7], [0.9, 0.2]),
    rank1.Bernoulli([0.9, 0.1, 0.4], [1.0]),
    rank1.Bernoulli([0.6], [0.5]),
    rank1.Bernoulli([0.0, 0.0], [0.0, 0.0]),
    rank1.Bernoulli([1.0, 0.0], [1.0, 1.0]),
    rank1.Categorical(
        [0.0, 0.25, 1.0], np.random.default_rng(5).dirichlet([1, 1, 1], size=(3, 5))
    ),  # the Bernoulli trick
]
EVERY_PROBLEM = pytest.mark.parametrize(
    "problem",
    others_uncompiled(PROBLEMS),
    ids=lambda problem: f"{problem.description['name']}{problem.K}x{problem.L}",
)
#: For what is compiled twice: the problem with a law of its own is for `make validate`.
MOST_PROBLEMS = pytest.mark.parametrize(
    "problem",
    few(PROBLEMS, 7),
    ids=lambda problem: f"{problem.description['name']}{problem.K}x{problem.L}",
)
#: For what takes long.
SOME_PROBLEMS = pytest.mark.parametrize(
    "problem",
    few(PROBLEMS, 0),
    ids=lambda problem: f"{problem.description['name']}{problem.K}x{problem.L}",
)


@dataclass(frozen=True)
class PlainThompson(rank1.ThompsonSampling):
    """The first window, in which every arm is drawn, never ends."""

    def start(self, known: Known) -> Any:
        state = super().start(known)
        state.level[0].left = state.level[0].first = 2**62
        return state


def assert_same_regret(fast: rank1.Policy, plain: rank1.Policy, problem: rank1.Problem) -> None:
    """Means within 4 standard errors and one distribution, early and at the end."""
    n, runs = 3000, 300
    # Policies of one name and one seed would share their stream, so the seeds differ.
    one = rank1.simulate(fast, problem, n=n, runs=runs, seed=1).outcomes[0].expected
    two = rank1.simulate(plain, problem, n=n, runs=runs, seed=2).outcomes[0].expected
    for step in (3, -1):
        a, b = one[:, step], two[:, step]
        assert abs(a.mean() - b.mean()) <= 4 * np.sqrt((a.var() + b.var()) / runs)
        assert stats.ks_2samp(a, b).pvalue > 1e-3


@EVERY_PROBLEM
def test_the_plain_way_makes_the_literal_choices(problem: rank1.Problem) -> None:
    n = 3000
    policy = PlainThompson()
    expected, rewards = play_plain(literal_of(policy, problem, n), problem, n, seed=3)
    pairs, got, _ = play_policy(policy, problem, n, seed=3)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(got, rewards)


@SOME_PROBLEMS
def test_regret_has_the_law_of_the_plain_way(problem: rank1.Problem) -> None:
    assert_same_regret(rank1.ThompsonSampling(), PlainThompson(), problem)


def ask_only(state: Any, rng: Any, chosen: Any) -> None:
    for k in range(len(chosen)):
        chosen[k], _ = choose(state, rng)


@pytest.mark.parametrize("n", few([1000, 0, 100, 20_000], 1))
def test_choices_have_their_exact_law_after_a_run(n: int) -> None:
    """With levels and windows as they come about."""
    problem = rank1.spike(6, 5, 0.5, 0.6, 0.2, 0.2)
    if n == 0:
        state = start(rank1.ThompsonSampling(), problem, 1)
    else:
        _, _, state = play_policy(rank1.ThompsonSampling(), problem, n, seed=1)
    chosen = np.zeros(200_000, np.int64)
    kernel(ask_only, state)(state, np.random.default_rng(2), chosen)
    arms = tuple(zip(state.successes.tolist(), state.failures.tolist(), strict=True))
    assert_frequencies(chosen, chances(arms))


def test_few_samples_are_drawn() -> None:
    """In a grid of 1024 pairs after 50,000 steps: one arm always, others with a chance in all."""
    problem = rank1.spike(32, 32, 0.7, 0.7, 0.2, 0.2)
    _, _, state = play_policy(rank1.ThompsonSampling(), problem, 50_000, seed=1)
    always = np.isinf(state.rates)
    assert 1 <= always.sum() <= 3
    assert state.rates[~always].sum() < 5


@pytest.mark.validate
def test_regret_is_that_of_an_independent_implementation() -> None:
    """915 ± 14 over 10 runs."""
    problem = rank1.spike(8, 8, 0.7, 0.7, 0.2, 0.2)
    result = rank1.simulate(rank1.ThompsonSampling(), problem, n=2_000_000, runs=20, seed=1)
    regret = result["thompson"].expected[:, -1]
    assert abs(regret.mean() - 915) <= 4 * np.hypot(14, regret.std(ddof=1) / np.sqrt(20))


def test_needs_rewards_in_the_unit_interval() -> None:
    with pytest.raises(ValueError, match=r"rewards must be in \[0, 1\] for thompson.*rank1elim"):
        rank1.ThompsonSampling().start(Known(2, 2, 10, low=-1.0))


def test_recommends_by_posterior_mean() -> None:
    state = rank1.ThompsonSampling().start(Known(1, 3, 10))
    assert state.best() == 0
    state.successes[1], state.successes[2], state.failures[2] = 1, 50, 1
    assert state.best() == 2  # 51/53 > 2/3, though 50/51 < 1
