"""The examples in the documentation work as shown."""

from __future__ import annotations

import doctest
import importlib
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import rank1
from tests.conftest import BROWSER_MISSING, CHROMIUM

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Their examples compile a policy for seconds each. The contract compiles each in every run.
SLOW = {
    "getting-started", "which-policy", "bet_elim", "factor_ts", "id_ts", "imed_ub", "kl_ucb",
    "osub", "pair_elim", "stopping", "thompson", "top_two", "ucb1", "uts",
}  # fmt: skip


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.validate if page.stem in SLOW else (), id=page.name)
        for page in PAGES
    ],
)
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # so that the files they write are thrown away
    failures, _ = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert failures == 0


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_named_files_exist(page: Path) -> None:
    folders = "src|tests|docs|benchmarks|examples|tools|deploy|js"
    for name in re.findall(rf"`((?:{folders})/[\w./-]+\.\w+)`", page.read_text()):
        assert (ROOT / name).exists() or name.endswith("/epsilon_greedy.py"), name


def recipe() -> tuple[str, str]:
    """Return the policy of the contributing guide, and the code that tries it."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    code, trial = re.findall(r"```python\n(.*?)```", text, re.S)
    return code, trial


def test_the_policy_of_the_contributing_guide_works(tmp_path: Path, monkeypatch: Any) -> None:
    """It works in a user's own module."""
    code, trial = recipe()
    (tmp_path / "contributed.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    mine: Any = importlib.import_module("contributed")

    problem = rank1.Bernoulli([0.1, 0.9], [0.8, 0.2])
    result = rank1.simulate(mine.EpsilonGreedy(0.2), problem, 5000, 2, seed=1)
    assert result.best_pairs("epsilon_greedy:epsilon=0.2") == [(1, 0)] * 2
    gap = problem.best_mean - problem.means.mean()
    assert result.outcomes[0].expected[:, -1] == pytest.approx(0.2 * gap * 5000, rel=0.25)
    exec(trial, vars(mine))


def test_the_policy_of_the_contributing_guide_can_be_put_into_the_package(tmp_path: Path) -> None:
    """It works exactly as printed, and no test requires more than the guide does."""
    code, _ = recipe()
    package = tmp_path / "rank1"
    shutil.copytree(ROOT / "src/rank1", package, ignore=shutil.ignore_patterns("*.pyc.*"))
    (package / "policies/epsilon_greedy.py").write_text(code)
    (line,) = re.findall(
        r"`(from rank1.policies.epsilon.*)`", (ROOT / "CONTRIBUTING.md").read_text()
    )
    listed = package / "policies/__init__.py"
    listed.write_text(listed.read_text().replace("# isort: on", f"{line}\n# isort: on", 1))
    table = package / "__init__.py"
    table.write_text(table.read_text().replace(" Uniform ask ", " Uniform EpsilonGreedy ask ", 1))
    shutil.copytree(
        ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("old", "*.pyc.*")
    )
    for name in ("pyproject.toml", "README.md", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}
    shown = subprocess.run(
        [sys.executable, "-m", "rank1", "policies"],
        env=environment, cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert "epsilon_greedy" in shown.stdout
    tests = [
        "tests/policies/test_contract.py",
        "tests/plots/test_styles.py",
        "tests/test_public.py",
    ]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *tests, "-m", "not validate", "-vv", "-k",
         "EpsilonGreedy or style or exported or table or literal"],
        env=environment, cwd=tmp_path, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert re.search("EpsilonGreedy.* PASSED", run.stdout)


def test_the_study_of_the_readme_works(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.S | re.M)
    script = next(block for block in blocks if "rank1 study create" in block)
    command = f"{shlex.quote(sys.executable)} -m rank1"
    run = subprocess.run(
        ["sh", "-e", "-c", script.replace("rank1 study", f"{command} study")],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert "18-24 × email brought 1" in run.stdout
    assert "If one order holds: keep going" in run.stdout


@pytest.mark.validate
@pytest.mark.parametrize(
    "page",
    [*sorted((ROOT / "docs/policies").glob("*.md")), ROOT / "docs/stopping.md"],
    ids=lambda p: p.stem,
)
def test_figures_are_those_of_the_command_beside_them(page: Path) -> None:
    text = page.read_text()
    joined = text.replace("\\\n", " ")
    commands = re.findall(r"^rank1 ((?:simulate|identify) .*)$", joined, re.M)
    assert commands
    for command in commands:
        arguments = re.sub(r"--(plot|jobs) \S+|--bounds", "", command)
        run = subprocess.run(
            [sys.executable, "-m", "rank1", *shlex.split(arguments), "--json"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        for policy in json.loads(run.stdout)["policies"]:
            figure = policy["pulls" if command.startswith("identify") else "expected_regret"]
            assert f"{figure['mean']:,.0f} ± {figure['se']:,.0f}" in text


@pytest.mark.validate
@pytest.mark.parametrize(
    ("script", "page"),
    [
        ("traffic_table.py", "traffic.md"),
        ("segments_example.py", "segments.md"),
        ("warehouse_example.py", "warehouse.md"),
    ],
)
def test_figures_are_those_of_the_script_beside_them(script: str, page: str) -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "docs" / script)], check=True, capture_output=True, text=True
    )
    text = (ROOT / "docs" / page).read_text()
    lines = [line.split(": ", 1)[-1].rstrip() for line in run.stdout.splitlines()]
    assert [line for line in lines if line not in text and "wrong stops" not in line] == []


@pytest.mark.validate
@pytest.mark.skipif(CHROMIUM is None, reason=BROWSER_MISSING)
def test_the_first_test_can_be_followed(tmp_path: Path) -> None:
    """Go from the form to the verdict, in a browser, with the shop's page as printed."""
    script = ROOT / "docs/first_test_figures.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, capture_output=True)
    taken = {path.name for path in tmp_path.iterdir()}
    assert taken == {path.name for path in (ROOT / "docs/figures").glob("first-test-*.png")}


@pytest.mark.validate
def test_the_pulls_until_one_is_sure(tmp_path: Path) -> None:
    """The table on the page is the output of its script."""
    code = (
        "import pathlib, sys; sys.path.insert(0, sys.argv[1]); import which_policy;"
        "which_policy.FOLDER = pathlib.Path('.'); which_policy.main()"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "docs")],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert run.stdout in (ROOT / "docs/which-policy.md").read_text()
    assert (tmp_path / "which-policy-find.png").exists()


@pytest.mark.validate
def test_who_earns_most_where(tmp_path: Path) -> None:
    """The figures on the page are those of its sweep."""
    text = " ".join((ROOT / "docs/which-policy.md").read_text().split())
    out = tmp_path / "which-policy.parquet"
    subprocess.run(
        [
            sys.executable, "-m", "rank1", "sweep", str(ROOT / "docs/which-policy.toml"),
            "--store", str(tmp_path / "cells"), "--out", str(out),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    regret: dict[tuple[int, float, int], dict[str, Any]] = {}
    keys = ["K", "p_u", "n", "policy"]
    for key, rows in pl.read_parquet(out).group_by(keys, maintain_order=True):
        K, p_u, n, policy = key
        values = rows["expected_regret"].to_numpy()
        assert len(values) == 20
        regret.setdefault((K, p_u, n), {})[str(policy)] = (
            values.mean(), values.std(ddof=1) / len(values) ** 0.5
        )  # fmt: skip
    winners, clear = {}, 0
    for square, means in regret.items():
        first, second = sorted(means, key=lambda name: means[name][0])[:2]
        winners[square] = first
        gap = means[second][0] - means[first][0]
        clear += first == "uts" and gap > 2 * math.hypot(means[first][1], means[second][1])
    won = list(winners.values()).count("uts")
    said = f"`uts` has the lowest regret in {won} of {len(winners)} squares, clearly so in {clear}"
    assert said in text
    others = [square for square in winners if winners[square] != "uts"]
    assert [(K, n) for K, _, n in others] == [(32, 1000)] * 3
    for square in others:
        means = regret[square]
        assert means[winners[square]][0] > 0.99 * means["uniform"][0]
    for K in (4, 32):
        (mean, error), (equal, _) = (regret[K, 0.2, 100_000][name] for name in ("uts", "uniform"))
        size = f"{K}×{K}, where an equal split loses {equal:,.0f}"
        assert f"{mean:,.0f} ± {error:,.0f} on {size}" in text
