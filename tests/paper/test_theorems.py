"""Theorems 1 to 3 beside what is played, and bets beside Rank1Elim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rank1 import theory
from rank1.paper import Options, artefact, bets, theorems
from rank1.paper.claims import verdict
from rank1.problems import spike


@pytest.fixture
def document(uncompiled: None, tmp_path: Path) -> dict[str, Any]:
    return artefact.make("theorems", Options(runs=2, n=1000, out=tmp_path))


def test_the_theorems_hold_and_their_constants_are_far_apart(document: dict[str, Any]) -> None:
    json.dumps(document, allow_nan=False)
    found = [verdict(each) for each in document["claims"]]
    assert found == ["holds"] * 4 + ["holds under a reading"] + ["holds"] * 2
    assert len(theorems.show(document)) == 2


def test_the_bounds_are_those_of_the_theory(document: dict[str, Any]) -> None:
    for each in document["matches"][:3]:
        K, gap = each["K"], each["gap"]
        problem = spike(K, K, 0.5 - gap, 0.5 - gap, gap, gap)
        assert each["theorem2"] == theory.lower_bound(problem)
        more = theory.upper_bound(problem, 10**8) - theory.upper_bound(problem, 10**4)
        assert each["theorem1"] == pytest.approx(more / 4 / 2.302585093)


def test_each_theorem_can_fail(document: dict[str, Any]) -> None:
    worse = [cell | {"regret": {"mean": 1e9 * cell["n"] ** 0.1}} for cell in document["cells"]]
    above = [verdict(each) for each in theorems.claims(worse, document["matches"])]
    assert above[:2] == ["doesn't hold", "doesn't hold"]
    flat = [cell | {"regret": {"mean": 5.0}} for cell in document["cells"]]
    below = [verdict(each) for each in theorems.claims(flat, document["matches"])]
    assert below[1:4] == ["doesn't hold"] * 3


@pytest.mark.usefixtures("uncompiled")
def test_bets_beside_rank1elim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bets, "SIZES", (2,))
    document = artefact.make("bets", Options(runs=2, n=20_000, out=tmp_path))
    json.dumps(document, allow_nan=False)
    (cell,) = document["cells"]
    assert cell["bets"]["stopped"] == 2
    assert 100 < cell["bets"]["pulls"]["mean"] < 20_000
    assert cell["rank1elim"]["mean"] > cell["bets"]["expected_regret"]["mean"]
    assert len(bets.show(document)) == 2
