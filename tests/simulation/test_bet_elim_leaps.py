"""Whole versions at once: equal in law to the loop. And `identify` with a policy's own rule."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import rank1
from rank1.simulation.series import Series

# Few arms and long versions, so that nearly all of them are drawn at once.
PROBLEM = rank1.Product([[0.6, 0.5], [0.8, 0.7]])
POLICY = rank1.BetElim(growth=0.2)


def outcomes(method: str, n: int = 4000, runs: int = 300) -> list[np.ndarray]:
    """Regret at two checkpoints, expected and realised, and what was learned, of each run."""
    series = Series.of(POLICY, PROBLEM, n, [1500, n], seed=3, method=method)
    assert series.method == method
    played = [series.play_run(run) for run in range(runs)]
    learned = [run.state for run in played]
    return [
        *np.array([run.curve.ravel() for run in played]).T,
        np.array([state.log_e[1] for state in learned]),
        np.array([state.log_e[3] for state in learned]),
        np.array([state.counts[0] for state in learned]),
        np.array([state.sums[0] for state in learned]),
        np.array([state.living.sum() for state in learned]),
    ]


def test_versions_at_once_have_the_law_of_the_loop() -> None:
    """Kolmogorov–Smirnov for each of them; the least of nine p-values above 0.001."""
    for one, other in zip(outcomes("steps"), outcomes("stages"), strict=True):
        assert stats.ks_2samp(one, other, method="asymp").pvalue > 0.001
        assert np.std(one) > 0


@pytest.mark.parametrize("setting", [{}, {"min_lift": 0.1}, {"any_grid": True}], ids=str)
def test_identify_needs_as_many_pulls_either_way(setting: dict[str, float]) -> None:
    policy = rank1.BetElim(growth=0.2, **setting)  # type: ignore[arg-type]
    pulls = {}
    for method in ("steps", "stages"):
        found = rank1.identify(policy, PROBLEM, runs=200, seed=2, method=method, n=60_000)
        each = found.searches[0]
        assert each.wrong.mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
        assert each.stopped.mean() > 0.95
        pulls[method] = each.pulls
    assert stats.ks_2samp(*pulls.values(), method="asymp").pvalue > 0.001


def test_the_curve_stays_after_the_end() -> None:
    found = rank1.identify(rank1.BetElim(), PROBLEM, runs=3, n=100_000)["bet_elim"]
    assert found.stopped.all()
    assert (found.regret > 0).all()
    assert (found.regret < found.pulls).all()


def test_a_policy_with_its_own_rule_is_asked_and_others_are_judged() -> None:
    problem = rank1.spike(4, 4, 0.5, 0.5, 0.2, 0.2)
    found = rank1.identify(["bet_elim", "top_two"], problem, runs=20, seed=1)
    assert not found["bet_elim"].wrong.any()
    assert found["bet_elim"].pulls.mean() < 0.7 * found["top_two"].pulls.mean()
    sure = rank1.identify("bet_elim", problem, confidence=0.999, runs=20, seed=1)
    assert sure["bet_elim"].pulls.mean() > found["bet_elim"].pulls.mean()


def test_nothing_is_assumed_on_any_grid() -> None:
    """The crossing grid on which one order doesn't hold."""
    odd = rank1.Means([[0.5, 0.2], [0.45, 0.45]])
    found = rank1.identify("bet_elim", odd, runs=60, seed=1, rank_one=False, shuffle=True)
    assert found["bet_elim"].wrong.sum() <= 7
    assert found["bet_elim"].stopped.all()


@pytest.mark.uncompiled
def test_rewards_in_a_range() -> None:
    """Which the rule for all policies doesn't take."""
    prices = rank1.Categorical([0, 20, 100], [[0.90, 0.06, 0.04], [0.96, 0.02, 0.02]])
    found = rank1.identify("bet_elim", prices, runs=10, seed=1)["bet_elim"]
    assert not found.wrong.any()
    assert found.stopped.all()
    with pytest.raises(rank1.InputError, match=r"problem must be one with rewards in \[0, 1\]"):
        rank1.identify(["bet_elim", "top_two"], prices)
    with pytest.raises(rank1.InputError, match="method must be auto or steps"):
        rank1.identify("bet_elim", prices, method="stages")


def test_stages_are_refused_where_every_pull_is_looked_at() -> None:
    with pytest.raises(rank1.InputError, match="method must be auto or steps if rewards are"):
        rank1.identify("rank1elim", PROBLEM, method="stages")
