"""rank1 bounds, and bounds in the figure of rank1 simulate."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1 import theory
from tests.test_cli import SIMULATE, Output

Capture = pytest.CaptureFixture[str]
SPIKE_8 = ["--problem", "spike", "--set", "p_u=0.7", "--set", "p_v=0.7"]
SPIKE_8 += ["--set", "delta_u=0.2", "--set", "delta_v=0.2"]


def of_size(K: int) -> list[str]:
    return ["bounds", *SPIKE_8, "--set", f"K={K}", "--set", f"L={K}", "--n", "2e6"]


@pytest.mark.parametrize(
    ("K", "theorem1", "theorem2"), [(8, 848002.3, 414.21), (16, 1756032.1, 887.59)]
)
def test_json(capsys: Capture, K: int, theorem1: float, theorem2: float) -> None:
    ran = Output(capsys, *of_size(K), "--json")
    assert ran.status == 0
    assert ran.err == ""
    document = json.loads(ran.out)
    assert document == theory.table(rank1.spike(K, K, 0.7, 0.7, 0.2, 0.2), 2_000_000)
    assert document["upper"]["theorem1"] == pytest.approx(theorem1, abs=0.05)
    slope = document["lower_slope"]["theorem2"]
    assert slope * math.log(document["n"]) == pytest.approx(theorem2, abs=0.005)


def test_table_for_a_person(capsys: Capture) -> None:
    lines = [" ".join(line.split()) for line in Output(capsys, *of_size(8)).out.splitlines()]
    assert "spike 8×8, best pair (0, 0), mean 0.81" in lines
    assert "row gaps 1 × 0, 7 × 0.2" in lines
    assert "μ, the smaller of the average row and column 0.725" in lines
    assert "Theorem 1 Rank1Elim's regret is at most – 848,002.27" in lines
    assert any(line.startswith("Theorem 2 ") and line.endswith(" 28.5491 414.21") for line in lines)
    assert any(line.startswith("Theorem 3 ") and line.endswith(" – –") for line in lines)
    assert "Theorem 3: is for Gaussian rewards." in lines


def test_characteristic_time(capsys: Capture) -> None:
    """The reference value for the 8×8 grid is T*·log(1/α) = 1,681."""
    half = [text.replace("0.7", "0.5") for text in of_size(8)]
    lines = [" ".join(line.split()) for line in Output(capsys, *half).out.splitlines()]
    time = theory.characteristic_time(rank1.spike(8, 8, 0.5, 0.5, 0.2, 0.2))
    assert any(
        line.startswith("T* ") and line.endswith(f"{time.value:.6g} 1,681") for line in lines
    )
    document = json.loads(Output(capsys, *half, "--json").out)
    assert document["identification"]["characteristic_time"] == time.value
    assert document["identification"]["rank_one"] == pytest.approx(464, abs=0.5)
    tied = ["bounds", "--problem", "bernoulli", "--set", "u=[0.9, 0.9]", "--set", "v=[0.5]"]
    lines = [" ".join(line.split()) for line in Output(capsys, *tied).out.splitlines()]
    assert any(line.startswith("T* ") and line.endswith(" – –") for line in lines)


@pytest.mark.uncompiled
def test_measured_over_bound(capsys: Capture) -> None:
    arguments = ["bounds", "--problem", "product", "--set", "factors=[[0.9, 0.3], [0.8, 0.2]]"]
    arguments += ["--policy", "top_two", "--runs", "5", "--confidence", "0.9"]
    document = json.loads(Output(capsys, *arguments, "--json").out)
    (measured,) = document["measured"]["policies"]
    assert measured["stopped"] == 5
    for name, time in document["identification"].items():
        over = measured["pulls"] / (time * math.log(10))
        assert measured["over_bound"][name] == pytest.approx(over)
    lines = [" ".join(line.split()) for line in Output(capsys, *arguments).out.splitlines()]
    assert any(line.endswith("at α = 0.1 top_two ÷ bound") for line in lines)
    over = f"{measured['over_bound']['rank_one']:.2f}"
    assert any(line.startswith("T* (rank one) ") and line.endswith(over) for line in lines)


def test_what_a_grid_of_any_means_lacks(capsys: Capture) -> None:
    """Its rewards are Bernoulli; only its rank and its number of sides don't fit."""
    for means, unmet in (
        ("[[0.5, 0.1], [0.1, 0.52]]", "is for grids of rank one, of products of factors"),
        ("[0.5, 0.1]", "is for grids of rank one, of products of factors, and for two sides"),
    ):
        arguments = ["bounds", "--problem", "means", "--set", f"means={means}"]
        document = json.loads(Output(capsys, *arguments, "--json").out)
        assert f"lower_slope.theorem2: {unmet}" in document["notes"]
        assert not any("Bernoulli rewards" in note for note in document["notes"])
        assert document["identification"]["any"] > 0


def test_gaussian(capsys: Capture) -> None:
    u = json.dumps([0.9] + [0.7] * 7)
    sets = ["--set", f"u={u}", "--set", f"v={u}", "--set", "sigma=0.5"]
    out = Output(capsys, "bounds", "--problem", "gaussian", *sets).out
    assert "564.23" in out
    assert "Theorem 1 doesn't cover unbounded noise" in " ".join(out.split())


def test_many_different_gaps_are_cut_short(capsys: Capture) -> None:
    u = json.dumps([k / 10 for k in range(10)])
    out = Output(
        capsys, "bounds", "--problem", "bernoulli", "--set", f"u={u}", "--set", "v=[1]"
    ).out
    assert "1 × 0.5, and 4 more, up to 0.9" in " ".join(out.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["bernoulli", "--set", "u=[0.9, 0.9]", "--set", "v=[0.5]"],
        ["bernoulli", "--set", "u=[0, 0]", "--set", "v=[0.5, 0.1]", "--n", "1"],
        ["bernoulli", "--set", "u=[1, 0.5]", "--set", "v=[1, 0.5]"],
        ["gaussian", "--set", "u=[1, 0.5]", "--set", "v=[1]", "--set", "sigma=1"],
        ["factors", "--set", 'u_law=[["beta", 3, 1], 0.2]', "--set", "v_law=[0.5]"],
        ["categorical", "--set", "values=[0, 5]", "--set", "probabilities=[[[1, 0], [0, 1]]]"],
        ["spike", "--set", "K=200", "--set", "L=200", "--set", "p_u=1e-200", "--set", "p_v=0.1",
         "--set", "delta_u=0", "--set", "delta_v=0.2"],
    ],
    ids=lambda arguments: " ".join(arguments),
)  # fmt: skip
def test_every_kind_of_problem_has_a_table_and_its_notes_in_words(
    capsys: Capture, arguments: list[str]
) -> None:
    ran = Output(capsys, "bounds", "--problem", *arguments)
    assert ran.status == 0
    document = json.loads(Output(capsys, "bounds", "--problem", *arguments, "--json").out)
    assert document["notes"]
    for raw in ("lower_slope", "upper_slope", "upper.", "gaps.", "got <", "nan", "None"):
        assert raw not in ran.out
    assert "Theorem 3: is for Gaussian" in ran.out or "Theorem 2: is for Bernoulli" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*of_size(8), "--n", "0"], "n must be a whole number of at least 1, got 0"),
        (["bounds", "--problem", "spik"], "did you mean spike"),
        (["bounds", "--problem", "spike"], "K, L, p_u, p_v, delta_u, delta_v must be given"),
        (["bounds", "--problem", "bernoulli", "--set", "u=[2]", "--set", "v=[1]"], "got 2.0"),
        ([*SIMULATE, "--bounds"], "--plot must be given with --bounds, got none"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(capsys: Capture, arguments: list[str], message: str) -> None:
    ran = Output(capsys, *arguments)
    assert ran.status == 2
    assert message in ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_simulate_draws_them(capsys: Capture, tmp_path: Path) -> None:
    drawn: dict[str, Any] = {}
    for options in ([], ["--bounds"]):
        path = tmp_path / "a.svg"
        assert Output(capsys, *SIMULATE, "--plot", str(path), *options).status == 0
        drawn[" ".join(options)] = path.read_text()
    assert "Theorem" not in drawn[""]
    assert "Theorem 2" in drawn["--bounds"]
    assert "Theorem 1" in drawn["--bounds"]
