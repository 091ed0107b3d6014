"""Playing until the rule stops: pulls, wrong stops, seeds, store, and what TopTwo must reach."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1 import stopping
from rank1.policies import ask, tell
from rank1.simulation import Series
from rank1.simulation.stop import BestArmRule
from tests.support import few, start

PROBLEM = rank1.spike(3, 4, 0.4, 0.4, 0.5, 0.5)
BOTH = [rank1.TopTwo(), rank1.Uniform()]
EIGHT = rank1.spike(8, 8, 0.5, 0.5, 0.2, 0.2)
NEAR_TIE = rank1.Bernoulli([0.5, 0.49, 0.3], [0.8, 0.79])


def facts(found: rank1.Identification) -> dict[str, Any]:
    """The document without the time it took."""
    document = found.document()
    for entry in document["policies"]:
        del entry["seconds"]
    return document


def test_top_two_needs_a_sixth_of_an_equal_split() -> None:
    """An independent program, which looked every 100 pulls, needed 9,178 and 68,810."""
    found = rank1.identify(BOTH, EIGHT, confidence=0.95, runs=40, seed=1)
    ours, split = found["top_two"], found["uniform"]
    assert ours.stopped.all()
    assert split.stopped.all()
    assert not ours.wrong.any()
    assert not split.wrong.any()
    se = ours.pulls.std(ddof=1) / math.sqrt(40)
    assert ours.pulls.mean() + 4 * se < 10_000
    se = np.hypot(6 * se, split.pulls.std(ddof=1) / math.sqrt(40))
    assert split.pulls.mean() - 6 * ours.pulls.mean() > 3 * se


def test_the_optimal_share_is_better_than_a_half() -> None:
    """By about 3,000 pulls, as in the independent program: 9,178 against 12,070."""
    found = rank1.identify([rank1.TopTwo(), rank1.TopTwo(share=0.5)], EIGHT, runs=40, seed=1)
    ours, half = found["top_two"].pulls, found["top_two:share=0.5"].pulls
    se = math.hypot(ours.std(ddof=1), half.std(ddof=1)) / math.sqrt(40)
    assert half.mean() - ours.mean() > 5 * se


@pytest.mark.validate
def test_top_two_needs_a_twelfth_at_16() -> None:
    found = rank1.identify(BOTH, rank1.spike(16, 16, 0.5, 0.5, 0.2, 0.2), runs=60, seed=2)
    ours, split = found["top_two"].pulls, found["uniform"].pulls
    assert found["top_two"].stopped.all()
    se = np.hypot(12 * ours.std(ddof=1), split.std(ddof=1)) / math.sqrt(60)
    assert split.mean() - 12 * ours.mean() > 2 * se


@pytest.mark.parametrize(
    "runs", [200, pytest.param(2000, marks=pytest.mark.validate)], ids=lambda runs: f"{runs} runs"
)
@pytest.mark.parametrize("confidence", few([0.95, 0.5], 1))
def test_wrong_stops_on_a_near_tie(confidence: float, runs: int) -> None:
    """With a look after every pull: 0 and 4 of 2,000, where 100 and 1,000 are allowed."""
    problem = rank1.Bernoulli([0.9, 0.86], [0.9, 0.86])  # gaps of 0.036
    found = rank1.identify(rank1.TopTwo(), problem, confidence, n=100_000, runs=runs, seed=1)
    assert found["top_two"].stopped.all()
    assert found["top_two"].wrong.sum() <= (1 - confidence) * runs
    # Here few may stop at all.
    found = rank1.identify(rank1.TopTwo(), NEAR_TIE, confidence, n=20_000, runs=runs, seed=1)
    assert found["top_two"].wrong.sum() <= (1 - confidence) * runs


def test_with_a_tolerance_a_near_tie_ends() -> None:
    """Two pairs within 0.01 of each other: never to be told apart at this n, and no matter."""
    arguments: dict[str, Any] = {"n": 50_000, "runs": 30, "seed": 1}
    strict = rank1.identify(rank1.Uniform(), NEAR_TIE, **arguments)["uniform"]
    assert not strict.stopped.any()
    near = rank1.identify(rank1.Uniform(), NEAR_TIE, tolerance=0.1, **arguments)["uniform"]
    assert near.stopped.all()
    assert not near.wrong.any()
    assert len(set(near.best_pairs)) > 1


def test_a_run_is_a_policy_with_a_look_after_every_pull() -> None:
    """Step by step through `ask`, `tell` and `verdict`, from the run's own random numbers."""
    found = rank1.identify(rank1.TopTwo(), PROBLEM, confidence=0.9, runs=3, seed=5)["top_two"]
    for run in range(3):
        rule = BestArmRule(confidence=0.9)
        series = Series.of(rank1.TopTwo(), PROBLEM, 1_000_000, 1, seed=5, stop=rule)
        rng = np.random.default_rng(series.seed_of(run))
        state = start(rank1.TopTwo(), PROBLEM, 1_000_000)
        won, lost = np.zeros((3, 4)), np.zeros((3, 4))
        regret, pulls = 0.0, 0
        while pulls < 12 or not stopping.verdict(won, lost, confidence=0.9).stop:
            pull = ask(state, rng)
            reward, _ = PROBLEM.law.draw(pull.arm, rng)
            tell(state, pull, reward)
            pair = divmod(pull.arm, 4)
            won[pair] += reward
            lost[pair] += 1 - reward
            regret += PROBLEM.best_mean - PROBLEM.means[pair]
            pulls += 1
        assert pulls == found.pulls[run]
        assert regret == pytest.approx(found.regret[run])
        assert stopping.verdict(won, lost).leader == found.best_pairs[run]


def test_a_run_that_is_not_stopped_counts_with_n() -> None:
    found = rank1.identify(BOTH, EIGHT, n=500, runs=4)
    for each in found.searches:
        assert each.pulls.tolist() == [500] * 4
        assert not each.stopped.any()
        assert not each.wrong.any()  # only a stop can be wrong
    entry = found.document()["policies"][0]
    assert (entry["stopped"], entry["wrong"], entry["pulls"]["mean"]) == (0, 0, 500)


def test_what_counts_as_wrong() -> None:
    """A stop at a pair that is further from the best than the tolerance."""

    @dataclasses.dataclass(frozen=True)
    class Liar(rank1.Uniform):
        name = "liar"

    problem = rank1.Bernoulli([0.9, 0.8], [1.0])
    found = rank1.identify(Liar(), problem, confidence=0.01, n=1000, runs=60, seed=3).searches[0]
    at_worse = np.array([pair == (1, 0) for pair in found.best_pairs])
    assert found.wrong.any()  # with so little confidence
    np.testing.assert_array_equal(found.wrong, found.stopped & at_worse)
    lenient = rank1.identify(Liar(), problem, 0.01, tolerance=0.11, n=1000, runs=60, seed=3)
    assert not lenient.searches[0].wrong.any()
    tied = rank1.identify(Liar(), rank1.Bernoulli([0.9, 0.9], [1.0]), 0.01, n=1000, runs=60)
    assert tied.searches[0].stopped.any()
    assert not tied.searches[0].wrong.any()


def test_without_rank_one_all_pairs_are_compared() -> None:
    """A grid with two peaks: who assumes rank one stops at the wrong one now and then."""
    means = np.array([[0.6, 0.2], [0.2, 0.58]])
    problem = rank1.Categorical([0, 1], np.stack([1 - means, means], axis=-1))
    arguments: dict[str, Any] = {"n": 20_000, "runs": 30, "seed": 1}
    assumed = rank1.identify(rank1.Uniform(), problem, **arguments)["uniform"]
    assert assumed.stopped.all()
    assert 3 <= assumed.wrong.sum() < 30
    assert assumed.pulls.max() < 1000
    safe = rank1.identify(rank1.Uniform(), problem, rank_one=False, **arguments)["uniform"]
    assert not safe.wrong.any()
    assert safe.pulls.min() > 1000


def test_same_seed_same_numbers() -> None:
    once = facts(rank1.identify(BOTH, PROBLEM, runs=5, seed=7))
    assert facts(rank1.identify(BOTH, PROBLEM, runs=5, seed=7, jobs=2)) == once
    alone = facts(rank1.identify(BOTH[0], PROBLEM, runs=5, seed=7))
    assert alone["policies"] == once["policies"][:1]
    assert facts(rank1.identify(BOTH, PROBLEM, runs=5, seed=8)) != once


def test_shuffled_lines_have_the_problems_own_names() -> None:
    found = rank1.identify(rank1.TopTwo(), PROBLEM, runs=6, shuffle=True)["top_two"]
    assert found.best_pairs == [(0, 0)] * 6
    plain = rank1.identify(rank1.TopTwo(), PROBLEM, runs=6)["top_two"]
    assert found.pulls.tolist() != plain.pulls.tolist()


def test_a_second_call_plays_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: dict[str, Any] = {"runs": 6, "store": tmp_path / "cells"}
    first = facts(rank1.identify(BOTH, PROBLEM, **arguments))
    played: list[int] = []
    original = Series.play

    def counted(self: Series, runs: range, *rest: Any) -> Any:
        played.extend(runs)
        return original(self, runs, *rest)

    monkeypatch.setattr(Series, "play", counted)
    assert facts(rank1.identify(BOTH, PROBLEM, **arguments)) == first
    fewer = facts(rank1.identify(BOTH, PROBLEM, **(arguments | {"runs": 4})))
    assert fewer["policies"][0]["best_pair"] == first["policies"][0]["best_pair"][:4]
    assert not played
    # Another rule is another series.
    for other in ({"confidence": 0.9}, {"tolerance": 0.01}, {"rank_one": False}, {"seed": 2}):
        played.clear()
        rank1.identify(BOTH[0], PROBLEM, **arguments, **other)
        assert sorted(set(played)) == list(range(6))
    # And a simulation of the same policy is none of these.
    rank1.simulate(BOTH[0], PROBLEM, n=100, runs=2, store=tmp_path / "cells")
    assert facts(rank1.identify(BOTH, PROBLEM, **arguments)) == first


def test_interrupted_with_what_was_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rank1.identify(BOTH, PROBLEM, runs=9)
    original = Series.play
    played: list[range] = []

    def some(self: Series, runs: range, *rest: Any) -> Any:
        if len(played) == 3:
            raise KeyboardInterrupt
        played.append(runs)
        return original(self, runs, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Series, "play", some)
        patch.setattr("rank1.simulation.plan.MAX_TASK", 1)
        patch.setattr("rank1.simulation.plan.cut", lambda runs, *_: [range(k, k + 1) for k in runs])
        with pytest.raises(rank1.Interrupted) as stop:
            rank1.identify(BOTH, PROBLEM, runs=9)
    found = stop.value.result
    assert sum(len(each.pulls) for each in found.searches) == 3
    assert found.runs == max(len(each.pulls) for each in found.searches)
    for each in found.searches:
        assert each.pulls.tolist() == whole[each.label].pulls[: len(each.pulls)].tolist()

    def stopped(self: Series, *_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Series, "play", stopped)
    with pytest.raises(rank1.Interrupted) as stop:
        rank1.identify(BOTH, PROBLEM, runs=9)
    assert stop.value.result is None


def test_summary_and_document() -> None:
    found = rank1.identify(BOTH, PROBLEM, confidence=0.9, tolerance=0.01, runs=5, seed=3)
    document = json.loads(json.dumps(found.document(), allow_nan=False))
    assert [document[name] for name in ("confidence", "tolerance", "n", "runs", "seed")] == [
        0.9, 0.01, 1_000_000, 5, 3,
    ]  # fmt: skip
    assert document["shuffle"] is False
    assert document["problem"]["name"] == "spike"
    assert [document["problem"][name] for name in "KL"] == [3, 4]
    rows = found.summary().rows(named=True)
    for each, entry, row in zip(found.searches, document["policies"], rows, strict=True):
        assert entry["policy"] == row["policy"] == each.label
        assert entry["stopped"] == row["stopped"] == 5
        assert entry["wrong"] == row["wrong"] == 0
        assert entry["pulls"]["mean"] == row["pulls_mean"] == each.pulls.mean()
        assert entry["pulls"]["se"] == pytest.approx(each.pulls.std(ddof=1) / math.sqrt(5))
        assert entry["pulls"]["median"] == row["pulls_median"] == np.median(each.pulls)
        assert entry["pulls"]["p90"] == row["pulls_p90"] == np.quantile(each.pulls, 0.9)
        assert entry["expected_regret"]["mean"] == row["regret_mean"] == each.regret.mean()
        assert entry["best_pair"] == [[0, 0]] * 5
    with pytest.raises(rank1.InputError, match="policy must be one of top_two, uniform, got 'uts'"):
        found["uts"]


def test_the_plot_is_of_the_runs_and_the_bound() -> None:
    found = rank1.identify(BOTH, EIGHT, runs=5, n=30_000)
    ax = found.plot()
    drawn = {str(line.get_label()): line for line in ax.lines}
    bound = rank1.theory.characteristic_time(EIGHT).pulls(0.95)
    (name,) = [label for label in drawn if label.startswith("T*")]
    assert f"{bound:,.0f}" in name
    assert np.asarray(drawn[name].get_xdata())[0] == pytest.approx(bound)
    stairs = drawn["top_two"]
    pulls = np.sort(found["top_two"].pulls)
    np.testing.assert_array_equal(np.asarray(stairs.get_xdata())[1:-1], pulls)
    np.testing.assert_allclose(np.asarray(stairs.get_ydata())[1:-1], np.arange(1, 6) / 5)
    assert np.asarray(drawn["uniform"].get_ydata()).max() == 0  # none stopped within n
    assert len(found.plot(bound=False).lines) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "n must be a whole number of at least 1, got 0"),
        ({"n": 2.5}, "n must be a whole number of at least 1, got 2.5"),
        ({"runs": 0}, "runs must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"confidence": 0}, "confidence must be .*got 0"),
        ({"confidence": 1}, "confidence must be .*got 1"),
        ({"confidence": 1.5}, "confidence must be .*got 1.5"),
        ({"confidence": math.nan}, "confidence must be .*got nan"),
        ({"tolerance": -0.1}, "tolerance must be .*got -0.1"),
        ({"jobs": 0}, "jobs must be .*got 0"),
        ({"backend": "cloud"}, "backend must be one of"),
        ({"policies": []}, "policies must be at least one"),
        ({"policies": [rank1.TopTwo(), rank1.TopTwo()]}, "top_two twice"),
        (
            {"problem": rank1.Gaussian([0.5], [0.5], sigma=1)},
            r"must be one with rewards in \[0, 1\]",
        ),
    ],
    ids=str,
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"policies": BOTH, "problem": PROBLEM, "runs": 2, "n": 100}
    with pytest.raises(rank1.InputError, match=message):
        rank1.identify(**(arguments | change))


def test_input_of_another_type() -> None:
    with pytest.raises(TypeError, match=r"problem must be a Problem, .*got 'spike'"):
        rank1.identify(BOTH, "spike")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got the class TopTwo"):
        rank1.identify(rank1.TopTwo, PROBLEM)  # type: ignore[arg-type]
    for name in ("rank_one", "shuffle"):
        with pytest.raises(TypeError, match=f"{name} must be true or false, got 'no'"):
            rank1.identify(BOTH, PROBLEM, **{name: "no"})  # type: ignore[arg-type]
