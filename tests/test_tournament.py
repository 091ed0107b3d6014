"""The tournament, compared with a full scan."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rank1.compiled import kernel
from rank1.tournament import (
    fewest_winner,
    leaves_of,
    put,
    put_second,
    replay_all,
    start_tournament,
    tied_winner,
    winner,
)


def play(top: Any, ties: Any, k: int, value: float) -> int:
    put(top, k, value)
    put_second(ties[0], ties[1], k, value)
    return winner(top)


def play_fewest(top: Any, fewest: Any, k: int, value: float, second: int) -> int:
    put_second(top, fewest, k, value, second, True)
    return fewest_winner(top, fewest)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 64, 65])
def test_winners_are_those_of_a_full_scan(size: int) -> None:
    (top, none), counted = start_tournament(size), start_tournament(size)
    values = np.full(size, -np.inf)
    rng = np.random.default_rng(size)
    assert none[1] == 0
    for step in range(1000):
        k = int(rng.integers(size))
        values[k] = rng.integers(4 if step % 100 < 50 else 1000) / 7
        first = kernel(play)(top, counted, k, values[k])
        tied = np.nonzero(values == values.max())[0]
        assert first == tied[0]
        assert counted[1][1] == len(tied)
        assert [tied_winner(*counted, place) for place in range(len(tied))] == tied.tolist()
    np.testing.assert_array_equal(top, counted[0])
    assert leaves_of(top, size).tolist() == values.tolist()
    again = top.copy()
    again[1 : len(top) // 2] = 0.0
    replay_all(again)
    np.testing.assert_array_equal(top[1:], again[1:])


@pytest.mark.parametrize("size", [1, 3, 4, 37])
def test_all_leaves_may_begin_with_a_number(size: int) -> None:
    top, ties = start_tournament(size, 2.0)
    again, counted = start_tournament(size)
    for k in range(size):
        put_second(again, counted, k, 2.0)
    np.testing.assert_array_equal(top[1:], again[1:])
    np.testing.assert_array_equal(ties[1:], counted[1:])


@pytest.mark.parametrize("size", [1, 2, 3, 10, 65])
def test_of_several_winners_the_first_of_those_with_the_fewest(size: int) -> None:
    top, fewest = start_tournament(size)
    values, seconds = np.full(size, -np.inf), np.zeros(size, np.int64)
    rng = np.random.default_rng(size)
    for _ in range(1000):
        k = int(rng.integers(size))
        values[k], seconds[k] = rng.integers(4) / 7, rng.integers(3)
        first = kernel(play_fewest)(top, fewest, k, values[k], seconds[k])
        assert first == min(range(size), key=lambda k: (-values[k], seconds[k], k))


def test_means_are_equal_as_numbers_where_they_are_as_fractions() -> None:
    """So all ties between means of 0/1 rewards are found, and no others."""
    means: dict[float, Fraction] = {}
    for count in range(1, 400):
        for won in range(count + 1):
            exact = Fraction(won, count)
            assert means.setdefault(float(won) / count, exact) == exact
