"""GLM-UCB against its definition, and its regret."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rank1
from rank1.testing import play_plain
from tests.policies.test_linucb import PROBLEMS, THREE_VALUES, name
from tests.support import few, literal_of, others_uncompiled, play_policy


@pytest.mark.parametrize("n", few([1000, 2000], 1))
@pytest.mark.parametrize("scale", [1, 0.01, 0.001])
@pytest.mark.parametrize(
    "problem", others_uncompiled(p for p in PROBLEMS if p.sigma == 0), ids=name
)
def test_makes_the_choices_of_the_definition(problem: rank1.Problem, scale: float, n: int) -> None:
    policy = rank1.GLMUCB(scale, c_mu=0.1, step=0.7)
    literal = literal_of(policy, problem, n)
    expected, rewards = play_plain(literal, problem, n, seed=1)
    pairs, got, state = play_policy(policy, problem, n, seed=1)
    # All means here fall to 0 together, and come to lie within a rounding error of each other.
    same = 300 if problem.best_mean == 0 else n
    np.testing.assert_array_equal(pairs[:same], expected[:same])
    if same == n:
        np.testing.assert_array_equal(got, rewards)
        both = np.concatenate([literal.u, literal.v])
        np.testing.assert_allclose(state.estimate, both, rtol=1e-12)


@pytest.mark.parametrize(
    "problem", others_uncompiled([PROBLEMS[0], PROBLEMS[4], THREE_VALUES]), ids=name
)
def test_every_choice_has_the_largest_index(problem: rank1.Problem) -> None:
    n = 4_000
    policy = rank1.GLMUCB(0.01, 0.1)
    pairs, rewards, _ = play_policy(policy, problem, n, seed=2)
    literal = literal_of(policy, problem, n)
    for arm, reward in zip(pairs.tolist(), rewards.tolist(), strict=True):
        means, bonuses = literal.means_and_bonuses()
        indices = means + bonuses
        assert indices.flat[arm] >= indices.max() * (1 - 1e-9)
        literal.update(arm, 0, reward)


@pytest.mark.parametrize(
    ("scale", "runs", "mean", "se"), [(1, 2, 601_900, 100), (0.01, 4, 38_200, 200)]
)
@pytest.mark.validate
def test_regret_is_that_of_an_independent_implementation(
    scale: float, runs: int, mean: float, se: float
) -> None:
    """Reference figures of 20 runs; ours are fewer, and their standard error larger."""
    problem = rank1.spike(16, 16, 0.7, 0.7, 0.2, 0.2)
    policy = rank1.GLMUCB(confidence_scale=scale)
    result = rank1.simulate(policy, problem, 2_000_000, runs, seed=1, jobs=2)
    regret = result.outcomes[0].expected[:, -1].mean()
    assert abs(regret - mean) <= 4 * se * math.sqrt(1 + 20 / runs)


@pytest.mark.parametrize("n", [50, 2_000_000])
def test_radius(n: int) -> None:
    state = rank1.GLMUCB(confidence_scale=0.5, c_mu=0.49).start(rank1.Known(16, 16, n))
    kappa = math.sqrt(3 + 2 * math.log(5))
    rho = 2 * kappa / 0.49 * math.sqrt(2 * 32 * math.log(n) * math.log(2 * 32 * n * n))
    assert state.settings[0].radius == pytest.approx(0.5 * rho, rel=1e-14)


def test_c_mu_comes_from_the_problem() -> None:
    problem = rank1.spike(3, 3, 0.7, 0.7, 0.2, 0.2)
    given, known = (
        play_policy(rank1.GLMUCB(0.01, c_mu), problem, 2000, seed=1)[0] for c_mu in (0.49, None)
    )
    np.testing.assert_array_equal(given, known)


def test_a_failure_where_both_factors_are_thought_to_be_1() -> None:
    state = rank1.GLMUCB(c_mu=0.1, step=0.05).start(rank1.Known(1, 1, 1000))
    rng = np.random.default_rng(1)
    for _ in range(99):
        rank1.tell(state, rank1.ask(state, rng), 1.0)
    assert state.estimate.tolist() == [1, 1]
    rank1.tell(state, rank1.ask(state, rng), 0.0)
    assert state.estimate.tolist() == pytest.approx([1 - 101**-0.05 / 2] * 2)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            rank1.Bernoulli([0.5, 0], [0.5]),
            "c_mu must be given for glm_ucb, got None: .* is 0 here",
        ),
        (
            rank1.Gaussian([0.5], [0.5], 0.1),
            r"rewards must be in \[0, 1\] for glm_ucb, got \[-inf, inf\]",
        ),
    ],
    ids=["zero", "gaussian"],
)
def test_problems_it_cannot_play(problem: rank1.Problem, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rank1.simulate(rank1.GLMUCB(), problem, 100, 1)


def test_c_mu_must_be_known_somehow() -> None:
    with pytest.raises(
        ValueError, match=r"c_mu must be given for glm_ucb, .* only known to simulations; set a num"
    ):
        rank1.GLMUCB().start(rank1.Known(2, 2, 100))
    with pytest.raises(ValueError, match=r"c_mu must be a number of at least 1e-09 .*got 0"):
        rank1.GLMUCB(c_mu=0)
    with pytest.raises(ValueError, match="step must be a number above 0 and at most 1, got 2"):
        rank1.GLMUCB(step=2)
