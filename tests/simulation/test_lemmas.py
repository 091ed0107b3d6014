"""The lemmas of the paper's appendix, over traces."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rank1


def violations(policy: rank1.Policy, problem: rank1.RankOne, n: int, runs: int) -> int:
    result = rank1.simulate(policy, problem, n, runs, seed=11, checkpoints=1)
    return sum(not result.trace(run).held for run in range(runs))


PROBLEM = rank1.spike(2, 2, 0.4, 0.4, 0.2, 0.2)


@pytest.mark.validate
def test_intervals_fail_as_rarely_as_lemma_1_says() -> None:
    n, runs = 150, 1000
    bound = 2 * (PROBLEM.K + PROBLEM.L) / n
    failed = violations(rank1.Rank1Elim(), PROBLEM, n, runs)
    assert failed / runs <= bound + 4 * math.sqrt(bound * (1 - bound) / runs)


@pytest.mark.usefixtures("uncompiled")
def test_narrower_intervals_fail_more_often_than_that() -> None:
    """The check above can fail: with a fifth of the radius it does."""
    n, runs = 150, 300
    failed = violations(rank1.Rank1Elim(confidence_scale=0.2), PROBLEM, n, runs)
    assert failed / runs > 3 * 2 * (PROBLEM.K + PROBLEM.L) / n


@pytest.mark.parametrize(
    "problem",
    [
        rank1.Bernoulli([0.9, 0.5, 0.1], [0.8, 0.3, 0.6]),
        rank1.spike(5, 4, 0.4, 0.5, 0.5, 0.4),
        pytest.param(
            rank1.Gaussian([0.9, 0.4, 0.2], [0.9, 0.3], sigma=0.3), marks=pytest.mark.uncompiled
        ),
    ],
)
def test_lines_are_gone_when_lemma_2_says(problem: rank1.RankOne) -> None:
    n, runs = 1_000_000, 60
    result = rank1.simulate(rank1.Rank1Elim(), problem, n, runs, seed=3, checkpoints=1)
    checked = 0
    for run in range(runs):
        trace = result.trace(run)
        if not trace.held:
            continue
        for side, gaps in (("rows", problem.row_gaps), ("columns", problem.column_gaps)):
            for line in np.nonzero(gaps > 0)[0]:
                m = math.floor(math.log2(2 / (problem.mu * gaps[line]))) + 1
                assert 2.0**-m < problem.mu * gaps[line] / 2 <= 2.0 ** -(m - 1)
                after = [stage for stage in trace.stages if stage.number == m + 1]
                for stage in after:
                    assert line not in getattr(stage, side).lines
                    checked += 1
    assert checked > runs  # the lemma had something to say in most runs


def test_the_expected_rewards_are_at_least_mu_times_the_factor() -> None:
    """The second half of the event of lemma 1: elimination only improves the partners."""
    problem = rank1.Bernoulli([0.9, 0.5, 0.1], [0.8, 0.3, 0.6])
    result = rank1.simulate(rank1.Rank1Elim(), problem, 100_000, 50, seed=4, checkpoints=1)
    for run in range(50):
        for stage in result.trace(run).stages:
            factors = problem.u[stage.rows.lines]
            assert np.all(stage.rows.expected >= problem.mu * factors - 1e-12)


def test_trace_tells_who_eliminated_whom() -> None:
    problem = rank1.Bernoulli([0.2, 0.9], [0.5])
    trace = rank1.simulate(rank1.Rank1Elim(), problem, 10_000, 1, seed=1).trace()
    gone = [
        (stage.number, stage.rows.eliminated) for stage in trace.stages if stage.rows.eliminated
    ]
    assert len(gone) == 1
    assert gone[0][1] == {0: 1}
    assert trace.rows == [1]
    assert trace.stages[gone[0][0]].rows.lines == [0, 1]
    steps = [stage.step for stage in trace.stages]
    assert steps == sorted(steps)
    assert trace.stages[0].observations == math.ceil(4 * math.log(10_000))
    # Before anything is eliminated a round has K + L pulls.
    assert steps[0] == trace.stages[0].observations * 3


def test_a_trace_is_the_run_itself() -> None:
    problem = rank1.Bernoulli([0.2, 0.9], [0.5, 0.1])
    alone = rank1.simulate(rank1.Rank1Elim(), problem, 10_000, 3, seed=1)
    beside = rank1.simulate([rank1.Uniform(), rank1.Rank1Elim()], problem, 10_000, 3, seed=1)
    a, b = alone.trace(2), beside.trace(2, policy="rank1elim")
    assert [stage.step for stage in a.stages] == [stage.step for stage in b.stages]
    with pytest.raises(ValueError, match="elimination policy, for a trace, got uniform"):
        beside.trace(0, policy="uniform")
    with pytest.raises(
        ValueError, match="run must be the number of a finished run, up to 2, got 7"
    ):
        beside.trace(7, policy="rank1elim")
