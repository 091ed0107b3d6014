"""What an analyst meets first: one-line errors, help that isn't cut, and own grids."""

from __future__ import annotations

import dataclasses
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import rank1
from rank1 import grids, theory
from rank1.cli import COMMANDS
from rank1.errors import FileError, InputError
from rank1.plots import plot_best
from tests.test_cli import Output

MINE = "row,column,trials,successes\na,x,100,5\na,y,100,4\nb,x,100,8\nb,y,100,6\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["simulate", "--n", "abc"], "'--n': must be a whole number, such as 20 or 2e6, got 'abc'"),
        (["identify", "--confidence", "abc"], "must be a number, such as 0.98, got 'abc'"),
        (["identify", "--tolerance", "abc"], "must be a number, such as 0.98, got 'abc'"),
        (["bounds", "--confidence", "abc"], "must be a number, such as 0.98, got 'abc'"),
        (["study", "create", "a", "--confidence", "b"], "must be a number, such as 0.98, got 'b'"),
        (["study", "create", "a", "--tolerance", "b"], "must be a number, such as 0.98, got 'b'"),
        (["study", "forecast", "a", "--per-day", "b"], "must be a number, such as 0.98, got 'b'"),
        (["study", "record", "a", "u", "--version", "b"], "must be a whole number, such as 20 or "),
        (["simulat"], "No such command 'simulat'"),
        (["bounds"], "Missing option '--problem'"),
        (["study", "best"], "Missing argument"),
        (["--nix"], "No such option: --nix"),
    ],
)
def test_a_usage_error_is_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    ran = Output(capsys, *words)
    assert ran.status == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_no_description_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    text = Output(capsys, "--help").out
    assert "..." not in text.split("Commands:")[1]
    assert all(f"  {name} " in text for name in COMMANDS)


def test_commands_for_live_tests_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    names = re.findall(r"^  (\w+)  ", Output(capsys, "--help").out.split("Commands:")[1], re.M)
    assert names[:4] == ["serve", "study", "judge", "advise"]


def test_warnings_are_notes(capsys: pytest.CaptureFixture[str]) -> None:
    Output(capsys, "--version")
    shown = warnings.formatwarning("mind the gap", UserWarning, "/a/file.py", 7)
    assert shown == "Note: mind the gap\n"


def test_a_grid_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(MINE)
    (table,) = grids.tables(str(path))
    assert (table.name, table.rows, table.columns) == ("mine", ("a", "b"), ("x", "y"))
    np.testing.assert_array_equal(table.successes, [[5, 4], [8, 6]])
    assert grids.about_fit(table, replays=0)["best_pair"] == ["b", "x"]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("b,y,100,6", "b,y,5,6", "row 4 of .* must be a new pair"),
        ("b,y,100,6", "b,y,100,x", "row 4"),
        ("b,y,100,6", "b,x,100,6", "row 4"),
        ("b,y,100,6\n", "", "none for b × y"),
        ("successes", "wins", "got row, column, trials, wins; missing: successes"),
    ],
)
def test_what_is_no_grid(tmp_path: Path, before: str, after: str, said: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(MINE.replace(before, after))
    with pytest.raises((InputError, FileError), match=said):
        grids.read_table(str(path))


def test_too_many_arms_are_refused_before_they_are_written_out() -> None:
    problem = rank1.spike(100_000, 100_000, 0.5, 0.5, 0.1, 0.1)
    with pytest.raises(InputError, match=r"268,435,456 arms.*got 10,000,000,000"):
        _ = problem.means
    for structure in ("any", "unimodal", "rank_one"):
        with pytest.raises(InputError, match="every arm has a share"):
            theory.characteristic_time(problem, structure)
    assert theory.table(problem, 1000)["identification"]["any"] is None


@pytest.mark.usefixtures("uncompiled")
def test_a_study_draws_its_levels(tmp_path: Path) -> None:
    sides = {"headline": ["A", "B"], "image": ["x", "y", "z"]}
    place = str(tmp_path / "a.db")
    with rank1.Study.create("a", sides=sides, goal="find", storage=place) as study:
        figure = study.plot()
        assert [ax.get_title(loc="left") for ax in figure.axes] == list(sides)
        labels = [tick.get_text() for tick in figure.axes[1].get_yticklabels()]
        assert figure.axes[0].get_xlabel() == "Lift over the leader's level"
        assert labels == sides["image"]
        figure.canvas.draw()


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(
    ("lifts", "over"),
    [([[0, 0], [0.1, 0.4]], "the control"), ([[-0.3, -0.1], [0, 0]], "the leader's level")],
)
def test_lifts_are_drawn_over_what_they_compare_with(
    tmp_path: Path, lifts: list[list[float]], over: str
) -> None:
    place = str(tmp_path / "a.db")
    with rank1.Study.create("a", sides={"image": ["x", "y"]}, goal="find", storage=place) as study:
        best = study.best()
    levels = [
        level | {"estimate": sum(lift) / 2, "lift": lift}
        for level, lift in zip(best.levels["image"], lifts, strict=True)
    ]
    best = dataclasses.replace(
        best,
        leader=("y",),
        levels={"image": levels},
        lift={"over": ["x"], "is_control": True, "above": 0.0},
    )
    (ax,) = plot_best(best).axes
    assert ax.get_xlabel() == f"Lift over {over}"
    (points,) = (line for line in ax.lines if line.get_marker() == "o")
    assert np.asarray(points.get_xdata()).tolist() == [level["estimate"] for level in levels]


@pytest.mark.parametrize("command", [["judge", "start", "FILE"], ["study", "create", "a"]])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--side", "image=x,x"], "--side image must be "),
        (["--side", "image=x,y", "--control", "image=z"], "--control image must be "),
    ],
)
def test_a_message_names_the_option(
    command: list[str],
    arguments: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = ["--storage", str(tmp_path / "a.db")] if command[0] == "study" else []
    words = [str(tmp_path / "shares.json") if word == "FILE" else word for word in command]
    ran = Output(capsys, *words, *arguments, *place)
    assert ran.status == 2
    assert said in ran.err
