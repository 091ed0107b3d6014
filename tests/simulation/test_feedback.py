"""Rewards that come late, in batches or never, and policies that forget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1.policies import POLICIES
from rank1.simulation.feedback import AT_ONCE, Feedback, late_run
from rank1.simulation.series import Series

PROBLEM = rank1.Bernoulli([0.9, 0.2, 0.5], [0.3, 0.8])
SLOW = pytest.mark.validate
#: Each policy is compiled for this, which takes seconds: most of them are tried by `make validate`.
EVERY_POLICY = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("uniform", "uts") else SLOW)
        for name in POLICIES
        if name != "oracle"
    ],
)


def learned(name: str, runs: int, n: int, feedback: Feedback) -> Any:
    """How many rewards each of the runs has learned from."""
    policy = POLICIES[name]()
    series = Series.of(policy, PROBLEM, n, 1, 1, feedback=feedback)
    states = [series.play_run(run).state for run in range(runs)]
    return np.array([(s.successes + s.failures).sum() for s in states])


@EVERY_POLICY
def test_at_once_it_is_the_plain_loop(name: str) -> None:
    policy = POLICIES[name]()
    series = Series.of(policy, PROBLEM, 500, 5, 1, "steps")
    plain = series.play_run(0)
    curve = np.zeros((5, 2))
    from rank1.compiled import generator

    with generator(series.seed_of(0)) as rng:
        state = late_run(series, PROBLEM, PROBLEM.law, rng, curve, 200, lambda: False)
    np.testing.assert_array_equal(curve, plain.curve)
    for one, two in zip(state, plain.state, strict=True):
        assert one.tobytes() == two.tobytes()


@EVERY_POLICY
def test_every_policy_plays_on(name: str) -> None:
    result = rank1.simulate(
        POLICIES[name](), PROBLEM, 2000, 2, seed=1, delay=30, missing=0.2, batch=7, checkpoints=4
    )
    regret = result.outcomes[0].expected
    assert np.all(np.diff(regret, axis=1) >= 0)
    assert np.all(regret[:, -1] > 0)


def test_delay_is_the_mean_number_of_steps() -> None:
    """Rewards on their way: 50 on average, with a variance of 25; four standard errors."""
    pending = 2000 - learned("uts", 200, 2000, Feedback(delay=50.0))
    assert pending.mean() == pytest.approx(50, abs=4 * 5 / np.sqrt(200))
    assert pending.std() == pytest.approx(5, rel=0.25)


def test_missing_is_the_share_that_never_comes() -> None:
    came = learned("uts", 20, 2000, Feedback(missing=0.3))
    assert came.sum() == pytest.approx(28_000, abs=4 * np.sqrt(40_000 * 0.3 * 0.7))


def test_a_batch_is_chosen_before_its_rewards_come() -> None:
    pulls = rank1.simulate(rank1.UTS(), PROBLEM, 600, 1, seed=1, batch=600).outcomes[0].expected
    even = 600 * (PROBLEM.best_mean - PROBLEM.means.mean())
    assert pulls[0, -1] == pytest.approx(even)
    assert learned("uts", 1, 650, Feedback(batch=100))[0] == 600


def test_forgetting_helps_where_the_grid_has_turned() -> None:
    """A state that is told of one grid and then of another; the half-life is a tenth of either."""
    feedback = Feedback(forgetting=100.0)
    series = Series.of(rank1.UTS(), PROBLEM, 2000, 1, 1, feedback=feedback)
    state = series.play_run(0).state
    total = (state.successes + state.failures).sum()
    assert 100 / np.log(2) * 0.8 < total < 100 / np.log(2) * 1.2 + PROBLEM.arms


def test_delay_costs_regret() -> None:
    problem = rank1.spike(4, 4, 0.5, 0.5, 0.4, 0.4)
    regrets = [
        rank1.simulate(rank1.UTS(), problem, 20_000, 20, seed=1, delay=delay).outcomes[0]
        for delay in (0, 1000)
    ]
    at_once, late = (one.expected[:, -1].mean() for one in regrets)
    assert late > 2 * at_once


def test_what_cannot_be_is_refused() -> None:
    for options, message in (
        ({"delay": -1}, "delay must be a number of at least 0"),
        ({"missing": 1}, "missing must be a number of at least 0 and below 1, got 1"),
        ({"batch": 0}, "batch must be a whole number of at least 1"),
        ({"forgetting": 10, "method": "auto"}, "forgetting must be None for rank1elim"),
        ({"delay": 5, "method": "stages"}, "method must be auto or steps"),
    ):
        with pytest.raises(ValueError, match=message):
            rank1.simulate(rank1.Rank1Elim(), PROBLEM, 100, 1, **options)


def test_rewards_that_cannot_fade_are_refused_at_once() -> None:
    problem = rank1.Gaussian([0.5, 0.2], [0.5], sigma=1)
    with pytest.raises(rank1.InputError, match=r"forgetting must be None unless .*\[-inf, inf\]"):
        rank1.simulate(rank1.UCB1(), problem, 10, 1, forgetting=100)


def test_a_store_tells_them_apart(tmp_path: Path) -> None:
    policy = rank1.UTS()
    plain = Series.of(policy, PROBLEM, 100)
    assert plain.feedback == AT_ONCE
    keys = {Series.of(policy, PROBLEM, 100, feedback=Feedback(delay=d)).key for d in (0, 1, 2)}
    assert len(keys) == 3
    assert plain.key in keys
    first = rank1.simulate(policy, PROBLEM, 100, 2, delay=5, store=tmp_path)
    again = rank1.simulate(policy, PROBLEM, 100, 2, delay=5, store=tmp_path)
    np.testing.assert_array_equal(first.outcomes[0].expected, again.outcomes[0].expected)


def test_a_file_says_how_rewards_came(tmp_path: Path) -> None:
    result = rank1.simulate(rank1.UTS(), PROBLEM, 100, 2, delay=5, missing=0.1, batch=3)
    result.save(tmp_path / "late.parquet")
    again: Any = rank1.load(tmp_path / "late.parquet")
    assert again.feedback == result.feedback == Feedback(5.0, 0.1, 3)
    assert result.document()["feedback"]["delay"] == 5
