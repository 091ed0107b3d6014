"""The package as users get it: these tests run in an environment with only the wheel."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import rank1

DIST = Path(__file__).parent.parent / "dist"
BIN = Path(sys.executable).parent


def run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [BIN / command[0], *command[1:]], env={**os.environ, **environment},
        cwd=cwd, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_the_wheel_that_is_tried() -> None:
    assert "site-packages" in rank1.__file__
    assert importlib.metadata.version("rank1") == rank1.__version__


def test_all_files_are_in_the_wheel_and_nothing_else() -> None:
    (wheel,) = DIST.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("rank1/")}
    source = Path(__file__).parent.parent / "src"
    there = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == there
    assert "rank1/py.typed" in packed
    assert any(name.startswith("rank1/server/pages/static/") for name in packed)


def test_what_is_installed_fits_together(tmp_path: Path) -> None:
    assert "No broken requirements" in run("python", "-m", "pip", "check", cwd=tmp_path)


def test_the_commands(tmp_path: Path) -> None:
    assert run("rank1", "--version", cwd=tmp_path).split()[-1] == rank1.__version__
    grid = [
        f"--set={name}" for name in ("K=4", "L=4", "p_u=.5", "p_v=.5", "delta_u=.3", "delta_v=.3")
    ]
    played = run(
        "rank1", "simulate", "--problem", "spike", *grid, "--policy", "uniform", "--n", "1e5",
        "--runs", "3", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert json.loads(played)["policies"][0]["best_pair"] == [[0, 0]] * 3
    quick = "rank1", "paper", "table1", "--quick", "--json", "--out", "r"
    table = run(*quick, cwd=tmp_path, NUMBA_DISABLE_JIT="1")  # not compiled, as it is short
    assert json.loads(table)
    assert (tmp_path / "r" / "index.html").stat().st_size > 1000


def test_data_is_there() -> None:
    assert rank1.datasets.hillstrom().trials.sum() > 0
    assert rank1.datasets.upworthy()


def test_a_study(tmp_path: Path) -> None:
    with rank1.Study.create(
        "s", ["a", "b"], ["x", "y"], storage=tmp_path / "s.db", policy="uniform"
    ) as study:
        study.tell(study.ask().id, 1.0)
        assert study.verify().ok


def test_what_needs_an_extra_names_it(tmp_path: Path) -> None:
    done = subprocess.run([BIN / "rank1", "serve"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "pip install '.[server]'" in done.stderr
    assert "Traceback" not in done.stderr


SCRIPT = """
import numpy as np

import rank1

problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.2, delta_v=0.2)
result = rank1.simulate([rank1.UTS(), rank1.UCB1()], problem, n=1000, runs=2, seed=1)
columns: list[str] = result.to_frame().columns
found = rank1.identify(rank1.TopTwo(), problem, confidence=0.9, runs=2)
pulls: np.ndarray[tuple[int, ...], np.dtype[np.int64]] = found.searches[0].pulls
with rank1.Study.create("s", ["a"], ["b"], storage="s.db") as study:
    one = study.ask()
    row: str = one.row
    ids: list[str] = [each.id for each in study.ask(count=2)]
    stop: bool = study.best().stop
bound: float = rank1.theory.lower_bound(problem)
state = rank1.UCB1().start(rank1.Known(2, 2, 10))
rank1.tell(state, rank1.ask(state, np.random.default_rng(1)), reward=1.0)
"""


@pytest.mark.validate
def test_a_user_s_script_is_checked_strictly(tmp_path: Path) -> None:
    mypy = DIST.parent / ".venv/bin/mypy"
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "typo.py").write_text("import rank1\n\nrank1.UCB1(confidense=1)\n")
    done = subprocess.run(
        [mypy, "--strict", "--python-executable", sys.executable, "script.py", "typo.py"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    first, last = done.stdout.splitlines()
    assert first.startswith('typo.py:3: error: Unexpected keyword argument "confidense" for "UCB1"')
    assert last == "Found 1 error in 1 file (checked 2 source files)"
