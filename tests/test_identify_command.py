"""rank1 identify."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rank1
from tests.simulation.support import ENVIRONMENT
from tests.test_cli import SPIKE, Output

Capture = pytest.CaptureFixture[str]
IDENTIFY = ["identify", *SPIKE, "--policy", "top_two", "--policy", "uniform", "--runs", "4"]


def test_json_is_what_python_gives(capsys: Capture) -> None:
    options = ["--confidence", "0.9", "--tolerance", "0.01", "--n", "1e5", "--seed", "3"]
    ran = Output(capsys, *IDENTIFY, *options, "--json")
    assert (ran.status, ran.err) == (0, "")
    document = json.loads(ran.out)
    problem = rank1.spike(3, 2, 0.4, 0.4, 0.5, 0.5)
    policies = [rank1.TopTwo(), rank1.Uniform()]
    expected = rank1.identify(policies, problem, 0.9, 0.01, 100_000, 4, 3).document()
    for each in (document, expected):
        for entry in each["policies"]:
            assert entry.pop("seconds") >= 0
    assert document == expected
    assert document["rank_one"] is True
    other = json.loads(Output(capsys, *IDENTIFY, "--any-grid", "--json").out)
    assert other["rank_one"] is False


def test_table_for_a_person(capsys: Capture) -> None:
    ran = Output(capsys, *IDENTIFY, "--tolerance", "0.01", "--policy", "top_two:share=0.5")
    assert ran.status == 0
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "spike 3×2, confidence 0.95, tolerance 0.01, seed 1" in lines
    for name in ("top_two", "uniform", "top_two:share=0.5"):
        row = rf"{name} 4 4 0 [\d,.]+ ± [\d,.]+ [\d,]+ [\d,]+ [\d,.]+ ± [\d,.]+"
        assert any(re.fullmatch(row, line) for line in lines)
    assert ran.err == ""


def test_pulls_over_the_bound(capsys: Capture) -> None:
    document = json.loads(Output(capsys, *IDENTIFY, "--json").out)
    time = rank1.theory.characteristic_time(rank1.spike(3, 2, 0.4, 0.4, 0.5, 0.5), "rank_one")
    assert document["bound"] == {"structure": "rank_one", "pulls": time.pulls(0.95)}
    for entry in document["policies"]:
        assert entry["over_bound"] == pytest.approx(entry["pulls"]["mean"] / time.pulls(0.95))
    shown = " ".join(Output(capsys, *IDENTIFY).out.split())
    assert "expected regret ÷ bound" in shown
    assert f"T*·log(1/α) = {time.pulls(0.95):,.0f}, if the grid is known to have rank" in shown
    assert (
        json.loads(Output(capsys, *IDENTIFY, "--tolerance", "0.1", "--json").out)["bound"] is None
    )
    any_grid = json.loads(Output(capsys, *IDENTIFY, "--any-grid", "--json").out)
    assert any_grid["bound"]["structure"] == "any"
    cut = json.loads(Output(capsys, *IDENTIFY, "--n", "20", "--json").out)
    assert cut["policies"][0]["over_bound"] is None


@pytest.mark.uncompiled
def test_late_rewards_and_drift(capsys: Capture) -> None:
    options = ["--delay", "success=10,failure=50", "--batch", "5", "--missing", "0.1"]
    late = json.loads(Output(capsys, *IDENTIFY, *options, "--drift", "[1, 0.5]", "--json").out)
    assert late["feedback"]["delay"] == {"success": 10, "failure": 50}
    assert (late["feedback"]["batch"], late["feedback"]["drift"]) == (5, [1, 0.5])
    at_once = json.loads(Output(capsys, *IDENTIFY, "--json").out)
    for one, other in zip(at_once["policies"], late["policies"], strict=True):
        assert other["pulls"]["mean"] > one["pulls"]["mean"]


def test_the_sharp_rule(capsys: Capture) -> None:
    kt, sharp = (
        json.loads(Output(capsys, *IDENTIFY, "--rule", rule, "--json").out)
        for rule in ("kt", "sharp")
    )
    assert (kt["rule"], sharp["rule"]) == ("kt", "sharp")
    for one, other in zip(kt["policies"], sharp["policies"], strict=True):
        assert other["pulls"]["mean"] < one["pulls"]["mean"]
    assert "confidence 0.95, sharp rule" in Output(capsys, *IDENTIFY, "--rule", "sharp").out


def test_runs_that_were_not_stopped_are_pointed_out(capsys: Capture) -> None:
    ran = Output(capsys, *IDENTIFY, "--n", "20")
    assert ran.status == 0
    assert "Runs of top_two, uniform that did not stop count as n = 20 pulls." in ran.err


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_plot(capsys: Capture, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    assert Output(capsys, *IDENTIFY, "--plot", str(path)).status == 0
    assert path.stat().st_size > 5000
    if ending == "svg":
        text = path.read_text()
        assert "top_two" in text
        assert "T*·log(1/α)" in text


def test_a_store_keeps_what_is_finished(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [*IDENTIFY, "--store", str(tmp_path / "cells"), "--json"]
    first = json.loads(Output(capsys, *arguments).out)

    def play(*_: object) -> None:
        raise AssertionError("played again")

    monkeypatch.setattr("rank1.simulation.series.Series.play", play)
    assert json.loads(Output(capsys, *arguments).out) == first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--n", "0"], "n must be a whole number of at least 1, got 0"),
        (["--n", "x"], "'--n': must be a whole number"),
        (["--confidence", "1"], "confidence must be a number above 0 and below 1, got 1"),
        (["--confidence", "0"], "confidence must be a number above 0 .*got 0"),
        (["--confidence", "-2"], "confidence must be a number above 0 .*got -2"),
        (["--tolerance", "-0.1"], "tolerance must be .*got -0.1"),
        (["--runs", "0"], "runs must be a whole number of at least 1, got 0"),
        (["--policy", "top_tow"], "did you mean top_two"),
        (["--policy", "top_two:share=1"], "share must be a number above 0 and below 1.*got 1"),
        (
            ["--policy", "top_two:beta=1"],
            "policy top_two: setting must be one of share.*got 'beta'",
        ),
        (["--plot", "a.gif"], "must be one of png, svg, pdf, got 'gif'"),
        (["--plot", "/no/such/folder/a.png"], "can't write '/no/such/folder/"),
    ],
)
def test_bad_input_is_told(capsys: Capture, options: list[str], message: str) -> None:
    ran = Output(capsys, *IDENTIFY, *options)
    assert ran.status == 2
    assert re.search(message, ran.err.replace("\n", " "))
    assert ran.out == ""
    assert "Traceback" not in ran.err


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a child process")
@pytest.mark.validate
def test_ctrl_c_shows_what_was_finished() -> None:
    code = (
        "import os, signal, sys\n"
        "from rank1.simulation.series import Series\n"
        "original, played = Series.play, []\n"
        "def play(self, *rest):\n"
        "    if len(played) == 2:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    played.append(1)\n"
        "    return original(self, *rest)\n"
        "Series.play = play\n"
        "import rank1.simulation.plan as plan\n"
        "plan.cut = lambda runs, *_: [range(k, k + 1) for k in runs]\n"
        "plan.MAX_TASK = 1\n"
        "from rank1.__main__ import main\n"
        "main()\n"
    )
    command = ["identify", *SPIKE, "--policy", "top_two", "--runs", "4", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", code, *command], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.stderr == "Interrupted: these are the runs that were completed.\n"
    assert done.returncode == 128 + signal.SIGINT
    document = json.loads(done.stdout)
    assert document["interrupted"] is True
    assert document["runs"] == len(document["policies"][0]["best_pair"]) == 2
