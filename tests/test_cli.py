"""The command line: documents, tables, and one-line errors."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1 import checks, cli
from rank1.paper import Options
from rank1.policies import POLICIES
from rank1.problems import PROBLEMS
from rank1.sweeps.grid import EXAMPLE
from tests.simulation.support import ENVIRONMENT, started

SPIKE = ["--problem", "spike", "--set", "K=3", "--set", "L=2", "--set", "p_u=0.4"]
SPIKE += ["--set", "p_v=0.4", "--set", "delta_u=0.5", "--set", "delta_v=0.5"]
SIMULATE = ["simulate", *SPIKE, "--policy", "rank1elim", "--n", "1e3", "--runs", "2"]


class Output:
    """The output and the exit status of a command."""

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
        ([*SIMULATE, "--n", "0"], "--n must be a whole number of at least 1, got 0"),
        ([*SIMULATE, "--n", "nan"], "'--n': must be a whole number, such as 20 or 2e6, got 'nan'"),
        ([*SIMULATE, "--runs", "0"], "--runs must be a whole number of at least 1, got 0"),
        ([*SIMULATE, "--policy", "rank1elm"], "--policy must be one of .*did you mean rank1elim"),
        ([*SIMULATE, "--policy", "uniform:a=1"], "policy uniform: settings must be none, got 'a'"),
        ([*SIMULATE, "--policy", "rank1elim:confidence_scale=0"], "above 0 .*, got 0"),
        ([*SIMULATE, "--policy", "rank1elim:confidence_scale=x"], "must be a number .*got 'x'"),
        ([*SIMULATE, "--policy", "rank1elim:confidence_scale=1/0"], "divide by zero, got 1/0"),
        ([*SIMULATE, "--policy", "rank1elim:"], ""),
        ([*SIMULATE, "--set", "p=1"], "problem spike: setting must be one of K, L, p_u"),
        ([*SIMULATE, "--set", "p"], "--set must be written as name=value, got 'p'"),
        ([*SIMULATE, "--set", "K=3"], "--set must be given once each, got 'K' twice"),
        ([*SIMULATE, "--out", "/no/such/folder/a.parquet"], "can't write '/no/such/folder/"),
        (["paper", "--jobs", "-7"], "jobs must be a whole number of at least 1 .*, got -7: -1 m"),
        ([*SIMULATE, "--plot", "a.png", "--out", "./a.png"], "must be a different file from --out"),
        ([*SIMULATE, "--plot", "a.gif"], "the ending of --plot must be .*, got 'gif'"),
        (["simulate", "--problem", "spik", "--policy", "uniform"], "did you mean spike"),
        (["simulate", "--problem", "spike", "--policy", "uniform"], "spike: K, L, .*must be given"),
        (["paper", "table1", "--runs", "0"], "runs must be a whole number of at least 1, got 0"),
        (["paper", "table9"], "artefact must be one of table1, .*got 'table9'"),
        (["paper", "table1", "--out", "/proc/nowhere"], "--out must be a writable folder.*nowhere"),
        ([*SIMULATE, "--seed", "-3"], "--seed must be a whole number of at least 0, got -3"),
        ([*SIMULATE[:-4], "--n", "1e300"], "--n must be .* at most 9007199254740992, got 1000"),
        ([*SIMULATE, "--delay", "-1"], "^Error: --delay must be a number of at least 0"),
        ([*SIMULATE, "--delay", "often"], "must be a number, such as 0.98, got 'often'"),
        ([*SIMULATE, "--delay", "success=1"], "--delay must be a number, or a dict of success"),
        ([*SIMULATE, "--drift", "amplitude=2,period=9"], "amplitude of a drift must be .*got 2"),
        ([*SIMULATE, "--drift", "[1, 3]"], "a multiplier of drift must be .*got 3"),
        ([*SIMULATE, "--policy", "ucb1:confidence=-1"], "^Error: policy ucb1: confidence must be"),
        (["identify", *SPIKE, "--policy", "uts", "--plot", "a.doc"], "ending of --plot must be"),
        (["identify", *SPIKE, "--policy", "ucb1", "--confidence", "2"], "Error: --confidence must"),
        (["grids", "--seed", "-1"], "^Error: --seed must be a whole number of at least 0, got -1"),
        (["grids", "mars"], "^Error: grid must be one of"),
        (["study", "create", "a", "--rows", "a,a", "--columns", "b"], "must .*got 'a' twice"),
        (["advise", "--horizon", "9", "--rate", "0.3"], "^Error: --rows must be .*got None"),
        (["advise", "--horizon", "9", "--rate", "0.3", "--sides", "3,0"], "side 1 must .*got 0"),
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


def examples() -> list[Any]:
    import typer.main

    group: Any = typer.main.get_command(cli.application())
    texts = [command.epilog.removeprefix("Example: rank1 ") for command in group.commands.values()]
    slow = {"grids": pytest.mark.validate}  # many policies on problems of other types
    return [
        pytest.param(words, id=text, marks=slow.get(words[0], ()))
        for text in texts
        if (words := text.split())
    ]


@pytest.mark.parametrize("arguments", examples())
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
    if arguments[0] == "serve":  # would run forever; tests/server starts it
        arguments = [*arguments, "--show-config"]
    ran = Output(capsys, *arguments)
    assert ran.status == 0
    assert ran.out


@pytest.mark.compiled
def test_import_and_help_load_nothing_heavy() -> None:
    """Compiled code, plotting and tables are what makes startup slow."""
    code = (
        "import sys, rank1, rank1.cli\n"
        "rank1.cli.application()\n"
        "heavy = {'numba', 'scipy', 'matplotlib', 'polars', 'joblib', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert Output(capsys, "--version").out.strip() == rank1.__version__


class Captured(Exception):  # noqa: N818
    """Raised instead of playing."""


def captured(patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *more: str) -> Any:
    """Return what the command line passes to `simulate`, by argument name."""
    seen: dict[str, Any] = {}
    signature = inspect.signature(rank1.simulate)

    def simulate(*arguments: Any, **named: Any) -> None:
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        seen.update(bound.arguments)
        raise Captured

    patch.setattr("rank1.simulation.simulate", simulate)
    with pytest.raises(Captured):
        Output(capsys, "simulate", *SPIKE, "--policy", "rank1elim", *more)
    return seen


@pytest.mark.parametrize(
    ("option", "value", "name", "expected"),
    [
        ("--n", "1e4", "n", 10_000),
        ("--runs", "1e3", "runs", 1000),
        ("--seed", "7", "seed", 7),
        ("--jobs", "2", "jobs", 2),
        ("--checkpoints", "12", "checkpoints", 12),
        ("--method", "steps", "method", "steps"),
        ("--shuffle", None, "shuffle", True),
        ("--store", "cells", "store", "cells"),
        ("--backend", "dask", "backend", "dask"),
        ("--engine", "dask", "backend", "dask"),
        ("--address", "tcp://a:1", "address", "tcp://a:1"),
    ],
)
def test_simulate_hands_on_what_it_was_told(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    value: str | None,
    name: str,
    expected: Any,
) -> None:
    given = captured(monkeypatch, capsys, option, *([] if value is None else [value]))
    assert given[name] == expected
    default = captured(monkeypatch, capsys)
    assert default[name] != expected
    assert {each for each in given if given[each] != default[each]} - {"policies", "problem"} == {
        name
    }


@pytest.mark.parametrize(
    ("more", "arguments"),
    [
        ([], {}),
        (["--seed", "8"], {"seed": 8}),
        (["--method", "steps"], {"method": "steps"}),
        (["--checkpoints", "7"], {"checkpoints": 7}),
        (["--n", "2e3"], {"n": 2000}),
        (["--runs", "3"], {"runs": 3}),
        (["--shuffle"], {"shuffle": True}),
        (["--jobs", "2", "--backend", "processes"], {}),
    ],
)
def test_simulate_prints_the_numbers_of_what_it_was_told(
    capsys: pytest.CaptureFixture[str], more: list[str], arguments: dict[str, Any]
) -> None:
    """They equal those of the same call in Python, and differ from those of another call."""
    command = ["simulate", *SPIKE, "--policy", "rank1elim", "--json"]
    for option, value in (("--n", "1e3"), ("--runs", "2")):
        command += [] if option in more else [option, value]
    document = json.loads(Output(capsys, *command, *more).out)
    problem = rank1.spike(3, 2, 0.4, 0.4, 0.5, 0.5)
    named = {"n": 1000, "runs": 2} | arguments
    assert document == without_seconds(
        rank1.simulate(rank1.Rank1Elim(), problem, **named).document(), document
    )
    if arguments and "shuffle" not in arguments:
        other = rank1.simulate(rank1.Rank1Elim(), problem, 1000, 2).document()
        assert document != without_seconds(other, document)


def without_seconds(document: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the seconds of another one."""
    for mine, other in zip(document["policies"], like["policies"], strict=True):
        mine["seconds"] = other["seconds"]
    return document


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {}),
        (["--seed", "7"], {"seed": 7}),
        (["--n", "1e3"], {"n": 1000}),
        (["--runs", "1e1"], {"runs": 10}),
        (["--jobs", "2"], {"jobs": 2}),
        (["--sigma", "0.5"], {"sigma": 0.5}),
        (["--scale", "fifths"], {"scale": "fifths"}),
        (["--backend", "dask"], {"backend": "dask"}),
        (["--engine", "dask"], {"backend": "dask"}),
        (["--address", "tcp://a:1"], {"address": "tcp://a:1"}),
        (["--quick"], {"quick": True, "n": 200_000, "runs": 5, "out": Path("report-quick")}),
        (["--quick", "--n", "5", "--runs", "6", "--out", "a"],
         {"quick": True, "n": 5, "runs": 6, "out": Path("a")}),
    ],
)  # fmt: skip
def test_paper_hands_on_what_it_was_told(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    options: dict[str, Any],
) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[Any] = []

    def make(names: Any, options: Any) -> None:
        seen.append(options)
        raise Captured

    monkeypatch.setattr("rank1.paper.artefact.make_all", make)
    with pytest.raises(Captured):
        Output(capsys, "paper", "figure3", *arguments)
    default = Options(jobs=checks.jobs("jobs", -1), progress=True)
    command = " ".join(["rank1", "paper", "figure3", *arguments])
    assert seen == [default._replace(**options, command=command)]


Regrets = Callable[..., Any]


@pytest.fixture
def regrets(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Regrets:
    """Return what the command writes as an artefact's numbers."""

    def call(artefact: str, *arguments: str) -> Any:
        out = str(tmp_path / str(len(list(tmp_path.iterdir()))))
        ran = Output(capsys, "paper", artefact, "--out", out, *arguments, "--json")
        document = json.loads(ran.out)
        return document.get("cells") or [document["policies"], document["problem"]["settings"]]

    return call


def test_table1_has_the_seed_runs_and_n_that_it_was_told(regrets: Regrets) -> None:
    table = ["--runs", "2", "--n", "1000"]
    first = regrets("table1", *table)
    assert regrets("table1", *table) == first
    problem = rank1.spike(8, 8, 0.7, 0.7, 0.2, 0.2)
    for change in ({"--seed": "2"}, {"--runs": "3"}, {"--n": "1500"}):
        arguments = {"--runs": "2", "--n": "1000", "--seed": "1"} | change
        found = regrets("table1", *(word for pair in arguments.items() for word in pair))
        assert found != first
        n, runs, seed = (int(arguments[name]) for name in ("--n", "--runs", "--seed"))
        result = rank1.simulate(rank1.Rank1Elim(), problem, n, runs, seed, checkpoints=1)
        assert found[0]["regret"]["mean"] == result.outcomes[0].realised[:, -1].mean()


@pytest.mark.validate
def test_figure3_has_the_ratings_that_it_was_told(
    regrets: Regrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rank1.paper.figure3.NAMES", ["rank1elim"])
    figure = ["--runs", "2", "--n", "500"]
    policies, settings = regrets("figure3", *figure)
    assert (settings["sigma"], settings["scale"], settings["block_seed"]) == (0.98, "unit", 1)
    for option, value in (("sigma", 0.5), ("scale", "fifths"), ("block-seed", 2)):
        other, now = regrets("figure3", *figure, f"--{option}", str(value))
        assert now == settings | {option.replace("-", "_"): value}
        assert other[0]["expected_regret"] != policies[0]["expected_regret"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs", "x"], "'--runs': must be a whole number, such as 20 or 2e6, got 'x'"),
        (["--runs", "1.5"], "'--runs': must be a whole number, such as 20 or 2e6, got '1.5'"),
        (["--runs", "inf"], "'--runs': must be a whole number, such as 20 or 2e6, got 'inf'"),
        (["--seed", "one"], "'--seed': must be a whole number, such as 20 or 2e6, got 'one'"),
        (["--jobs", "all"], "'--jobs': must be a whole number, such as 20 or 2e6, got 'all'"),
        (["--sigma", "abc"], "--sigma must be a number above 0 or estimated, got 'abc'"),
        (["--sigma", "0"], "--sigma must be a number above 0 or estimated, got '0'"),
        (["--sigma", "nan"], "--sigma must be a number above 0 or estimated, got 'nan'"),
        (["--scale", "fifth"], "--scale must be one of .*got 'fifth'"),
        (["--jobs", "100000"], "--jobs must be .* at most 1024, got 100000: -1 means one per core"),
        (["--runs", "1e12"], "--runs must be .* at most 10000000, got 1000000000000"),
        (["--backend", "cloud"], "--backend must be one of threads, processes, .*got 'cloud'"),
    ],
)
def test_parser_errors_show_the_value(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], message: str
) -> None:
    ran = Output(capsys, "paper", "table1", "--n", "100", "--out", str(tmp_path), *arguments)
    assert ran.status == 2
    assert re.search(message, ran.err)
    assert ran.out == ""
    errors = [line for line in ran.err.splitlines() if "rror" in line]
    assert len(errors) == 1


def shell(line: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `rank1` is the command."""
    command = f'rank1() {{ {shlex.quote(sys.executable)} -m rank1 "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", command], env=ENVIRONMENT, capture_output=True, text=True, **options
    )


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("line", "status", "err"),
    [
        ("rank1 policies >&-", 0, ""),
        ("rank1 policies --json >/dev/full", 2, "Error: [Errno 28] No space left on device\n"),
        pytest.param("rank1 policies 2>&- >/dev/null", 0, "", marks=pytest.mark.validate),
        pytest.param("rank1 policies --json | true; exit ${PIPESTATUS[1]}", 0, "",
                     marks=pytest.mark.validate),
        pytest.param("rank1 table no.parquet >&-", 2,
                     "Error: path must name a file of results, got 'no.parquet'\n",
                     marks=pytest.mark.validate),
        pytest.param("rank1 policies >&- 2>&-", 0, "", marks=pytest.mark.validate),
        pytest.param("rank1 policies <&- >/dev/null", 0, "", marks=pytest.mark.validate),
        pytest.param("rank1 policies | head -1 >/dev/null; exit ${PIPESTATUS[1]}", 0, "",
                     marks=pytest.mark.validate),
    ],
)  # fmt: skip
def test_an_output_that_is_closed_or_full(line: str, status: int, err: str, tmp_path: Path) -> None:
    if "/dev/full" in line and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    done = shell(line, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (status, err)


#: Presses Ctrl-C when a module is first imported. Arguments: MODULE, then those of the command.
INTERRUPTED_AT = """
import os, signal, sys
module, number = sys.argv[1], getattr(signal, sys.argv[2])
sys.argv[:] = ["rank1", *sys.argv[3:]]
class Finder:
    def find_spec(self, name, path, target=None):
        if name == module and self in sys.meta_path:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), number)
sys.meta_path.insert(0, Finder())
from rank1.__main__ import main
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a child process")
@pytest.mark.parametrize(
    ("module", "number", "word"),
    [
        ("typer", "SIGINT", "Interrupted."),
        ("numba", "SIGTERM", "Terminated. Nothing was finished; to start again: rank1 "),
        *(
            pytest.param(module, "SIGINT", word, marks=pytest.mark.validate)
            for module, word in (
                ("rank1.cli", "Interrupted."),
                ("polars", "Interrupted. Finished cells are in cells; to continue: "),
                ("rank1.sweeps", "Interrupted. Nothing was finished; to start again: rank1 "),
                ("numpy", "Interrupted. Nothing was finished; to start again: rank1 "),
                ("numba", "Interrupted. Nothing was finished; to start again: rank1 "),
                ("joblib", "Interrupted. "),
            )
        ),
    ],
)
def test_ctrl_c_in_the_first_second(tmp_path: Path, module: str, number: str, word: str) -> None:
    (tmp_path / "grid.toml").write_text(EXAMPLE.replace("n = 20_000", "n = 200"))
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, module, number, "sweep", "grid.toml"],
        env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert word in done.stderr
    # Python kills itself with the signal if it arrived in dynamically generated code.
    status = 130 if number == "SIGINT" else 143
    assert done.returncode in (status, 128 - status)
    assert done.stdout == ""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a child process")
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.validate)]
)
def test_simulate_is_stopped_with_what_was_finished(number: signal.Signals) -> None:
    code = (
        "import os, signal, sys\n"
        "from rank1.simulation import Series\n"
        "original, played = Series.play, []\n"
        "def play(self, *rest):\n"
        "    if len(played) == 2:\n"
        f"        os.kill(os.getpid(), {int(number)})\n"
        "    played.append(1)\n"
        "    return original(self, *rest)\n"
        "Series.play = play\n"
        "import rank1.simulation.plan as plan\n"
        "plan.cut = lambda runs, *_: [range(k, k + 1) for k in runs]\n"
        "plan.MAX_TASK = 1\n"
        "from rank1.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *SIMULATE[:-1], "5", "--json"],
        env=ENVIRONMENT, capture_output=True, text=True,
    )  # fmt: skip
    word = "Interrupted" if number == signal.SIGINT else "Terminated"
    assert done.stderr == f"{word}: these are the runs that were completed.\n"
    assert done.returncode == 128 + number
    document = json.loads(done.stdout)
    assert document["interrupted"] is True
    assert document["runs"] == len(document["policies"][0]["best_pair"]) == 2


#: Makes the command print which policy it is playing.
PLAYS = """
import sys
from rank1.simulation import Series
def play(self, *rest, play=Series.play):
    if self.policy.name == "uniform":
        print("playing uniform", file=sys.stderr, flush=True)
    return play(self, *rest)
Series.play = play
from rank1.__main__ import main
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a child process")
def test_ctrl_c_ends_cleanly() -> None:
    """This holds while it compiles, and while it plays runs that take seconds each."""
    command = [*SIMULATE[:-4], "--policy", "uniform", "--n", "2e8", "--runs", "50", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started("-c", PLAYS, *command, **pipes) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "playing uniform\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    # Python kills itself with the signal if it arrived in dynamically generated code.
    assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in err
    assert "Interrupted" in err
    if out:  # Rank1Elim is so fast that its first runs were finished
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


PRODUCT = ["--problem", "product", "--set", "factors=[[.8,.64],[.85,.7,.66],[.9,.72]]"]


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("problem", "sides", "best"),
    [
        (PRODUCT, [2, 3, 2], [0, 0, 0]),
        (["--problem", "product", "--set", "factors=[[.2, .9, .3]]"], [3], [1]),
        (["--problem", "means", "--set", "means=[[.1, .1], [.1, .9]]"], [2, 2], [1, 1]),
        (["--problem", "gaussian", "--set", "factors=[[.1,.9],[.9],[.9]]"], [2, 1, 1], [1, 0, 0]),
    ],
)  # fmt: skip
def test_any_number_of_sides(
    capsys: pytest.CaptureFixture[str], problem: list[str], sides: list[int], best: list[int]
) -> None:
    """The best arm is given by levels, one for each side; a pair only if there are two sides."""
    command = ["simulate", *problem, "--policy", "ucb1", "--n", "3000", "--runs", "2"]
    document = json.loads(Output(capsys, *command, "--json").out)
    assert document["problem"]["sides"] == sides
    (policy,) = document["policies"]
    assert policy["best_arm"] == [best, best]
    pair = len(sides) == 2
    assert policy.get("best_pair") == ([best, best] if pair else None)
    assert (document["problem"].get("K"), document["problem"].get("L")) == (
        tuple(sides) if pair else (None, None)
    )
    text = Output(capsys, *command).out
    assert "×".join(map(str, sides)) in text
    assert str(tuple(best)) in text


@pytest.mark.uncompiled
def test_find_the_best_of_three_sides(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["identify", "--problem", "product", "--set", "factors=[[.9,.3],[.9,.3],[.9,.3]]"]
    ran = Output(capsys, *command, "--policy", "top_two", "--runs", "2", "--json")
    (policy,) = json.loads(ran.out)["policies"]
    assert (policy["stopped"], policy["best_arm"]) == (2, [[0, 0, 0]] * 2)
    assert "best_pair" not in policy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*PRODUCT, "--policy", "rank1elim"], "sides must be 2 for rank1elim, got 3 .2×3×2."),
        (["--problem", "product", "--set", "factors=[[.5],[]]", "--policy", "uts"], "got \\[]"),
        (["--problem", "product", "--set", "factors=[[.5],[2]]", "--policy", "uts"],
         r"^Error: problem product: factors\[1\]\[0\] must be a number in \[0, 1\], got 2.0"),
        (["--problem", "means", "--set", "means=[[.5],[.1,.2]]", "--policy", "uts"], "equal len"),
        (["--problem", "means", "--set", "means=[[.5],[-.1]]", "--policy", "uts"], "got -0.1"),
        (["--problem", "product", "--set", f"factors={[[0.5] * 1024] * 3}", "--policy", "uts"],
         "few enough for 1,048,576 arms, got 1,073,741,824"),
    ],
)  # fmt: skip
def test_bad_sides_are_told(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    ran = Output(capsys, "simulate", *arguments, "--n", "100")
    assert (ran.status, ran.out) == (2, "")
    assert re.search(message, ran.err)
    assert len(ran.err.splitlines()) == 1


@pytest.mark.uncompiled
def test_a_policy_of_a_file_here(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "someones_file.py").write_text(
        "import rank1\nclass Own(rank1.UCB1):\n    name = 'own'\n"
    )
    command = ["simulate", *PRODUCT, "--policy", "someones_file:Own:confidence=2", "--n", "100"]
    document = json.loads(Output(capsys, *command, "--json").out)
    assert document["policies"][0]["policy"] == "own"
    assert document["policies"][0]["settings"] == {"confidence": 2.0}
