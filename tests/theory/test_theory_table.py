from __future__ import annotations

import json
import math

import pytest

import rank1
from rank1 import theory

N = 2_000_000


def leaves(facts: dict[str, object], path: str = "") -> dict[str, object]:
    """Entries by their dotted names, but for notes and lists."""
    found: dict[str, object] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            found |= leaves(value, f"{path}{name}.")
        elif not isinstance(value, list):
            found[f"{path}{name}"] = value
    return found


SPIKE = rank1.spike(8, 8, 0.7, 0.7, 0.2, 0.2)
PROBLEMS = [
    SPIKE,
    rank1.Gaussian(SPIKE.u, SPIKE.v, sigma=0.5),
    rank1.Gaussian([1.0, 0.5], [1.0], sigma=0.5),
    rank1.Factors([["beta", 3, 1], 0.2], [0.5]),
    rank1.Categorical([0, 5], [[[0.5, 0.5], [0.1, 0.9]]]),
    rank1.Bernoulli([0.5], [0.5]),
    rank1.Bernoulli([0.5, 0.5], [0.5]),
    rank1.Bernoulli([1.0, 0.5], [1.0, 0.5]),
    rank1.Bernoulli([0.0, 0.0], [0.5, 0.1]),
    rank1.Bernoulli([1e-200], [0.5, 0.1]),
    rank1.Product([[0.9, 0.5], [0.8], [0.9, 0.7, 0.7]]),
    rank1.Product([[0.9, 0.5, 0.9]]),
    rank1.Means([[[0.5, 0.1], [0.1, 0.52]]]),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_every_table_is_json_and_says_why_an_entry_is_missing(problem: rank1.Problem) -> None:
    facts = theory.table(problem, N)
    json.dumps(facts, allow_nan=False)
    names = ["gaps", "mu", "upper", "lower_slope", "upper_slope", "identification", "n", "notes"]
    assert list(facts) == names
    two = {"rows", "columns", "min_row", "min_column"} if len(problem.grid.sizes) == 2 else set()
    assert set(facts["gaps"]) == {"sides", "min_sides"} | two
    assert set(facts["lower_slope"]) == {"theorem2", "theorem3", "graves_lai"}
    for name, value in leaves(facts).items():
        noted = any(note.startswith(f"{name}: ") for note in facts["notes"])
        assert noted or value is not None
        assert value is None or isinstance(value, float | int)


def test_the_table_of_a_bernoulli_problem() -> None:
    facts = theory.table(SPIKE, 2e6)  # type: ignore[arg-type]
    assert facts["n"] == N
    assert isinstance(facts["n"], int)
    assert facts["gaps"]["rows"] == pytest.approx([0.0] + [0.2] * 7)
    assert facts["mu"] == pytest.approx(0.725)
    assert facts["upper"]["theorem1"] == pytest.approx(848002.3, abs=0.05)
    slope = facts["lower_slope"]["theorem2"]
    assert slope * math.log(N) == pytest.approx(414.21, abs=0.005)
    assert facts["lower_slope"]["graves_lai"] == pytest.approx(slope)
    assert facts["upper_slope"] == {"uts": slope, "osub": slope}
    time = theory.characteristic_time(SPIKE).value
    assert facts["identification"] == {
        "characteristic_time": time,
        "rank_one": theory.characteristic_time(SPIKE, "rank_one").value,
        "any": theory.characteristic_time(SPIKE, "any").value,
    }
    assert facts["lower_slope"]["theorem3"] is None
    assert "lower_slope.theorem3: is for Gaussian rewards" in facts["notes"]
    assert (
        "upper.theorem1: above the trivial bound, n times the largest gap: 640000"
        in (facts["notes"])
    )


def test_the_table_of_three_sides() -> None:
    problem = rank1.Product([[0.9, 0.5], [0.8], [0.9, 0.7, 0.7]])
    facts = theory.table(problem, N)
    slope = theory.unimodal_bound(problem)
    assert facts["gaps"]["min_sides"] == pytest.approx([0.4, None, 0.2])
    assert facts["lower_slope"]["graves_lai"] == pytest.approx(slope)
    assert facts["upper_slope"] == {"uts": slope, "osub": slope}
    assert facts["lower_slope"]["theorem2"] is None
    assert "gaps.min_sides: side 1 has no positive gap" in facts["notes"]
    assert any(
        note.startswith("upper.theorem1: sides must be 2 for Theorem 1, got 3 (2×1×3)")
        for note in facts["notes"]
    )


def test_the_table_of_a_gaussian_problem() -> None:
    facts = theory.table(rank1.Gaussian(SPIKE.u, SPIKE.v, sigma=0.5), N)
    assert facts["lower_slope"]["theorem3"] * math.log(N) == pytest.approx(564.23, abs=0.005)
    assert facts["lower_slope"]["graves_lai"] == pytest.approx(facts["lower_slope"]["theorem3"])
    assert facts["upper"]["theorem1"] is None


def test_an_infinite_bound_is_said_to_be_infinite() -> None:
    notes = theory.table(rank1.Bernoulli([0.0, 0.0], [0.5, 0.1]), N)["notes"]
    assert "upper.theorem1: infinite: mu = 0, and 1/mu² is a factor" in notes


def test_a_large_grid_is_not_solved_but_its_ties_are_still_named() -> None:
    notes = theory.table(rank1.spike(130, 130, 0.1, 0.1, 0.2, 0.2), N)["notes"]
    assert any(
        "graves_lai: problem must be one of at most 16,384 arms to be solved" in note
        for note in notes
    )
    notes = theory.table(rank1.spike(130, 130, 0.1, 0.1, 0.0, 0.2), N)["notes"]
    assert any("graves_lai: problem must be one with a single best arm" in note for note in notes)


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="problem must be a problem"):
        theory.table("spike", N)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n must be a whole number"):
        theory.table(SPIKE, 0)
