"""Groups, their averages, and the grid of rewards made from them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rank1.paper.completion import guess_rank
from rank1.paper.movielens import Ratings, group_ratings, rating_problem, read
from rank1.paper.movielens.problem import star_probabilities


def test_averages_by_group_and_movie(folder: Path) -> None:
    grid = group_ratings(read(folder))
    assert grid.names == [
        "Female, under 18, K-12 student",  # users 1 and 4
        "Male, 25-34, scientist",  # user 3; user 7 rated nothing
        "Male, 56+, self-employed",  # user 2
    ]
    assert grid.titles == [  # not The Contender, which nobody rated
        "Toy Story (1995)",
        "Misérables, Les (1995)",
        "Star Wars: Episode IV - A New Hope (1977)",
    ]
    nan = np.nan
    expected = [[4.5, nan, 2.5], [nan, 3.0, 5.0], [nan, 2.0, nan]]
    np.testing.assert_array_equal(grid.averages, expected)


def test_averages_of_many(generated: Ratings) -> None:
    grid = group_ratings(generated)
    sums: dict[tuple[int, int], list[int]] = {}
    for row, column, stars in zip(grid.rows, grid.columns, grid.stars, strict=True):
        sums.setdefault((int(row), int(column)), []).append(int(stars))
    assert np.isfinite(grid.averages).sum() == len(sums)
    for pair in list(sums)[::500]:
        assert grid.averages[pair] == pytest.approx(np.mean(sums[pair]))
    first = generated.users[0]
    assert grid.names[grid.rows[0]].startswith(
        {"F": "Female", "M": "Male"}[generated.genders[first]]
    )


def test_the_block_is_cut_from_the_completed_whole(generated: Ratings) -> None:
    whole = group_ratings(generated)
    grid = rating_problem(generated, K=100, L=90)
    rows = [whole.names.index(name) for name in grid.groups]
    columns = [whole.titles.index(title) for title in grid.titles]
    assert len(set(rows)) == 100
    assert len(set(columns)) == 90
    block = np.ix_(rows, columns)
    np.testing.assert_array_equal(grid.observed, whole.averages[block])
    np.testing.assert_array_equal(grid.completed, grid.completion.matrix[block].round(6))
    assert grid.completion.matrix.shape == whole.averages.shape
    assert grid.rank == guess_rank(whole.averages)
    values = np.linalg.svd(grid.completed, compute_uv=False)
    np.testing.assert_allclose(grid.singular_values, values)
    assert grid.problem.labels == [grid.groups, grid.titles]
    assert (grid.problem.K, grid.problem.L) == (100, 90)
    assert grid.stand_in
    assert grid.label == "stand-in data"


def test_the_seed_draws_the_block(generated: Ratings) -> None:
    one, again, other = (rating_problem(generated, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.problem.means, again.problem.means)
    assert one.groups == again.groups != other.groups
    assert one.titles == again.titles != other.titles


def test_probabilities_are_normal_bins() -> None:
    ratings = np.array([[0.0, 2.7], [4.5, 9.0]])
    probabilities = star_probabilities(ratings, 0.98)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1)

    def below(x: float, mean: float) -> float:
        return (1 + math.erf((x - mean) / (0.98 * math.sqrt(2)))) / 2

    assert probabilities[0, 1, 0] == pytest.approx(below(1.5, 2.7))
    assert probabilities[0, 1, 2] == pytest.approx(below(3.5, 2.7) - below(2.5, 2.7))
    assert probabilities[0, 1, 4] == pytest.approx(1 - below(4.5, 2.7))
    assert probabilities[1, 0, 4] == pytest.approx(0.5)


def test_rewards_follow_the_completed_ratings(generated: Ratings) -> None:
    grid = rating_problem(generated)
    # A mean reward is a growing function of the completed rating: both have the same order.
    order = grid.completed.ravel().argsort()
    assert (np.diff(grid.problem.means.ravel()[order]) >= 0).all()
    assert grid.completed[grid.problem.best_pair] == grid.completed.max()
    near_three = np.abs(grid.completed - 3).argmin()
    assert grid.problem.means.ravel()[near_three] == pytest.approx(0.5, abs=0.005)


@pytest.mark.parametrize(
    ("scale", "values"),
    [
        ("unit", [0, 0.25, 0.5, 0.75, 1]),
        ("fifths", [0.2, 0.4, 0.6, 0.8, 1]),
        ("stars", [1, 2, 3, 4, 5]),
    ],
)
def test_scales(generated: Ratings, scale: str, values: list[float]) -> None:
    grid = rating_problem(generated, K=20, L=20, scale=scale)
    np.testing.assert_allclose(grid.problem.values, values)
    assert (grid.problem.low, grid.problem.high) == (values[0], values[-1])
    assert grid.scale == scale


def test_sigma(generated: Ratings) -> None:
    given, narrow = (rating_problem(generated, sigma=sigma) for sigma in (0.98, 0.1))
    assert given.sigma == 0.98
    assert narrow.problem.best_mean > given.problem.best_mean
    estimated = rating_problem(generated, sigma="estimated")
    whole = group_ratings(generated)
    off = whole.stars - estimated.completion.matrix[whole.rows, whole.columns]
    assert estimated.sigma == pytest.approx(np.sqrt((off**2).mean()))
    assert 0.8 < estimated.sigma < 1.1
    wide = star_probabilities(estimated.completed, estimated.sigma)
    np.testing.assert_allclose(estimated.problem.probabilities, wide)


def test_rank_and_iterations_are_handed_on(generated: Ratings) -> None:
    grid = rating_problem(generated, rank=2, iterations=3)
    assert (grid.rank, grid.completion.rank_guessed, grid.completion.iterations) == (2, False, 3)


def test_small_real_data(folder: Path) -> None:
    grid = rating_problem(read(folder), K=3, L=3, rank=1)
    assert not grid.stand_in
    assert grid.label == "MovieLens 1M"
    assert np.isfinite(grid.completed).all()
    assert np.isnan(grid.observed).sum() == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"K": 246}, "at least K = 246 groups and L = 128 movies, got 245 and 399"),
        ({"L": 0}, "L must be .* at least 1, got 0"),
        ({"seed": -1}, "seed must be .* got -1"),
        ({"sigma": 0}, "sigma must be a number above 0, got 0"),
        ({"sigma": "guessed"}, "sigma must be .* got 'guessed'"),
        ({"scale": "star"}, "scale must be one of unit, fifths, stars, .*mean stars"),
        ({"rank": 300}, "rank must be .* at most 245, got 300"),
    ],
)
def test_errors(generated: Ratings, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        rating_problem(generated, **arguments)
