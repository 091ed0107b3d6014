"""OSUB against all indices in every step."""

from __future__ import annotations

import numpy as np
import pytest

import rank1
from rank1.policies import Known, ask, tell
from rank1.testing import play_compiled, play_plain
from tests.policies.test_thompson import MOST_PROBLEMS
from tests.support import few, literal_of, play_policy


@pytest.mark.parametrize("policy", [rank1.OSUB(), rank1.OSUB(0.0), rank1.OSUB(level="leader")])
@MOST_PROBLEMS
def test_makes_the_literal_choices(problem: rank1.Problem, policy: rank1.OSUB) -> None:
    n = 10_000
    expected, rewards = play_compiled(literal_of(policy, problem, n), problem, n, seed=3)
    pairs, got, _ = play_policy(policy, problem, n, seed=3)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(got, rewards)


@pytest.mark.parametrize("n", few([20_000, 100_000], 1))
def test_makes_the_literal_choices_for_long(n: int) -> None:
    problem = rank1.spike(8, 8, 0.7, 0.7, 0.2, 0.2)
    literal = literal_of(rank1.OSUB(), problem, n)
    expected, _ = play_compiled(literal, problem, n, seed=4)
    pairs, _, _ = play_policy(rank1.OSUB(), problem, n, seed=4)
    np.testing.assert_array_equal(pairs, expected)


def test_the_literal_version_is_the_same_in_plain_python() -> None:
    problem, n = rank1.spike(3, 4, 0.5, 0.5, 0.3, 0.3), 1_000
    expected, _ = play_plain(literal_of(rank1.OSUB(), problem, n), problem, n, seed=2)
    pairs, _, _ = play_policy(rank1.OSUB(), problem, n, seed=2)
    np.testing.assert_array_equal(pairs, expected)


@pytest.mark.validate
def test_regret_is_that_of_an_independent_implementation() -> None:
    """677 ± 21 over 10 runs."""
    problem = rank1.spike(8, 8, 0.7, 0.7, 0.2, 0.2)
    result = rank1.simulate(rank1.OSUB(), problem, n=2_000_000, runs=10, seed=1)
    regret = result["osub"].expected[:, -1]
    assert abs(regret.mean() - 677) <= 4 * np.hypot(21, regret.std(ddof=1) / np.sqrt(10))


def test_settings_and_range_are_checked() -> None:
    with pytest.raises(ValueError, match=r"c must be a number of at least 0 .*got -1"):
        rank1.OSUB(c=-1)
    with pytest.raises(ValueError, match="level must be one of time, leader, got 'led'"):
        rank1.OSUB(level="led")
    with pytest.raises(ValueError, match=r"rewards must be in \[0, 1\] for osub"):
        rank1.OSUB().start(Known(2, 2, 10, high=2.0))


def test_late_rewards() -> None:
    """Each arm is issued once; then the reported ones alone can be played."""
    state, rng = rank1.OSUB().start(Known(2, 3, 100)), np.random.default_rng(1)
    pulls = [ask(state, rng) for _ in range(6)]
    assert [pull.arm for pull in pulls] == list(range(6))
    # Nothing is known: go on in order.
    assert [ask(state, rng).arm for _ in range(7)] == [*range(6), 0]
    assert state.best() == 0
    # The leader, arm 1, and no other arm has a report.
    tell(state, pulls[1], 0.5)
    assert {ask(state, rng).arm for _ in range(10)} == {1}
    # A pull of the first round that is given back is issued again, a later one isn't.
    state = state.forget(*pulls[4])
    again = ask(state, rng)
    assert again == pulls[4]
    later = ask(state, rng)
    assert later.tag == 0
    state = state.forget(*later)
    assert ask(state, rng).arm == 1
