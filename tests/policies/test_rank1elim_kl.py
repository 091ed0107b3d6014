"""Rank1ElimKL against its definition and its published regret."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rank1
from rank1.policies.elimination import EliminationState
from rank1.testing import play_plain
from tests.support import few, literal_of, play_policy


@pytest.mark.parametrize("seed", few(range(2), 1))
@pytest.mark.parametrize(
    "problem",
    few(
        [
            rank1.spike(4, 6, 0.3, 0.5, 0.6, 0.45),
            rank1.spike(3, 3, 0.0, 0.0, 0.9, 0.9),  # means of 0, where KL intervals are narrow
            rank1.Bernoulli([1.0, 0.3], [1.0, 0.2, 1.0]),
            rank1.Bernoulli([0.7], [0.9, 0.2]),
            rank1.Categorical([0, 0.3, 1], np.random.default_rng(5).dirichlet([1, 1, 1], (3, 2))),
        ],
        4,
    ),
    ids=lambda problem: f"{problem.description['name']}{problem.K}x{problem.L}",
)
@pytest.mark.parametrize(
    "policy",
    [rank1.Rank1ElimKL(), rank1.Rank1ElimKL("time"), rank1.Rank1ElimKL("scaled", shrink=1.5)],
    ids=lambda policy: policy.label,
)
def test_makes_the_choices_of_its_definition(
    policy: rank1.Rank1ElimKL, problem: rank1.Problem, seed: int
) -> None:
    n = 40_000
    literal = literal_of(policy, problem, n)
    expected, _ = play_plain(literal, problem, n, seed)
    pairs, _, state = play_policy(policy, problem, n, seed)
    np.testing.assert_array_equal(pairs, expected)
    rows, columns = literal.survivors[-1]
    assert state.rows[: state.at[0].rows].tolist() == rows
    assert state.columns[: state.at[0].columns].tolist() == columns
    assert state.at[0].stage >= 2


@pytest.mark.parametrize("n", [40, 55, 149, 1000, 20_000, 2_000_000])
def test_stages_and_divergence_are_those_of_the_definition(n: int) -> None:
    """n_ℓ·kl ≤ log n + 3·log log n with n_ℓ = ⌈16·4^ℓ·log n⌉, to the last digits."""
    state = rank1.Rank1ElimKL().start(rank1.Known(3, 2, n))
    stages = len(state.n_stage) - 1
    expected = [math.ceil(16 * 4**stage * math.log(n)) for stage in range(stages + 1)]
    assert state.n_stage[:-1].tolist() == expected[:-1]
    assert 2 * expected[-1] > n
    level = math.log(n) + 3 * math.log(math.log(n))
    assert state.width.tolist() == pytest.approx([level / e for e in expected], rel=1e-14)


@pytest.mark.uncompiled
def test_regret_is_that_of_an_independent_program() -> None:
    """16918 ± 18 over 200 runs, K = L = 8, n = 2 million."""
    problem = rank1.spike(8, 8, 0.7, 0.7, 0.2, 0.2)
    result = rank1.simulate(rank1.Rank1ElimKL(), problem, 2_000_000, 400, seed=1, checkpoints=1)
    regret = result.outcomes[0].expected[:, -1]
    error = regret.std(ddof=1) / np.sqrt(len(regret))
    assert abs(regret.mean() - 16918) <= 4 * np.hypot(error, 18)


@pytest.mark.parametrize(
    ("policy", "regrets"),
    [
        (rank1.Rank1ElimKL(), (99_000, 209_000, 429_000)),
        (rank1.Rank1ElimKL("time"), (33_500, 70_000, 202_000)),
        (rank1.Rank1ElimKL("scaled", shrink=1.5), (36_500, 78_000, 152_000)),
    ],
    ids=lambda value: getattr(value, "label", ""),
)
def test_regret_is_that_of_the_three_programs_of_this_name(
    policy: rank1.Rank1ElimKL, regrets: tuple[float, ...]
) -> None:
    """Of independent programs, rounded to three digits; with the error of 20 runs for theirs."""
    for K, regret in zip((32, 64, 128), regrets, strict=True):
        problem = rank1.spike(K, K, 0.25, 0.25, 0.5, 0.5)
        result = rank1.simulate(policy, problem, 2_000_000, 40, seed=1, checkpoints=1)
        ours = result.outcomes[0].expected[:, -1]
        error = ours.std(ddof=1) * np.sqrt(1 / 40 + 1 / 20)
        assert abs(ours.mean() - regret) <= 3 * error + 0.005 * regret, K


def test_the_level_in_time_and_counts_that_begin_at_one_a_cell() -> None:
    """Of 7 rows and 5 columns a row has 5 cells more; log t + log log t at 1,000 reports."""
    state = rank1.Rank1ElimKL("time").start(rank1.Known(7, 5, 20_000))
    state.at[0].reported = 1000
    length = int(state.n_stage[0])
    level = math.log(1000) + math.log(math.log(1000))
    for partners in (5, 7):
        lower, upper = state.interval(0, 0.3, partners)
        mean, count = 0.3 * length / (length + partners), length + partners
        for end in (lower, upper):
            assert count * rank1.theory.kl_bernoulli(mean, end) == pytest.approx(level)
        assert lower < mean < upper


def test_a_line_has_as_many_cells_as_there_are_on_the_other_side() -> None:
    class Noted(EliminationState):
        __slots__ = ()

        def interval(self, stage: int, mean: float, partners: int) -> tuple[float, float]:
            return float(partners), float(partners) + 1.0

    state = Noted(*rank1.Rank1ElimKL().start(rank1.Known(2, 3, 10_000)))
    rng = np.random.default_rng(1)
    while state.at[0].stage == 0:
        rank1.tell(state, rank1.ask(state, rng), 1.0)
    assert set(state.row_intervals[0, :, 0]) == {3.0}
    assert set(state.column_intervals[0, :, 0]) == {2.0}


@pytest.mark.parametrize("level", ["time", "scaled"])
def test_whole_stages_have_the_law_of_steps(level: str) -> None:
    """Means within four standard errors."""
    problem, policy = rank1.spike(3, 5, 0.2, 0.3, 0.5, 0.4), rank1.Rank1ElimKL(level, 1.5)
    both = [
        rank1.simulate(policy, problem, 30_000, 300, seed=1, checkpoints=1, method=method)
        .outcomes[0]
        .expected[:, -1]
        for method in ("steps", "stages")
    ]
    error = np.hypot(*(each.std(ddof=1) / np.sqrt(300) for each in both))
    assert abs(both[0].mean() - both[1].mean()) <= 4 * error


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="level must be one of horizon, time, scaled, got 'tme'"):
        rank1.Rank1ElimKL("tme")
    with pytest.raises(ValueError, match=r"shrink must be a number above 1 .*got 1"):
        rank1.Rank1ElimKL(shrink=1)
    with pytest.raises(ValueError, match=r"shrink must be larger for n=1,000,000, got 1\.1"):
        rank1.Rank1ElimKL(shrink=1.1).start(rank1.Known(2, 2, 10**6))


def test_rewards_must_be_fractions() -> None:
    with pytest.raises(ValueError, match=r"rewards must be in \[0, 1\] for rank1elim_kl"):
        rank1.simulate(rank1.Rank1ElimKL(), rank1.Gaussian([0.5], [0.5], 1.0), 100, 1)
