"""The tournament that finds the leader."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from rank1.compiled import kernel
from rank1.policies import unimodal


class Tournament(NamedTuple):
    top: NDArray[np.float64]
    ties: NDArray[np.int64]


def report(state: Any, k: int, mean: float) -> None:
    unimodal.report_mean(state, k, mean)


@pytest.mark.parametrize("pairs", [1, 2, 3, 10, 64, 65])
def test_leaders_are_those_of_a_full_scan(pairs: int) -> None:
    state = Tournament(**unimodal.start_unimodal(pairs))
    means = np.full(pairs, -np.inf)
    rng = np.random.default_rng(pairs)
    assert state.ties[1] == 0
    assert unimodal.first_leader(state) == 0
    for step in range(1000):
        k = int(rng.integers(pairs))
        means[k] = rng.integers(4 if step % 100 < 50 else 1000) / 7
        kernel(report, state)(state, k, means[k])
        tied = np.nonzero(means == means.max())[0]
        assert state.ties[1] == len(tied)
        places = range(len(tied))
        assert [unimodal.tied_leader(state.top, state.ties, p) for p in places] == tied.tolist()
        assert unimodal.first_leader(state) == tied[0]


def test_means_are_equal_as_numbers_where_they_are_as_fractions() -> None:
    """So ties between means of 0/1 rewards are seen, and no others."""
    means: dict[float, Fraction] = {}
    for count in range(1, 400):
        for won in range(count + 1):
            exact = Fraction(won, count)
            assert means.setdefault(float(won) / count, exact) == exact
