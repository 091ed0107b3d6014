"""The paper's third experiment as a problem: which group likes which movie best?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from rank1 import checks
from rank1.errors import InputError
from rank1.paper.completion import Completion, optspace
from rank1.paper.completion.entries import Floats
from rank1.paper.movielens.read import AGES, GENDERS, OCCUPATIONS, Integers, Ratings

if TYPE_CHECKING:
    from rank1.problems import Categorical

__all__ = ["SCALES", "GroupRatings", "RatingProblem", "group_ratings", "rating_problem"]

STARS = np.arange(1.0, 6.0)
#: The reward of one to five stars.
SCALES: dict[str, Floats] = {"unit": (STARS - 1) / 4, "fifths": STARS / 5, "stars": STARS}


@dataclass(frozen=True, eq=False)
class GroupRatings:
    """Average ratings of groups of users; only groups and movies with a rating are included."""

    #: Groups × movies, NaN if no user of the group rated the movie.
    averages: Floats
    #: Such as "Female, 25-34, lawyer".
    names: list[str]
    titles: list[str]
    #: For each single rating its row and column of `averages`, and its stars.
    rows: Integers
    columns: Integers
    stars: Integers


@dataclass(frozen=True, eq=False)
class RatingProblem:
    """The grid to play, and its origin."""

    #: Rewards by pair, with the names of groups and movies as labels.
    problem: Categorical
    #: The pairs' average ratings in stars, NaN if there is none, and the completed ones.
    observed: Floats
    completed: Floats
    groups: list[str]
    titles: list[str]
    #: The number of groups, in the block or not, that have rated each movie, and their average.
    rated_by: Integers
    movie_averages: Floats
    #: The singular values of `completed`, largest first.
    singular_values: Floats
    #: The completion of the whole matrix, of which this is a block.
    completion: Completion
    #: Standard deviation of single ratings around the completed ones, in stars.
    sigma: float
    scale: str
    #: Whether the ratings are generated. Everything made from them has to say so.
    stand_in: bool

    @property
    def rank(self) -> int:
        """The rank of the whole completed matrix; detected unless it was given."""
        return self.completion.rank

    @property
    def label(self) -> str:
        """The data's name, for every figure and table made from them."""
        return "stand-in data" if self.stand_in else "MovieLens 1M"


def group_ratings(data: Ratings) -> GroupRatings:
    """Average ratings by group of gender, age and occupation, and by movie.

    Examples
    --------
    >>> import tempfile
    >>> from rank1.paper.movielens import group_ratings, read, stand_in
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     grid = group_ratings(read(stand_in(folder)))
    >>> grid.averages.shape, grid.names[0]
    ((245, 399), 'Female, under 18, academic/educator')
    """
    # One number per kind of user: sorting a million of those is fast.
    male = np.array([gender == "M" for gender in data.genders], dtype=np.int64)
    kind = (male * 100 + data.ages) * 100 + data.occupations
    groups, rows = np.unique(kind[data.users], return_inverse=True)
    movies, columns = np.unique(data.movies, return_inverse=True)
    shape = (len(groups), len(movies))
    cell = rows * shape[1] + columns
    counts = np.bincount(cell, minlength=shape[0] * shape[1])
    sums = np.bincount(cell, weights=data.stars, minlength=shape[0] * shape[1])
    averages = np.full(counts.shape, np.nan)
    np.divide(sums, counts, out=averages, where=counts > 0)
    names = [
        f"{GENDERS['FM'[group // 10_000]]}, {AGES[group // 100 % 100]}, {OCCUPATIONS[group % 100]}"
        for group in groups.tolist()
    ]
    titles = [data.titles[movie] for movie in movies]
    return GroupRatings(averages.reshape(shape), names, titles, rows, columns, data.stars)


def rating_problem(
    data: Ratings,
    *,
    K: int = 128,
    L: int = 128,
    seed: int = 1,
    rank: int | None = None,
    iterations: int = 50,
    sigma: float | Literal["estimated"] = 0.98,
    scale: str = "unit",
) -> RatingProblem:
    """The grid of K random groups and L random movies, with rewards from completed ratings.

    The whole matrix of group averages is completed by `optspace`, then the block is drawn. A pull
    of a pair is a rating of one to five stars: a normal variable around the completed rating,
    rounded to the nearest number of stars.

    Parameters
    ----------
    data
        From `read`.
    K, L
        Rows and columns of the block.
    seed
        The seed of the choice of groups and movies.
    rank
        The rank of the completion; default: detected.
    iterations
        The largest number of steps of the completion.
    sigma
        Standard deviation of a rating around the completed one. 0.98 fits MovieLens; "estimated"
        estimates it from the data.
    scale
        The value of s stars: "unit" (s − 1)/4, "fifths" s/5, or "stars" s.

    Examples
    --------
    >>> import tempfile
    >>> from rank1.paper.movielens import rating_problem, read, stand_in
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     grid = rating_problem(read(stand_in(folder)))
    >>> grid.problem.K, grid.problem.L, grid.rank, grid.stand_in
    (128, 128, 5, True)
    >>> row, column = grid.problem.best_pair
    >>> grid.groups[row], grid.titles[column]
    ('Male, 25-34, sales/marketing', 'Stand-in Romance 388 (1992)')

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, section 6.3.
    https://arxiv.org/abs/1608.03023
    """
    from rank1.problems import Categorical  # compiled, so slow to load

    whole = group_ratings(data)
    K, L = checks.integer("K", K, 1), checks.integer("L", L, 1)
    if len(whole.names) < K or len(whole.titles) < L:
        raise InputError(
            "the ratings",
            data,
            f"of at least K = {K} groups and L = {L} movies",
            "are the files truncated?",
            got=f"{len(whole.names)} and {len(whole.titles)}",
        )
    seed = checks.integer("seed", seed, 0)
    scale = checks.one_of("scale", scale, SCALES)
    if sigma != "estimated":
        sigma = checks.number("sigma", sigma, 0, above=True)
    completion = optspace(whole.averages, rank, iterations)
    # The last digits depend on the number of threads that added them up; the problem, whose seeds
    # and stored runs depend on its every bit, must not.
    if sigma == "estimated":
        off = whole.stars - completion.matrix[whole.rows, whole.columns]
        sigma = float(np.sqrt(np.mean(off**2)).round(6))

    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(len(whole.names), K, replace=False))
    columns = np.sort(rng.choice(len(whole.titles), L, replace=False))
    completed = completion.matrix[np.ix_(rows, columns)].round(6)
    problem = Categorical(SCALES[scale], star_probabilities(completed, sigma))
    groups, titles = [whole.names[i] for i in rows], [whole.titles[j] for j in columns]
    problem.labels = [groups, titles]
    return RatingProblem(
        problem=problem,
        observed=whole.averages[np.ix_(rows, columns)],
        completed=completed,
        groups=groups,
        titles=titles,
        rated_by=np.isfinite(whole.averages[:, columns]).sum(axis=0),
        movie_averages=np.nanmean(whole.averages[:, columns], axis=0),
        singular_values=np.asarray(np.linalg.svd(completed, compute_uv=False), np.float64),
        completion=completion,
        sigma=sigma,
        scale=scale,
        stand_in=data.stand_in,
    )


def star_probabilities(ratings: Floats, sigma: float) -> Floats:
    """P(s stars), s = 1 … 5, for a normal variable around each rating rounded to a star.

    >>> star_probabilities(np.array([3.0]), 0.5).round(3)
    array([[0.001, 0.157, 0.683, 0.157, 0.001]])
    """
    from scipy.special import ndtr

    edges = np.concatenate([[-np.inf], STARS[:-1] + 0.5, [np.inf]])
    probabilities: Floats = np.diff(ndtr((edges - ratings[..., None]) / sigma), axis=-1)
    return probabilities
