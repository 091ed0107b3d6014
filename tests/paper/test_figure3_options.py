"""Figure 3's own options: their defaults, that they arrive, and where they are said."""

from __future__ import annotations

import dataclasses
import inspect
import io
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from rank1 import cli
from rank1.paper import Options, artefact, figure3
from rank1.paper.completion import optspace
from rank1.paper.movielens import Ratings, obtain, rating_problem, read

Document = dict[str, Any]


@pytest.fixture
def document(documents: dict[str, Document]) -> Document:
    return documents["figure3"]


@pytest.fixture(scope="module")
def data() -> Ratings:
    return obtain()


def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **given: Any) -> Document:
    monkeypatch.setattr(figure3, "NAMES", ["rank1elim"])
    return artefact.make("figure3", Options(1, 1000, out=tmp_path, **given))


def printed(document: Document) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    for part in figure3.show(document):
        console.print(part)
    return console.export_text()


def asked_by(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *arguments: str) -> Options:
    """The options that a command line comes to."""
    seen: list[Options] = []

    def stop(names: list[str], options: Options) -> None:
        seen.append(options)
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rank1.paper.artefact.make_all", stop)
    monkeypatch.setattr(sys, "argv", ["rank1", "paper", "figure3", *arguments])
    with pytest.raises(SystemExit):
        cli.main()
    return seen[0]


def test_the_defaults_are_those_of_the_documentation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """50 iterations, σ = 0.98, the block of seed 1, (s − 1)/4: wherever they have a default."""
    asked = asked_by(monkeypatch, tmp_path)
    for options in (Options(), asked):
        settings = options.iterations, options.sigma, options.block_seed, options.scale
        assert settings == (50, 0.98, 1, "unit")
    defaults = {
        name: value.default for name, value in inspect.signature(rating_problem).parameters.items()
    }
    assert (defaults["iterations"], defaults["sigma"], defaults["seed"]) == (50, 0.98, 1)
    assert defaults["scale"] == "unit"
    assert inspect.signature(optspace).parameters["iterations"].default == 50
    assert inspect.signature(optspace).parameters["method"].default == "descent"


def test_what_the_defaults_make(document: Document, data: Ratings) -> None:
    """The stand-in's figures in docs/movielens.md; a few iterations less are seen in them."""
    completion = document["completion"]
    assert completion["iterations"] == 50
    assert completion["rank"] == 5
    assert not completion["converged"]
    assert completion["residual_start"] == pytest.approx(1.17693, abs=1e-5)
    assert completion["residual"] == pytest.approx(0.735458, abs=1e-6)
    fewer = rating_problem(data, iterations=49).completion
    assert abs(fewer.residuals[-1] - completion["residual"]) > 1e-5
    assert rating_problem(data, sigma="estimated").sigma == pytest.approx(0.9612, abs=1e-4)


def test_the_command_line_passes_them_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = ["--iterations=2e2", "--sigma=estimated", "--block-seed=7", "--scale=fifths"]
    options = asked_by(monkeypatch, tmp_path, *given, "--seed=3")
    assert (options.iterations, options.sigma, options.block_seed) == (200, "estimated", 7)
    assert (options.scale, options.seed) == ("fifths", 3)
    assert asked_by(monkeypatch, tmp_path, "--sigma", "1.25").sigma == 1.25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sigma", "guessed"], "--sigma must be a number above 0 or estimated, got 'guessed'"),
        (["--sigma", "0"], "--sigma must be a number above 0 or estimated, got '0'"),
        (["--sigma", "nan"], "--sigma must be a number above 0 or estimated, got 'nan'"),
        (["--iterations", "-1"], "--iterations must be a whole number of at least 0, got -1"),
        (["--block-seed", "-1"], "--block-seed must be a whole number of at least 0, got -1"),
    ],
)
def test_errors(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rank1", "paper", "figure3", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_page_is_not_mixed_from_different_options(
    documents: dict[str, Document], options: Options
) -> None:
    assert "figure3" in artefact.read_all(options)
    assert documents["figure3"]["made"]["iterations"] == 50
    for change in ({"iterations": 49}, {"sigma": "estimated"}, {"block_seed": 2}):
        assert artefact.read_all(options._replace(**change)) == {}


def test_the_block_has_a_seed_of_its_own(
    document: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = small(tmp_path, monkeypatch, seed=2)
    assert same["titles"] == document["titles"]
    assert same["completed"] == document["completed"]
    other = small(tmp_path, monkeypatch, block_seed=2)
    assert other["titles"] != document["titles"]
    assert "128 groups × 128 movies, seed 2" in printed(other)
    assert "128 groups × 128 movies, seed 1" in printed(same)


def test_iterations_and_sigma_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = small(tmp_path, monkeypatch, iterations=3, sigma="estimated")
    assert found["problem"]["settings"]["iterations"] == 3
    assert found["completion"]["iterations"] == 3
    assert found["problem"]["settings"]["sigma_estimated"] is True
    assert found["problem"]["settings"]["sigma"] == pytest.approx(1.03, abs=0.05)
    text = printed(found)
    assert "in 3 iterations" in text
    assert f"{found['problem']['settings']['sigma']:.2f}, estimated" in text
    assert "not converged: stopped early" in text


def test_raw_stars_say_that_intervals_are_wider(
    document: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stars = small(tmp_path, monkeypatch, scale="stars")
    assert "s; all confidence intervals 4 times as wide" in printed(stars)
    assert "times as wide" not in printed(document)


def test_movies_left_near_zero_are_counted() -> None:
    completed = np.array([[4.0, 0.1, 2.0, 1.5], [3.0, 0.3, -1.5, 0.9]])  # 3.5, 0.2, 0.25, 1.2
    given = {"rated_by": np.array([90, 3, 2, 1]), "movie_averages": np.array([4.0, 4.0, 2.0, 2.1])}
    grid: Any = types.SimpleNamespace(completed=completed, **given)
    assert figure3._stripes(grid) == {
        "movies": 2,
        "rated_by": 3,
        "completed": pytest.approx(0.225),
        "average": pytest.approx(3.0),
    }
    grid.completed = np.full((2, 4), 3.5)
    none = {"movies": 0, "rated_by": 0, "completed": None, "average": None}
    assert figure3._stripes(grid) == none


def test_who_rated_a_movie(data: Ratings) -> None:
    grid = rating_problem(data, K=100, L=90)
    users = list(zip(data.genders, data.ages.tolist(), data.occupations.tolist(), strict=True))
    for column in (0, 40, 89):
        movie = data.titles.index(grid.titles[column])
        ratings: dict[Any, list[int]] = {}
        for user, stars in zip(
            data.users[data.movies == movie], data.stars[data.movies == movie], strict=True
        ):
            ratings.setdefault(users[user], []).append(int(stars))
        assert grid.rated_by[column] == len(ratings)
        averages = [np.mean(each) for each in ratings.values()]
        assert grid.movie_averages[column] == pytest.approx(np.mean(averages))


def test_the_figure_explains_its_white_stripes(document: Document) -> None:
    assert document["data"]["stripes"]["movies"] == 0
    assert figure3.draw(document)["figure3"].axes[1].get_xlabel() == "Movie"
    assert re.search("completed more than a star too low +none", printed(document))
    stripes = {"movies": 9, "rated_by": 4, "completed": 0.31, "average": 2.67}
    striped = document | {"data": document["data"] | {"stripes": stripes}}
    label = figure3.draw(striped)["figure3"].axes[1].get_xlabel()
    assert " ".join(label.split()) == (
        "Movie Pale or white stripes: 9 movies rated by at most 4 of 245 groups. Their ratings "
        "average 2.7 stars; 50 iterations from 0 come to 0.3."
    )
    assert "9; rated by at most 4 groups, 0.3 for 2.7 stars" in printed(striped)


@pytest.mark.validate
def test_more_iterations_fill_the_stripes(real_data: Path) -> None:
    """On ratings of which most movies have but a few, as in MovieLens."""
    lines = (real_data / "ratings.dat").read_text().splitlines(keepends=True)
    chosen = np.random.default_rng(0).permutation(len(lines))
    movies: dict[str, int] = {}
    kept = []
    for k in chosen:
        movie = lines[k].split("::")[1]
        movies[movie] = movies.get(movie, 0) + 1
        if int(movie) % 2 or movies[movie] <= 3:
            kept.append(lines[k])
    (real_data / "ratings.dat").write_text("".join(kept))
    early, late = (
        figure3._stripes(rating_problem(read(real_data), rank=3, iterations=k)) for k in (20, 500)
    )
    assert early["movies"] > 50
    assert early["rated_by"] <= 5
    assert early["completed"] < 2 < 3 < early["average"]
    assert late["movies"] == 0


def test_the_last_bits_of_the_estimate_do_not_matter(
    data: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many threads add up is no part of the problem, whose every bit goes into the seeds."""
    before = rating_problem(data, sigma="estimated")

    def shaken(*arguments: Any) -> Any:
        done = optspace(*arguments)
        return dataclasses.replace(done, U=done.U * (1 + 1e-13))

    monkeypatch.setattr("rank1.paper.movielens.problem.optspace", shaken)
    again = rating_problem(data, sigma="estimated")
    assert not np.array_equal(again.completion.matrix, before.completion.matrix)
    assert again.sigma == before.sigma
    assert np.array_equal(again.problem.probabilities, before.problem.probabilities)
