"""How regret grows: fits, claims, and that elimination had ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1.paper import Options, artefact, scaling
from rank1.paper.claims import claim_line
from rank1.statistics import mean_and_error


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return artefact.make("scaling", Options(runs=5, seed=1, out=tmp_path_factory.mktemp("report")))


def cell(x: float, mean: float, se: float | None = 0.0) -> dict[str, Any]:
    return {"x": x, "regret": {"mean": mean, "se": se}}


def test_exponent_and_error_are_those_of_ordinary_least_squares() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(1, 100, 20)
    y = 7 * x**1.5 * np.exp(rng.normal(0, 0.2, 20))
    fitted = scaling.fit([cell(*pair) for pair in zip(x, y, strict=True)])
    (slope, intercept), covariance = np.polyfit(np.log(x), np.log(y), 1, cov=True)
    assert fitted["exponent"] == pytest.approx(slope)
    assert fitted["se"] == pytest.approx(covariance[0, 0] ** 0.5)
    assert np.log(fitted["at_1"]) == pytest.approx(intercept)
    assert 1.1 < fitted["scatter"] < 1.35  # e^0.2 = 1.22
    assert fitted["cells"] == 20


def test_the_error_from_chance_is_what_chance_does() -> None:
    rng = np.random.default_rng(2)
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    means, errors = 5 * x, x * [0.2, 0.1, 0.3, 0.05, 0.2]
    fitted = scaling.fit([cell(*row) for row in zip(x, means, errors, strict=True)])
    exponents = [
        scaling.fit([cell(a, b) for a, b in zip(x, rng.normal(means, errors), strict=True)])
        for _ in range(2000)
    ]
    spread = np.std([fit["exponent"] for fit in exponents])
    assert fitted["se_runs"] == pytest.approx(spread, rel=4 / (2 * 2000) ** 0.5)


def test_a_cell_without_regret_or_error_does_no_harm() -> None:
    cells = [cell(1, 2), cell(2, 4), cell(4, 8, None), cell(8, 0.0)]
    fitted = scaling.fit(cells)
    assert fitted["exponent"] == pytest.approx(1)
    assert fitted["se_runs"] is None
    assert fitted["cells"] == 3


def test_the_range_is_wider_than_that_of_table_1(document: dict[str, Any]) -> None:
    cells = document["cells"]
    assert max(c["K"] for c in cells) == max(c["L"] for c in cells) == 256
    assert min(c["delta"] for c in cells) <= 0.02
    assert min(c["p"] for c in cells) <= 0.05
    in_table = {
        varied: sum(scaling._in_table1(c) for c in cells if c["varied"] == varied)
        for varied in scaling.VARIED
    }
    assert in_table == {"K+L": 9, "1/delta": 3, "1/mu": 3}


def test_cells_are_what_simulate_gives_and_elimination_had_ended(document: dict[str, Any]) -> None:
    """Checked in the hardest cells by what remained, not by the curve."""
    hardest = [
        max((c for c in document["cells"] if c["varied"] == varied), key=lambda c: c["x"])
        for varied in scaling.VARIED
    ]
    for found in hardest:
        K, L, p, delta = (found[name] for name in ("K", "L", "p", "delta"))
        problem = rank1.spike(K, L, p, p, delta, delta)
        n = document["n"]
        result = rank1.simulate(rank1.Rank1Elim(), problem, n, 5, 1, checkpoints=[n // 2])
        assert found["regret"] == mean_and_error(result.outcomes[0].expected[:, -1])
        for run in range(5):
            trace = result.trace(run)
            assert (trace.rows, trace.columns) == ([0], [0])
            last = max(s.step for s in trace.stages if s.rows.eliminated or s.columns.eliminated)
            assert last < n / 10
    assert all(c["ended"] == 5 for c in document["cells"])


def test_the_document(document: dict[str, Any], tmp_path: Path) -> None:
    json.dumps(document, allow_nan=False)
    assert document["n"] == 10**9
    assert list(document["fits"]) == ["K+L", "1/delta", "1/mu"]
    for fitted in document["fits"].values():
        assert fitted["se"] > fitted["se_runs"] > 0
    # Theorem 1 is a bound; at this n measured regret lies between the two.
    for c in document["cells"]:
        assert c["theorem2"] < c["regret"]["mean"] < c["theorem1"]
    assert (
        artefact.make("scaling", Options(runs=5, seed=1, out=tmp_path))["cells"]
        == document["cells"]
    )


def test_the_claims_are_judged_by_the_cells(document: dict[str, Any]) -> None:
    sizes, gaps, means = document["claims"]
    regret = {
        (c["K"], c["L"]): c["regret"]["mean"] for c in document["cells"] if c["varied"] == "K+L"
    }
    factors = [regret[2 * K, 2 * L] / regret[K, L] for K, L in regret if (2 * K, 2 * L) in regret]
    assert "25 pairs of cells" in sizes["meaning"]
    mean = np.exp(np.mean(np.log(factors)))
    assert sizes["figures"] == pytest.approx([mean, min(factors), max(factors)])
    of_gap = {
        c["delta"]: c["regret"]["mean"] for c in document["cells"] if c["varied"] == "1/delta"
    }
    halves = [of_gap[d / 2] / of_gap[d] for d in of_gap if d / 2 in of_gap]
    assert len(halves) > 10
    _, least, largest = gaps["figures"]
    assert least <= min(halves) <= max(halves) <= largest
    assert means["figures"][0] == document["fits"]["1/mu"]["exponent"]
    assert all(claim["holds"] for claim in document["claims"])


def test_a_claim_can_fail() -> None:
    assert not scaling._doubling("", [(1.0, 2.3), (2.0, 4.6)])["holds"]
    assert scaling._doubling("", [(1.0, 2.1), (2.0, 4.2), (1.0, 0.0)])["holds"]
    cells = [{"varied": s, "regret": {"mean": 1.0}} for s, c in scaling.VARIED.items() for _ in c]
    steep = {"1/mu": {"exponent": 1.8, "se": 0.2}}
    assert [claim["holds"] for claim in scaling._claims(cells, steep, True)] == [False] * 3
    steep["1/mu"]["se"] = 0.05
    assert scaling._claims(cells, steep, True)[2]["holds"] is True


def test_a_quick_look_judges_nothing(tmp_path: Path) -> None:
    quick = artefact.make("scaling", Options(runs=1, n=1000, out=tmp_path))
    assert quick["n"] == 1000
    json.dumps(quick, allow_nan=False)
    assert sum(c["ended"] for c in quick["cells"]) == 0
    assert [claim["holds"] for claim in quick["claims"]] == [None] * 3
    assert all(claim_line(claim).startswith("not judged: ") for claim in quick["claims"])
    summary = scaling.show(quick)[-1]
    assert "Elimination ended in 0 of 101 runs" in summary
    assert artefact.make("scaling", Options(runs=1, n=3 * 10**9, out=tmp_path))["n"] == 10**9


def test_show_and_draw(document: dict[str, Any]) -> None:
    table, summary = scaling.show(document)
    assert table.row_count == 3
    assert all(claim_line(claim).startswith("holds: ") for claim in document["claims"])
    assert "5 runs of 1,000,000,000 steps" in summary
    assert "Elimination ended in all 505 runs" in summary
    figures = scaling.draw(document)
    assert list(figures) == ["scaling", "scaling-bounds"]
    for figure in figures.values():
        assert [len(ax.lines) for ax in figure.axes] == [3, 3, 3]
        assert [len(ax.lines[0].get_xdata()) for ax in figure.axes] == [36, 33, 32]


@pytest.mark.validate
def test_exponents_over_other_seeds_spread_as_chance_says(tmp_path: Path) -> None:
    fits = [
        artefact.make("scaling", Options(runs=20, seed=seed, out=tmp_path))["fits"]
        for seed in range(100, 116)
    ]
    for varied in scaling.VARIED:
        spread = np.std([fit[varied]["exponent"] for fit in fits], ddof=1)
        told = np.mean([fit[varied]["se_runs"] for fit in fits])
        assert 0.5 < spread / told < 1.6
