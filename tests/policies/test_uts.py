"""UTS against all means and all samples in every step."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import rank1
from rank1.compiled import kernel
from rank1.policies import Known, ask, tell
from rank1.policies.base import choose
from rank1.policies.uts import leader_of, make_tag, uniform_of
from rank1.settings import parse_policy
from rank1.testing import check_policy, play_plain, policies
from rank1.tournament import winner
from tests.policies.test_betas import assert_frequencies, chances
from tests.policies.test_thompson import EVERY_PROBLEM, SOME_PROBLEMS, assert_same_regret
from tests.support import few, literal_of, play_policy


@dataclass(frozen=True)
class PlainUTS(rank1.UTS):
    """The first window, in which every arm is drawn, never ends."""

    def start(self, known: Known) -> Any:
        state = super().start(known)
        state.level[0].left = state.level[0].first = 2**62
        return state


@pytest.mark.parametrize("n", few([300, 1500, 5000], 1))
@pytest.mark.parametrize("first_round", [True, False])
@pytest.mark.parametrize("gamma", [2, 5, math.inf])
@EVERY_PROBLEM
def test_the_plain_way_makes_the_literal_choices(
    problem: rank1.Problem, gamma: float, first_round: bool, n: int
) -> None:
    policy = PlainUTS(gamma, first_round)
    literal = literal_of(policy, problem, n)
    expected, rewards = play_plain(literal, problem, n, seed=3)
    pairs, got, state = play_policy(policy, problem, n, seed=3)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(got, rewards)
    assert state.led.tolist() == literal.led.tolist()


@SOME_PROBLEMS
def test_regret_has_the_law_of_the_plain_way(problem: rank1.Problem) -> None:
    assert_same_regret(rank1.UTS(), PlainUTS(), problem)


def ask_only(state: Any, rng: Any, chosen: Any) -> None:
    """Every second choice, where an arm that stays the leader is not played itself."""
    for k in range(len(chosen)):
        chosen[k], _ = choose(state, rng)
        choose(state, rng)


@pytest.mark.validate
@pytest.mark.parametrize("n", [1000, 300, 20_000])
def test_choices_have_their_exact_law_after_a_run(n: int) -> None:
    """With levels and windows as they come about."""
    K, L = 6, 9
    _, _, state = play_policy(rank1.UTS(), rank1.spike(K, L, 0.5, 0.6, 0.2, 0.2), n, seed=1)
    assert state.ties[1] == 1
    leader = winner(state.top)
    state.led[leader] = 0
    chosen = np.zeros(200_000, np.int64)
    kernel(ask_only, state)(state, np.random.default_rng(2), chosen)
    row, column = divmod(leader, L)
    near = [k for k in range(K * L) if k // L == row or k % L == column]
    expected = np.zeros(K * L)
    expected[near] = chances(tuple((int(state.successes[k]), int(state.failures[k])) for k in near))
    assert np.all(np.isin(chosen, near))
    assert_frequencies(chosen, expected)


@pytest.mark.validate
def test_regret_is_that_of_an_independent_implementation() -> None:
    """299 ± 7 over 20 runs."""
    problem = rank1.spike(8, 8, 0.7, 0.7, 0.2, 0.2)
    result = rank1.simulate(rank1.UTS(), problem, n=2_000_000, runs=30, seed=1)
    regret = result["uts"].expected[:, -1]
    assert abs(regret.mean() - 299) <= 4 * np.hypot(7, regret.std(ddof=1) / np.sqrt(30))


def test_leads_by_average_rewards_not_by_drawn_successes() -> None:
    """Rewards of 0.6 and 0.5 that are always the same: the first round decides on the leader."""
    state, rng = rank1.UTS().start(Known(2, 2, 100)), np.random.default_rng(1)
    for reward in (0.5, 0.5, 0.6, 0.5):
        tell(state, ask(state, rng), reward)
    assert state.best() == 2


def test_settings_and_range_are_checked() -> None:
    with pytest.raises(ValueError, match=r"gamma must be .* at least 2, or inf, got 1"):
        rank1.UTS(gamma=1)
    with pytest.raises(TypeError, match="first_round must be true or false, got 1"):
        rank1.UTS(first_round=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"rewards must be in \[0, 1\] for uts"):
        rank1.UTS().start(Known(2, 2, 10, low=-np.inf, high=np.inf))


def test_late_rewards() -> None:
    """Each arm is issued once; an arm with no report can be sampled but can't lead."""
    state, rng = rank1.UTS().start(Known(2, 3, 100)), np.random.default_rng(1)
    pulls = [ask(state, rng) for _ in range(6)]
    assert [pull.arm for pull in pulls] == list(range(6))
    # Nothing is known: go on in order.
    assert [ask(state, rng).arm for _ in range(7)] == [*range(6), 0]
    assert state.best() == 0
    tell(state, pulls[1], 0.0)
    assert state.best() == 1
    played = {ask(state, rng).arm for _ in range(100)}
    assert played == {0, 1, 2, 4}
    # A pull of the first round that is given back is issued again, a later one isn't.
    state = state.forget(*pulls[5])
    again = ask(state, rng)
    assert again.arm == 5
    assert again.tag & 1 == 1
    assert ask(state, rng).tag & 1 == 0


OTHERS = pytest.mark.parametrize("policy", [rank1.UTS(math.inf), rank1.UTS(first_round=False)])


@pytest.mark.validate
@OTHERS
def test_the_contract_holds_for_other_settings(policy: rank1.UTS) -> None:
    check_policy(policy)


@OTHERS
def test_settings_can_be_written_and_read(
    policy: rank1.UTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As JSON and on the command line."""
    monkeypatch.setattr(policies, "TRIALS", 4)
    assert rank1.UTS(**json.loads(json.dumps(policy.settings, allow_nan=False))) == policy
    assert parse_policy(policy.label) == policy
    for check in (policies.runs_as_it_is_written, policies.is_the_same_when_it_is_folded):
        check(policy)


def test_without_its_first_round_it_begins_anywhere() -> None:
    """All means are 0: the leader is any arm, the arm played any of its row and column."""
    policy = rank1.UTS(first_round=False)
    firsts = []
    for seed in range(1200):
        state = policy.start(Known(2, 3, 100))
        pull = ask(state, np.random.default_rng(seed))
        assert pull.tag & 1 == 0
        firsts.append(pull.arm)
    counts = np.bincount(firsts, minlength=6)
    assert np.all(abs(counts - 200) <= 4 * np.sqrt(1200 / 6 * 5 / 6))


@pytest.mark.parametrize("first", range(6))
def test_without_its_first_round_an_unplayed_arm_is_not_recommended(first: int) -> None:
    """Whichever arm it begins with: after a failure it is the only one that has a mean."""
    for seed in range(1000):
        state, rng = (
            rank1.UTS(first_round=False).start(Known(2, 3, 100)),
            np.random.default_rng(seed),
        )
        pull = ask(state, rng)
        if pull.arm == first:
            break
    assert pull.arm == first
    tell(state, pull, 0.0)
    assert state.best() == first
    assert state.ties[1] == 6  # but any arm may lead
    tell(state, ask(state, rng), 1.0)
    assert state.ties[1] == 1


def test_a_tag_says_which_arm_led() -> None:
    limits = Known(sides=(3, 4, 5), n=10).limits
    for leader in (0, 17, 59):
        tag = make_tag(1, 12345, leader)
        assert 0 <= tag < 2**63
        assert leader_of(limits, 3, tag) == leader
        assert uniform_of(tag) == 12345
    for tag in (-1, 0, 2**62 + 2**61, make_tag(0, 0, 60)):
        assert leader_of(limits, 7, tag) == 7


def test_tags_of_logs_with_two_sides_are_read_as_before() -> None:
    """The leader's column where it was in the pull's row, else L and the leader's row."""
    K, L = 3, 4
    limits = Known(K, L, 10).limits
    for arm in range(K * L):
        row, column = divmod(arm, L)
        for other in range(L):
            assert leader_of(limits, arm, (other << 41) + 2 * 77 + 1) == row * L + other
        for other in range(K):
            assert leader_of(limits, arm, (L + other) << 41) == other * L + column
    assert uniform_of((5 << 41) + 2 * 77 + 1) == 77
