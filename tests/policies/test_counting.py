"""What IMED-UB and TopTwo have in common: literal choices, and pulls that wait for their reward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rank1
from rank1.policies import Known, Policy, Pull, ask, tell
from rank1.testing import play_compiled, play_plain
from tests.policies.late import assert_same_choices, fold_of, issue, load, state_bytes
from tests.policies.test_thompson import EVERY_PROBLEM, MOST_PROBLEMS
from tests.support import few, literal_of, play_policy, start

BOTH = pytest.mark.parametrize("policy", [rank1.IMEDUB(), rank1.TopTwo()], ids=lambda p: p.name)


@pytest.mark.parametrize(
    "policy",
    [rank1.IMEDUB(), rank1.TopTwo(), rank1.TopTwo(share=0.5), rank1.TopTwo(share=0.93)],
    ids=lambda p: p.label,
)
@MOST_PROBLEMS
def test_makes_the_literal_choices(policy: Policy, problem: rank1.Problem) -> None:
    n = 10_000
    expected, rewards = play_compiled(literal_of(policy, problem, n), problem, n, seed=3)
    pairs, got, _ = play_policy(policy, problem, n, seed=3)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(got, rewards)


@pytest.mark.parametrize("K", few([8, 20], 1))
@BOTH
def test_makes_the_literal_choices_for_long(policy: Policy, K: int) -> None:
    problem, n = rank1.spike(K, K, 0.5, 0.5, 0.2, 0.2), 200_000
    expected, _ = play_compiled(literal_of(policy, problem, n), problem, n, seed=4)
    pairs, _, _ = play_policy(policy, problem, n, seed=4)
    np.testing.assert_array_equal(pairs, expected)


@BOTH
def test_makes_the_literal_choices_where_leaders_keep_changing(policy: Policy) -> None:
    problem, n = rank1.Bernoulli([0.5, 0.49, 0.5], [0.8, 0.8, 0.79, 0.8]), 50_000
    expected, _ = play_compiled(literal_of(policy, problem, n), problem, n, seed=5)
    pairs, _, _ = play_policy(policy, problem, n, seed=5)
    np.testing.assert_array_equal(pairs, expected)


@BOTH
def test_the_literal_version_is_the_same_in_plain_python(policy: Policy) -> None:
    problem, n = rank1.spike(3, 4, 0.5, 0.5, 0.3, 0.3), 1_000
    expected, _ = play_plain(literal_of(policy, problem, n), problem, n, seed=2)
    pairs, _, _ = play_policy(policy, problem, n, seed=2)
    np.testing.assert_array_equal(pairs, expected)


@pytest.mark.parametrize("seed", few(range(6), 1))
@EVERY_PROBLEM
@BOTH
def test_makes_the_literal_choices_with_late_and_missing_rewards(
    policy: Policy, problem: rank1.Problem, seed: int
) -> None:
    assert_same_choices(policy, problem, 700, seed)


@pytest.mark.uncompiled
@pytest.mark.parametrize("seed", few(range(3), 1))
@BOTH
def test_a_log_gives_the_state_that_choosing_gave(policy: Policy, seed: int) -> None:
    problem = rank1.spike(4, 5, 0.4, 0.5, 0.3, 0.3)
    chosen, folded = fold_of(policy, problem, 1500, seed)
    assert state_bytes(chosen) == state_bytes(folded)


@pytest.mark.uncompiled
@BOTH
def test_known_counts_are_those_of_reported_pulls(policy: Policy) -> None:
    """Loaded arms were issued: the first round has the others."""
    problem = rank1.spike(3, 4, 0.4, 0.5, 0.3, 0.3)
    state = play_policy(policy, problem, 500, seed=1)[2]
    loaded = start(policy, problem, 500)
    for k in range(12):
        load(loaded, k, int(state.reports[k]), float(state.sums[k]))
    load(loaded, 0, 0, 0.0)
    assert loaded.best() == state.best()
    np.testing.assert_array_equal(loaded.pulls, state.pulls)
    if hasattr(state, "led"):  # how often an arm has led isn't told by counts
        loaded.led[:] = state.led
    rng = np.random.default_rng(1)
    assert [ask(loaded, rng) for _ in range(30)] == [ask(state, rng) for _ in range(30)]

    partly = start(policy, problem, 500)
    load(partly, 0, 10, 7.5)
    load(partly, 6, 4, 1.25)
    first = [ask(partly, rng).arm for _ in range(10)]
    assert first == [k for k in range(12) if k not in (0, 6)]
    assert partly.best() == 0


@pytest.mark.uncompiled
@BOTH
def test_any_pull_may_be_issued(policy: Policy) -> None:
    """Also one that the policy would not have chosen, at any time and with any tag."""
    state: Any = policy.start(Known(3, 3, 100))
    rng = np.random.default_rng(1)
    for _ in range(5):
        issue(state, Pull(8, 12345))
    assert [ask(state, rng).arm for _ in range(8)] == list(range(8))
    for k in range(9):
        tell(state, Pull(k, 0), float(k == 4))
    for _ in range(200):
        issue(state, Pull(int(rng.integers(9)), -1))
    assert state.best() == 4
    assert int(state.pulls.sum()) == 213
    assert ask(state, rng).arm in (1, 3, 4, 5, 7)


@BOTH
def test_a_pull_that_is_given_back(policy: Policy) -> None:
    """An arm whose only pull it was is issued again; else a pull merely counts no more."""
    state: Any = policy.start(Known(2, 2, 100))
    rng = np.random.default_rng(1)
    pulls = [ask(state, rng) for _ in range(4)]
    tell(state, pulls[0], 1.0)
    state = state.forget(*pulls[2])
    assert ask(state, rng).arm == 2
    later = ask(state, rng)
    state = state.forget(*later)
    assert state.pulls.tolist() == [1, 1, 1, 1]
