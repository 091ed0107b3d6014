from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rank1 import stopping
from rank1.compiled import kernel
from rank1.errors import InputError
from rank1.stopping.evalues import DIFFERENCE, log_e, log_loss, log_price
from tests.stopping.play import play_until_stop, top_two

Floats = NDArray[np.float64]
exactly = settings(max_examples=60)


def spike(K: int, p: float, delta: float) -> Floats:
    line = np.full(K, p)
    line[0] += delta
    return np.outer(line, line)


def looks(watch: Any, rows: Any, columns: Any, rewards: Floats, stops: Any) -> None:
    for t in range(len(rows)):
        stopping.report(watch, rows[t], columns[t], rewards[t])
        stops[t] = stopping.may_stop(watch)


@exactly
@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from([0.3, 0.8, 0.95]),
    st.sampled_from([0.0, 0.02, 0.2]),
    st.booleans(),
    st.booleans(),
)
def test_every_look_is_the_verdict(
    seed: int, K: int, L: int, confidence: float, tolerance: float, rank_one: bool, binary: bool
) -> None:
    rng = np.random.default_rng(seed)
    means = np.outer(rng.random(K), rng.random(L))
    n = 400
    # Most reports are of a few pairs, so that there is something to decide.
    weights = rng.random(K * L) ** 4
    pairs = rng.choice(K * L, size=n, p=weights / weights.sum())
    if binary:
        rewards = (rng.random(n) < means.flat[pairs]).astype(float)
    else:
        rewards = np.clip(means.flat[pairs] + rng.uniform(-0.3, 0.3, n), 0, 1)
    watch = stopping.start_watch(K, L, confidence, tolerance, rank_one)
    stops = np.zeros(n, bool)
    kernel(looks, watch)(watch, pairs // L, pairs % L, rewards, stops)
    s, f = np.zeros((K, L)), np.zeros((K, L))
    for t in range(n):
        s.flat[pairs[t]] += rewards[t]
        f.flat[pairs[t]] += 1.0 - rewards[t]
        verdict = stopping.verdict(s, f, confidence, tolerance, rank_one)
        assert stops[t] == verdict.stop, t
    assert divmod(int(watch.at[0].leader), L) == verdict.leader


def test_before_the_first_report() -> None:
    assert not stopping.may_stop(stopping.start_watch(2, 3))
    assert stopping.may_stop(stopping.start_watch(1, 1))


def test_most_looks_compute_nothing() -> None:
    """The bound that saves the work is a bound, and mostly below the threshold."""
    rng = np.random.default_rng(1)
    watch = stopping.start_watch(4, 4)
    means = spike(4, 0.5, 0.2)
    saved = 0
    for _ in range(3000):
        row, column = rng.integers(4, size=2) * (rng.random(2) < 0.5)
        stopping.report(watch, int(row), int(column), float(rng.random() < means[row, column]))
        at = watch.at[0]
        s, f = watch.successes, watch.failures
        if at.witness >= 0 and math.isfinite(at.bound):
            leader, witness = ((float(s[k]), float(f[k])) for k in (at.leader, at.witness))
            assert stopping.log_e_value(leader, witness) <= at.bound + 1e-9
            saved += at.bound < at.threshold - 1e-6
        stopping.may_stop(watch)
    assert saved > 2800


def summary(means: Floats, runs: int, **how: Any) -> tuple[float, float, int]:
    """Mean pulls, its standard error, and how often the rule stopped at the wrong pair."""
    played = [play_until_stop(means, seed, **how) for seed in range(runs)]
    pulls = np.array([run.pulls for run in played])
    best = divmod(int(means.argmax()), means.shape[1])
    wrong = sum(run.pulls > 0 and run.leader != best for run in played)
    return float(pulls.mean()), float(pulls.std() / math.sqrt(runs)), wrong


@pytest.mark.parametrize(
    ("K", "equal_split", "runs", "reference", "reference_runs"),
    [(4, False, 200, 4145, 200), (4, True, 200, 14012, 200), (8, False, 50, 9178, 50)],
)
def test_reference_figures(
    K: int, equal_split: bool, runs: int, reference: float, reference_runs: int
) -> None:
    """Of an independent program, a look every 100 pulls; within 3.5 errors of the difference."""
    mean, error, wrong = summary(spike(K, 0.5, 0.2), runs, every=100, equal_split=equal_split)
    assert wrong == 0
    assert abs(mean - reference) < 3.5 * error * math.sqrt(1 + runs / reference_runs)


@pytest.mark.validate
def test_reference_figures_of_larger_grids() -> None:
    mean, error, wrong = summary(spike(16, 0.5, 0.2), 20, every=100)
    assert wrong == 0
    assert abs(mean - 19460) < 3.5 * error * math.sqrt(1 + 20 / 10)
    split, error, _ = summary(spike(8, 0.5, 0.2), 50, every=100, equal_split=True)
    assert abs(split - 68810) < 3.5 * error * math.sqrt(2)


#: Grids on which a mistake is easy: all alike, a near tie, a near tie of small means.
HARD = [
    np.full((3, 3), 0.4),
    np.outer([0.5, 0.49, 0.3], [0.8, 0.79]),
    np.outer([0.2, 0.19], [0.1, 0.09]),
]


def wrong_stops(means: Floats, runs: int, limit: int, confidence: float, **rule: Any) -> int:
    wrong = 0
    for seed in range(runs):
        run = play_until_stop(means, seed, limit=limit, confidence=confidence, **rule)
        gap = means.max() - means[run.leader]
        tied = (means == means.max()).sum() > 1  # then nobody is better than all the others
        wrong += run.pulls > 0 and (tied or gap > rule.get("tolerance", 0.0))
    return wrong


@pytest.mark.parametrize("rank_one", [True, False])
@pytest.mark.parametrize("means", HARD, ids=["alike", "near", "small"])
def test_wrong_stops_in_brief(means: Floats, rank_one: bool) -> None:
    """At confidence one half, so that there is something to see; a look after every pull."""
    runs = 100
    wrong = wrong_stops(means, runs, 3000, 0.5, rank_one=rank_one)
    assert wrong <= runs * 0.5


@pytest.mark.validate
@pytest.mark.parametrize("confidence", [0.95, 0.5])
@pytest.mark.parametrize("means", HARD, ids=["alike", "near", "small"])
def test_wrong_stops(means: Floats, confidence: float) -> None:
    """2,000 runs, a look after every pull: no more wrong stops than promised."""
    assert wrong_stops(means, 2000, 20_000, confidence) <= 2000 * (1 - confidence)


def simpler(
    rng: np.random.Generator, means: Floats, s: Floats, n: Floats, led: Any, share: float,
    tolerance: float, threshold: float,
) -> int:  # fmt: skip
    """Pulls until each q ≥ p + ε/3 is rejected, and p ≤ ε/3 on half the level."""
    K, L = means.shape
    for t in range(1_000_000):
        i, j = top_two(s, n, led, share)
        s[i, j] += rng.random() < means[i, j]
        n[i, j] += 1.0
        if (t + 1) % 100 == 0:
            row, column, best = -1, -1, -1.0
            for i in range(K):
                for j in range(L):
                    if n[i, j] > 0.0 and s[i, j] / n[i, j] > best:
                        row, column, best = i, j, s[i, j] / n[i, j]
            won, lost = s[row, column], n[row, column] - s[row, column]
            own = log_loss(won, lost, tolerance / 3) + log_price(won, lost)
            stop = best > tolerance / 3 and own >= threshold + math.log(2.0)
            for i in range(K):
                for j in range(L):
                    if stop and (i == row) != (j == column):
                        b = s[i, j], n[i, j] - s[i, j]
                        value = log_e(DIFFERENCE, tolerance / 3, won, lost, b[0], b[1])
                        stop = value >= threshold
            if stop:
                return t + 1
    return -1


@pytest.mark.validate
@pytest.mark.parametrize(
    ("tolerance", "of_simpler", "of_rule"),
    [(0.02, 8102, 7752), (0.05, 7012, 6346), (0.1, 5712, 5012)],
)
def test_a_tolerance_costs_less_than_by_thirds(
    tolerance: float, of_simpler: int, of_rule: int
) -> None:
    """The figures of docs/stopping.md; of runs with the same seeds, so the difference is sure."""
    means, runs = spike(8, 0.5, 0.2), 50
    pulls = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        room = np.zeros((8, 8)), np.zeros((8, 8)), np.zeros((8, 8), np.int64)
        share, threshold = 1 / (1 + math.sqrt(14)), math.log(63 / 0.05)
        pulls.append(kernel(simpler)(rng, means, *room, share, tolerance, threshold))
    mean, _, wrong = summary(means, runs, every=100, tolerance=tolerance)
    assert wrong == 0
    assert round(np.mean(pulls)) == of_simpler
    assert round(mean) == of_rule
    assert mean < np.mean(pulls)


@pytest.mark.validate
def test_wrong_stops_with_a_tolerance() -> None:
    """The best pair is 0.0525 above three others, and 0.05 is tolerated."""
    means = np.outer([0.75, 0.68], [0.75, 0.68])
    assert means.max() - means[0, 1] > 0.05
    assert wrong_stops(means, 2000, 20_000, 0.95, tolerance=0.05) <= 100


@pytest.mark.parametrize(
    ("row", "column", "reward"),
    [(2, 0, 1.0), (-1, 0, 1.0), (0, 3, 1.0), (10**7, 0, 1.0), (0, 0, 5.0), (0, 0, math.nan)],
)
def test_reports_that_make_no_sense_are_refused(row: int, column: int, reward: float) -> None:
    watch = stopping.start_watch(2, 3)
    with pytest.raises(InputError):
        stopping.report(watch, row, column, reward)
    assert watch.successes.sum() == watch.failures.sum() == 0
