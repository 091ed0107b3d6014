"""Rank1Elim against Algorithm 1, and its behaviour when rewards come late."""

from __future__ import annotations

import numpy as np
import pytest

import rank1
from rank1.policies.rank1elim import COLUMNS, ROWS, STAGE
from tests.policies.reference_rank1elim import LiteralRank1Elim
from tests.support import play_compiled, play_reference

THREE_VALUES = rank1.Categorical(
    [0.0, 0.5, 1.0], np.random.default_rng(5).dirichlet([1, 1, 1], size=(3, 5))
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "problem",
    [
        rank1.spike(4, 6, 0.3, 0.5, 0.6, 0.45),
        rank1.Bernoulli([0.9, 0.9, 0.1], [0.8, 0.2, 0.8, 0.1]),  # ties for the best pair
        rank1.Bernoulli([0.7], [0.9, 0.2]),  # one row
        rank1.Bernoulli([0.9, 0.1, 0.4], [1.0]),  # one column
        rank1.Bernoulli([0.0, 0.0], [0.0, 0.0]),  # nothing ever happens
        rank1.Bernoulli([1.0, 0.0], [1.0, 1.0]),  # means of exactly 0 and 1
        THREE_VALUES,
    ],
    ids=lambda problem: f"{problem.description['name']}{problem.K}x{problem.L}",
)
def test_makes_the_choices_of_algorithm_1(problem: rank1.Problem, seed: int) -> None:
    n = 20_000
    reference = LiteralRank1Elim(problem.K, problem.L, n)
    expected, rewards = play_reference(reference, problem, n, seed)
    pairs, got, state = play_compiled(rank1.Rank1Elim(), problem, n, seed)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(got, rewards)
    rows, columns = reference.survivors[-1]
    assert state.rows[: state.at[ROWS]].tolist() == rows
    assert state.columns[: state.at[COLUMNS]].tolist() == columns
    assert state.at[STAGE] == len(reference.survivors) - 1
