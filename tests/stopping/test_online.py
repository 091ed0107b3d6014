from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rank1 import stopping
from rank1.compiled import kernel
from rank1.errors import InputError
from rank1.grid import Grid
from rank1.stopping.evalues import DIFFERENCE, log_e, log_loss, log_price
from tests.stopping.play import play_until_stop, top_two
from tests.support import examples

Floats = NDArray[np.float64]
exactly = examples(20)


def spike(K: int, p: float, delta: float) -> Floats:
    line = np.full(K, p)
    line[0] += delta
    return np.outer(line, line)


def looks(watch: Any, arms: Any, rewards: Floats, stops: Any) -> None:
    for t in range(len(arms)):
        stopping.note_report(watch, arms[t], rewards[t])
        stops[t] = stopping.may_stop(watch)


@exactly
@given(
    st.integers(0, 10**6),
    st.sampled_from([(4,), (1, 4), (2, 3), (4, 4), (2, 2, 2), (3, 1, 2), (2, 2, 2, 2)]),
    st.sampled_from([0.3, 0.8, 0.95]),
    st.sampled_from([0.0, 0.02, 0.2]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["kt", "sharp"]),
)
def test_every_look_is_the_verdict(
    seed: int,
    sizes: tuple[int, ...],
    confidence: float,
    tolerance: float,
    rank_one: bool,
    binary: bool,
    rule: str,
) -> None:
    rng = np.random.default_rng(seed)
    means = functools.reduce(np.multiply.outer, [rng.random(size) for size in sizes]).ravel()
    n = 120
    # Most reports are of a few arms, so that there is something to decide.
    weights = rng.random(means.size) ** 4
    arms = rng.choice(means.size, size=n, p=weights / weights.sum())
    if binary:
        rewards = (rng.random(n) < means[arms]).astype(float)
    else:
        rewards = np.clip(means[arms] + rng.uniform(-0.3, 0.3, n), 0, 1)
    watch = stopping.start_watch(sizes, confidence, tolerance, rank_one, rule)
    stops = np.zeros(n, bool)
    kernel(looks, watch)(watch, arms, rewards, stops)
    s, f = np.zeros(sizes), np.zeros(sizes)
    for t in range(n):
        s.flat[arms[t]] += rewards[t]
        f.flat[arms[t]] += 1.0 - rewards[t]
        verdict = stopping.verdict(s, f, confidence, tolerance, rank_one, rule)
        assert stops[t] == verdict.stop, t
    assert Grid(sizes).levels(int(watch.at[0].leader)) == verdict.leader


def test_before_the_first_report() -> None:
    assert not stopping.may_stop(stopping.start_watch([2, 3]))
    assert stopping.may_stop(stopping.start_watch([1, 1, 1]))


def test_most_looks_compute_nothing() -> None:
    """The bound that saves the work is a bound, and mostly below the threshold."""
    rng = np.random.default_rng(1)
    watch = stopping.start_watch([4, 4])
    means = spike(4, 0.5, 0.2)
    saved = 0
    for _ in range(3000):
        row, column = rng.integers(4, size=2) * (rng.random(2) < 0.5)
        stopping.report(watch, int(4 * row + column), float(rng.random() < means[row, column]))
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
    best = Grid(means.shape).levels(int(means.argmax()))
    wrong = sum(run.pulls > 0 and run.leader != best for run in played)
    return float(pulls.mean()), float(pulls.std() / math.sqrt(runs)), wrong


@pytest.mark.parametrize(
    ("K", "equal_split", "runs", "reference", "reference_runs"),
    [
        (4, False, 200, 4145, 200),
        pytest.param(4, True, 200, 14012, 200, marks=pytest.mark.validate),
        pytest.param(8, False, 50, 9178, 50, marks=pytest.mark.validate),
    ],
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
    np.multiply.outer(np.outer([0.9, 0.89], [0.9, 0.89]), [0.8, 0.79]),
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
@pytest.mark.parametrize("means", HARD, ids=["alike", "near", "small", "three sides"])
def test_wrong_stops_in_brief(means: Floats, rank_one: bool) -> None:
    """At confidence one half, so that there is something to see; a look after every pull."""
    runs = 100
    wrong = wrong_stops(means, runs, 3000, 0.5, rank_one=rank_one)
    assert wrong <= runs * 0.5


@pytest.mark.validate
@pytest.mark.parametrize("confidence", [0.95, 0.5])
@pytest.mark.parametrize("means", HARD, ids=["alike", "near", "small", "three sides"])
def test_wrong_stops(means: Floats, confidence: float) -> None:
    """2,000 runs, a look after every pull: no more wrong stops than promised."""
    assert wrong_stops(means, 2000, 20_000, confidence) <= 2000 * (1 - confidence)


def simpler(
    rng: np.random.Generator, means: Floats, s: Floats, n: Floats, led: Any, sizes: Any,
    share: float, tolerance: float, threshold: float,
) -> int:  # fmt: skip
    """Pulls until each q ≥ p + ε/3 is rejected, and p ≤ ε/3 on half the level; two sides."""
    L = sizes[1]
    for t in range(1_000_000):
        arm = top_two(s, n, led, sizes, share)
        s[arm] += rng.random() < means[arm]
        n[arm] += 1.0
        if (t + 1) % 100 == 0:
            leader, best = -1, -1.0
            for k in range(len(s)):
                if n[k] > 0.0 and s[k] / n[k] > best:
                    leader, best = k, s[k] / n[k]
            won, lost = s[leader], n[leader] - s[leader]
            own = log_loss(won, lost, tolerance / 3) + log_price(won, lost)
            stop = best > tolerance / 3 and own >= threshold + math.log(2.0)
            for k in range(len(s)):
                if stop and (k // L == leader // L) != (k % L == leader % L):
                    value = log_e(DIFFERENCE, tolerance / 3, won, lost, s[k], n[k] - s[k])
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
        room = np.zeros(64), np.zeros(64), np.zeros(64, np.int64), np.array([8, 8])
        share, threshold = 1 / (1 + math.sqrt(14)), math.log(63 / 0.05)
        pulls.append(kernel(simpler)(rng, means.ravel(), *room, share, tolerance, threshold))
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
    ("arm", "reward"), [(6, 1.0), (-1, 1.0), (10**7, 1.0), (0, 5.0), (0, math.nan)]
)
def test_reports_that_make_no_sense_are_refused(arm: int, reward: float) -> None:
    watch = stopping.start_watch([2, 3])
    with pytest.raises(InputError, match="must be"):
        stopping.report(watch, arm, reward)
    assert watch.successes.sum() == watch.failures.sum() == 0


def test_a_grid_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match="side 1 must be a side of at least 1 level, got 0"):
        stopping.start_watch([2, 0])
