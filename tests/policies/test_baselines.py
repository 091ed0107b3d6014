"""Uniform play and the oracle: what the others are measured by."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import rank1
from tests.support import play_policy


@pytest.mark.parametrize(
    "problem",
    [rank1.Bernoulli([0.5] * 3, [0.5] * 5), rank1.Means(np.full((3, 2, 2), 0.5))],
    ids=["3x5", "3x2x2"],
)
def test_uniform_play_is_uniform(problem: rank1.Problem) -> None:
    """Chi-square of 60,000 pulls over all arms, and of each with the one after it."""
    n, arms = 60_000, problem.arms
    pulls, _, state = play_policy(rank1.Uniform(), problem, n, seed=1)
    counts = np.bincount(pulls, minlength=arms)
    assert stats.chisquare(counts).pvalue > 1e-3
    follows = np.bincount(pulls[:-1] * arms + pulls[1:], minlength=arms**2)
    assert stats.chisquare(follows).pvalue > 1e-3
    assert state.counts.tolist() == counts.tolist()


def test_the_oracle_plays_the_best_arm() -> None:
    problem = rank1.Bernoulli([0.1, 0.2, 0.9], [0.8, 0.3])
    pulls, _, state = play_policy(rank1.Oracle(), problem, 100, seed=1)
    assert np.all(pulls == 4)
    assert state.best() == 4
