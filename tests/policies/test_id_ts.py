"""idTS against all samples and all weights in every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma

import rank1
from rank1.policies import Known
from rank1.policies.id_ts import exp_digamma
from rank1.testing import check_policy, play_plain, policies
from tests.policies.test_thompson import EVERY_PROBLEM, SOME_PROBLEMS, assert_same_regret
from tests.support import few, literal_of, play_policy


@dataclass(frozen=True)
class PlainIdTS(rank1.IdTS):
    """The first window, in which every line is drawn, never ends."""

    def start(self, known: Known) -> Any:
        state = super().start(known)
        state.row_level[0].left = state.column_level[0].left = 2**60
        return state


def assert_posteriors(state: Any, literal: Any) -> None:
    for ours, theirs in (
        (state.row_successes, literal.a),
        (state.row_failures, literal.b),
        (state.column_successes, literal.c),
        (state.column_failures, literal.d),
    ):
        np.testing.assert_allclose(1 + ours, theirs, rtol=1e-9)


@pytest.mark.parametrize("n", few([1000, 2000], 1))
@pytest.mark.parametrize(
    "policy",
    [PlainIdTS("incremental"), rank1.IdTS("variational"), rank1.IdTS("variational", passes=1)],
    ids=lambda policy: policy.label,
)
@EVERY_PROBLEM
def test_the_plain_way_makes_the_literal_choices(
    problem: rank1.Problem, policy: rank1.IdTS, n: int
) -> None:
    literal = literal_of(policy, problem, n)
    expected, rewards = play_plain(literal, problem, n, seed=3)
    pairs, got, state = play_policy(policy, problem, n, seed=3)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(got, rewards)
    assert_posteriors(state, literal)


@SOME_PROBLEMS
def test_regret_has_the_law_of_the_plain_way(problem: rank1.Problem) -> None:
    assert_same_regret(rank1.IdTS("incremental"), PlainIdTS("incremental"), problem)


def test_exp_digamma() -> None:
    x = np.concatenate([np.linspace(1, 40, 2000), np.geomspace(40, 1e9, 200)])
    ours = np.array([exp_digamma(each) for each in x])
    np.testing.assert_allclose(ours, np.exp(digamma(x)), rtol=2e-13)


@pytest.mark.parametrize(
    ("K", "variational", "incremental"),
    [
        pytest.param(4, (31.3, 1.2), (43.7, 2.4), marks=pytest.mark.validate),
        pytest.param(16, (156, 10), (219, 10), marks=pytest.mark.validate),
    ],
)
def test_regret_is_that_of_a_prototype(
    K: int, variational: tuple[float, float], incremental: tuple[float, float]
) -> None:
    """30,000 steps and 60 runs of .75 over .25; within four standard errors of the difference."""
    problem = rank1.spike(K, K, 0.25, 0.25, 0.5, 0.5)
    for update, (mean, error) in (("variational", variational), ("incremental", incremental)):
        result = rank1.simulate(rank1.IdTS(update), problem, 30_000, 60, seed=1, checkpoints=1)
        regret = result.outcomes[0].expected[:, -1]
        both = np.hypot(error, regret.std(ddof=1) / np.sqrt(60))
        assert abs(regret.mean() - mean) <= 4 * both, (update, regret.mean(), both)


@pytest.mark.validate
def test_the_contract_holds_for_both_updates() -> None:
    check_policy(rank1.IdTS("incremental"))


@pytest.mark.uncompiled
def test_the_other_update_is_folded_and_finds_the_best_arm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policies, "TRIALS", 4)
    for check in (policies.is_the_same_when_it_is_folded, policies.finds_the_best_arm):
        check(rank1.IdTS("incremental"))


def test_settings_and_range_are_checked() -> None:
    with pytest.raises(ValueError, match="update must be one of variational, incremental, got 'x'"):
        rank1.IdTS("x")
    with pytest.raises(ValueError, match=r"passes must be a whole number of at least 1 .*got 0"):
        rank1.IdTS(passes=0)
    with pytest.raises(ValueError, match=r"rewards must be in \[0, 1\] for id_ts"):
        rank1.IdTS().start(Known(2, 2, 10, high=2.0))
