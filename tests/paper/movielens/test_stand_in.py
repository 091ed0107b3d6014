"""The stand-in: of the promised size and kind, labelled, and never in the way of real data."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from rank1.errors import InputError
from rank1.paper.movielens import Ratings, group_ratings, rating_problem, read, stand_in


def test_sizes(generated: Ratings) -> None:
    assert len(generated.genders) == 1500
    assert len(generated.titles) == 400
    assert len(generated.stars) == 110_000
    assert len(group_ratings(generated).names) == 245
    a_user = np.bincount(generated.users, minlength=1500)
    assert a_user.min() >= 20
    pairs = generated.users * 400 + generated.movies
    assert len(np.unique(pairs)) == len(pairs)  # nobody rates a movie twice
    assert set(generated.stars.tolist()) == {1, 2, 3, 4, 5}
    assert 3.3 < generated.stars.mean() < 3.9


def test_says_what_it_is(generated: Ratings) -> None:
    assert generated.stand_in
    assert all(title.startswith("Stand-in ") for title in generated.titles)
    assert "stand-in" in repr(generated)


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.validate) for seed in (2, 3, 4))]
)
def test_is_of_the_kind_of_movielens(tmp_path: Path, seed: int) -> None:
    """Nearly rank one; a detected rank of 4 to 7; singular values an order of magnitude apart."""
    grid = rating_problem(read(stand_in(tmp_path, seed)))
    assert 4 <= grid.rank <= 7
    assert grid.completion.rank_guessed
    assert 10 < grid.singular_values[0] / grid.singular_values[1] < 50
    assert 0.2 < np.isfinite(grid.observed).mean() < 0.6


def test_seeds(tmp_path: Path) -> None:
    one, again, other = (
        stand_in(tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    for name in ("users.dat", "movies.dat", "ratings.dat"):
        assert (one / name).read_bytes() == (again / name).read_bytes()
        assert (one / name).read_bytes() != (other / name).read_bytes()


def test_has_holes_in_the_movie_ids(tmp_path: Path) -> None:
    lines = (stand_in(tmp_path) / "movies.dat").read_text("latin-1").splitlines()
    ids = [int(line.split("::")[0]) for line in lines]
    assert ids == sorted(set(ids))
    assert ids[-1] > len(ids) == 400


@pytest.mark.parametrize("left", ["movies.dat", "ratings.dat"])
def test_never_overwrites_real_data(folder: Path, left: str) -> None:
    for name in {"users.dat", "movies.dat", "ratings.dat"} - {left}:
        (folder / name).unlink()
    before = (folder / left).read_bytes()
    with pytest.raises(InputError, match=r"directory must be without data other .* choose another"):
        stand_in(folder)
    assert (folder / left).read_bytes() == before
    assert [file.name for file in folder.iterdir()] == [left]


def test_replaces_another_stand_in(tmp_path: Path) -> None:
    stand_in(tmp_path, 1)
    stand_in(tmp_path, 2)
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files == ["movies.dat", "ratings.dat", "users.dat"]
    assert read(tmp_path).stand_in


def test_an_interrupted_write_leaves_no_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stand_in(tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    assert read(stand_in(tmp_path)).stand_in  # and is no obstacle to the next


def test_bad_seed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"seed must be .* got -1"):
        stand_in(tmp_path, seed=-1)
