"""The tutorials run as written, and notebooks show what they should."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.ipynb"))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tools/run_notebooks.py"), *arguments],
        capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("path", TUTORIALS[1:2], ids=lambda path: path.stem)
def test_the_code_of_a_tutorial_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its assertions hold; `make validate` runs all tutorials and compares their outputs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    scope: dict[str, Any] = {"__name__": "tutorial"}
    checked = 0
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            if file := re.match(r"%%writefile (\S+)\n", source):
                (tmp_path / file[1]).write_text(source[file.end() :])
            else:
                exec(compile(source, path.name, "exec"), scope)
                checked += len(re.findall(r"^assert ", source, re.MULTILINE))
    assert checked >= 5


@pytest.mark.validate
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_shows_what_is_kept(path: Path) -> None:
    done = run("--check", str(path))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_is_kept_with_what_it_shows(path: Path) -> None:
    """The outputs are stored for readers, and contain nothing specific to one machine."""
    notebook = json.loads(path.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert len(outputs) >= 5
    assert all(output["output_type"] != "error" for output in outputs)
    assert any("assert " in "".join(cell["source"]) for cell in code)
    assert path.stat().st_size < 250_000
    assert not re.search(r"/tmp|/home|/root", path.read_text())
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", "".join(_words(notebook))):
        assert (path.parent / target).exists(), target


def _words(notebook: dict[str, Any]) -> list[str]:
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "markdown"]


def written(path: Path, *lines: str) -> Path:
    """Write a notebook with these cells, which haven't been run."""
    cell: dict[str, Any] = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    cells = [cell | {"id": f"c{k}", "source": line} for k, line in enumerate(lines)]
    path.write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    return path


@pytest.mark.validate
def test_a_kernel_shows_tables_and_bars_of_progress(tmp_path: Path) -> None:
    """Run a real notebook."""
    path = written(
        tmp_path / "small.ipynb",
        "import rank1; problem = rank1.spike(2, 2, 0.5, 0.4, 0.4, 0.5); problem",
        "rank1.simulate(rank1.Uniform(), problem, 100, 2, progress=True)",
    )
    done = run(str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "small.ipynb: 2 cells, 1 bars of progress\n"
    shown = [cell["outputs"] for cell in json.loads(path.read_text())["cells"]]
    assert [len(outputs) for outputs in shown] == [1, 1]  # progress bars aren't kept
    for (output,), word in zip(shown, ("best arm", "uniform"), strict=True):
        html = "".join(output["data"]["text/html"])
        assert word in html
        assert "<svg" in html
    kept = path.read_text()
    path.write_text(kept.replace("<svg", "<svg class='other'"))  # pictures may differ
    assert run("--check", str(path)).returncode == 0
    path.write_text(kept.replace("best arm", "worst arm"))
    done = run("--check", str(path))
    assert done.returncode == 1
    assert "small.ipynb: cell 0 shows" in done.stderr


@pytest.mark.validate
def test_a_cell_that_fails_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "wrong.ipynb", "assert 1 == 2, 'no'")
    done = run("--check", str(path))
    assert done.returncode == 1
    assert "AssertionError" in done.stderr
