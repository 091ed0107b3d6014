"""Grids of one, three and four sides: simulations, late rewards, searches, files and sweeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rank1
from rank1.simulation import Series
from rank1.simulation.series import resolved

CUBE = rank1.Product([[0.9, 0.4], [0.8, 0.3, 0.5], [0.9, 0.5]])
#: The best arm is neither the first nor the last one.
ODD = rank1.Means(np.array([[[0.2, 0.3], [0.1, 0.9]], [[0.4, 0.2], [0.3, 0.1]]]))
LINE = rank1.Product([[0.3, 0.8, 0.5]])
SLOW = pytest.mark.validate

pytestmark = pytest.mark.usefixtures("uncompiled")


@pytest.mark.parametrize("policy", ["uniform", "ucb1", "uts", "thompson", "kl_ucb", "top_two"])
@pytest.mark.parametrize("problem", [LINE, CUBE, ODD], ids=repr)
def test_any_number_of_sides_is_played(problem: rank1.Problem, policy: str) -> None:
    result = rank1.simulate(policy, problem, 600, 2, seed=1, checkpoints=3)
    expected = result.outcomes[0].expected
    assert np.all(np.diff(expected, axis=1) >= 0)
    assert expected.max() <= 600 * (problem.best_mean - problem.lowest_mean)
    arms = result.best_arms(result.outcomes[0].label)
    assert all(len(arm) == len(problem.grid.sizes) for arm in arms)
    if policy != "uniform":
        assert arms == [problem.grid.levels(problem.best_arm)] * 2
    even = 600 * (problem.best_mean - problem.means.mean())
    if policy == "uniform":
        assert expected[:, -1].mean() == pytest.approx(even, rel=0.2)


def test_neighbours_learn_faster_than_arms() -> None:
    problem = rank1.Product([[0.8, 0.6, 0.6, 0.6]] * 3)
    found = rank1.simulate(["uts", "ucb1"], problem, 3000, 3, seed=1)
    uts, ucb1 = (outcome.expected[:, -1].mean() for outcome in found.outcomes)
    assert uts < 0.5 * ucb1


def test_what_is_not_for_pairs_says_so() -> None:
    result = rank1.simulate("uniform", CUBE, 50, 2)
    message = r"sides must be 2 for pairs, got 3 \(2×3×2\): use best_arms"
    with pytest.raises(rank1.InputError, match=message):
        result.best_pairs("uniform")
    document = result.document()
    json.dumps(document, allow_nan=False)
    assert document["problem"]["sides"] == [2, 3, 2]
    assert not {"K", "L"} & set(document["problem"])
    assert "best_pair" not in document["policies"][0]
    assert [len(arm) for arm in document["policies"][0]["best_arm"]] == [3, 3]
    assert "best_pair" not in result.summary().columns
    two = rank1.simulate("uniform", rank1.Product([[0.5, 0.1], [0.5]]), 50, 2)
    assert two.best_pairs("uniform") == two.best_arms("uniform")
    entry = two.document()["policies"][0]
    assert entry["best_pair"] == entry["best_arm"]


@pytest.mark.parametrize("policy", ["rank1elim", "rank1elim_kl", "pair_elim", "id_ts"])
def test_policies_for_two_sides_refuse_others(policy: str) -> None:
    for problem in (LINE, CUBE):
        for play in (rank1.simulate, rank1.identify):
            with pytest.raises(rank1.InputError, match=f"sides must be 2 for {policy}, got"):
                play(policy, problem, n=100, runs=1)


def test_stages_are_for_policies_that_leap() -> None:
    two = rank1.Means([[0.5, 0.1], [0.1, 0.52]])
    assert resolved("auto", rank1.Rank1Elim(), two) == "stages"
    with pytest.raises(rank1.InputError, match="method must be auto or steps for uts"):
        rank1.simulate("uts", CUBE, 100, 1, method="stages")


def test_a_product_of_two_sides_is_a_bernoulli_grid() -> None:
    u, v = [0.9, 0.4, 0.3], [0.8, 0.5]
    ends = [
        rank1.simulate("rank1elim", problem, 3000, 3, seed=1).outcomes[0].expected[:, -1]
        for problem in (rank1.Product([u, v]), rank1.Bernoulli(u, v))
    ]
    assert ends[0].min() > 0
    assert ends[0].mean() == pytest.approx(ends[1].mean(), rel=0.2)


@pytest.mark.parametrize(
    "options",
    [{"delay": 20}, {"missing": 0.3}, {"batch": 50}, {"delay": 9, "missing": 0.1, "batch": 4}],
    ids=str,
)
@pytest.mark.parametrize("policy", ["uniform", "uts", "ucb1"])
def test_rewards_may_come_late(policy: str, options: dict[str, Any]) -> None:
    n = 1500 if policy == "uts" else 300
    result = rank1.simulate(policy, CUBE, n, 2, seed=1, checkpoints=3, **options)
    assert np.all(np.diff(result.outcomes[0].expected, axis=1) >= 0)
    if policy == "uts":
        assert result.best_arms("uts") == [(0, 0, 0)] * 2


def test_policies_may_forget() -> None:
    result = rank1.simulate("uts", CUBE, 1500, 2, seed=1, forgetting=400)
    assert result.best_arms("uts") == [(0, 0, 0)] * 2
    with pytest.raises(rank1.InputError, match="forgetting must be None for rank1elim"):
        rank1.simulate("rank1elim", rank1.Product([[0.5], [0.5]]), 100, 1, forgetting=10)


def test_levels_are_shuffled_on_every_side() -> None:
    """Arms in the result are the problem's own, and no order is favoured."""
    series = Series.of(rank1.Oracle(), ODD, 5, 1, shuffle=True)
    seen = set()
    for run in range(12):
        played = series.play_run(run)
        assert played.best_arm == ODD.best_arm
        assert played.curve[-1].tolist() == [0.0, 0.0]
        seen.add(played.problem.best_arm)
    assert len(seen) > 3
    found = rank1.simulate("uts", ODD, 800, 3, seed=1, shuffle=True)
    assert found.best_arms("uts") == [(0, 1, 1)] * 3


def test_the_best_arm_is_identified() -> None:
    problem = rank1.Product([[0.9, 0.3], [0.9, 0.3], [0.9, 0.3]])
    for shuffle in (False, True):
        found = rank1.identify("top_two", problem, runs=3, n=20_000, shuffle=shuffle)
        searches = found["top_two"]
        assert searches.stopped.all()
        assert not searches.wrong.any()
        assert searches.best_arms == [(0, 0, 0)] * 3
        assert np.all(searches.regret > 0)
    assert found.document()["problem"]["sides"] == [2, 2, 2]
    entry = found.document()["policies"][0]
    assert entry["best_arm"] == [[0, 0, 0]] * 3
    assert "best_pair" not in entry
    with pytest.raises(rank1.InputError, match=r"sides must be 2 for pairs, got 3"):
        _ = searches.best_pairs
    assert found.summary()["stopped"].to_list() == [3]


def test_one_side_is_an_a_b_n_test() -> None:
    found = rank1.identify("top_two", LINE, runs=3, n=20_000)["top_two"]
    assert found.best_arms == [(1,)] * 3
    assert found.stopped.all()


def test_files_keep_arms_and_sides(tmp_path: Path) -> None:
    result = rank1.simulate(["uts", "uniform"], ODD, 300, 3, seed=2, checkpoints=4)
    result.save(tmp_path / "runs.parquet")
    again = rank1.load(tmp_path / "runs.parquet")
    assert again.document() == result.document()
    assert again.summary().equals(result.summary())
    assert again.best_arms("uts") == result.best_arms("uts") == [(0, 1, 1)] * 3
    frame = pl.read_parquet(tmp_path / "runs.parquet")
    assert set(frame["sides"]) == {"[2, 2, 2]"}
    assert frame.filter(pl.col("policy") == "uts")["best_arm"].to_list() == [3] * 12
    assert isinstance(again.problem, rank1.Means)


def test_a_store_knows_problems_by_their_sides(tmp_path: Path) -> None:
    means = np.linspace(0.1, 0.8, 8)
    ends = []
    for shape in ((8,), (2, 4), (4, 2), (2, 2, 2)):
        problem = rank1.Means(means.reshape(shape))
        once = rank1.simulate("uts", problem, 100, 2, store=tmp_path).outcomes[0]
        again = rank1.simulate("uts", problem, 100, 2, store=tmp_path).outcomes[0]
        np.testing.assert_array_equal(once.expected, again.expected)
        ends.append(Series.of(rank1.UTS(), problem, 100).key)
    assert len(set(ends)) == 4


def test_a_file_from_before_there_were_sides_is_read() -> None:
    """Written by version 0.1 with row and column of the best pair in place of an arm."""
    kept = Path(__file__).parent / "old"
    result = rank1.load(kept / "result-3.parquet")
    told = json.loads((kept / "result-3.json").read_text())
    assert result.best_pairs("rank1elim") == [tuple(pair) for pair in told["rank1elim"]]
    assert result.best_pairs("uniform") == [tuple(pair) for pair in told["uniform"]]
    assert result.outcomes[0].expected[:, -1].tolist() == told["expected"]
    assert result.about["sides"] == [2, 3]
    assert result.problem is not None
    assert result.summary()["found"].to_list() == told["found"]
    sweep = rank1.load(kept / "sweep-3.parquet")
    assert sweep.summary()["runs"].to_list() == [2, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rank1.Product([[0.5], []]), r"factors\[1\] must be a list of at least one number"),
        (lambda: rank1.Product([[0.5], [0.5, 1.2]]), r"factors\[1\]\[1\] must be .*got 1.2"),
        (lambda: rank1.Means([[0.5], [0.5, 0.1]]), "means must be an array of probabilities"),
        (lambda: rank1.Product([[0.5] * 1000] * 3), "1,000,000,000"),
        (lambda: rank1.simulate("uts", rank1.Bernoulli([0.5] * 2000, [0.5] * 2000), 10, 1),
         "sides must be small enough for 1,048,576 arms, because uts stores data"),
        (lambda: rank1.identify("uniform", rank1.Gaussian(factors=[[0.5]] * 3, sigma=1)),
         r"problem must be one with rewards in \[0, 1\] for the stopping rule"),
        (lambda: rank1.simulate("uts", rank1.Gaussian(factors=[[0.5]] * 3, sigma=1), 10, 1),
         r"rewards must be in \[0, 1\] for uts"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call: Any, message: str) -> None:
    with pytest.raises(rank1.Rank1Error, match=message):
        call()
