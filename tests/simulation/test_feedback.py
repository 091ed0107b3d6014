"""Rewards that come late, in batches or never, and policies that forget."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import rank1
import rank1.simulation.late as late_module
from rank1.policies import POLICIES
from rank1.simulation.feedback import AT_ONCE, Feedback
from rank1.simulation.late import late_run
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
        state = late_run(series, PROBLEM, PROBLEM.law, rng, curve, 200, lambda: False).state
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


def reports(feedback: Feedback, n: int) -> tuple[Any, Any]:
    """Steps after which each of the arms 0 … n − 1, pulled in order, is reported; and rewards."""
    from rank1.compiled import generator

    class Listener(NamedTuple):
        limits: Any
        pulled: Any
        when: Any
        reward: Any

        def choose(self, rng: np.random.Generator) -> tuple[int, int]:
            self.pulled[0] += 1
            return self.pulled[0] - 1, 0

        def issued(self, arm: int, tag: int) -> None: ...

        def expects(self, arm: int, tag: int) -> bool:
            return True

        def update(self, arm: int, tag: int, reward: float) -> None:
            self.when[arm], self.reward[arm] = self.pulled[0], reward

    problem = rank1.Means(np.full(n, 0.5))
    series = Series.of(rank1.Uniform(), problem, n, 1, 1, feedback=feedback)
    known = rank1.Known(n=n, sides=(n,))
    state = Listener(known.limits, np.zeros(1, int), np.full(n, -1), np.zeros(n))
    object.__setattr__(series, "start", lambda _: state)
    with generator(series.seed_of(0)) as rng, pytest.MonkeyPatch.context() as patch:
        patch.setattr(late_module, "kernel", lambda function, *_: function)
        late_run(series, problem, problem.law, rng, np.zeros((1, 4)), 7, lambda: False)
    return state.when, state.reward


@pytest.mark.parametrize("batch", [1, 5, 64])
def test_each_reward_comes_in_when_it_is_due(batch: int) -> None:
    """At the end of the first batch that ends no sooner than the pull's own delay after it."""
    n, delays = 400, {"success": 9, "failure": 70}
    when, reward = reports(Feedback.of(delay=delays, batch=batch), n)
    came = when >= 0
    due = 1 + np.arange(n) + np.where(reward > 0, 9, 70)
    due = -(-due // batch) * batch
    np.testing.assert_array_equal(when[came], due[came])
    assert 100 < reward.sum() < 300
    assert np.all(~came[n - 9 :])
    assert np.all(came[: n - 70 - 64])


def test_drift_scales_rewards_and_gaps() -> None:
    """Uniform pulls: expected regret is exact, rewards and realised regret within 4 errors."""
    drift = [1.0, 0.25]
    n, problem = 20_000, rank1.spike(2, 2, 0.5, 0.5, 0.4, 0.4)
    plain, late = (
        rank1.simulate(rank1.Uniform(), problem, n, 4, seed=1, drift=d).outcomes[0]
        for d in (None, drift)
    )
    gap = problem.best_mean - problem.means.mean()
    assert plain.expected[:, -1].mean() == pytest.approx(n * gap, rel=0.02)
    assert late.expected[:, -1].mean() == pytest.approx(0.625 * n * gap, rel=0.02)
    error = late.realised[:, -1].std(ddof=1) / 2 + 30
    assert abs(late.realised[:, -1].mean() - late.expected[:, -1].mean()) < 4 * error


def test_a_cycle_is_a_table_of_its_multipliers() -> None:
    cycle = {"amplitude": 0.9, "period": 50}
    table = Feedback.of(drift=cycle).multipliers
    assert (table.max(), table.min()) == pytest.approx((1, 0.1))
    one, two = (
        rank1.simulate(rank1.UTS(), PROBLEM, 500, 2, seed=3, drift=drift).outcomes[0].realised
        for drift in (cycle, table.tolist())
    )
    np.testing.assert_array_equal(one, two)


def test_a_drift_of_ones_changes_only_random_numbers() -> None:
    result = rank1.simulate(rank1.UTS(), PROBLEM, 2000, 40, seed=1, drift=[1.0]).outcomes[0]
    plain = rank1.simulate(rank1.UTS(), PROBLEM, 2000, 40, seed=1).outcomes[0]
    one, two = result.expected[:, -1], plain.expected[:, -1]
    error = np.hypot(one.std(), two.std()) / np.sqrt(40)
    assert abs(one.mean() - two.mean()) < 4 * error


def test_a_search_may_have_late_rewards() -> None:
    """The rule sees what has come in; a policy that doesn't look at rewards pulls on until then."""
    policy = rank1.Uniform()
    problem = rank1.spike(3, 3, 0.4, 0.4, 0.5, 0.5)
    arguments: dict[str, Any] = {"runs": 20, "seed": 1}
    at_once = rank1.identify(policy, problem, **arguments)["uniform"]
    delay = {"success": 500, "failure": 500}
    found = rank1.identify(policy, problem, delay=delay, **arguments)
    late = found["uniform"]
    assert late.stopped.all()
    assert not late.wrong.any()
    np.testing.assert_array_equal(late.pulls, at_once.pulls + 500)
    assert found.document()["feedback"]["delay"] == delay
    assert np.all(late.regret <= late.pulls * (problem.best_mean - problem.lowest_mean))
    drifted = rank1.identify(policy, problem, drift=[0.5], **arguments)
    assert drifted["uniform"].pulls.mean() > at_once.pulls.mean()
    assert drifted.bound is None


def test_drift_and_delays_are_kept_and_refused(tmp_path: Path) -> None:
    how: dict[str, Any] = {"delay": {"success": 1, "failure": 9}, "drift": [1.0, 0.5]}
    result = rank1.simulate(rank1.UTS(), PROBLEM, 100, 2, **how)
    result.save(tmp_path / "drift.parquet")
    again: Any = rank1.load(tmp_path / "drift.parquet")
    assert again.feedback == result.feedback == Feedback.of(**how)
    assert {**result.document()["feedback"], **how} == result.document()["feedback"]
    series = [
        Series.of(rank1.UTS(), PROBLEM, 100, feedback=Feedback.of(**options))
        for options in (
            {"delay": 1},
            {"delay": {"success": 1, "failure": 1}},
            {"drift": [1.0]},
            {"drift": {"amplitude": 0.0, "period": 2}},
            {"drift": {"amplitude": 0.1, "period": 2}},
        )
    ]
    assert len({one.key for one in series}) == 5
    for options, message in (
        ({"delay": {"success": 1}}, "delay must be a number, or a dict of success and failure"),
        ({"delay": {"success": 1, "failure": -1}}, "delay of a failure must be a whole number"),
        ({"drift": {"amplitude": 2, "period": 9}}, "amplitude of a drift must be .*got 2"),
        ({"drift": {"amplitude": 0.5}}, "drift must be a dict of amplitude and period"),
        ({"drift": [0.5, 1.5]}, "a multiplier of drift must be .*got 1.5"),
        ({"drift": []}, "drift must be a list of 1 to"),
        ({"drift": "often"}, "drift must be a dict of amplitude and period, or a list"),
    ):
        with pytest.raises((rank1.InputError, rank1.InputTypeError), match=message):
            rank1.simulate(rank1.UTS(), PROBLEM, 100, 1, **options)
    always = rank1.Categorical([1, 2], [[[0.5, 0.5]]])
    with pytest.raises(rank1.InputError, match=r"drift must be None unless a reward may be 0"):
        rank1.simulate(rank1.UCB1(), always, 10, 1, drift=[0.5])


def test_a_sweep_may_drift() -> None:
    spike = {"name": "spike", "K": 2, "L": 2, "p_u": 0.5, "p_v": 0.5, "delta_u": 0.4}
    grid = {"n": 500, "runs": 2, "problem": [spike | {"delta_v": 0.4}], "policy": [{"name": "uts"}]}
    late = grid | {"drift": {"amplitude": 0.5, "period": 100}, "delay": 3, "batch": 2}
    swept = rank1.sweep(late, jobs=1, backend="threads")
    problem = rank1.spike(2, 2, 0.5, 0.5, 0.4, 0.4)
    how: dict[str, Any] = {"drift": {"amplitude": 0.5, "period": 100}, "delay": 3, "batch": 2}
    direct = rank1.simulate(rank1.UTS(), problem, 500, 2, **how)
    mean = swept.summary()["expected_mean"].to_list()[-1]
    assert mean == pytest.approx(direct.outcomes[0].expected[:, -1].mean())
    with pytest.raises(rank1.InputError, match="period of a drift must be"):
        rank1.sweep(grid | {"drift": {"amplitude": 0.5, "period": 1}})
