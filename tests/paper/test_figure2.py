"""Figure 2 and the discussion: their documents, figures and claims, on short runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rank1.paper import Options, discussion, figure2


def test_figure_2(tmp_path: Path) -> None:
    document = figure2.compute(Options(runs=2, n=3000, jobs=2, out=tmp_path))
    json.dumps(document, allow_nan=False)
    assert [problem["K"] for problem in document["problems"]] == [16, 32, 64]
    labels = [entry["label"] for entry in document["problems"][0]["policies"]]
    assert labels[:4] == ["rank1elim", "ucb1", "linucb", "glm_ucb"]
    assert "glm_ucb:confidence_scale=0.01" in labels
    assert document["problems"][0]["lower_slope"] == pytest.approx(887.59 / 14.508658, abs=0.01)
    assert len(document["claims"]) == 6
    assert list(figure2.draw(document)) == ["figure2"]
    assert figure2.show(document)
    again = figure2.compute(Options(runs=2, n=3000, out=tmp_path))  # from the store
    assert again["problems"] == document["problems"]


def test_claims_follow_the_figures() -> None:
    """Made-up regrets that bear all sentences out but one."""
    ends = {
        "rank1elim": (40, 80, 160), "ucb1": (20, 80, 400), "linucb": (60, 120, 240),
        "glm_ucb": (600, 600, 600), "linucb:confidence_scale=1/3": (8, 16, 32),
        "glm_ucb:confidence_scale=0.01": (39, 100, 300),
    }  # fmt: skip
    problems = [
        {
            "policies": [
                {
                    "label": label,
                    "expected_regret": {"mean": values[k]},
                    "expected_curve": {"mean": [values[k]] * 20},
                }
                for label, values in ends.items()
            ]
        }
        for k in range(3)
    ]
    verdicts = [claim["holds"] for claim in figure2.claims(problems)]
    assert verdicts == [True, True, True, True, True, False]
    assert figure2.claims(problems)[-1]["each"] == [False, True, True]


def test_discussion_fits_the_exponent() -> None:
    cells = [{"K": K, "regret": {"mean": 7.0 * K**3}} for K in (8, 16, 32)]
    fitted = discussion.fit(cells)
    assert fitted["exponent"] == pytest.approx(3)
    assert fitted["se"] < 1e-6


def test_discussion(tmp_path: Path) -> None:
    document = discussion.compute(Options(runs=2, n=2000, out=tmp_path))
    json.dumps(document, allow_nan=False)
    assert set(document["fits"]) == {"rank1elim", "rank1elim_kl", "ucb1", "uts"}
    assert [claim["holds"] for claim in document["claims"]] != []
    assert list(discussion.draw(document)) == ["discussion"]
    assert discussion.show(document)
