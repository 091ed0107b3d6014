"""Figure 3: its figures are those of the grid, and it says what data it was made from."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1 import cli
from rank1.cli import paper as command
from rank1.grid import Grid
from rank1.paper import Options, artefact, figure3, figure3_panels, movielens
from rank1.paper.claims import claim, verdict
from rank1.paper.curves import concave, slopes
from rank1.paper.movielens import obtain, rating_problem
from rank1.paper.movielens.read import FILES
from rank1.simulation import Series
from rank1.simulation.result import Outcome

Document = dict[str, Any]


@pytest.fixture
def document(documents: dict[str, Document]) -> Document:
    return documents["figure3"]


@pytest.fixture(scope="module")
def grid() -> movielens.RatingProblem:
    return rating_problem(obtain(), seed=1)


def test_regret_is_that_of_the_grid(document: Document, grid: movielens.RatingProblem) -> None:
    """The problem isn't in the document; it comes out again from what is."""
    result = rank1.simulate(rank1.Rank1Elim(), grid.problem, 20_000, 2, seed=1)
    regret = result.outcomes[0].expected
    entry = document["policies"][0]
    assert entry["policy"] == "rank1elim"
    assert entry["expected_curve"]["mean"] == regret.mean(axis=0).tolist()
    assert entry["early"]["mean"] == pytest.approx(regret[:, 4].mean() / 1000)
    assert entry["early"]["until"] == 1000
    late = (regret[:, -1] - regret[:, 74]).mean() / 5000
    assert entry["late"]["mean"] == pytest.approx(late)
    assert entry["late"]["from"] == 15_000


def test_pairs_and_gaps_are_those_of_the_grid(
    document: Document, grid: movielens.RatingProblem
) -> None:
    problem = grid.problem
    best = document["best"]
    assert best["gap"] == 0
    assert tuple(best["pair"]) == problem.best_pair
    for entry in document["policies"]:
        assert sum(pair["runs"] for pair in entry["pairs"]) == document["runs"]
        for pair in entry["pairs"]:
            row, column = pair["pair"]
            # (stars − 1)/4 is the reward, so a reward of one is four stars.
            gap = 4 * (problem.best_mean - problem.means[row, column])
            assert pair["gap"] == pytest.approx(gap)
            assert pair["stars"] == pytest.approx(1 + 4 * problem.means[row, column])
            assert (pair["group"], pair["title"]) == (grid.groups[row], grid.titles[column])
        gaps = [pair["gap"] for pair in entry["pairs"] for _ in range(pair["runs"])]
        assert entry["gap"]["mean"] == pytest.approx(np.mean(gaps))


def test_the_document_has_settings_instead_of_probabilities(
    document: Document, options: Options
) -> None:
    text = (options.out / "figure3.json").read_text()
    assert json.loads(text) == document
    assert len(text) < 500_000
    assert "probabilities" not in text
    settings = {
        "block_seed": 1,
        "iterations": 50,
        "sigma": 0.98,
        "sigma_estimated": False,
        "scale": "unit",
    }
    assert document["problem"] == {"name": "ratings", "K": 128, "L": 128, "settings": settings}
    completed = np.array(document["completed"], float)
    values = np.linalg.svd(completed, compute_uv=False)
    assert document["singular_values"] == pytest.approx(values[:5].tolist(), abs=0.02)
    seen = np.array(document["observed"], float)
    assert np.isfinite(seen).mean() == pytest.approx(document["data"]["seen_in_block"])


def test_everything_says_that_the_data_are_generated(document: Document) -> None:
    assert document["data"]["label"] == "stand-in data"
    for each in document["claims"]:
        assert each["data"] == "stand-in data"
        assert each["meaning"].endswith("; on stand-in data")
    parts = artefact.show("figure3", document)
    tables = [part for part in parts if not isinstance(part, str)]
    assert len(tables) == 4
    assert all("stand-in data" in str(table.title) for table in tables)
    assert parts[0].startswith("Stand-in data: generated ratings")
    figure = artefact.draw("figure3", document)["figure3"]
    assert figure.get_suptitle() == "Figure 3: stand-in data"


def test_a_quick_run_is_labelled_and_judges_no_curve(document: Document) -> None:
    label = "quick run: n = 20,000, 2 runs"
    assert document["made"]["label"] == label
    tables = [part for part in artefact.show("figure3", document) if not isinstance(part, str)]
    assert all(label in str(table.title) for table in tables)
    assert artefact.draw("figure3", document)["figure3"].get_supxlabel() == label.capitalize()
    assert {verdict(each) for each in document["claims"]} == {"not judged"}
    assert {each["why"] for each in document["claims"]} == {"generated data"}


def test_real_data_are_called_by_their_name(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure3, "NAMES", ["rank1elim"])
    options = Options(1, 1000, out=tmp_path, data_dir=real_data)
    document = artefact.make("figure3", options)
    assert document["data"]["label"] == "MovieLens 1M"
    assert "tand-in" not in json.dumps(document)
    assert "UCB1" not in str([each["claim"] for each in document["claims"]])
    assert [verdict(each) for each in document["claims"]].count("holds") == 2  # whatever n is
    assert len(document["policies"][0]["expected_curve"]["se"]) == 100  # a single run has none
    assert artefact.show("figure3", document)


def test_finished_runs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_data: Path
) -> None:
    monkeypatch.setattr(figure3, "NAMES", ["rank1elim"])
    options = Options(2, 1000, out=tmp_path, data_dir=real_data)
    first = artefact.make("figure3", options)

    def never(*_: Any) -> None:
        raise AssertionError("a finished run was played again")

    monkeypatch.setattr(Series, "play", never)
    again = artefact.make("figure3", options)
    for each in (first, again):
        del each["seconds"], each["made"]
    assert again == first


def outcome(*curves: list[float]) -> Outcome:
    regret = np.array(curves, float)
    runs = list(range(len(curves)))
    return Outcome("a", "a", {}, 0.0, runs, Grid([1, 1]), [0] * len(runs), regret, regret, None)


def test_slopes_and_concavity() -> None:
    steps = np.arange(1, 101) * 10
    root = list(np.sqrt(steps))
    assert concave(outcome(root), steps)
    assert not concave(outcome(list(steps**1.1)), steps)
    assert concave(outcome(list(steps * 1.0)), steps)
    # A bend upwards counts where it is more than chance: three standard errors of the runs.
    later = np.maximum(steps - 500.0, 0)
    ten_errors = [list(steps + bend * later) for bend in (0.9, 1.1)]
    two_errors = [list(steps + bend * later) for bend in (0.5, 1.5)]
    assert not concave(outcome(*ten_errors), steps)
    assert concave(outcome(*two_errors), steps)
    found = slopes(outcome(list(2.0 * steps), list(4.0 * steps)), steps)
    assert (found["early"]["mean"], found["late"]["mean"]) == (pytest.approx(3), pytest.approx(3))
    assert found["early"]["se"] == pytest.approx(1)
    single = slopes(outcome([5.0]), np.array([10]))
    assert single["early"]["mean"] == single["late"]["mean"] == 0.5


def entry(policy: str, early: float, late: float, gap: float) -> Document:
    return {
        "policy": policy,
        "early": {"mean": early},
        "late": {"mean": late},
        "gap": {"mean": gap},
    }


@pytest.mark.parametrize(
    ("changes", "verdicts"),
    [
        ({}, "holds holds holds holds holds"),
        ({"rank": 4}, "doesn't hold, holds holds holds holds"),
        ({"values": [90, 10]}, "holds, doesn't hold, holds holds holds"),
        ({"late": 0.11}, "holds holds, holds in part, holds holds"),
        ({"concave": False, "late": 0.11}, "holds holds, doesn't hold, holds holds"),
        ({"gap": 0.11}, "holds holds holds, doesn't hold, holds"),
        ({"ucb1": 0.19}, "holds holds holds holds, doesn't hold"),
    ],
)
def test_from_where_on_the_claims_count_as_true(changes: dict[str, Any], verdicts: str) -> None:
    import types

    given: dict[str, Any] = {
        "rank": 5,
        "values": [100, 10],
        "late": 0.1,
        "concave": True,
        "gap": 0.1,
        "ucb1": 0.2,
    }
    given |= changes
    grid: Any = types.SimpleNamespace(
        stand_in=False,
        rank=given["rank"],
        singular_values=np.array(given["values"]),
        label="stand-in data",
    )
    entries = [
        entry("rank1elim", 0.4, given["late"], given["gap"]),
        entry("ucb1", 0.4, given["ucb1"], 0.0),
    ]
    claims = figure3._claims(entries, grid, given["concave"])
    assert " ".join(map(verdict, claims)) == verdicts.replace(",", "")


def test_lines_are_ordered_by_their_average() -> None:
    nan = np.nan
    observed = np.array([[1.0, nan], [5.0, 3.0], [nan, nan]])
    completed = np.array([[1.0, 1.0], [5.0, 3.0], [4.5, 4.5]])
    assert figure3_panels._by_average(observed, completed, 1).tolist() == [2, 1, 0]
    assert figure3_panels._by_average(observed, completed, 0).tolist() == [0, 1]


def test_the_panels_show_the_matrices(document: Document) -> None:
    axes = figure3.draw(document)["figure3"].axes
    shown: list[Any] = [ax.get_images()[0].get_array() for ax in axes[:2]]
    for array, name in zip(shown, ("observed", "completed"), strict=True):
        matrix = np.array(document[name], float)
        seen = np.ma.masked_invalid(array)
        assert sorted(seen.compressed()) == sorted(matrix[np.isfinite(matrix)])
    for axis in (0, 1):
        averages = np.ma.masked_invalid(shown[0]).mean(axis=axis).compressed()
        assert np.all(np.diff(averages) <= 1e-12)
    colours = axes[0].get_images()[0].cmap
    assert colours(np.ma.masked) == pytest.approx((0xF2 / 255, 0xD9 / 255, 0x4E / 255, 1))
    assert sum(colours(1.0)[:3]) < sum(colours(0.0)[:3])  # darker is higher
    labels = [line.get_label() for line in axes[2].get_lines()]
    assert labels == [entry["label"] for entry in document["policies"]]


@pytest.mark.parametrize(
    ("each", "word"),
    [([True, True], "holds"), ([True, False], "holds in part"), ([False], "doesn't hold")],
)
def test_verdicts(each: list[bool], word: str) -> None:
    assert verdict(claim("It is so.", each, [1.0], "a figure")) == word


# Where the data come from.


def test_the_last_bits_of_the_completion_do_not_matter(
    monkeypatch: pytest.MonkeyPatch, grid: movielens.RatingProblem
) -> None:
    """How many threads add up is no part of the problem, whose every bit goes into the seeds."""
    import dataclasses

    from rank1.paper.completion import optspace

    def shaken(*arguments: Any) -> Any:
        done = optspace(*arguments)
        noise = np.random.default_rng(0).normal(0, 1e-13, done.U.shape)
        return dataclasses.replace(done, U=done.U + noise)

    monkeypatch.setattr("rank1.paper.movielens.problem.optspace", shaken)
    again = rating_problem(obtain(), seed=1)
    assert not np.array_equal(again.completion.matrix, grid.completion.matrix)
    assert np.array_equal(again.problem.probabilities, grid.problem.probabilities)


def test_nothing_is_fetched_unless_the_terms_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def offline(*_: Any, **given: Any) -> None:
        asked.append(given)
        raise ConnectionError("no network here")

    monkeypatch.setattr(sys.modules["rank1.paper.movielens.download"], "download", offline)
    assert obtain().stand_in
    assert not asked


def test_without_a_network_the_stand_in_takes_its_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def offline(*_: Any, **__: Any) -> None:
        raise ConnectionError("no network here")

    monkeypatch.setattr(sys.modules["rank1.paper.movielens.download"], "download", offline)
    assert obtain(accept_licence=True).stand_in
    assert "Using stand-in data: no network here" in capsys.readouterr().err


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders into which something was to be downloaded; somebody sits at the terminal."""
    seen: list[Path] = []

    def download(directory: Path, *, accept_licence: bool) -> Path:
        assert accept_licence
        seen.append(directory)
        return movielens.stand_in(tmp_path / "fetched")

    def asked(*_: Any, **__: Any) -> None:
        raise AssertionError("nobody is to be asked anything")

    monkeypatch.setenv("RANK1_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setattr(sys.modules["rank1.paper.movielens.download"], "download", download)
    monkeypatch.setattr("typer.confirm", asked)
    monkeypatch.setattr("builtins.input", asked)
    for stream in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True)
    return seen


def test_data_are_downloaded_by_the_flag_alone(tmp_path: Path, fetched: list[Path]) -> None:
    assert command._with_data(Options()).accept_licence is False
    assert fetched == []
    command._with_data(Options(accept_licence=True))
    assert fetched == [tmp_path / "movielens"]


def test_data_that_were_downloaded_before_are_used(tmp_path: Path, fetched: list[Path]) -> None:
    folder = tmp_path / "movielens" / "ml-1m"
    folder.mkdir(parents=True)
    for name in FILES[:-1]:  # all three files are the data
        (folder / name).touch()
    command._with_data(Options())
    assert fetched == []
    (folder / FILES[-1]).touch()
    command._with_data(Options())
    assert fetched == [tmp_path / "movielens"]
    # A folder of one's own comes first.
    own = movielens.stand_in(tmp_path / "own")
    command._with_data(Options(data_dir=own))
    assert len(fetched) == 1


def test_the_command_says_how_to_have_the_real_data(
    tmp_path: Path, fetched: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(figure3, "NAMES", ["rank1elim"])
    arguments = ["paper", "figure3", "--n", "2000", "--runs", "2", "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["rank1", *arguments])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    err = capsys.readouterr().err
    assert "Figure 3 is made from stand-in data." in err
    assert "if you accept its terms: rank1 paper figure3 --accept-licence" in err
    assert fetched == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--accept-licence"], "--accept-licence needs pooch .*pip install 'rank1"),
        (["--data-dir", "nowhere"], "no users.dat and no movies.dat .* in 'nowhere'"),
    ],
)
def test_what_is_missing_is_said_before_any_work(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import re

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK1_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(artefact, "make_all", None)
    monkeypatch.setattr(sys, "argv", ["rank1", "paper", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert re.search(message, capsys.readouterr().err)


def test_the_options_reach_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def stop(data: Any, **settings: Any) -> None:
        seen.update(settings)
        raise InterruptedError

    monkeypatch.setattr(figure3, "rating_problem", stop)
    with pytest.raises(InterruptedError):
        artefact.make("figure3", Options(block_seed=7, iterations=9, sigma=0.5, scale="fifths"))
    assert seen == {"seed": 7, "iterations": 9, "sigma": 0.5, "scale": "fifths"}


@pytest.mark.validate
def test_raw_stars_are_for_two_of_the_policies(tmp_path: Path) -> None:
    document = artefact.make("figure3", Options(runs=2, n=1000, out=tmp_path, scale="stars"))
    assert [entry["policy"] for entry in document["policies"]] == ["rank1elim", "ucb1"]
    assert document["problem"]["settings"]["scale"] == "stars"


def test_a_bad_line_is_found_before_any_work_and_what_was_made_has_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = movielens.stand_in(tmp_path / "data")
    with (data / "ratings.dat").open("a") as file:
        file.write("1::1::6::0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(artefact, "make_all", None)  # not called
    monkeypatch.setattr(sys, "argv", ["rank1", "paper", "--quick", "--data-dir", str(data)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert "ratings.dat:110001: " in capsys.readouterr().err

    def fails(*_: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        yield "table1", {}
        raise ValueError("it went wrong")

    monkeypatch.setattr(artefact, "make_all", fails)
    monkeypatch.setattr(command, "_write", lambda *_, **__: {})
    monkeypatch.setattr(sys, "argv", ["rank1", "paper", "--quick"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert "it went wrong" in capsys.readouterr().err
    assert (tmp_path / "report-quick" / "index.html").is_file()
