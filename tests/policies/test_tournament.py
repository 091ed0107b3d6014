"""The tournament that finds a leader, against a full scan."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rank1.compiled import kernel
from rank1.policies.tournament import (
    fewest_winner,
    leaves_of,
    put,
    replay_all,
    start_tournament,
    winner,
)


def report(top: Any, ties: Any, k: int, mean: float) -> None:
    put(top, ties, k, mean)


def report_fewest(top: Any, fewest: Any, k: int, mean: float, second: int) -> None:
    put(top, fewest, k, mean, second, True)


@pytest.mark.parametrize("arms", [1, 2, 3, 10, 64, 65])
def test_leaders_are_those_of_a_full_scan(arms: int) -> None:
    top, ties = start_tournament(arms)
    means = np.full(arms, -np.inf)
    rng = np.random.default_rng(arms)
    assert ties[1] == 0
    for step in range(1000):
        k = int(rng.integers(arms))
        means[k] = rng.integers(4 if step % 100 < 50 else 1000) / 7
        kernel(report)(top, ties, k, means[k])
        tied = np.nonzero(means == means.max())[0]
        assert ties[1] == len(tied)
        assert [winner(top, ties, place) for place in range(len(tied))] == tied.tolist()
    assert leaves_of(top, arms).tolist() == means.tolist()
    before = top.copy(), ties.copy()
    replay_all(top, ties)
    np.testing.assert_array_equal(top[1:], before[0][1:])
    np.testing.assert_array_equal(ties[1:], before[1][1:])


@pytest.mark.parametrize("arms", [1, 2, 3, 10, 65])
def test_of_several_leaders_the_first_of_those_with_the_fewest(arms: int) -> None:
    top, fewest = start_tournament(arms)
    means, pulls = np.full(arms, -np.inf), np.zeros(arms, np.int64)
    rng = np.random.default_rng(arms)
    for _ in range(1000):
        k = int(rng.integers(arms))
        means[k], pulls[k] = rng.integers(4) / 7, rng.integers(3)
        kernel(report_fewest)(top, fewest, k, means[k], pulls[k])
        order = min(range(arms), key=lambda k: (-means[k], pulls[k], k))
        assert fewest_winner(top, fewest) == order


def test_means_are_equal_as_numbers_where_they_are_as_fractions() -> None:
    """So ties between means of 0/1 rewards are seen, and no others."""
    means: dict[float, Fraction] = {}
    for count in range(1, 400):
        for won in range(count + 1):
            exact = Fraction(won, count)
            assert means.setdefault(float(won) / count, exact) == exact
