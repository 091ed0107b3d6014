"""Blocks of runs: parts of them, and putting them together."""

from __future__ import annotations

import numpy as np
import pytest

from rank1.simulation.block import Block, joined, missing_runs


def block(runs: range) -> Block:
    """Runs that can be told apart."""
    numbers = np.array(runs, np.float64)
    curves = np.repeat(numbers, 6).reshape(len(runs), 3, 2)
    return Block({"curves": curves, "best_arms": numbers.astype(np.int64)}, len(runs) * 1.0)


def test_parts_make_up_the_whole() -> None:
    whole = block(range(10))
    again = joined([whole.part(0, 3), whole.part(3, 4), whole.part(4, 10)])
    assert again.runs == 10
    for name, array in whole.arrays.items():
        assert np.array_equal(again[name], array)
    assert again.seconds == pytest.approx(whole.seconds)
    assert whole.part(3, 4).seconds == pytest.approx(1.0)


def test_missing_runs() -> None:
    assert missing_runs(range(4), {}) == [range(4)]
    assert missing_runs(range(4), {0: block(range(4))}) == []
    assert missing_runs(range(4), {1: block(range(2))}) == [range(1), range(3, 4)]
    assert missing_runs(range(4), {2: block(range(9))}) == [range(2)]
