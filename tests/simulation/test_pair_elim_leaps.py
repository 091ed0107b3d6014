"""PairElim by many rounds at once: the law of playing pull by pull."""

from __future__ import annotations

import numpy as np
import pytest

import rank1
from rank1.simulation import Series

PROBLEMS = [
    rank1.spike(4, 6, 0.3, 0.5, 0.6, 0.45),
    rank1.spike(5, 3, 0.0, 0.0, 0.9, 0.9),
    rank1.Bernoulli([0.9, 0.2, 0.6], [0.9, 0.9, 0.3]),  # tied columns, which are twins
    rank1.Bernoulli([0.8], [0.9, 0.2]),
    rank1.Categorical([0.0, 0.3, 1.0], np.random.default_rng(5).dirichlet([1, 1, 1], (3, 2))),
]


@pytest.mark.parametrize(
    "problem",
    [PROBLEMS[0], *(pytest.param(problem, marks=pytest.mark.validate) for problem in PROBLEMS[1:])],
    ids=lambda p: f"{p.description['name']}{p.K}x{p.L}",
)
def test_regret_has_the_law_of_steps(problem: rank1.Problem) -> None:
    """Means of both regrets at eight steps, past the beginning of a phase, and their spread.

    Four standard errors; ten numbers that depend on each other, for five problems.
    """
    runs, steps, both = 300, [200, 700, 2000, 6000, 20_000, 65_000, 66_000], []
    for method in ("steps", "stages"):
        result = rank1.simulate(
            rank1.PairElim(), problem, 70_000, runs, seed=1, checkpoints=steps, method=method
        )
        both.append(result.outcomes[0])
    for kind in ("expected", "realised"):
        a, b = (getattr(outcome, kind) for outcome in both)
        error = np.hypot(a.std(axis=0, ddof=1), b.std(axis=0, ddof=1)) / np.sqrt(runs)
        assert np.all(abs(a.mean(axis=0) - b.mean(axis=0)) <= 4 * error + 1e-9), kind
        half = 0.5 * (a.std(axis=0) + b.std(axis=0)) + 1e-9
        assert np.all(abs(a.std(axis=0) - b.std(axis=0)) <= 0.35 * half + 0.5), kind
    found = [np.array([pair == (0, 0) for pair in each.best_pairs]).mean() for each in both]
    assert abs(found[0] - found[1]) <= 0.16  # 4·√(2/4/300)


def test_the_end_of_a_run_does_not_depend_on_the_checkpoints() -> None:
    problem = PROBLEMS[0]
    ends = [
        rank1.simulate(rank1.PairElim(), problem, 70_001, 5, seed=1, checkpoints=count)
        .outcomes[0]
        .expected[:, -1]
        for count in (1, 7, 1000)
    ]
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-12)
    np.testing.assert_allclose(ends[2], ends[0], rtol=1e-12)


@pytest.mark.usefixtures("uncompiled")
def test_every_pull_is_counted() -> None:
    """In the processes of all partners together as in those of single ones, and n in all."""
    n = 60_000
    for problem in PROBLEMS:
        series = Series.of(rank1.PairElim(), problem, n, 3, seed=2)
        assert series.method == "stages"
        state = series.play_run(0).state
        for counts in (state.row_counts, state.column_counts):
            np.testing.assert_array_equal(counts[:-1].sum(axis=0), counts[-1])
        for sums in (state.row_sums, state.column_sums):
            np.testing.assert_allclose(sums[:-1].sum(axis=0), sums[-1], atol=1e-8)
        assert state.at[0].phase == 4
        # Since the last phase began, at the end of a round after 256 steps.
        played = state.row_counts[-1].sum() + state.column_counts[-1].sum()
        assert n - 256 - 2 * (problem.K + problem.L) <= played <= n


def test_columns_that_are_alike_have_processes_of_their_own() -> None:
    """Six like columns are partners equally often, within five standard deviations."""
    problem = rank1.Bernoulli([0.9, 0.8], [0.5] * 6)
    state = Series.of(rank1.PairElim(), problem, 8000, 1, seed=2).play_run(0).state
    counts = state.row_counts[:-1, 0]
    mean = counts.mean()
    assert mean > 100
    assert np.all(abs(counts - mean) <= 5 * np.sqrt(mean * 5 / 6))


def test_where_there_are_no_sums_it_is_played_pull_by_pull() -> None:
    series = Series.of(rank1.PairElim(), rank1.Bernoulli([0.5], [0.5]), 100, method="steps")
    assert series.method == "steps"
    with pytest.raises(ValueError, match="method must be auto or steps for uts"):
        Series.of(rank1.UTS(), rank1.Bernoulli([0.5], [0.5]), 100, method="stages")
