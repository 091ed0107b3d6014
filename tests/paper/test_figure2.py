"""Figure 2 and the discussion: their documents, figures and claims, on short runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rank1.paper import Options, artefact, discussion, figure2
from rank1.paper.claims import verdict


def test_figure_2(tmp_path: Path) -> None:
    document = artefact.make("figure2", Options(runs=2, n=3000, jobs=2, out=tmp_path))
    json.dumps(document, allow_nan=False)
    assert [problem["K"] for problem in document["problems"]] == [16, 32, 64]
    labels = [entry["label"] for entry in document["problems"][0]["policies"]]
    assert labels[:4] == ["rank1elim", "ucb1", "linucb", "glm_ucb"]
    assert "glm_ucb:confidence_scale=0.01" in labels
    assert document["problems"][0]["lower_slope"] == pytest.approx(887.59 / 14.508658, abs=0.01)
    assert len(document["claims"]) == 6
    figure = figure2.draw(document)["figure2"]
    upper, lower = figure.axes[0], figure.axes[3]
    assert [line.get_label() for line in upper.lines] == labels[:4]
    assert [line.get_label() for line in lower.lines] == [*labels, "lower bound's slope"]
    assert {"rank1elim_kl", "kl_ucb", "thompson", "osub", "uts"} < set(labels)
    assert figure2.show(document)
    again = artefact.make("figure2", Options(runs=2, n=3000, out=tmp_path))  # from the store
    assert again["problems"] == document["problems"]


def made_up(changes: dict[str, tuple[float, ...]], late: float = 0.0) -> list[dict[str, Any]]:
    """Regrets that bear all sentences out but one; curves rise by `late` in their last tenth."""
    ends = {
        "rank1elim": (40, 80, 160), "ucb1": (20, 80, 400), "linucb": (60, 120, 240),
        "glm_ucb": (600, 600, 600), "linucb:confidence_scale=1/3": (8, 16, 32),
        "glm_ucb:confidence_scale=0.01": (39, 100, 300),
        "linucb:radius=determinant": (35, 90, 180),
    } | changes  # fmt: skip
    return [
        {
            "policies": [
                {
                    "label": label,
                    "expected_regret": {"mean": values[k], "se": 0.05 * values[k]},
                    "expected_curve": {"mean": [values[k]] * 18 + [(1 + late) * values[k]] * 2},
                }
                for label, values in ends.items()
            ]
        }
        for k in range(3)
    ]


def test_claims_follow_the_figures() -> None:
    claims = figure2.claims(made_up({}))
    assert [verdict(each) for each in claims] == [
        "holds", "holds", "holds under a reading", "holds", "holds", "holds under a reading",
    ]  # fmt: skip
    assert claims[-1]["each"] == [False, True, True]
    assert claims[-1]["figures"] == pytest.approx([39 / 40, 100 / 80, 300 / 160])
    # Over the lesser of 40 and 20, of 80 and 80, of 160 and 400.
    assert claims[-1]["meaning"].endswith("the better of Rank1Elim and UCB1: 1.95, 1.25, 1.88")
    # 5% on either side is 7% of the ratio.
    assert "standard errors 0.069, 0.088, 0.13." in claims[-1]["meaning"]


@pytest.mark.parametrize(
    ("changes", "late", "claim", "each"),
    [
        ({}, 0.04, 0, [True] * 3),
        ({}, 0.06, 0, [False] * 3),
        ({"ucb1": (41, 121, 239)}, 0, 1, [False, False, False]),
        ({"ucb1": (39, 119, 241)}, 0, 1, [True, True, True]),
        ({"linucb": (39, 81, 161)}, 0, 2, [False, True, True, False, True, True]),
        ({"linucb:radius=determinant": (41, 81, 161)}, 0, 2, [True] * 6),
        ({"glm_ucb": (39, 79, 159)}, 0, 3, [False] * 3),
        ({"linucb:confidence_scale=1/3": (39, 81, 159)}, 0, 4, [True, False, True]),
    ],
)
def test_every_claim_can_fail(
    changes: dict[str, tuple[float, ...]], late: float, claim: int, each: list[bool]
) -> None:
    assert figure2.claims(made_up(changes, late))[claim]["each"] == each


def test_a_single_step_and_run_say_nothing(tmp_path: Path) -> None:
    document = artefact.make("figure2", Options(runs=1, n=1, out=tmp_path))
    json.dumps(document, allow_nan=False)
    assert {entry["runs"] for entry in document["problems"][0]["policies"]} == {1}
    assert "±" not in "".join(str(cell) for cell in figure2.show(document)[0].columns[1].cells)


def test_discussion_fits_the_exponent() -> None:
    rng = np.random.default_rng(1)
    sizes = np.array([8, 12, 16, 24, 32])
    means = 7.0 * sizes**3 * np.exp(0.1 * rng.normal(size=5))
    cells = [{"K": K, "regret": {"mean": mean}} for K, mean in zip(sizes, means, strict=True)]
    (slope, constant), cov = np.polyfit(np.log(sizes), np.log(means), 1, cov=True)
    assert discussion.fit(cells) == pytest.approx(
        {"exponent": slope, "se": np.sqrt(cov[0, 0]), "constant": constant}
    )


def test_elimination_has_ended_and_shows_its_exponent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real n; 25 runs of nine sizes are enough for 0.25 either way."""
    assert {policy.name: n for policy, n, _ in discussion.CASES} == {
        "rank1elim": 10**12, "rank1elim_kl": 10**12, "ucb1": 2 * 10**7, "uts": 2 * 10**6
    }  # fmt: skip
    monkeypatch.setattr(discussion, "CASES", discussion.CASES[:2])
    monkeypatch.setattr(discussion, "EXPECTED", {"rank1elim": 3, "rank1elim_kl": 3})
    monkeypatch.setattr(discussion, "SAYS", dict.fromkeys(discussion.EXPECTED, "K³"))
    document = artefact.make("discussion", Options(runs=5, out=tmp_path))
    assert document["fits"]["rank1elim"]["exponent"] == pytest.approx(3, abs=0.25)
    assert document["fits"]["rank1elim_kl"]["exponent"] == pytest.approx(2.1, abs=0.25)
    assert "7·10⁹ steps for K = 128" in discussion.show(document)[-1]
    assert {(cell["late"], cell["found"]) for cell in document["cells"]} == {(0, 1)}
    # A gap of 1/32 takes the stage with 2⁻ˡ ≤ 1/32 or the next: 4⁵·4·log n sweeps of 16 pulls
    # at 1/4 each, or four times that.
    first = document["cells"][0]
    assert first["K"] == 8
    least = 4**5 * 4 * np.log(1e12) * 16 / 4
    assert least < first["regret"]["mean"] < 4 * least
    assert [verdict(each) for each in document["claims"]] == ["holds", "doesn't hold"]


def test_discussion(tmp_path: Path) -> None:
    document = artefact.make("discussion", Options(runs=2, n=2000, out=tmp_path))
    json.dumps(document, allow_nan=False)
    assert set(document["fits"]) == {"rank1elim", "rank1elim_kl", "ucb1", "uts"}
    assert document["n"] == {
        "rank1elim": 10**9, "rank1elim_kl": 10**9, "ucb1": 20_000, "uts": 2000
    }  # fmt: skip
    for cell in document["cells"]:
        assert 0 <= cell["late"] <= 1
    assert list(discussion.draw(document)) == ["discussion"]
    assert "A short run" in discussion.show(document)[-1]
