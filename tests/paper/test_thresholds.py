"""From where on a sentence of the paper counts as true: on either side of every threshold.

The numbers are those that stand beside the verdicts; a threshold that moves makes one side fail.
"""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rank1.grid import Grid
from rank1.paper import Options, artefact, discussion, figure2, figure3, scaling, table1
from rank1.paper.claims import claim, judged
from rank1.paper.curves import EARLY, LATE, concave, slopes
from rank1.paper.published import TABLE_1, N
from rank1.simulation.result import Outcome

# Table 1.


def table1_claims(changes: dict[tuple[int, float, float], float]) -> list[dict[str, Any]]:
    """The claims on a table that bears all sentences out but for some cells.

    A cell is named by its sub-table and the two settings that vary in it.
    """
    cells = []
    for cell in TABLE_1:
        first, second = (getattr(cell, name) for name in table1.CAPTIONS[cell.table][0])
        even = 1000.0 * first * second if cell.table == 1 else 1.0 / (first * second)
        mean = changes.get((cell.table, first, second), math.sqrt(even))
        cells.append(cell._asdict() | {"regret": {"mean": mean}})
    return table1.claims(cells)


def test_growth_is_any_growth() -> None:
    base = math.sqrt(1000 * 8 * 8)
    for ratio, holds in ((1.001, True), (0.999, False)):
        found = table1_claims({(1, 8, 16): ratio * base, (1, 16, 8): ratio * base})
        assert found[0]["each"] == [holds, True]
    smallest = math.sqrt(1 / 0.2 / 0.2)
    for ratio, holds in ((1.001, True), (0.999, False)):
        found = table1_claims({(3, 0.1, 0.2): ratio * smallest, (3, 0.2, 0.1): ratio * smallest})
        assert found[0]["each"] == [True, holds]


@pytest.mark.parametrize(
    ("ratio", "holds"), [(1.49, False), (1.51, True), (2.0, True), (2.49, True), (2.51, False)]
)
def test_twice_is_one_and_a_half_to_two_and_a_half(ratio: float, holds: bool) -> None:
    sizes, gaps = math.sqrt(1000 * 8 * 8), math.sqrt(1 / 0.2 / 0.2)
    changes: list[dict[tuple[int, float, float], float]] = [
        {(1, 8, 8): 2 * sizes / ratio},
        {(1, 32, 32): 2 * sizes * ratio},
        {(3, 0.2, 0.2): 2 * gaps / ratio},
        {(3, 0.05, 0.05): 2 * gaps * ratio},
    ]
    for k, change in enumerate(changes):
        assert table1_claims(change)[1]["each"] == [True] * k + [holds] + [True] * (3 - k)


def test_quadratic_begins_at_a_power_of_one_and_a_half() -> None:
    least = math.sqrt(1 / 0.7 / 0.7)
    for power, holds in ((1.49, True), (1.51, False)):
        (found,) = table1_claims({(2, 0.175, 0.175): least * 4**power})[2]["each"]
        assert found == holds


def test_cells_are_realised_regret_and_z_has_its_sign(tmp_path: Path) -> None:
    import rank1

    document = artefact.make("table1", Options(runs=3, seed=5, out=tmp_path))
    assert len(document["cells"]) == 27
    signs = set()
    for cell, published in zip(document["cells"], TABLE_1, strict=True):
        problem = rank1.spike(*(cell[name] for name in published._fields[1:7]))
        outcome = rank1.simulate(rank1.Rank1Elim(), problem, N, 3, 5, checkpoints=1).outcomes[0]
        realised = outcome.realised[:, -1]
        assert cell["regret"]["mean"] == pytest.approx(realised.mean(), rel=1e-12)
        assert cell["regret"]["mean"] != pytest.approx(outcome.expected[:, -1].mean(), rel=1e-9)
        error = realised.std(ddof=1) * math.sqrt(1 / 3 + 1 / 20)
        assert cell["z"] == pytest.approx((realised.mean() - published.regret) / error)
        signs.add(math.copysign(1, cell["z"]))
        assert (cell["paper"]["mean"], cell["paper"]["se"]) == (published.regret, published.se)
    assert signs == {1.0, -1.0}


def test_both_sides_count_as_far() -> None:
    cells = [{"z": z} for z in (-9.0, -3.01, -2.99, -1.0, None, 1.0, 2.01, 2.99, 3.01, 9.0)]
    assert table1.within({"cells": cells}, 2) == 2
    assert table1.within({"cells": cells}, 3) == 5
    assert [str(table1._z(z)) for z in (-3.01, -2.99, None, 2.99, 3.01)] == [
        "* -3.01", "-2.99", "", "+2.99", "* +3.01"
    ]  # fmt: skip


def test_z_needs_the_papers_number_of_steps(tmp_path: Path) -> None:
    document = artefact.make("table1", Options(runs=2, n=1000, out=tmp_path))
    assert all(cell["z"] is None for cell in document["cells"])


# Scaling.


@pytest.mark.parametrize(
    ("factor", "holds"), [(1.79, False), (1.81, True), (2.19, True), (2.21, False)]
)
def test_doubling_is_within_a_tenth(factor: float, holds: bool) -> None:
    found = scaling._doubling("K and L doubled", [(1.0, factor), (3.0, 3 * factor)])
    assert found["holds"] == holds
    assert "within 10% of 2" in found["meaning"]


def test_not_quadratic_is_two_standard_errors_below() -> None:
    cells = [{"varied": s, "regret": {"mean": 1.0}} for s, c in scaling.VARIED.items() for _ in c]
    for exponent, holds in ((1.79, True), (1.81, False)):
        fits = {"1/mu": {"exponent": exponent, "se": 0.1}}
        assert scaling._claims(cells, fits, True)[2]["holds"] == holds


# Figure 2.


def figure2_claims(
    changes: dict[str, tuple[float, float, float]], late: float = 0.0
) -> list[dict[str, Any]]:
    """The claims; regrets are over Rank1Elim's, for three sizes."""
    ends = {
        "rank1elim": (1.0, 1.0, 1.0), "ucb1": (0.5, 1.0, 2.0), "linucb": (2.0, 2.0, 2.0),
        "glm_ucb": (3.0, 3.0, 3.0), "linucb:confidence_scale=1/3": (0.5, 0.5, 0.5),
        "glm_ucb:confidence_scale=0.01": (2.0, 2.0, 2.0),
        "linucb:radius=determinant": (2.0, 2.0, 2.0),
    } | changes  # fmt: skip
    problems = [
        {
            "policies": [
                {
                    "label": label,
                    "expected_regret": {"mean": 100 * values[k], "se": 1.0},
                    "expected_curve": {"mean": [100.0] * 18 + [100 * (1 + late)] * 2},
                }
                for label, values in ends.items()
            ]
        }
        for k in range(3)
    ]
    return figure2.claims(problems)


def test_flat_is_a_twentieth_of_the_first_slope() -> None:
    assert figure2_claims({}, 0.049)[0]["each"] == [True] * 3
    assert figure2_claims({}, 0.051)[0]["each"] == [False] * 3


@pytest.mark.parametrize(
    ("ratios", "each"),
    [
        ((0.999, 1.0, 1.51), [True, True, True]),
        ((1.001, 1.0, 1.49), [False, True, False]),
        ((0.5, 1.49, 2.0), [True, True, True]),
        ((0.5, 1.51, 2.0), [True, False, True]),
        ((0.5, 0.68, 2.0), [True, True, True]),
        ((0.5, 0.65, 2.0), [True, False, True]),
    ],
)
def test_similar_is_within_a_factor_of_one_and_a_half(
    ratios: tuple[float, float, float], each: list[bool]
) -> None:
    assert figure2_claims({"ucb1": ratios})[1]["each"] == each


@pytest.mark.parametrize(
    ("label", "number", "above"),
    [
        ("linucb", 2, True),
        ("glm_ucb", 3, True),
        ("linucb:confidence_scale=1/3", 4, False),
        ("glm_ucb:confidence_scale=0.01", 5, True),
    ],
)
def test_competitive_is_below_rank1elim(label: str, number: int, above: bool) -> None:
    found = figure2_claims({label: (0.999, 1.001, 1.001)})[number]
    assert found["each"][:3] == [not above, above, above]


def test_a_reading_must_hold_everywhere() -> None:
    for ratio, holds in ((1.001, True), (0.999, False)):
        found = figure2_claims({"glm_ucb:confidence_scale=0.01": (0.9, ratio, 1.1)})[5]
        assert found["reading"] == holds


# Figure 3.


def figure3_claims(**changes: float) -> list[list[bool]]:
    given = {"rank": 5, "first": 10.0, "late": 0.25, "gap": 0.1, "ucb1": 0.5} | changes
    grid: Any = SimpleNamespace(
        stand_in=False,
        rank=given["rank"],
        singular_values=np.array([given["first"], 1.0]),
        label="stand-in data",
    )
    entries = [
        {"policy": name, "early": {"mean": 1.0}, "late": {"mean": late}, "gap": {"mean": gap}}
        for name, late, gap in (
            ("rank1elim", given["late"], given["gap"]),
            ("ucb1", given["ucb1"], 0.0),
        )
    ]
    return [each["each"] for each in figure3._claims(entries, grid, True)]


@pytest.mark.parametrize(
    ("change", "number", "each"),
    [
        ({"rank": 4}, 0, [False]),
        ({"rank": 6}, 0, [False]),
        ({"first": 10.01}, 1, [True]),
        ({"first": 9.99}, 1, [False]),
        ({"late": 0.249}, 2, [True, True]),
        ({"late": 0.251}, 2, [True, False]),
        ({"gap": 0.099}, 3, [True]),
        ({"gap": 0.101}, 3, [False]),
        ({"ucb1": 0.501}, 4, [True]),
        ({"ucb1": 0.499}, 4, [False]),
    ],
)
def test_figure_3(change: dict[str, float], number: int, each: list[bool]) -> None:
    expected = [[True], [True], [True, True], [True], [True]]
    assert figure3_claims() == expected
    expected[number] = each
    assert figure3_claims(**change) == expected


def outcome(curves: Any) -> Outcome:
    regret = np.array(curves, float)
    runs = list(range(len(regret)))
    return Outcome("a", "a", {}, 0.0, runs, Grid([1, 1]), [0] * len(runs), regret, regret, None)


@pytest.mark.parametrize(("errors", "expected"), [(2.9, True), (3.1, False)])
def test_a_curve_bends_upwards_beyond_three_standard_errors(errors: float, expected: bool) -> None:
    """Slopes of 1 until half of the steps, then higher by a number of their standard errors."""
    steps = np.arange(1, 11) * 10
    rises = np.array([-1.0, 0.0, 1.0])
    rises = 0.01 * (rises / (rises.std(ddof=1) / math.sqrt(3)) + errors)
    assert rises.mean() == pytest.approx(errors * rises.std(ddof=1) / math.sqrt(3))
    bent = [steps + rise * np.maximum(steps - 50, 0) for rise in rises]
    assert concave(outcome(bent), steps) == expected


def test_the_first_twentieth_and_the_last_quarter() -> None:
    assert (EARLY, LATE) == (0.05, 0.75)
    steps = np.arange(1, 101) * 10
    slope = np.where(steps <= 50, 7.0, np.where(steps <= 750, 2.0, 0.5))
    found = slopes(outcome([np.cumsum(10 * slope)]), steps)
    assert found["early"]["mean"] == pytest.approx(7.0)
    assert found["late"]["mean"] == pytest.approx(0.5)
    assert (found["early"]["until"], found["late"]["from"]) == (50, 750)


# The discussion, and all of them.


@pytest.mark.parametrize(("off", "holds"), [(0.24, True), (0.26, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_exponent_agrees_within_a_quarter(
    off: float, holds: bool, sign: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(cells: list[dict[str, Any]]) -> dict[str, float]:
        exponent = {"rank1elim": 3, "ucb1": 2}[cells[0]["policy"]]
        return {"exponent": exponent + sign * off, "se": 0.01, "constant": 0.0}

    monkeypatch.setattr(discussion, "fit", fit)
    cases = [case for case in discussion.CASES if case[0].name in discussion.EXPECTED]
    monkeypatch.setattr(discussion, "CASES", [(*case[:2], (2, 3)) for case in cases])
    document = artefact.make("discussion", Options(runs=2, n=100, out=tmp_path))
    assert [each["each"] for each in document["claims"]] == [[holds], [holds]]


def test_two_million_steps_are_judged_and_not_one_less() -> None:
    claims = [claim("a", [True], [1.0], ""), claim("b", [True], [1.0], "", any_n=True)]
    assert [each["holds"] for each in judged(claims, 2_000_000)] == [True, True]
    assert [each["holds"] for each in judged(claims, 1_999_999)] == [None, True]
