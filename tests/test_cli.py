"""The command line: documents, tables, and errors in one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1 import cli
from rank1.policies import POLICIES
from rank1.problems import PROBLEMS

SPIKE = ["--problem", "spike", "--set", "K=3", "--set", "L=2", "--set", "p_u=0.4"]
SPIKE += ["--set", "p_v=0.4", "--set", "delta_u=0.5", "--set", "delta_v=0.5"]
SIMULATE = ["simulate", *SPIKE, "--policy", "rank1elim", "--n", "1e3", "--runs", "2"]


class Output:
    """What a command printed, and its status."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        self.status: Any = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["rank1", *arguments])
            try:
                cli.main()
            except SystemExit as end:
                self.status = end.code
        self.out, self.err = capsys.readouterr()


def test_simulate_json(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Output(capsys, *SIMULATE, "--json")
    assert ran.status == 0
    assert ran.err == ""
    document = json.loads(ran.out)
    problem = rank1.spike(3, 2, 0.4, 0.4, 0.5, 0.5)
    expected = rank1.simulate(rank1.Rank1Elim(), problem, 1000, 2, seed=1).document()
    for each in (document, expected):
        each["policies"][0].pop("seconds")
    assert document == expected


def test_simulate_table_file_and_plot(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files = ["--out", str(tmp_path / "a.parquet"), "--plot", str(tmp_path / "a.svg")]
    ran = Output(capsys, *SIMULATE, "--policy", "uniform", *files)
    assert ran.status == 0
    assert "rank1elim" in ran.out
    assert "uniform" in ran.out
    assert rank1.load(tmp_path / "a.parquet").n == 1000
    assert "</svg>" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize(("command", "table"), [("policies", POLICIES), ("problems", PROBLEMS)])
def test_listings(capsys: pytest.CaptureFixture[str], command: str, table: Any) -> None:
    listed = json.loads(Output(capsys, command, "--json").out)[command]
    assert [entry["name"] for entry in listed] == list(table)
    assert all(entry["about"].endswith((".", "?")) for entry in listed)
    text = Output(capsys, command).out
    assert all(name in text for name in table)


def test_table1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ran = Output(capsys, "paper", "table1", "--runs", "3", "--out", str(tmp_path), "--json")
    assert ran.status == 0
    document = json.loads(ran.out)
    assert len(document["cells"]) == 27
    first = document["cells"][0]
    assert first["paper"] == {"mean": 17491, "se": 384}
    assert [first[k] for k in ("table", "K", "L", "p_u", "delta_v")] == [1, 8, 8, 0.7, 0.2]
    spread = first["regret"]["std"] * (1 / 3 + 1 / 20) ** 0.5
    assert first["z"] == pytest.approx((first["regret"]["mean"] - 17491) / spread)
    assert json.loads((tmp_path / "table1.json").read_text()) == document
    text = Output(capsys, "paper", "table1", "--runs", "3", "--out", str(tmp_path)).out
    assert "95,586 ± 99" in text
    assert re.search(r"\d+ of 27 cells lie within 2 standard errors .* \d+ within 3", text)


def test_table1_with_another_n_compares_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ran = Output(capsys, "paper", "table1", "--n", "1000", "--runs", "2", "--out", str(tmp_path))
    assert "nothing to compare" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*SIMULATE, "--n", "0"], "n must be a whole number of at least 1, got 0"),
        ([*SIMULATE, "--n", "nan"], "'--n': must be a whole number, such as 20 or 2e6, got 'nan'"),
        ([*SIMULATE, "--runs", "0"], "runs must be a whole number of at least 1, got 0"),
        ([*SIMULATE, "--policy", "rank1elm"], "policy must be one of .*did you mean rank1elim"),
        ([*SIMULATE, "--policy", "uniform:a=1"], "policy uniform has no setting 'a'; it takes no"),
        ([*SIMULATE, "--policy", "rank1elim:confidence_scale=0"], "above 0 .*, got 0"),
        ([*SIMULATE, "--policy", "rank1elim:confidence_scale=x"], "must be a number .*got 'x'"),
        ([*SIMULATE, "--policy", "rank1elim:confidence_scale=1/0"], "must not divide by zero"),
        ([*SIMULATE, "--policy", "rank1elim:"], ""),
        ([*SIMULATE, "--set", "p=1"], "problem spike has no setting 'p'; it takes K, L, p_u"),
        ([*SIMULATE, "--set", "p"], "--set must look like name=value, got 'p'"),
        ([*SIMULATE, "--set", "K=3"], "--set must set K once"),
        ([*SIMULATE, "--out", "/no/such/folder/a.parquet"], "can't write '/no/such/folder/"),
        (["paper", "--jobs", "-7"], "jobs must be a whole number of at least 1 .*, got -7; -1 is"),
        ([*SIMULATE, "--plot", "a.png", "--out", "./a.png"], "must name two files, got 'a.png'"),
        ([*SIMULATE, "--plot", "a.gif"], "must be one of png, svg, pdf, got 'gif'"),
        (["simulate", "--problem", "spik", "--policy", "uniform"], "did you mean spike"),
        (["simulate", "--problem", "spike", "--policy", "uniform"], "spike needs K, L, p_u"),
        (["paper", "table1", "--runs", "0"], "runs must be a whole number of at least 1, got 0"),
        (["paper", "table9"], "artefact must be one of table1, .*got 'table9'"),
        (["paper", "table1", "--out", "/proc/nowhere"], "--out must name a folder"),
        ([*SIMULATE, "--seed", "-3"], "seed must be a whole number of at least 0, got -3"),
        ([*SIMULATE[:-4], "--n", "1e300"], "n must be .* at most 9007199254740992, got 1000"),
        (["nonsense"], "No such command 'nonsense'"),
    ],
)  # fmt: skip
def test_bad_input_is_told(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    ran = Output(capsys, *arguments)
    if not message:  # the same policy twice
        assert "got rank1elim twice" in ran.err
    else:
        assert re.search(message, ran.err.replace("\n", " "))
    assert ran.status == 2
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    names = re.findall(r"^  (\w+)  ", Output(capsys, "--help").out, re.M)
    assert {"simulate", "paper", "policies", "problems"} <= set(names)
    for name in names:
        text = " ".join(Output(capsys, name, "--help").out.split())
        assert f"Example: rank1 {name}" in text


def examples() -> list[list[str]]:
    import typer.main

    group: Any = typer.main.get_command(cli.app)
    texts = [command.epilog.removeprefix("Example: rank1 ") for command in group.commands.values()]
    return [text.split() for text in texts]


@pytest.mark.parametrize("arguments", examples(), ids=" ".join)
def test_the_examples_work(
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments[0] in ("sweep", "plot", "table"):
        Path("grid.toml").write_text(Output(capsys, "sweep", "--example").out)
    if arguments[0] in ("plot", "table"):
        assert Output(capsys, "sweep", "grid.toml").status == 0
    ran = Output(capsys, *arguments)
    assert ran.status == 0
    assert ran.out


def test_import_and_help_load_nothing_heavy() -> None:
    """What makes starting slow: compiled code, plotting and tables."""
    code = (
        "import sys, rank1, rank1.cli\n"
        "heavy = {'numba', 'scipy', 'matplotlib', 'polars', 'joblib', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert Output(capsys, "--version").out.strip() == rank1.__version__


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a child process")
def test_ctrl_c_ends_cleanly() -> None:
    command = [sys.executable, "-m", "rank1", *SIMULATE[:-4], "--policy", "uniform"]
    command += ["--n", "2e8", "--runs", "50", "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    time.sleep(8)  # compiling, or playing runs of which each takes seconds: either must end
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "Interrupted" in err
    if out:  # Rank1Elim takes no time: its first runs were finished
        assert json.loads(out)["policies"][0]["best_pair"][:5] == [[0, 0]] * 5


def test_brackets_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert "u[i]·v[j]" in Output(capsys, "problems").out


def test_pairs_are_shown_by_their_labels(capsys: pytest.CaptureFixture[str]) -> None:
    segments, channels = '{"young": 0.2, "old": 0.9}', '{"mail": 0.9, "post": 0.1}'
    ran = Output(
        capsys, "simulate", "--problem", "campaign", "--set", f"segments={segments}",
        "--set", f"channels={channels}", "--policy", "uts", "--n", "1e4", "--runs", "2",
    )  # fmt: skip
    assert "old, mail" in ran.out
