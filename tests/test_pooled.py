"""The average of all pairs, although a policy abandons pairs that had bad luck."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import betabinom

import rank1
from rank1.fit.pooled import _prior, mean_of_all
from rank1.simulation.series import Series

FLAT = rank1.Bernoulli([0.5] * 4, [1.0] * 4)
SPIKE = rank1.spike(8, 8, 0.5, 0.5, 0.2, 0.2)


def estimates(problem: rank1.Problem, n: int, runs: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Return our estimates and plain averages of the pairs' averages, after runs of UTS."""
    series = Series.of(rank1.UTS(), problem, n, 1, 1)
    ours, plain = [], []
    for run in range(runs):
        state = series.play_run(run).state
        won, lost = np.asarray(state.successes, float), np.asarray(state.failures, float)
        ours.append(mean_of_all(won, lost))
        tried = won + lost > 0
        plain.append((won[tried] / (won + lost)[tried]).mean())
    return np.array(ours), np.array(plain)


def test_pairs_that_are_alike_are_not_reported_as_worse_than_what_was_earned() -> None:
    """Within 2% of the truth, plus 3 standard errors; the plain average is a quarter too low."""
    ours, plain = estimates(FLAT, 300)
    error = ours.std() / math.sqrt(len(ours))
    assert abs(ours.mean() - 0.5) <= 0.01 + 3 * error
    assert plain.mean() < 0.4


def test_a_gain_is_not_overstated_where_one_pair_is_best() -> None:
    """The estimate is 5 to 20% too high there, never too low; the plain average is too low."""
    ours, plain = estimates(SPIKE, 5000)
    true = SPIKE.means.mean()
    assert 1.05 * true < ours.mean() < 1.2 * true
    assert plain.mean() < 0.8 * true


def test_much_data_of_every_pair_leave_no_doubt() -> None:
    won = 1e6 * SPIKE.means
    assert mean_of_all(won, 1e6 - won) == pytest.approx(SPIKE.means.mean(), rel=1e-4)


def test_the_distribution_is_the_likeliest() -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 60, 400)
    won = rng.binomial(counts, rng.beta(2, 6, 400))
    once, rate = np.ones(400, np.int64), won.sum() / counts.sum()
    mean, size = _prior(won.astype(float), (counts - won).astype(float), once, rate)

    def likelihood(mean: float, size: float) -> float:
        return float(betabinom.logpmf(won, counts, mean * size, (1 - mean) * size).sum())

    best = likelihood(mean, size)
    assert abs(mean - 0.25) < 0.03
    assert 5 < size < 13
    for factor in (0.97, 1.03):
        assert likelihood(mean * factor, size) < best
        assert likelihood(mean, size * factor) < best


@pytest.mark.parametrize(
    ("won", "lost", "expected"),
    [([0, 0], [0, 0], math.nan), ([0, 0], [3, 0], 0.0), ([3, 0], [0, 0], 1.0), ([1], [3], 0.25)],
)
def test_little_data(won: list[float], lost: list[float], expected: float) -> None:
    assert mean_of_all(won, lost) == pytest.approx(expected, nan_ok=True, abs=1e-6)
