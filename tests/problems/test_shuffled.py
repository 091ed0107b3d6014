"""Shuffled problems: the same problem under other numbers, for whatever plays it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numba
import numpy as np
import pytest

import rank1
from rank1.compiled import kernel
from rank1.problems.bernoulli import BernoulliLaw
from rank1.problems.shuffled import Shuffled, ShuffledLaw
from rank1.simulation import Series
from tests.problems.support import draws, tallies
from tests.problems.test_contract import EXAMPLES, TRIED, Own
from tests.support import alike, few

PROBLEMS = TRIED | {
    "own": Own(0.1),
    "ties": rank1.Bernoulli([0.6, 0.9, 0.6, 0.9, 0.1], [0.7, 0.2, 0.7]),
}
Kind = Callable[[rank1.Problem], rank1.Problem]
#: A law of the problem's own type, and one behind a shuffled law.
KINDS: dict[str, Kind] = {"own": lambda problem: problem, "behind": alike}
EVERY = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


class SameSeeds(Series):
    """Its runs have the same random numbers whatever is played."""

    def seed_of(self, run: int, stream: int | None = None) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.seed, spawn_key=(run, stream or 0))


def in_order(problem: rank1.Problem, *orders: Any) -> Shuffled:
    """A shuffled problem of a given order."""
    made = Shuffled(problem, np.random.default_rng(1))
    made.orders = [np.array(order) for order in orders]
    return made


@EVERY
def test_everything_is_where_the_order_says(problem: rank1.Problem) -> None:
    shuffled = Shuffled(problem, np.random.default_rng(4))
    assert shuffled.grid == problem.grid
    for order, size in zip(shuffled.orders, problem.grid.sizes, strict=True):
        assert sorted(order) == list(range(size))
    for arm in range(problem.arms):
        own = shuffled.arm(arm)
        levels = zip(shuffled.orders, problem.grid.levels(arm), strict=True)
        assert problem.grid.levels(own) == tuple(order[level] for order, level in levels)
        assert shuffled.means.ravel()[arm] == problem.means.ravel()[own]
        assert shuffled.mean(arm) == problem.mean(own)
        assert shuffled.is_best(arm) == problem.is_best(own)
        assert (arm in shuffled.best_arms) == problem.is_best(own)
    assert shuffled.best_arms == sorted(shuffled.best_arms)
    assert shuffled.arm(shuffled.best_arm) == problem.best_arm
    assert shuffled.best_mean == problem.best_mean
    assert shuffled.lowest_mean == problem.lowest_mean
    if len(problem.grid.sizes) == 2:
        some_columns, some_rows = np.array([0, problem.L - 1]), np.array([0, 0, 1])
        np.testing.assert_allclose(
            shuffled.row_means(some_columns), shuffled.means[:, some_columns].mean(axis=1)
        )
        np.testing.assert_allclose(
            shuffled.column_means(some_rows), shuffled.means[some_rows].mean(axis=0)
        )
    assert (shuffled.sigma, shuffled.low, shuffled.high) == (
        problem.sigma,
        problem.low,
        problem.high,
    )
    assert shuffled.has_tallies == problem.has_tallies


@pytest.mark.parametrize(
    "problem", [EXAMPLES[name] for name in ("spike", "gaussian", "product", "means")]
)
def test_what_is_compiled_for_a_problem_will_do(problem: rank1.Problem) -> None:
    typeof: Any = numba.typeof
    assert typeof(Shuffled(problem, np.random.default_rng(4)).law) == typeof(problem.law)


@EVERY
@pytest.mark.usefixtures("uncompiled")
def test_draws_are_those_of_the_arm_itself(problem: rank1.Problem) -> None:
    shuffled = Shuffled(problem, np.random.default_rng(4))
    for arm in range(problem.arms):
        own = shuffled.arm(arm)
        ours, theirs = draws(shuffled, arm, 100, 3), draws(problem, own, 100, 3)
        np.testing.assert_array_equal(ours, theirs)
        if problem.has_tallies:
            np.testing.assert_array_equal(
                tallies(shuffled, arm, 50, [20, 20], 20, 3),
                tallies(problem, own, 50, [20, 20], 20, 3),
            )


class ByNumber(BernoulliLaw):
    """Its gaps depend on the arm's own number."""

    def gap(self, arm: int) -> float:
        return float(arm)


class Strange(rank1.Bernoulli):
    @property
    def law(self) -> ByNumber:
        return ByNumber(*super().law)


class Drifting(rank1.Bernoulli):
    """Would have other means after each block."""

    block = 10

    def refill(self, law: Any, rng: np.random.Generator) -> None:
        self.refilled = law


def test_a_law_of_ones_own_and_one_that_changes_are_left_as_they_are() -> None:
    """What is known of the paper's law holds neither for what is made from it, nor for long."""
    u, v = [0.1, 0.8, 0.5], [0.3, 0.9]
    shuffled = in_order(Strange(u, v), [2, 0, 1], [1, 0])
    assert [shuffled.law.gap(2 * row) for row in range(3)] == [5, 1, 3]
    drifting = Drifting(u, v)
    turned = in_order(drifting, [2, 0, 1], [1, 0])
    law = turned.law
    turned.refill(law, np.random.default_rng(1))
    assert drifting.refilled is law.law is drifting.law


def test_labels_move_with_their_lines() -> None:
    campaign = rank1.Campaign({"a": 0.3, "b": 0.7, "c": 0.1}, {"x": 0.9, "y": 0.4})
    shuffled = Shuffled(campaign, np.random.default_rng(6))
    for arm in range(6):
        assert shuffled.name_of(arm) == campaign.name_of(shuffled.arm(arm))


def test_orders_are_uniform() -> None:
    rng = np.random.default_rng(2)
    places = [Shuffled(rank1.spike(3, 2, 0.1, 0.1, 0.5, 0.5), rng).best_pair for _ in range(3000)]
    counts = [places.count(pair) for pair in product(range(3), range(2))]
    assert np.all(np.abs(np.array(counts) - 500) < 4 * np.sqrt(500))


@pytest.mark.parametrize("method", ["steps", "stages"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.usefixtures("uncompiled")
def test_runs_are_those_of_the_grid_in_that_order(method: str, kind: Kind) -> None:
    """Without ties nothing tells the two apart, to the last bit."""
    u, v = np.array([0.1, 0.8, 0.5]), np.array([0.3, 0.9, 0.6, 0.2])
    rows, columns = [2, 0, 1], [3, 1, 0, 2]
    shuffled = in_order(kind(rank1.Bernoulli(u, v)), rows, columns)
    plain = kind(rank1.Bernoulli(u[rows], v[columns]))
    policy, steps = rank1.Rank1Elim(0.6), np.array([10, 500, 5000])
    for run in range(2):
        ours, theirs = (
            SameSeeds(policy, problem, 5000, steps, 1, method).play_run(run)
            for problem in (shuffled, plain)
        )
        np.testing.assert_allclose(ours.curve, theirs.curve, rtol=1e-12)
        assert ours.best_arm == shuffled.arm(theirs.best_arm)


def test_twins_stay_together() -> None:
    """Twins are put together wherever they stand, and never with the best line."""
    problem = PROBLEMS["ties"]
    for seed in range(20):
        shuffled = Shuffled(problem, np.random.default_rng(seed))
        law = shuffled.law
        for twin, inner, order in (
            (law.row_twin, problem.law.row_twin, shuffled.orders[0]),
            (law.column_twin, problem.law.column_twin, shuffled.orders[1]),
        ):
            np.testing.assert_array_equal(order[twin], inner[order])


@pytest.mark.parametrize("kind", few(KINDS.values(), 1), ids=KINDS)
def test_stages_of_a_shuffled_problem_have_the_law_of_its_steps(kind: Kind) -> None:
    """Mean and variance of realised regret at two checkpoints, within 4.5 standard errors."""
    policy, steps = rank1.Rank1Elim(0.6), np.array([700, 3000])
    problem = kind(PROBLEMS["ties"])
    curves = {}
    for method in ("steps", "stages"):
        seed = 1 if method == "steps" else 2
        series = Series(policy, problem, 3000, steps, seed, method, shuffle=True)
        curves[method] = series.play(range(1500))["curves"]
    a, b = (curve.reshape(1500, 4) for curve in curves.values())
    for x, y in ((a, b), ((a - a.mean(axis=0)) ** 2, (b - b.mean(axis=0)) ** 2)):
        error = np.sqrt((x.var(axis=0) + y.var(axis=0)) / 1500)
        assert np.all(np.abs(x.mean(axis=0) - y.mean(axis=0)) <= 4.5 * error)


def test_compiled_code_is_kept_apart_by_the_law_within() -> None:
    """Else an edit of somebody's law would go unnoticed behind the shuffled one."""

    def nothing(law: Any) -> None:
        pass

    rng = np.random.default_rng(1)
    laws = [Shuffled(problem, rng).law for problem in (PROBLEMS["own"], PROBLEMS["categorical"])]
    assert [type(law) for law in laws] == [ShuffledLaw, ShuffledLaw]
    assert kernel(nothing, laws[0]) is not kernel(nothing, laws[1])
    assert kernel(nothing, laws[0]) is kernel(nothing, Shuffled(Own(0.3), rng).law)


def test_large_grids_are_shuffled_without_means() -> None:
    problem = rank1.spike(2**20, 2**20, 0.3, 0.5, 0.4, 0.2)
    shuffled = Shuffled(problem, np.random.default_rng(1))
    assert shuffled.is_best(shuffled.best_arm)
    assert shuffled.arm(shuffled.best_arm) == 0
    assert shuffled.lowest_mean == problem.lowest_mean
    assert len(shuffled.law.row_twin) == 2**20
    assert "means" not in vars(problem) | vars(shuffled)


def test_an_order_is_part_of_what_is_given() -> None:
    problem = PROBLEMS["ties"]
    one, other = in_order(problem, range(5), range(3)), in_order(problem, range(5), [2, 1, 0])
    assert len({problem.digest, one.digest, other.digest}) == 3
    assert in_order(problem, range(5), range(3)).digest == one.digest
