"""Policies on grids of any number of sides: literal choices, neighbours and regret."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rank1
from rank1.policies import Known, Policy
from rank1.policies.neighbours import gather
from rank1.testing import play_plain
from tests.policies.late import assert_same_choices
from tests.policies.test_thompson import PlainThompson
from tests.policies.test_uts import PlainUTS
from tests.support import few, literal_of, play_policy

PROBLEMS = [
    rank1.Product([[0.9, 0.5], [0.6, 0.7, 0.95], [0.8, 0.4]]),
    rank1.Product([[0.3, 0.7, 0.6, 0.65]]),
    rank1.Product([[0.9, 0.6], [0.9, 0.8], [0.5, 0.7], [1.0, 0.9, 0.4]]),
    rank1.Product([[0.9, 0.9], [0.8, 0.8, 0.8], [0.5, 0.5]]),  # ties all the way
    rank1.Means(np.random.default_rng(1).uniform(size=(3, 2, 3))),
    rank1.Product([[0.5], [0.2, 0.8], [0.7]]),
]
POLICIES = [
    rank1.UCB1(),
    rank1.KLUCB(),
    PlainThompson(),
    PlainUTS(),
    PlainUTS(math.inf, first_round=False),
    rank1.FactorTS(),
    rank1.OSUB(),
    rank1.OSUB(0.0, "leader"),
    rank1.IMEDUB(),
    rank1.TopTwo(),
    rank1.TopTwo(share=0.4),
]
EVERY_PROBLEM = pytest.mark.parametrize(
    "problem", PROBLEMS, ids=lambda problem: f"{problem.description['name']} {problem.grid}"
)


@pytest.mark.uncompiled
@pytest.mark.parametrize("n", few([150, 800], 1))
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.label)
@EVERY_PROBLEM
def test_makes_the_literal_choices(problem: rank1.Problem, policy: Policy, n: int) -> None:
    literal = literal_of(policy, problem, n)
    expected, rewards = play_plain(literal, problem, n, seed=3)
    arms, got, state = play_policy(policy, problem, n, seed=3)
    np.testing.assert_array_equal(arms, expected)
    np.testing.assert_array_equal(got, rewards)
    if hasattr(literal, "led"):
        assert state.led.tolist() == literal.led.tolist()


@pytest.mark.uncompiled
@pytest.mark.parametrize("n", few([300, 800], 1))
@pytest.mark.parametrize("policy", [rank1.IMEDUB(), rank1.TopTwo()], ids=lambda p: p.name)
@EVERY_PROBLEM
def test_makes_the_literal_choices_with_late_and_missing_rewards(
    problem: rank1.Problem, policy: Policy, n: int
) -> None:
    assert_same_choices(policy, problem, n, seed=5)


@pytest.mark.parametrize("sizes", [(1,), (5,), (3, 4), (1, 3, 1), (2, 3, 4), (2, 1, 3, 2)])
def test_neighbours_have_one_level_changed(sizes: tuple[int, ...]) -> None:
    """In ascending order, around one leader after another."""
    known = Known(sides=sizes, n=10)
    state = rank1.OSUB().start(known)
    for leader in np.random.default_rng(1).integers(known.arms, size=30).tolist():
        gather(state.limits, state.at, state.arms, state.slot, leader)
        near = sorted([leader, *known.grid.neighbours(leader).tolist()])
        assert state.arms.tolist() == near
        assert np.nonzero(state.slot >= 0)[0].tolist() == near
        assert state.slot[near].tolist() == list(range(len(near)))


def spike(levels: int, sides: int, best: float, other: float) -> rank1.Product:
    return rank1.Product([[best, *[other] * (levels - 1)]] * sides)


CUBE, FOUR = spike(5, 3, 0.8, 0.6), spike(4, 4, 0.85, 0.65)


@pytest.mark.validate
@pytest.mark.parametrize(
    ("policy", "problem", "mean", "error"),
    [
        (rank1.UTS(), CUBE, 354, 12),
        (rank1.ThompsonSampling(), CUBE, 1681, 30),
        (rank1.UCB1(), CUBE, 8174, 20),
        (rank1.UTS(), FOUR, 515, 20),
        (rank1.ThompsonSampling(), FOUR, 3078, 40),
        (rank1.UCB1(), FOUR, 12014, 25),
    ],
    ids=str,
)
def test_regret_is_that_of_an_independent_implementation(
    policy: Policy, problem: rank1.Product, mean: float, error: float
) -> None:
    """At 50,000 steps, within four standard errors of the difference."""
    runs = 40
    result = rank1.simulate(policy, problem, n=50_000, runs=runs, seed=1, checkpoints=1)
    regret = result.outcomes[0].expected[:, -1]
    own = regret.std(ddof=1) / math.sqrt(runs)
    assert abs(regret.mean() - mean) <= 4 * math.hypot(own, error), (regret.mean(), own)


@pytest.mark.uncompiled
@pytest.mark.parametrize("policy", [rank1.UTS(), rank1.OSUB(), rank1.IMEDUB(), rank1.TopTwo()])
def test_finds_the_best_of_many_arms_by_neighbours(policy: Policy) -> None:
    """256 arms, of which 13 are compared with a leader."""
    problem = rank1.Product([[0.9, 0.4, 0.3, 0.5]] * 4)
    result = rank1.simulate(policy, problem, n=3000, runs=1, seed=1, checkpoints=1)
    assert result.outcomes[0].best_arms == [(0, 0, 0, 0)]
