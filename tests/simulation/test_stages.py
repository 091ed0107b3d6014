"""Whole stages are equal in law to playing step by step, wherever regret is recorded.

Each comparison has 1500 runs on either side, fixed seeds, and fails at p < 1e-4 or beyond four
standard errors. Dropping the weights of eliminated lines or the substitution turns them red, and so
does splitting a stage wrongly: partners of the rounds before a checkpoint that are drawn anew, a
round more or less, the pulls of a cut round in another order. What the laws themselves draw and
split is tested in tests/problems.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import rank1
from rank1.simulation.series import Series, checkpoints_of
from tests.support import few, others_uncompiled

RUNS = 1500
N = 6000
#: Twice in the first round, in the middle of rounds and stages, two steps in a row, and the end.
STEPS = np.array([2, 5, 7, 403, 1000, 1001, 2501, 3000, N])

#: Stages are compiled for each law, which takes seconds: the last waits for `make validate`.
PROBLEMS = [
    rank1.spike(4, 3, 0.2, 0.3, 0.75, 0.6),
    rank1.Bernoulli([0.9, 0.4, 0.4, 0.9, 0.1], [1.0, 0.3, 0.55]),  # ties, and a certain column
    rank1.Gaussian([0.9, 0.2, 0.2], [0.8, 0.1, 0.9], sigma=0.1),
    rank1.Categorical([0.0, 0.4, 1.0], np.random.default_rng(8).dirichlet([0.4] * 3, (4, 3))),
]


def played(
    problem: rank1.Problem, method: str, n: int = N, policy: rank1.Policy | None = None
) -> tuple[NDArray[np.float64], list[Any]]:
    policy = policy or rank1.Rank1Elim(confidence_scale=0.6)
    marks = STEPS if n == N else np.array([n])
    series = Series(policy, problem, n, marks, 1 if method == "steps" else 2, method)
    runs = [series.play_run(run) for run in range(RUNS)]
    return np.array([run.curve for run in runs]), [run.state for run in runs]


def assert_same_mean_and_variance(a: NDArray[np.float64], b: NDArray[np.float64]) -> None:
    error = np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    assert abs(a.mean() - b.mean()) <= 4 * error + 1e-9
    squares_a, squares_b = (a - a.mean()) ** 2, (b - b.mean()) ** 2
    error = np.sqrt(squares_a.var(ddof=1) / len(a) + squares_b.var(ddof=1) / len(b))
    assert abs(squares_a.mean() - squares_b.mean()) <= 4 * error + 1e-9


def assert_same_covariance(a: NDArray[np.float64], b: NDArray[np.float64]) -> None:
    """Of two columns. There are many pairs of them, so it takes five standard errors to fail."""
    products = [np.prod(x - x.mean(axis=0), axis=1) for x in (a, b)]
    error = np.sqrt(sum(p.var(ddof=1) / len(p) for p in products))
    assert abs(products[0].mean() - products[1].mean()) <= 5 * error + 1e-9


def assert_same_frequencies(a: list[Any], b: list[Any]) -> None:
    """Chi-square over outcomes seen at least ten times, the rest put together."""
    counts = Counter(a), Counter(b)
    common = [key for key, seen in (counts[0] + counts[1]).items() if seen >= 10]
    table = np.array([[c[key] for key in common] for c in counts])
    rest = np.array([[len(a)], [len(b)]]) - table.sum(axis=1, keepdims=True)
    if rest.sum() >= 10:
        table = np.hstack([table, rest])
    if table.shape[1] > 1:
        assert stats.chi2_contingency(table).pvalue > 1e-4


@pytest.fixture(
    scope="module", params=few(PROBLEMS, 2), ids=lambda p: f"{p.description['name']}{p.K}x{p.L}"
)
def both(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return played(request.param, "steps"), played(request.param, "stages")


@pytest.mark.parametrize("kind", [0, 1], ids=["expected", "realised"])
@pytest.mark.parametrize("mark", range(len(STEPS)))
def test_regret_has_the_same_law_at_every_checkpoint(both: Any, mark: int, kind: int) -> None:
    (a, _), (b, _) = both
    x, y = a[:, mark, kind], b[:, mark, kind]
    assert_same_mean_and_variance(x, y)
    assert stats.ks_2samp(np.round(x, 9), np.round(y, 9), method="asymp").pvalue > 1e-4


def test_regret_at_checkpoints_goes_with_what_follows(both: Any) -> None:
    """Covariances: of regret at two checkpoints, and of regret with the sums of a stage."""
    columns = [
        np.column_stack(
            [
                curves[:, :, 0],
                curves[:, :, 1],
                [state.C_row[0] for state in states],
                [state.C_column[0] for state in states],
            ]
        )
        for curves, states in both
    ]
    for a in range(2 * len(STEPS)):
        for b in range(a):
            assert_same_covariance(*(x[:, [a, b]] for x in columns))
        for b in range(2 * len(STEPS), columns[0].shape[1]):
            assert_same_covariance(*(x[:, [a, b]] for x in columns))


def test_survivors_after_each_stage_have_the_same_law(both: Any) -> None:
    (_, a), (_, b) = both
    stages = int(max(state.at[0].stage for state in a))
    assert stages >= 2
    for stage in range(1, stages + 1):
        seen = [
            [
                (state.h_row[stage].tobytes(), state.h_column[stage].tobytes())
                for state in states
                if state.at[0].stage >= stage
            ]
            for states in (a, b)
        ]
        assert abs(len(seen[0]) - len(seen[1])) <= 4 * np.sqrt(RUNS)
        assert_same_frequencies(*seen)


def test_sums_have_the_same_law(both: Any) -> None:
    (_, a), (_, b) = both
    for field, line in (("C_row", 1), ("C_column", 0)):
        x, y = (np.array([getattr(s, field)[0, line] for s in states]) for states in (a, b))
        assert_same_mean_and_variance(x, y)
        assert stats.ks_2samp(np.round(x, 9), np.round(y, 9), method="asymp").pvalue > 1e-4


def test_realised_minus_expected_has_mean_zero(both: Any) -> None:
    for curve, _ in both:
        difference = curve[:, -1, 1] - curve[:, -1, 0]
        error = difference.std(ddof=1) / np.sqrt(RUNS)
        assert abs(difference.mean()) <= 4 * error


def test_more_columns_than_rounds() -> None:
    """Partners are then drawn one by one instead of as a multinomial."""
    problem = rank1.Bernoulli([0.9, 0.3], np.linspace(0, 1, 60))
    a, b = (played(problem, method, n=1500)[0][:, -1, 0] for method in ("steps", "stages"))
    assert_same_mean_and_variance(a, b)
    assert stats.ks_2samp(np.round(a, 9), np.round(b, 9), method="asymp").pvalue > 1e-4


CHECKPOINTS: list[Any] = [1, 10, 100, 1000, [1], [5, 6, 7, 5999], range(1, 3001), range(1, N + 1)]


@pytest.mark.parametrize("problem", others_uncompiled(PROBLEMS), ids=repr)
def test_the_end_does_not_depend_on_the_checkpoints(problem: rank1.Problem) -> None:
    assert_checkpoints_do_not_count(problem, rank1.Rank1Elim(0.6))


@pytest.mark.validate
def test_the_end_does_not_depend_on_the_checkpoints_with_kl() -> None:
    assert_checkpoints_do_not_count(PROBLEMS[1], rank1.Rank1ElimKL())


def assert_checkpoints_do_not_count(problem: rank1.Problem, policy: rank1.Policy) -> None:
    plain = Series(policy, problem, N, np.array([N]), 3, "stages").play_run(0)
    for checkpoints in CHECKPOINTS:
        steps = checkpoints_of(N, checkpoints)
        run = Series(policy, problem, N, steps, 3, "stages").play_run(0)
        assert run.curve[-1].tolist() == plain.curve[-1].tolist()
        assert run.best_arm == plain.best_arm
        for ours, theirs in zip(run.state, plain.state, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert np.all(np.diff(run.curve[:, 0]) >= 0)


def test_every_step_of_a_stage_is_a_legal_pull() -> None:
    """With other gaps for all pairs, the increments of expected regret tell which was pulled.

    Each round pulls the remaining rows in order over one column, then the columns over one row.
    """
    problem = rank1.Bernoulli([0.9, 0.5, 0.31], [0.9, 0.62, 0.35, 0.2])
    gaps = problem.best_mean - problem.means
    pair_of = {round(gap, 9): pair for pair, gap in np.ndenumerate(gaps)}
    assert len(pair_of) == 12
    n, policy = 4000, rank1.Rank1Elim(0.5)
    series = Series(policy, problem, n, np.arange(1, n + 1), 1, "stages")
    for number in range(5):
        run = series.play_run(number)
        steps = np.diff(run.curve, axis=0, prepend=0)
        pulls = [pair_of[round(step, 9)] for step in steps[:, 0]]
        for pull, realised in zip(pulls, steps[:, 1], strict=True):
            assert realised in ((0,) if pull == problem.best_pair else (-1, 0, 1))
        t = 0
        ended = [int(end) for end in run.state.ended[: run.state.at[0].stage]]
        assert len(ended) >= 2
        for stage, end in enumerate(ended):
            rows, columns = (
                np.unique(h[stage]).tolist() for h in (run.state.h_row, run.state.h_column)
            )
            while t < end:
                column = pulls[t][1]
                assert pulls[t : t + len(rows)] == [(row, column) for row in rows]
                t += len(rows)
                row = pulls[t][0]
                assert pulls[t : t + len(columns)] == [(row, column) for column in columns]
                t += len(columns)
            assert t == end


@pytest.mark.parametrize("step", range(1, 12))
def test_a_checkpoint_sees_the_pulls_before_it_and_no_other(step: int) -> None:
    """A round is row 0, the useless row 1, and one of them at random: so are its costs."""
    problem, policy = rank1.Bernoulli([1.0, 0.0], [1.0]), rank1.Rank1Elim()
    rounds, rest = divmod(step, 3)
    series = Series(policy, problem, 2000, np.array([step, 2000]), 1, "stages")
    seen = set(series.play(range(300))["curves"][:, 0, 0].tolist())
    least = rounds + (rest == 2)
    assert seen == set(range(least, least + rounds + 1))


def test_splitting_costs_memory_for_checkpoints_not_for_pairs() -> None:
    import tracemalloc

    problem = rank1.Bernoulli(np.linspace(0, 1, 500), np.linspace(0, 1, 400))
    steps = checkpoints_of(10**8, 1000)
    series = Series(rank1.Rank1Elim(), problem, 10**8, steps, 1, "stages")
    series.play_run(0)
    tracemalloc.start()
    series.play_run(0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 500 * 400 / 2  # not one number for every second pair


def test_counts_every_step() -> None:
    """With one useless row the expected regret is the number of its pulls, step for step."""
    problem = rank1.Bernoulli([1.0, 0.0], [1.0])
    for method in ("steps", "stages"):
        result = rank1.simulate(
            rank1.Rank1Elim(), problem, 5000, 20, 1, method=method, checkpoints=5000
        )
        # Without elimination a round is row 0, row 1, and one random row for the column.
        steps = np.diff(np.hstack([np.zeros((20, 1)), result.outcomes[0].expected]), axis=1)
        assert set(np.unique(steps)) == {0.0, 1.0}
        assert (steps[:, 1] == 1).all()
        assert (steps[:, -1000:] == 0).all()


def test_large_grids_and_long_runs_work() -> None:
    problem = rank1.spike(4096, 4096, 0.7, 0.7, 0.2, 0.2)
    result = rank1.simulate(rank1.Rank1Elim(), problem, 10**9, 1, seed=1, checkpoints=10)
    outcome = result.outcomes[0]
    assert np.all(np.diff(outcome.expected[0]) >= 0)
    # Stage 0 explores evenly: 83 rounds over all pairs, at an average gap that is known exactly.
    even = problem.best_mean - problem.u.mean() * problem.v.mean()
    assert outcome.expected[0, 0] <= even * result.checkpoints[0] * 1.02
    assert outcome.expected[0, -1] < 0.1 * even * 10**9
