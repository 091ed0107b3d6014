"""The papers' own numbers, written down twice: table1.tex is the table as the authors wrote it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np

from rank1.cli.paper import paper as command
from rank1.paper import Options, discussion, figure2, figure3, published, trinh2020
from rank1.paper.completion import optspace
from rank1.paper.movielens import obtain, rating_problem
from rank1.paper.published import RUNS, TABLE_1, Cell, N

SOURCE = (Path(__file__).parent / "table1.tex").read_text()
#: Settings as the paper writes them.
NAMES = {
    "K": "K", "L": "L", r"p_\rowvar": "p_u", r"p_\colvar": "p_v",
    r"\Delta_\rowvar": "delta_u", r"\Delta_\colvar": "delta_v",
}  # fmt: skip


def cells() -> list[Cell]:
    """The rows of the three sub-tables, with what is fixed as it stands underneath each."""
    found = []
    for number, table in enumerate(re.findall(r"\\begin\{tabular\}(.*?)\\end", SOURCE, re.S), 1):
        below = re.search(r"\\multicolumn\{3\}\{c\}\{(.*)\}", table)
        assert below
        fixed: dict[str, float] = {}
        for equation in re.findall(r"\$([^$]*)\$", below[1]):
            *left, value = equation.split(" = ")
            fixed |= {NAMES[name]: float(value) for name in left}
        varied = [name for name in NAMES.values() if name not in fixed]
        rows = re.findall(
            r"^ *([\d.]+) & ([\d.]+) & \$(\d+) \\pm (?:\\phantom\{0+\})?(\d+)\$", table, re.M
        )
        assert len(rows) == 9
        for first, second, mean, error in rows:
            settings: Any = fixed | {varied[0]: float(first), varied[1]: float(second)}
            found.append(Cell(number, regret=float(mean), se=float(error), **settings))
    return found


def test_table_1_is_the_papers() -> None:
    assert len(TABLE_1) == 27
    assert cells() == TABLE_1


def trinh() -> dict[str, tuple[str, dict[float, dict[str, float]]]]:
    """What stands over each table of trinh2020.txt, and its columns by K or γ."""
    found = {}
    text = (Path(__file__).parent / "trinh2020.txt").read_text()
    for part in text.strip().split("\n\n")[1:]:
        title, *lines = part.splitlines()
        name, _, about = title.partition(": ")
        head, *rows = [line.split() for line in lines]
        found[name] = (
            about,
            {
                float(at): {
                    row[0].lower().replace("-", "_").replace("elimkl", "elim_kl"): float(
                        row[k].replace("k", "e3")
                    )
                    for row in rows
                }
                for k, at in enumerate(head[1:], 1)
            },
        )
    return found


def test_the_values_of_trinh_et_al_are_those_of_their_figures() -> None:
    """So are the grids, the steps and the number of runs of each part."""
    read = trinh()
    sizes, gammas, drawn, large, close = read.values()
    assert sizes[1] == published.TRINH_SIZES
    assert gammas[1] == {gamma: {"uts": end} for gamma, end in published.TRINH_GAMMAS.items()}
    assert drawn[1] == {K: {"drawn": slope} for K, slope in published.TRINH_DRAWN.items()}
    assert large[1] == published.TRINH_LARGE
    assert close[1] == published.TRINH_CLOSE
    for part, (about, _) in zip(trinh2020.PARTS, (sizes, gammas, large, close), strict=True):
        factors = ", ".join(f"{x:g}".removeprefix("0") for x in (part.best, part.other))
        assert about.startswith(f"u = v = ({factors}, ...)")
        assert about.endswith(f"T = {part.n}, {part.runs} runs")


def test_length_and_number_of_the_runs_are_the_papers() -> None:
    assert (N, RUNS) == (2_000_000, 20)
    assert r"in $n = 2\text{M}$ steps" in SOURCE
    assert "averaged over $20$ runs" in SOURCE


def test_the_command_does_what_the_paper_did() -> None:
    """Unless it is told otherwise."""
    default = Options()
    assert (default.runs, default.n) == (RUNS, N)
    assert (default.scale, default.sigma, default.seed) == ("unit", 0.98, 1)
    given = inspect.signature(command).parameters
    assert (given["scale"].default, given["sigma"].default, given["seed"].default) == (
        "unit", "0.98", 1
    )  # fmt: skip
    assert given["runs"].default is given["n"].default is None  # which stand for 20 and 2 million
    assert figure2.SIZES == (16, 32, 64)
    assert [policy.label for policy in figure2.PAPER] == ["rank1elim", "ucb1", "linucb", "glm_ucb"]
    assert [policy.settings["confidence_scale"] for policy in figure2.SCALED] == [1 / 3, 1 / 100]
    assert figure3.NAMES[:2] == ("rank1elim", "ucb1")
    assert discussion.EXPECTED == {"rank1elim": 3, "ucb1": 2}


def test_the_grid_of_figure_3() -> None:
    """128 groups and movies are the paper's, which doesn't say how long it completed the ratings.

    Nor does it say how far ratings lie from the completed ones: on MovieLens 0.98 stars.
    """
    grid = rating_problem(obtain())
    assert (grid.problem.K, grid.problem.L) == (128, 128)
    assert (grid.sigma, grid.scale) == (0.98, "unit")
    assert grid.completion.rank_guessed
    assert grid.completion.iterations == 50
    assert not grid.completion.converged


def test_a_completion_takes_50_iterations_unless_it_comes_to_rest() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(40, 30))
    matrix[rng.random(matrix.shape) < 0.4] = np.nan
    assert optspace(matrix, 3, tolerance=0).iterations == 50
