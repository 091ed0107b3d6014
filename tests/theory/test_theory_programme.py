from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import examples

import rank1
from rank1 import theory
from rank1.theory.alternatives import search
from rank1.theory.graves_lai import _generate, _Programme

Problem = rank1.RankOne


@st.composite
def problems(draw: st.DrawFn, least: int = 1, most: int = 6) -> Problem:
    """One best pair of a mean in (0, 1), gaps of at least 0.01, factors from 0 to 1."""

    def side() -> list[float]:
        best = draw(st.integers(5, 100))
        size = draw(st.integers(least - 1, most - 1))
        others = draw(st.lists(st.integers(0, best - 1), min_size=size, max_size=size))
        others.insert(draw(st.integers(0, size)), best)
        return [k / 100 for k in others]

    u, v = side(), side()
    if draw(st.booleans()):
        return rank1.Gaussian(u, v, sigma=draw(st.sampled_from([0.1, 0.5, 2.0])))
    return rank1.Bernoulli(u, [0.99 * x for x in v] if max(u) == max(v) == 1 else v)


@st.composite
def models(draw: st.DrawFn, problem: Problem) -> theory.Model:
    """A model of B: the best lines keep their values, and some line overtakes one of them."""
    i, j = problem.best_pair
    inside = st.floats(0.001, 0.999)
    u = np.array([draw(inside) for _ in range(problem.K)])
    v = np.array([draw(inside) for _ in range(problem.L)])
    u[i], v[j] = problem.u[i], problem.v[j]
    side, at = draw(st.sampled_from(overtaking(problem)))
    values, best = (u, problem.u[i]) if side == "row" else (v, problem.v[j])
    values[at] = draw(st.floats(best, max(best, 0.999)))
    return u, v


def overtaking(problem: Problem) -> list[tuple[str, int]]:
    rows = [("row", k) for k in range(problem.K) if k != problem.best_pair[0]]
    return rows + [("column", k) for k in range(problem.L) if k != problem.best_pair[1]]


def the_cross(problem: Problem) -> Any:
    """The other pairs of the best row and column."""
    i, j = problem.best_pair
    cross = np.zeros((problem.K, problem.L), dtype=bool)
    cross[i], cross[:, j], cross[i, j] = True, True, False
    return cross


def told(problem: Problem, c: Any, model: theory.Model) -> float:
    """Σ d·c, pair by pair."""
    d = theory.divergence(problem)
    assert d is not None
    pairs = itertools.product(range(problem.K), range(problem.L))
    return sum(
        c[i, j] * d.of(problem.u[i] * problem.v[j], model[0][i] * model[1][j])
        for i, j in pairs
        if c[i, j] > 0
    )


@given(problems())
def test_the_relaxed_programme_is_solved_by_the_closed_form(problem: Problem) -> None:
    solved = theory.relaxed(problem)
    assert solved.value == pytest.approx(theory.lower_bound(problem), rel=1e-8)
    assert solved.constraints == problem.K + problem.L - 2
    cross = the_cross(problem)
    assert ((solved.c > 0) == cross).all()
    d = theory.divergence(problem)
    assert d is not None
    closed = 1 / d.of(problem.means[cross], problem.best_mean)
    assert solved.c[cross] == pytest.approx(closed, rel=1e-6)


@given(problems())
def test_the_full_programme_has_the_same_value(problem: Problem) -> None:
    solved = theory.graves_lai(problem)
    assert solved.value == pytest.approx(theory.lower_bound(problem), rel=1e-6)
    assert solved.violation < 1e-6


@given(
    st.lists(
        st.lists(st.integers(5, 95), min_size=1, max_size=3, unique=True), min_size=1, max_size=4
    )
)
def test_any_number_of_sides(factors: list[list[int]]) -> None:
    """The programme's solution is to play the neighbours of the best arm."""
    problem = rank1.Product([[k / 100 for k in side] for side in factors])
    solved = theory.relaxed(problem)
    assert solved.value == pytest.approx(theory.unimodal_bound(problem), rel=1e-8)
    assert solved.constraints == problem.grid.cross
    played = np.nonzero(solved.c.ravel())[0]
    assert set(played) == set(problem.grid.neighbours(problem.best_arm))
    full = theory.graves_lai(problem)
    assert full.value == pytest.approx(solved.value, rel=1e-6)
    assert full.violation < 1e-6


@given(st.data())
def test_the_papers_solution_tells_every_model_apart(data: st.DataObject) -> None:
    """Why: a line that overtakes is played with the other side's best one, which stays put."""
    problem = data.draw(problems(least=2))
    model = data.draw(models(problem))
    assert told(problem, theory.relaxed(problem).c, model) >= 1 - 1e-6


@given(st.data())
def test_any_models_give_a_lower_bound_and_more_give_a_larger_one(data: st.DataObject) -> None:
    problem = data.draw(problems(least=2, most=4))
    programme = _Programme(problem)
    last = 0.0
    for _ in range(4):
        programme.add(data.draw(models(problem)))
        value, c = programme.solve()
        assert last * (1 - 1e-7) <= value <= theory.lower_bound(problem) * (1 + 1e-7)
        cost = ((problem.best_mean - problem.means) * c).sum()
        assert value == pytest.approx(cost, rel=1e-6, abs=1e-12)
        last = value


@examples(15)
@given(st.data())
def test_generation_climbs_from_any_models_to_the_closed_form(data: st.DataObject) -> None:
    problem = data.draw(problems(least=2, most=4))
    programme = _Programme(problem)
    for _ in range(2):
        programme.add(data.draw(models(problem)))
    before = programme.solve()[0]
    solved = _generate(programme, 3, 1e-6, 50, np.random.default_rng(0))
    assert before <= solved.value * (1 + 1e-7)
    assert solved.value == pytest.approx(theory.lower_bound(problem), rel=1e-5)
    assert solved.violation <= 1e-6


def test_rounds_are_kept_to_and_what_is_missing_is_said() -> None:
    programme = _Programme(rank1.spike(3, 3, 0.5, 0.5, 0.2, 0.2))
    solved = _generate(programme, 1, 1e-6, 1, np.random.default_rng(0))
    assert (solved.value, solved.rounds, solved.violation) == (0.0, 1, 1.0)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_search_finds_what_a_grid_of_models_finds(gaussian: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(0.1, 0.9, 2), rng.uniform(0.1, 0.9, 2)
    problem = rank1.Gaussian(u, v, 0.4) if gaussian else rank1.Bernoulli(u, v)
    c = rng.exponential(20, (2, 2))
    i, j = problem.best_pair
    found = search(problem, c, 4, rng)
    assert len(found) == 2
    steps = np.linspace(0.005, 0.995, 199)
    for (least, model), side in zip(found, ("row", "column"), strict=True):
        assert told(problem, c, model) == pytest.approx(least, rel=1e-9)
        own, other = ((i, u), (j, v)) if side == "row" else ((j, v), (i, u))
        assert model[0][i] == u[i]
        assert model[1][j] == v[j]
        line = model[0 if side == "row" else 1]
        assert line[1 - own[0]] >= own[1].max()
        for x in np.append(own[1].max(), steps[steps > own[1].max()]):
            d = theory.divergence(problem)
            assert d is not None
            a, b = np.tile(own[1], (199, 1)), np.tile(other[1], (199, 1))
            a[:, 1 - own[0]], b[:, 1 - other[0]] = x, steps
            q = a[:, :, None] * b[:, None, :]
            if side == "column":
                q = q.transpose(0, 2, 1)
            assert (c * d.of(problem.means, q)).sum(axis=(1, 2)).min() >= least - 1e-9


def test_pairs_off_the_cross_satisfy_the_relaxation_but_not_the_full_programme() -> None:
    problem = rank1.Bernoulli([0.8, 0.4], [0.5, 0.25])
    c = np.zeros((2, 2))
    c[1, 1] = 50
    one_line = [(np.array([0.8, 0.8]), problem.v), (problem.u, np.array([0.5, 0.5]))]
    assert all(told(problem, c, model) > 1 for model in one_line)
    assert all(least < 1e-9 for least, _ in theory.weakest_models(problem, c))


def test_a_best_factor_of_one() -> None:
    """No row can rise above 1, but the means don't show that the best one is at 1."""
    problem = rank1.Bernoulli([1.0, 0.5], [0.5, 0.2])
    same_means = rank1.Bernoulli([0.8, 0.4], [0.625, 0.25])
    assert theory.graves_lai(problem).value == pytest.approx(theory.graves_lai(same_means).value)


def test_one_row_or_one_pair() -> None:
    one = theory.graves_lai(rank1.Bernoulli([0.5], [0.5]))
    assert (one.value, one.constraints, one.violation) == (0.0, 0, 0.0)
    line = rank1.Bernoulli([0.5], [0.5, 0.2, 0.2])
    solved = theory.graves_lai(line)
    assert solved.value == pytest.approx(theory.lower_bound(line))
    assert solved.c.shape == (1, 3)


def test_small_gaps_and_uneven_sides() -> None:
    """Terms that are many orders of magnitude apart; the solver's tolerances are absolute."""
    u = [7.55e-2, 2.93e-6, 3.45e-4, 7.41e-2, 5.39e-2, 3.06e-1]
    problem = rank1.Gaussian(u, [1.44e-6, 0.898, 2.65e-4], sigma=3.0)
    assert theory.relaxed(problem).value == pytest.approx(theory.lower_bound(problem), rel=1e-8)
    near = rank1.Bernoulli([0.5, 0.5 - 1e-6], [0.5, 0.1])
    assert theory.graves_lai(near).value == pytest.approx(theory.lower_bound(near), rel=1e-8)


@pytest.mark.parametrize("gaussian", [False, True])
def test_a_large_grid_takes_less_than_a_second(gaussian: bool) -> None:
    spike = rank1.spike(64, 64, 0.7, 0.7, 0.2, 0.2)
    problem = rank1.Gaussian(spike.u, spike.v, 0.5) if gaussian else spike
    theory.relaxed(rank1.spike(2, 2, 0.5, 0.5, 0.1, 0.1))  # the solver is imported
    begin = time.process_time()
    solved = theory.relaxed(problem)
    assert time.process_time() - begin < 1
    assert solved.value == pytest.approx(theory.lower_bound(problem), rel=1e-8)
    assert (solved.c > 0).sum() == 126


def test_arguments_are_checked() -> None:
    problem = rank1.spike(2, 2, 0.5, 0.5, 0.2, 0.2)
    with pytest.raises(ValueError, match="starts must be a whole number of at least 1, got 0"):
        theory.graves_lai(problem, starts=0)
    with pytest.raises(ValueError, match="tolerance must be a number above 0, got 0"):
        theory.graves_lai(problem, tolerance=0)
    for bad in (np.ones((2, 3)), -np.ones((2, 2)), np.full((2, 2), np.inf)):
        with pytest.raises(ValueError, match="c must be a 2×2 array of finite numbers"):
            theory.weakest_models(problem, bad)
