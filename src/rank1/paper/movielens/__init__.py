"""The MovieLens experiment: ratings, their stand-in, and the grid of groups and movies."""

from __future__ import annotations

from rank1.paper.movielens.download import LICENCE, download, downloaded, obtain
from rank1.paper.movielens.problem import GroupRatings, RatingProblem, group_ratings, rating_problem
from rank1.paper.movielens.read import DataError, Ratings, read
from rank1.paper.movielens.stand_in import stand_in

__all__ = [
    "LICENCE",
    "DataError",
    "GroupRatings",
    "RatingProblem",
    "Ratings",
    "download",
    "downloaded",
    "group_ratings",
    "obtain",
    "rating_problem",
    "read",
    "stand_in",
]
