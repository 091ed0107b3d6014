"""TopTwo against all challengers in every step."""

from __future__ import annotations

import numpy as np
import pytest

import rank1
from rank1.policies import Known, Pull, ask, tell
from rank1.testing import play_compiled, play_plain
from tests.policies.late import assert_same_choices, fold_of, issue, load, state_bytes
from tests.policies.test_thompson import EVERY_PROBLEM
from tests.support import literal_of, play_policy, start


@pytest.mark.parametrize("share", [None, 0.5, 0.93])
@EVERY_PROBLEM
def test_makes_the_literal_choices(problem: rank1.Problem, share: float | None) -> None:
    n = 10_000
    policy = rank1.TopTwo(share=share)
    expected, rewards = play_compiled(literal_of(policy, problem, n), problem, n, seed=3)
    pairs, got, _ = play_policy(policy, problem, n, seed=3)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(got, rewards)


@pytest.mark.parametrize("K", [8, 20])
def test_makes_the_literal_choices_for_long(K: int) -> None:
    problem, n = rank1.spike(K, K, 0.5, 0.5, 0.2, 0.2), 200_000
    expected, _ = play_compiled(literal_of(rank1.TopTwo(), problem, n), problem, n, seed=4)
    pairs, _, _ = play_policy(rank1.TopTwo(), problem, n, seed=4)
    np.testing.assert_array_equal(pairs, expected)


def test_makes_the_literal_choices_where_leaders_keep_changing() -> None:
    problem, n = rank1.Bernoulli([0.5, 0.49, 0.5], [0.8, 0.8, 0.79, 0.8]), 50_000
    expected, _ = play_compiled(literal_of(rank1.TopTwo(), problem, n), problem, n, seed=5)
    pairs, _, _ = play_policy(rank1.TopTwo(), problem, n, seed=5)
    np.testing.assert_array_equal(pairs, expected)


def test_the_literal_version_is_the_same_in_plain_python() -> None:
    problem, n = rank1.spike(3, 4, 0.5, 0.5, 0.3, 0.3), 1_000
    expected, _ = play_plain(literal_of(rank1.TopTwo(), problem, n), problem, n, seed=2)
    pairs, _, _ = play_policy(rank1.TopTwo(), problem, n, seed=2)
    np.testing.assert_array_equal(pairs, expected)


@pytest.mark.parametrize("seed", range(6))
@EVERY_PROBLEM
def test_makes_the_literal_choices_with_late_and_missing_rewards(
    problem: rank1.Problem, seed: int
) -> None:
    assert_same_choices(rank1.TopTwo(), problem, 1500, seed)


@pytest.mark.parametrize("seed", range(3))
def test_a_log_gives_the_state_that_choosing_gave(seed: int) -> None:
    problem = rank1.spike(4, 5, 0.4, 0.5, 0.3, 0.3)
    chosen, folded = fold_of(rank1.TopTwo(), problem, 1500, seed)
    assert state_bytes(chosen) == state_bytes(folded)


def test_the_leader_has_its_share_of_pulls() -> None:
    """Once the leader stays, ⌊β·ℓ⌋ of the ℓ times that it has led."""
    problem, n = rank1.spike(5, 6, 0.5, 0.5, 0.4, 0.4), 20_000
    for share in (None, 0.5, 0.3):
        pairs, _, state = play_policy(rank1.TopTwo(share=share), problem, n, seed=1)
        beta = 1 / (1 + 3) if share is None else share  # √(5 + 6 − 2) = 3
        half = pairs[n // 2 :]
        assert abs(np.mean((half == 0).all(axis=1)) - beta) <= 2 / len(half)
        assert np.all((half == 0).any(axis=1))
        assert state.best() == (0, 0)
        assert int(state.led.sum()) == n - 30


def test_evidence_against_all_challengers_is_alike() -> None:
    """What the policy is for: W + log N within what a few rewards change, whatever the gaps."""
    from rank1.theory import kl_bernoulli

    problem, n = rank1.Bernoulli([0.9, 0.7, 0.4, 0.1], [0.9, 0.8, 0.5]), 50_000
    state = play_policy(rank1.TopTwo(), problem, n, seed=1)[2]
    N, mu = state.pulls.reshape(4, 3), (state.sums / state.reports).reshape(4, 3)
    near = [(1, 0), (2, 0), (3, 0), (0, 1), (0, 2)]
    index = []
    for b in near:
        m = (N[0, 0] * mu[0, 0] + N[b] * mu[b]) / (N[0, 0] + N[b])
        W = N[0, 0] * kl_bernoulli(mu[0, 0], m) + N[b] * kl_bernoulli(mu[b], m)
        index.append(W + np.log(N[b]))
    assert max(index) - min(index) < 5 < 100 < min(index)
    assert N[0, 1] > 2 * N[0, 2]  # the closer one needs more


def test_known_counts_are_those_of_reported_pulls() -> None:
    """Loaded pairs were issued: the first round has the others."""
    policy, problem = rank1.TopTwo(), rank1.spike(3, 4, 0.4, 0.5, 0.3, 0.3)
    state = play_policy(policy, problem, 500, seed=1)[2]
    loaded = start(policy, problem, 500)
    for k in range(12):
        load(loaded, k // 4, k % 4, int(state.reports[k]), float(state.sums[k]))
    load(loaded, 0, 0, 0, 0.0)
    assert loaded.best() == state.best()
    np.testing.assert_array_equal(loaded.pulls, state.pulls)
    loaded.led[:] = state.led
    rng = np.random.default_rng(1)
    assert [ask(loaded, rng) for _ in range(30)] == [ask(state, rng) for _ in range(30)]

    partly = start(policy, problem, 500)
    load(partly, 0, 0, 10, 7.5)
    load(partly, 1, 2, 4, 1.25)
    first = [ask(partly, rng)[:2] for _ in range(10)]
    assert first == [(k // 4, k % 4) for k in range(12) if k not in (0, 6)]
    assert partly.best() == (0, 0)


def test_any_pull_may_be_issued() -> None:
    """Also one that the policy would not have chosen, at any time and with any tag."""
    state, rng = rank1.TopTwo().start(Known(3, 3, 100)), np.random.default_rng(1)
    for _ in range(5):
        issue(state, Pull(2, 2, 12345))
    assert [ask(state, rng)[:2] for _ in range(8)] == [(k // 3, k % 3) for k in range(8)]
    for k in range(9):
        tell(state, Pull(k // 3, k % 3, 0), float(k == 4))
    for _ in range(200):
        issue(state, Pull(int(rng.integers(3)), int(rng.integers(3)), -1))
    assert state.best() == (1, 1)
    assert int(state.pulls.sum()) == 213
    row, column, _ = ask(state, rng)
    assert row == 1 or column == 1


def test_late_rewards() -> None:
    """Each pair is issued once; pending pulls count for who is next, and not for who leads."""
    state, rng = rank1.TopTwo().start(Known(2, 3, 100)), np.random.default_rng(1)
    pulls = [ask(state, rng) for _ in range(6)]
    assert [pull[:2] for pull in pulls] == [(i, j) for i in range(2) for j in range(3)]
    # Nothing is known: go on in order.
    assert [ask(state, rng)[:2] for _ in range(7)] == [*(pull[:2] for pull in pulls), (0, 0)]
    assert state.best() == (0, 0)
    tell(state, pulls[1], 0.0)
    assert state.best() == (0, 1)
    # β is 1/(1 + √3): every third time the leader, else the least pulled of its row and column.
    assert [ask(state, rng)[:2] for _ in range(6)] == [
        (0, 2), (1, 1), (0, 1), (0, 0), (0, 2), (0, 1),
    ]  # fmt: skip
    # A pair whose only pull is given back is issued again; else a pull merely counts no more.
    fresh = rank1.TopTwo().start(Known(2, 2, 100))
    pulls = [ask(fresh, rng) for _ in range(4)]
    tell(fresh, pulls[0], 1.0)
    fresh = fresh.forget(*pulls[2])
    assert ask(fresh, rng)[:2] == (1, 0)
    later = ask(fresh, rng)
    fresh = fresh.forget(*later)
    assert fresh.pulls.tolist() == [1, 1, 1, 1]


def test_settings_and_range_are_checked() -> None:
    for share in (0, 1, -0.5, 2, float("nan")):
        with pytest.raises(rank1.InputError, match=f"share must be a number above 0 .*{share}"):
            rank1.TopTwo(share=share)
    with pytest.raises(ValueError, match=r"top_two needs rewards in \[0, 1\]"):
        rank1.TopTwo().start(Known(2, 2, 10, high=2.0))
    assert rank1.TopTwo().label == "top_two"
    assert rank1.TopTwo(share=0.5).label == "top_two:share=0.5"
