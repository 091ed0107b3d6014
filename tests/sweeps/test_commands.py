"""rank1 sweep, table and plot: documents, files, pictures and errors."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil
import pytest

import rank1
from rank1 import cli
from rank1.simulation import Series
from rank1.simulation.backends import threads
from rank1.sweeps import read_grid, read_sweep
from rank1.sweeps.plots import plot_lines, plot_winners
from rank1.sweeps.summary import summary, winners
from tests.simulation.support import ENDLESS, NUMBERS, cells, simulated, started, wait_for
from tests.test_cli import SIMULATE, Output

GRID = """
n = [500, 1000]
runs = 6
seed = 3
checkpoints = 4

[[problem]]
name = "spike"
K = [2, 4]
L = "=K"
p_u = 0.3
p_v = 0.3
delta_u = [0.2, 0.4, 0.6]
delta_v = "=delta_u"

[[policy]]
name = "rank1elim"
confidence_scale = [0.25, 0.5]

[[policy]]
name = "uniform"
"""
OF_PROBLEM = ["problem", "K", "L", "p_u", "p_v", "delta_u", "delta_v"]
OF_POLICY = ["policy", "confidence_scale", "n"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a grid, its store and its result."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "grid.toml").write_text(GRID)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["rank1", "sweep", "grid.toml", "--jobs", "1"])
        with pytest.raises(SystemExit, match="0"):
            cli.main()
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, and the current folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_result_is_tidy(folder: Path) -> None:
    frame = pl.read_parquet("result.parquet")
    assert frame.columns == [*OF_PROBLEM, "sides", *OF_POLICY, *NUMBERS, "best_arm"]
    grid = read_grid("grid.toml")
    assert frame.height == 6 * 3 * 2 * 6 * 4
    assert frame.select(NUMBERS).equals(simulated(grid))
    assert frame["K"].dtype == pl.Int64
    assert frame["delta_u"].dtype == pl.Float64
    assert (
        frame.filter(pl.col("policy") == "uniform")["confidence_scale"].null_count() == 6 * 2 * 24
    )
    first = frame.row(0, named=True)
    assert [first[key] for key in OF_PROBLEM + OF_POLICY] == [
        "spike",
        2,
        2,
        0.3,
        0.3,
        0.2,
        0.2,
        "rank1elim:confidence_scale=0.25",
        0.25,
        500,
    ]
    # A file that anything can read: here its bytes by another way.
    assert frame.filter(pl.col("K") == 4, pl.col("n") == 1000)["step"].max() == 1000


def test_dry_run_leaves_nothing_behind(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    before = sorted(os.listdir(folder))
    ran = Output(capsys, "sweep", "grid.toml", "--store", "other", "--dry-run", "--json")
    assert ran.status == 0
    document = json.loads(ran.out)
    assert document["problems"] == 6
    assert document["policies"][1] == "rank1elim:confidence_scale=0.5"
    assert document["steps"] == document["steps_left"] == 6 * 3 * 6 * 1500
    assert document["cells_left"] == 36
    assert document["cells_in_store"] == 0
    assert 0 < document["seconds_left"] < 60
    assert sorted(os.listdir(folder)) == before
    text = Output(capsys, "sweep", "grid.toml", "--store", "cells", "--dry-run").out
    assert "Problems: 6, policies: 3, horizons: 2" in text
    assert "Cells in the store: 36, left to play: 0" in text


def test_a_second_sweep_has_nothing_to_do(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    before = (folder / "result.parquet").read_bytes()
    ran = Output(capsys, "sweep", "grid.toml", "--out", "again.parquet", "--json")
    assert ran.status == 0
    document = json.loads(ran.out)
    assert (document["cells_left"], document["failed"], document["rows"]) == (0, [], 864)
    assert (folder / "again.parquet").read_bytes() == before


def test_a_cell_that_raises(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Series.play

    def some(self: Series, *rest: Any) -> Any:
        if self.policy.name == "uniform" and self.n == 500 and self.problem.K == 4:
            raise ZeroDivisionError("by nothing")
        return original(self, *rest)

    monkeypatch.setattr(Series, "play", some)
    ran = Output(capsys, "sweep", "grid.toml", "--store", "new", "--out", "new.parquet")
    assert ran.status == 1
    assert "3 cells failed" in ran.err
    assert (
        "uniform on spike (K=4, L=4, p_u=0.3, p_v=0.3, delta_u=0.2, delta_v=0.2), n=500, "
        "runs 0 to 5: ZeroDivisionError: by nothing" in ran.err
    )
    assert "Traceback" not in ran.err
    whole, new = pl.read_parquet("result.parquet"), pl.read_parquet("new.parquet")
    bad = (pl.col("policy") == "uniform") & (pl.col("n") == 500) & (pl.col("K") == 4)
    assert new.equals(whole.filter(~bad))
    ran = Output(capsys, "sweep", "grid.toml", "--store", "new", "--out", "new.parquet", "--json")
    assert ran.status == 1
    failed = json.loads(ran.out)["failed"]
    assert [entry["problem_settings"]["delta_u"] for entry in failed] == [0.2, 0.4, 0.6]
    assert failed[0]["runs"] == [0, 6]
    assert "by nothing" in failed[0]["trace"]
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    ran = Output(capsys, "sweep", "grid.toml", "--store", "new", "--out", "new.parquet", "--json")
    assert ran.status == 0
    assert json.loads(ran.out)["cells_left"] == 3
    assert (folder / "new.parquet").read_bytes() == (folder / "result.parquet").read_bytes()


def stopped(folder: Path, number: signal.Signals, when: Callable[[int], Any], *more: str) -> str:
    """What a long sweep with two jobs writes to standard error if a signal comes at some time."""
    (folder / "grid.toml").write_text(ENDLESS)
    command = ["-m", "rank1", "sweep", "grid.toml", "--jobs", "2", *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(*command, cwd=folder, **pipes) as process:
        wait_for(lambda: when(process.pid) or process.poll() is not None)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does: to the workers, too
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=300)
    assert out == ""
    assert "Traceback" not in err
    assert "Warning" not in err
    # Python kills itself with the signal if it came through code that was made on the fly.
    assert process.returncode in (128 + number, -number)
    assert not (folder / "result.parquet").exists()
    return err


unix = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a child process")


@unix
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.validate)]
)
def test_ctrl_c_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    err = stopped(tmp_path, number, lambda _: cells(tmp_path) > 1)
    word = "Interrupted" if number == signal.SIGINT else "Terminated"
    told = "Finished cells are in cells; to continue"
    assert err.endswith(f"{word}. {told}: rank1 sweep grid.toml --jobs 2\n")
    assert re.search(r"\d+ of \d+ cells, \S+ steps/s, 0:\d\d:\d\d taken", err)
    assert cells(tmp_path) > 0


@unix
@pytest.mark.validate
@pytest.mark.parametrize("backend", ["processes", "dask"])
@pytest.mark.parametrize("seconds", [0.0, 0.15, 0.5])
def test_ctrl_c_while_workers_start(tmp_path: Path, backend: str, seconds: float) -> None:
    """They would print where they were, if they saw it."""
    name = "popen_loky" if backend == "processes" else "multiprocessing.spawn"
    seen: list[float] = []

    def started_workers(pid: int) -> bool:
        children = psutil.Process(pid).children(recursive=True)
        if not seen and any(name in " ".join(child.cmdline()) for child in children):
            seen.append(time.monotonic())
        return bool(seen) and time.monotonic() - seen[0] >= seconds

    err = stopped(tmp_path, signal.SIGINT, started_workers, "--backend", backend)
    assert seen
    assert f"rank1 sweep grid.toml --jobs 2 --backend {backend}\n" in err
    assert "Interrupted. " in err


def test_summary_is_what_the_runs_say(folder: Path) -> None:
    sweep = read_sweep("result.parquet")
    rows = summary(sweep)
    assert rows.height == 6 * 3 * 2
    row = rows.filter(pl.col("K") == 4, pl.col("delta_u") == 0.4, pl.col("n") == 1000).row(
        0, named=True
    )
    assert row["label"] == "rank1elim:confidence_scale=0.25"
    result = rank1.simulate(
        rank1.Rank1Elim(0.25), rank1.spike(4, 4, 0.3, 0.3, 0.4, 0.4), 1000, 6, seed=3, checkpoints=4
    )
    expected = result.summary().row(0, named=True)
    for name in ("expected_mean", "expected_se", "realised_mean", "realised_se", "runs"):
        assert row[name] == pytest.approx(expected[name], rel=1e-12)
    curve = summary(sweep, ["step"], {"K": 4, "delta_u": 0.4, "n": 1000, "confidence_scale": 0.25})
    assert curve["step"].to_list() == [250, 500, 750, 1000]
    assert curve["expected_mean"].to_numpy() == pytest.approx(
        result.outcomes[0].expected.mean(axis=0)
    )
    # Filters take several values; a policy's name stands for any settings of it.
    some = summary(sweep, where={"policy": ["uniform", "rank1elim"], "confidence_scale": 0.5})
    assert some["label"].unique().to_list() == ["rank1elim:confidence_scale=0.5"]
    some = summary(sweep, where={"policy": "rank1elim:confidence_scale=0.25"})
    assert some["confidence_scale"].unique().to_list() == [0.25]
    assert summary(sweep, where={"policy": "rank1elim"}).height == 6 * 2 * 2
    # What the axis tells isn't in the label.
    some = summary(sweep, ["confidence_scale"], {"policy": "rank1elim"})
    assert some["label"].unique().to_list() == ["rank1elim"]


def test_table(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    ran = Output(capsys, "table", "result.parquet", "--where", "n=1000", "--where", "K=[2,4]")
    assert ran.status == 0
    assert "n = 1000" in ran.out
    assert ran.out.count(" * ") == 6
    rows = json.loads(Output(capsys, "table", "result.parquet", "--json").out)["rows"]
    assert len(rows) == 36
    assert sum(row["best"] for row in rows) == 12
    line = next(row for row in rows if row["best"] and row["n"] == 1000 and row["K"] == 4)
    assert re.search(rf"{line['expected_mean']:,.1f} ± {line['expected_se']:,.1f}", ran.out)


def test_winners_are_clear_by_two_standard_errors() -> None:
    def row(x: int, label: str, mean: float, se: float | None) -> dict[str, Any]:
        return {"x": x, "label": label, "policy": label, "expected_mean": mean, "expected_se": se}

    rows = pl.DataFrame(
        [
            row(0, "a", 10, 3), row(0, "b", 20.1, 4),  # 10.1 over 5
            row(1, "a", 19.9, 4), row(1, "b", 10, 3), row(1, "c", 99, 1),  # 9.9 over 5
            row(2, "a", 5, None), row(2, "b", 6, None),
            row(3, "a", 0, 0), row(3, "b", 0, 0),
            row(4, "a", 7, 1),
        ],
        schema_overrides={"expected_mean": pl.Float64, "expected_se": pl.Float64},
    )  # fmt: skip
    best = winners(rows, ["x"])
    assert best["winner"].to_list() == ["a", "b", "a", "a", "a"]
    assert best["clear"].to_list() == [True, False, False, False, True]
    assert best["second"].to_list() == ["b", "a", "b", "b", None]


def test_lines_against_a_setting(folder: Path) -> None:
    sweep = read_sweep("result.parquet")
    figure, document = plot_lines(sweep, "delta_u", ["K", "n"], log_y=True)
    assert [panel["facet"] for panel in document["panels"]] == [
        {"K": 2, "n": 500}, {"K": 4, "n": 500}, {"K": 2, "n": 1000}, {"K": 4, "n": 1000}
    ]  # fmt: skip
    assert len(figure.axes) == 4
    drawn = document["panels"][3]["lines"]
    assert [line["policy"] for line in drawn] == [
        "rank1elim:confidence_scale=0.25", "rank1elim:confidence_scale=0.5", "uniform"
    ]  # fmt: skip
    rows = summary(sweep, where={"K": 4, "n": 1000, "policy": "uniform"})
    assert drawn[2]["x"] == [0.2, 0.4, 0.6]
    assert drawn[2]["mean"] == pytest.approx(rows["expected_mean"].to_list())
    assert drawn[2]["se"] == pytest.approx(rows["expected_se"].to_list())
    ax = figure.axes[3]
    assert ax.get_yscale() == "log"
    assert [len(np.asarray(line.get_xdata())) for line in ax.lines] == [3, 3, 3]
    assert np.asarray(ax.lines[2].get_ydata()).tolist() == drawn[2]["mean"]
    json.dumps(document, allow_nan=False)


def test_lines_over_the_steps(folder: Path) -> None:
    keep = {"K": 2, "delta_u": 0.2, "n": 500}
    figure, document = plot_lines(read_sweep("result.parquet"), where=keep, regret="realised")
    (panel,) = document["panels"]
    assert panel["lines"][0]["x"] == [125, 250, 375, 500]
    assert np.asarray(figure.axes[0].lines[0].get_xdata()).tolist() == [0, 125, 250, 375, 500]


def test_a_policy_without_the_setting_is_a_level_line(folder: Path) -> None:
    keep = {"K": 2, "delta_u": 0.2, "n": 500}
    figure, document = plot_lines(read_sweep("result.parquet"), "confidence_scale", where=keep)
    lines = {line["policy"]: line for line in document["panels"][0]["lines"]}
    assert lines["rank1elim"]["x"] == [0.25, 0.5]
    assert lines["uniform"]["x"] == [None]
    level = figure.axes[0].lines[1]
    assert np.asarray(level.get_xdata()).tolist() == [0.25, 0.5]
    assert np.asarray(level.get_ydata()).tolist() == lines["uniform"]["mean"] * 2


def test_who_wins_where(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    arguments = ["--x", "delta_u", "--y", "K", "--facet", "n", "--out", "phase.svg", "--json"]
    ran = Output(capsys, "plot", "result.parquet", *arguments)
    assert ran.status == 0
    document = json.loads(ran.out)
    assert document["out"] == "phase.svg"
    assert "</svg>" in (folder / "phase.svg").read_text()
    assert [panel["facet"] for panel in document["panels"]] == [{"n": 500}, {"n": 1000}]
    squares = document["panels"][1]["cells"]
    assert [(square["delta_u"], square["K"]) for square in squares] == [
        (x, y) for x in (0.2, 0.4, 0.6) for y in (2, 4)
    ]
    rows = summary(read_sweep("result.parquet"), where={"n": 1000, "K": 4, "delta_u": 0.6})
    least = rows.sort("expected_mean").row(0, named=True)
    assert squares[-1]["winner"] == least["label"]
    assert squares[-1]["mean"] == pytest.approx(least["expected_mean"])
    figure, _ = plot_winners(read_sweep("result.parquet"), "delta_u", "K", ["n"])
    assert len(figure.axes) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sweep"], "grid must be a TOML file, got none: print an .*: rank1 sweep --example"),
        (["sweep", "none.toml"], "must be a readable TOML file, got 'none.toml'"),
        (["sweep", "grid.toml", "--backend", "dusk"], "--backend must be one of .*mean dask"),
        (["sweep", "grid.toml", "--engine", "dusk"], "--backend must be one of .*mean dask"),
        (["sweep", "grid.toml", "--address", "tcp://a:1"], "--backend must be dask or ray with"),
        (["sweep", "grid.toml", "--out", "grid.toml"], "must be a different file from the grid"),
        (["table", "result.parquet", "--where", "K=[]"], "K must be a list of at least one value"),
        (["sweep", "grid.toml", "--jobs", "0"], "--jobs must be a whole number of at least 1"),
        (["sweep", "grid.toml", "--out", "no/a.parquet"], "can't write 'no/a.parquet': No such"),
        (["sweep", "grid.toml", "--store", "grid.toml"], "store must be a folder, got 'grid.toml'"),
        (["sweep", "grid.toml", "--store", "new", "--backend", "dask", "--address", "nowhere:x"],
         "address must be that of a dask cluster, such as tcp://10.0.0.1:8786, got 'nowhere:x'"),
        (["table", "none.parquet"], "must name a file of results, got 'none.parquet'"),
        (["table", "grid.toml"], "must be a complete file of results, got 'grid.toml'"),
        (["table", "result.parquet", "--where", "K=3"], "K must be one of 2, 4, got 3"),
        (["table", "result.parquet", "--where", "M=3"], "a setting must be one of .*got 'M'"),
        (["table", "result.parquet", "--where", "policy=ucb"], "must be one of rank1elim, uni"),
        (["plot", "result.parquet", "--x", "M"], "x must be one of K, L, .*, step, got 'M'"),
        (["plot", "result.parquet", "--x", "delta_u"],
         "K must be the same .*got 2 values, which one point would mix: .*such as K=2"),
        (["plot", "result.parquet", "--x", "policy"], "x must be one of K.*got 'policy'"),
        (["plot", "result.parquet", "--facet", "M"], "a setting must be one of .*got 'M'"),
        (["plot", "result.parquet", "--x", "K", "--facet", "K"], "must be at most two.*got K, K"),
        (["plot", "result.parquet", "--x", "K", "--y", "confidence_scale"], "got 'confidence_s"),
        (["plot", "result.parquet", "--x", "K", "--y", "n", "--log-x"], "--y must be left out"),
        (["plot", "result.parquet", "--out", "a.gif"], "must be one of png, svg, pdf, got 'gif'"),
        (["plot", "result.parquet", "--regret", "mean"], "regret must be one of expected, rea"),
        (["plot", "result.parquet", "--x", "K", "--facet", "confidence_scale", "--facet", "n",
          "--where", "delta_u=0.2"], "a facet must be a setting that all policies have"),
    ],
)  # fmt: skip
def test_bad_input_is_told(
    capsys: pytest.CaptureFixture[str], folder: Path, arguments: list[str], message: str
) -> None:
    ran = Output(capsys, *arguments)
    last = " ".join(ran.err.split("Error: ")[-1].split())
    assert re.search(message, last)
    assert ran.status == 2
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_a_sweep_of_which_nothing_is_left_overwrites_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(GRID)
    Path("result.parquet").write_bytes(b"what was there")

    def broken(*_: Any) -> None:
        raise RuntimeError("it broke")

    monkeypatch.setattr(Series, "play", broken)
    ran = Output(capsys, "sweep", "grid.toml", "--store", "cells", "--jobs", "1")
    assert ran.status == 1
    assert "cells failed" in ran.err
    assert "Written" not in ran.out
    assert Path("result.parquet").read_bytes() == b"what was there"


@pytest.fixture
def scheduler_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes back after the first task, and every cell is a task."""
    original = threads.run_tasks

    def lossy(tasks: Any, setup: Any) -> Any:
        yield next(original(tasks, setup))
        raise OSError("the scheduler is gone")

    monkeypatch.setattr(threads, "run_tasks", lossy)
    monkeypatch.setattr("rank1.simulation.plan.MAX_TASK", 1)


@pytest.mark.usefixtures("scheduler_goes")
def test_a_sweep_that_ends_early_says_so_everywhere(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """On the terminal, in the file, on every table and plot made of it."""
    arguments = ["sweep", "grid.toml", "--store", "new", "--out", "new.parquet", "--jobs", "1"]
    ran = Output(capsys, *arguments)
    assert ran.status == 1
    assert ran.out == "Written: new.parquet, 24 rows, 210 runs missing.\n"
    assert "35 cells failed" in ran.err
    assert "the backend failed: OSError: the scheduler is gone" in ran.err
    gap = "210 of 216 runs are missing"
    assert read_sweep("new.parquet").gap == gap
    table = Output(capsys, "table", "new.parquet")
    assert f"{gap}: these figures are from the others." in table.out
    assert json.loads(Output(capsys, "table", "new.parquet", "--json").out)["missing"] == gap
    assert json.loads(Output(capsys, "table", "result.parquet", "--json").out)["missing"] is None
    for axes in (["--x", "delta_u"], ["--x", "delta_u", "--y", "K"]):
        drawn = Output(capsys, "plot", "new.parquet", *axes, "--out", "a.svg")
        assert drawn.out == f"Written: a.svg ({gap})\n"
        drawn = Output(capsys, "plot", "new.parquet", *axes, "--out", "a.svg", "--json")
        assert json.loads(drawn.out)["missing"] == gap
    for figure in (
        plot_lines(read_sweep("new.parquet"), "delta_u")[0],
        plot_winners(read_sweep("new.parquet"), "delta_u", "K")[0],
    ):
        assert gap in [text.get_text() for text in figure.texts]


@pytest.mark.usefixtures("scheduler_goes")
def test_a_sweep_that_ends_early_does_not_replace_a_fuller_file(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    before = (folder / "result.parquet").read_bytes()
    ran = Output(capsys, "sweep", "grid.toml", "--store", "new", "--jobs", "1")
    assert ran.status == 1
    assert ran.out == ""
    assert "result.parquet was not replaced: it has more runs of this sweep." in ran.err
    assert (folder / "result.parquet").read_bytes() == before
    ran = Output(capsys, "sweep", "grid.toml", "--store", "new", "--jobs", "1", "--json")
    document = json.loads(ran.out)
    assert (document["out"], document["rows"], document["missing_runs"]) == (None, 0, 204)


def test_files_with_brackets_in_their_names(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """A name is not a pattern: the other file's numbers are not for this one."""
    Path("other.toml").write_text(GRID.replace("seed = 3", "seed = 4"))
    assert Output(capsys, "sweep", "grid.toml", "--out", "o[1].parquet", "--jobs", "1").status == 0
    assert Output(capsys, "sweep", "other.toml", "--out", "o1.parquet", "--jobs", "1").status == 0
    rows = {
        name: Output(capsys, "table", name, "--json").out
        for name in ("o[1].parquet", "o1.parquet", "result.parquet")
    }
    assert rows["o[1].parquet"] == rows["result.parquet"] != rows["o1.parquet"]
    keep = ["--where", "K=2", "--where", "n=500", "--x", "delta_u", "--json"]
    drawn = {name: Output(capsys, "plot", name, *keep).out for name in rows}
    assert drawn["o[1].parquet"] == drawn["result.parquet"] != drawn["o1.parquet"]


def test_what_simulate_wrote_is_shown_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    policies = ["--policy", "rank1elim", "--policy", "rank1elim:confidence_scale=0.5"]
    ran = Output(capsys, *SIMULATE[:-6], *policies, "--n", "1e3", "--runs", "2", "--json",
                 "--out", "a.parquet")  # fmt: skip
    document = json.loads(ran.out)
    rows = json.loads(Output(capsys, "table", "a.parquet", "--json").out)["rows"]
    assert [row["label"] for row in rows] == ["rank1elim", "rank1elim:confidence_scale=0.5"]
    assert [row["expected_mean"] for row in rows] == pytest.approx(
        [entry["expected_regret"]["mean"] for entry in document["policies"]]
    )
    drawn = json.loads(Output(capsys, "plot", "a.parquet", "--json").out)
    assert [line["policy"] for line in drawn["panels"][0]["lines"]] == [
        "rank1elim", "rank1elim:confidence_scale=0.5"
    ]  # fmt: skip
    assert Path("plot.png").is_file()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n = " + "[" * 100_000, "lists or tables nested too deeply|must be TOML"),
        ("\ufeff" + GRID.replace("runs = 6", "runs = 1e12"), "runs must be .* at most 10000000"),
        (GRID.replace("K = [2, 4]", "K = { from = 1, to = 60000, step = 1 }"),
         "at most 1,000,000 combinations"),
    ],
    ids=["deep", "runs", "lines"],
)  # fmt: skip
def test_grids_that_are_refused_at_once(
    capsys: pytest.CaptureFixture[str], folder: Path, text: str, message: str
) -> None:
    Path("bad.toml").write_text(text, encoding="utf-8")
    ran = Output(capsys, "sweep", "bad.toml")
    assert ran.status == 2
    assert re.search(message, ran.err)
    assert len(ran.err.splitlines()) == 1


def test_a_grid_with_a_mark_at_its_start(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    Path("bom.toml").write_bytes(b"\xef\xbb\xbf" + GRID.encode())
    ran = Output(capsys, "sweep", "bom.toml", "--out", "bom.parquet")
    assert ran.status == 0
    assert Path("bom.parquet").read_bytes() == Path("result.parquet").read_bytes()
