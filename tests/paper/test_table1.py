"""Table 1 against the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rank1.paper import Options
from rank1.paper.artefact import make
from rank1.paper.claims import verdict
from rank1.paper.published import TABLE_1
from rank1.paper.table1 import claims


def test_the_published_table_is_complete() -> None:
    assert len(TABLE_1) == 27
    assert [sum(cell.table == k for cell in TABLE_1) for k in (1, 2, 3)] == [9, 9, 9]
    # Every sub-table contains the cell that all three share.
    assert sum((c.K, c.L, c.p_u, c.p_v, c.delta_u, c.delta_v) == (8, 8, 0.7, 0.7, 0.2, 0.2)
               for c in TABLE_1) == 3  # fmt: skip


def as_cells(regrets: list[float]) -> list[dict[str, Any]]:
    return [
        cell._asdict() | {"regret": {"mean": regret}}
        for cell, regret in zip(TABLE_1, regrets, strict=True)
    ]


def test_claims_on_the_papers_own_table() -> None:
    found = claims(as_cells([cell.regret for cell in TABLE_1]))
    assert [verdict(claim) for claim in found] == ["holds"] * 3
    # The least steps are K = 8 to 16 beside L = 32, and a row gap of 0.2 to 0.1.
    assert found[0]["figures"] == pytest.approx([62451 / 50030, 20958 / 17653])
    doubled = [41823 / 17491, 85208 / 41823, 33642 / 17653, 68412 / 33642]
    assert found[1]["figures"] == pytest.approx(doubled)
    assert found[2]["figures"] == pytest.approx([1.215], abs=0.001)


def test_claims_that_fail() -> None:
    flat = claims(as_cells([1000.0] * 27))
    assert [verdict(claim) for claim in flat] == ["doesn't hold", "doesn't hold", "holds"]
    quadratic = [
        (cell.K * cell.L) / (cell.p_u * cell.p_v) / (cell.delta_u * cell.delta_v)
        for cell in TABLE_1
    ]
    steep = claims(as_cells(quadratic))
    assert [verdict(claim) for claim in steep] == ["holds", "doesn't hold", "doesn't hold"]
    assert claims(as_cells([0.0] * 27)) == []


@pytest.mark.validate
def test_all_cells_agree_with_the_paper(tmp_path: Path) -> None:
    z = [cell["z"] for cell in make("table1", Options(runs=400, seed=1, out=tmp_path))["cells"]]
    assert max(abs(value) for value in z) <= 2.5
    assert 0.4 <= sum(value**2 for value in z) / len(z) <= 1.8


@pytest.mark.validate
def test_the_reference_cell_agrees_with_an_independent_program() -> None:
    """18145 ± 44 over 3000 runs of a literal implementation in C; realised spreads by 150."""
    import rank1

    problem = rank1.spike(8, 8, 0.7, 0.7, 0.2, 0.2)
    outcome = rank1.simulate(rank1.Rank1Elim(), problem, 2_000_000, 3000, 1, checkpoints=1)[
        "rank1elim"
    ]
    expected = outcome.expected[:, -1]
    error = expected.std(ddof=1) / 3000**0.5
    assert abs(expected.mean() - 18145) <= 4 * (error**2 + 44**2) ** 0.5
    difference = outcome.realised[:, -1] - expected
    assert abs(difference.std(ddof=1) - 150) < 4 * 150 / (2 * 3000) ** 0.5 + 1
