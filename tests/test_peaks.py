"""Could the counts hide a second peak?"""

from __future__ import annotations

import functools
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, norm

import rank1
from rank1.compiled import kernel
from rank1.fit import fit, fixed_design, powers, second_peak
from rank1.fit.peaks import _below, _leverages
from rank1.policies import Known
from rank1.policies.base import choose, update

Floats = NDArray[np.float64]

#: Two peaks, of which the second is best.
PEAKS = np.array([[0.030, 0.015], [0.015, 0.033]])


def best(won: Floats, trials: Floats) -> tuple[int, ...]:
    """Return the levels of the arm with the largest average."""
    means = np.where(trials > 0, won / np.maximum(trials, 1), -1.0)
    return tuple(int(level) for level in np.unravel_index(means.argmax(), means.shape))


def _pulls(state, means, rng, n, won, trials):  # type: ignore[no-untyped-def]
    for _ in range(n):
        arm, tag = choose(state, rng)
        reward = 1.0 if rng.random() < means[arm] else 0.0
        update(state, arm, tag, reward)
        won[arm] += reward
        trials[arm] += 1.0


def played(policy: rank1.Policy, means: Floats, n: int, seed: int) -> tuple[Floats, Floats]:
    """Return the successes and trials of n pulls by a policy."""
    state = policy.start(Known(sides=means.shape, n=n))
    won, trials = np.zeros((2, means.size))
    rng = np.random.default_rng(seed)
    kernel(_pulls, state)(state, means.ravel(), rng, n, won, trials)
    return won.reshape(means.shape), trials.reshape(means.shape)


@pytest.mark.parametrize("n", [1, 2, 5, 30, 200, 5000])
def test_tails_are_those_of_the_binomial(n: int) -> None:
    """They are within 0.005 of the exact tails."""
    k = np.unique(np.linspace(1, n, 60).astype(int)).astype(float)
    for p in (1e-4, 0.003, 0.03, 0.2, 0.5, 0.8, 0.99):
        tails = norm.sf(_below(k, np.full(k.shape, float(n)), p))
        assert tails == pytest.approx(binom.sf(k - 1, n, p), abs=0.005)
    assert (_below(np.array([n + 1.0]), np.array([float(n)]), 0.5) == np.inf).all()


@given(st.integers(0, 10**6), st.sampled_from([(2, 2), (5, 3), (3, 2, 2), (7,)]))
def test_powers_are_those_of_the_exact_test(seed: int, sizes: tuple[int, ...]) -> None:
    """They agree within 0.005, except where rounding decides the critical value."""
    rng = np.random.default_rng(seed)
    n = rng.integers(0, rng.choice([3, 40, 2000]), sizes)
    s = rng.binomial(n, rng.random(sizes) ** 2)
    found, leader = fit(s, n - s), tuple(int(rng.integers(size)) for size in sizes)
    power = powers(found, leader)
    top = min((s[leader] + found.means[leader]) / (n[leader] + 1), 1 - 1e-12)
    for at in np.ndindex(*sizes):
        if at == leader:
            assert power[at] == 1
            continue
        mean = min(max(found.means[at], 1e-12), 1 - 1e-12)
        least = binom.ppf(0.95, n[at], mean) + 1
        around = binom.sf([least - 2, least - 1], n[at], mean)
        if n[at] == 0:
            assert power[at] == 0
        elif np.abs(around - 0.05).min() > 0.005:
            assert power[at] == pytest.approx(binom.sf(least - 1, n[at], top), abs=0.005)
    least_of_all = np.delete(power.ravel(), np.ravel_multi_index(leader, sizes)).min()
    assert second_peak(s, n - s, leader).power == pytest.approx(least_of_all)
    arm = second_peak(s, n - s, leader).arm
    assert arm is not None
    assert power[arm] == pytest.approx(least_of_all)


def test_leverages_are_those_of_weighted_least_squares() -> None:
    rng = np.random.default_rng(1)
    for sizes in ((3, 4), (2, 3, 2), (5,)):
        means = functools.reduce(np.multiply.outer, [rng.uniform(0.3, 0.9, k) for k in sizes])
        n = rng.integers(20, 500, sizes)
        s = rng.binomial(n, means)
        found = fit(s, n - s)
        X = np.array(
            [np.concatenate([np.eye(k)[i] for k, i in zip(sizes, at, strict=True)])
             for at in np.ndindex(*sizes)]
        )  # fmt: skip
        w = (n * found.means / (1 - found.means)).ravel()
        hat = np.diag(X @ np.linalg.pinv(X.T @ (w[:, None] * X)) @ X.T) * w
        assert _leverages(found).ravel() == pytest.approx(hat, abs=1e-6)
        assert hat.sum() == pytest.approx(sum(sizes) - len(sizes) + 1)  # one for each parameter


def test_an_arm_that_was_tried_once_is_named() -> None:
    peak = second_peak([[150, 75], [75, 0]], [[4850, 4925], [4925, 1]], (0, 0))
    assert peak.arm == (1, 1)
    assert peak.power < 0.05
    assert peak.against is None


@pytest.mark.validate
def test_a_policy_that_leaves_the_best_arm_is_noticed() -> None:
    """On two peaks, TopTwo often tries the best arm once; then the text says there is no power."""
    stuck = 0
    for seed in range(12):
        won, trials = played(rank1.TopTwo(), PEAKS, 20_000, seed)
        if trials[1, 1] < 5:
            stuck += 1
            peak = second_peak(won, trials - won, best(won, trials))
            assert peak.arm == (1, 1)
            assert peak.power < 0.15
    assert stuck >= 3


def test_balanced_data_speak_against_rank_one() -> None:
    """Of 40 experiments with 5,000 pulls per arm, at least 30 must notice; 36 are expected."""
    replay = fixed_design(np.full((2, 2), 5000))
    noticed = 0
    for seed in range(40):
        won, lost = map(np.asarray, replay(PEAKS, np.random.default_rng(seed)))
        peak = second_peak(won, lost, best(won, won + lost))
        noticed += peak.against in {(0, 0), (1, 1)}
    assert noticed >= 30


@pytest.mark.parametrize(
    "means",
    [
        np.outer([0.9, 0.8], [0.8, 0.7]),
        np.outer([0.3, 0.2, 0.2], [0.1, 0.08, 0.08]),
        np.multiply.outer(np.outer([0.9, 0.6], [0.8, 0.3]), [0.5, 0.4, 0.2]),
    ],
    ids=["high", "low", "three sides"],
)
@pytest.mark.parametrize(
    ("policy", "runs", "n"),
    [
        (None, 200, 600),
        pytest.param(None, 2000, 6000, marks=pytest.mark.validate),
        pytest.param(rank1.UTS(), 1000, 3000, marks=pytest.mark.validate),
        pytest.param(rank1.TopTwo(), 1000, 3000, marks=pytest.mark.validate),
    ],
)
def test_rank_one_is_rarely_spoken_against(
    policy: rank1.Policy | None, runs: int, n: int, means: Floats
) -> None:
    """In at most 5% of rank-one grids, plus three standard errors."""
    alarms = 0
    for seed in range(runs):
        if policy is None:
            trials = np.full(means.shape, float(n // means.size))
            won = np.random.default_rng(seed).binomial(n // means.size, means).astype(np.float64)
        else:
            won, trials = played(policy, means, n, seed)
        alarms += second_peak(won, trials - won, best(won, trials)).against is not None
    assert alarms <= 0.05 * runs + 3 * math.sqrt(0.05 * 0.95 * runs)


def test_edges() -> None:
    assert second_peak([[3]], [[4]], (0, 0)) == (None, 1.0, None)
    nothing = second_peak(np.zeros((2, 3)), np.zeros((2, 3)), (0, 0))
    assert (nothing.power, nothing.against) == (0, None)
    certain = second_peak(np.full((2, 2), 9.0), np.zeros((2, 2)), (0, 0))
    assert certain.power < 0.05  # all arms are as good as the leader
    # It is no news that a rarely tried arm has a better fit than the leader.
    better = second_peak([[0, 400], [400, 100]], [[1, 600], [600, 900]], (0, 1))
    assert better.arm == (0, 0)
    assert better.power < 0.05
    with pytest.raises(rank1.InputError, match="leader must be 2 levels, one for each side"):
        second_peak(np.ones((2, 2)), np.ones((2, 2)), (0,))
    with pytest.raises(
        rank1.InputError, match="leader must be a whole number of at least 0 and at most 1"
    ):
        second_peak(np.ones((2, 2)), np.ones((2, 2)), (0, 2))


def test_no_scipy_and_no_numba_are_imported() -> None:
    code = (
        "import sys; from rank1.fit import second_peak; second_peak([[5, 3]], [[5, 7]], (0, 0));"
        "assert not {'scipy', 'numba'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
