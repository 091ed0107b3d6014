"""The paper on UTS: its document, figures and claims, on short runs."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1.paper import ARTEFACTS, PAPERS, Options, artefact, published, report, trinh2020
from rank1.paper.claims import verdict
from tests.test_cli import Output

PARTS = ("sizes", "gammas", "large", "close")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("trinh")
    options = Options(runs=1, n=20_000, out=out, quick=True)
    return artefact.make("trinh2020", options)


def test_document(document: dict[str, Any]) -> None:
    json.dumps(document, allow_nan=False)
    sizes = {name: [problem["K"] for problem in document["parts"][name]] for name in PARTS}
    assert sizes == {
        "sizes": [4, 8, 16], "gammas": [4], "large": [32, 64, 128], "close": [8, 16, 32]
    }  # fmt: skip
    assert {p["n"] for p in document["parts"]["sizes"]} == {3000}  # 300,000 at 2 million
    assert {p["n"] for p in document["parts"]["close"]} == {20_000}
    labels = [entry["label"] for entry in document["parts"]["gammas"][0]["policies"]]
    assert labels[0] == "uts"
    assert labels[-1] == "uts:gamma=inf"
    for part in trinh2020.PARTS:  # every value of the paper stands beside a policy
        for K, problem in zip(part.shown, document["parts"][part.name], strict=True):
            shown = {e["label"]: e["paper"] for e in problem["policies"] if e["paper"]}
            assert shown == part.shown[K]
    assert {e["z"] for p in document["parts"]["sizes"] for e in p["policies"]} == {None}


def test_runs_and_steps_are_the_papers_in_a_whole_run() -> None:
    sizes, close = trinh2020.PARTS[0], trinh2020.PARTS[-1]
    for part, n, runs in ((sizes, 300_000, 100), (close, 2_000_000, 50)):
        assert trinh2020._series(part, rank1.UTS(), 4, Options()).n == n
        assert trinh2020._runs(part, rank1.UTS(), 4, Options()) == runs
    assert trinh2020._runs(trinh2020.PARTS[2], rank1.KLUCB(), 64, Options()) == 10
    grid = trinh2020._grid(close, 3)
    assert grid.u.tolist() == pytest.approx([0.55, 0.5, 0.5])


def test_lower_bounds(document: dict[str, Any]) -> None:
    """Proposition 1 has 7.58, 17.7 and 37.9; what is drawn is that of the lines' parameters."""
    for problem, right in zip(document["parts"]["sizes"], (7.58, 17.7, 37.9), strict=True):
        assert problem["lower_slope"] == pytest.approx(right, rel=0.003)
        drawn = published.TRINH_DRAWN[problem["K"]]
        assert problem["drawn_slope"] == pytest.approx(drawn, rel=0.004)
    uneven = rank1.Bernoulli([0.2, 0.9, 0.5], [0.4, 0.3])
    kl = rank1.theory.kl_bernoulli
    assert trinh2020.drawn_slope(uneven) == pytest.approx(
        0.7 / kl(0.2, 0.9) + 0.4 / kl(0.5, 0.9) + 0.1 / kl(0.3, 0.4)
    )


def test_figures_and_tables(document: dict[str, Any]) -> None:
    figures = trinh2020.draw(document)
    assert list(figures) == [f"trinh2020-{name}" for name in PARTS]
    labels = [line.get_label() for line in figures["trinh2020-sizes"].axes[0].lines]
    assert labels[:3] == ["uts", "osub", "kl_ucb"]
    assert labels[-2:] == ["lower bound's slope", "as drawn in the paper"]
    *tables, remark = trinh2020.show(document)
    assert len(tables) == 5
    assert "1,191" in list(tables[0].columns[3].cells)
    assert "read off" in remark


def rings(document: dict[str, Any]) -> int:
    axes = trinh2020.draw(document)["trinh2020-sizes"].axes
    return sum(line.get_marker() == "o" and len(line.get_xdata()) == 1 for line in axes[0].lines)  # type: ignore[arg-type]


def test_only_a_whole_run_is_compared(document: dict[str, Any]) -> None:
    assert rings(document) == 0
    whole = copy.deepcopy(document)
    for problem in whole["parts"]["sizes"]:
        problem["n"] = 300_000
    assert rings(whole) == 3


def made_up(**changes: float) -> dict[str, list[dict[str, Any]]]:
    """Regrets as the paper has them, but for some factors, by label or by label and K."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for part in trinh2020.PARTS:
        parts[part.name] = []
        for K, shown in part.shown.items():
            entries = []
            for policy in part.policies:
                end = shown.get(policy.label, 99_999.0)
                if policy == trinh2020.PRINTED and part.name == "large":
                    end = shown[trinh2020.NEAREST.label]
                name = policy.label.replace(":", "_").replace("=", "_")
                end *= changes.get(name, 1.0) * changes.get(f"{name}_{K}", 1.0)
                entries.append(
                    {
                        "label": policy.label,
                        "paper": shown.get(policy.label),
                        "expected_regret": {"mean": end},
                        "expected_curve": {"mean": [0.0, end - 10 * changes.get("slope", 1), end]},
                        "steps": [1, 1000, 10_000],
                    }
                )
            parts[part.name].append(
                {
                    "K": K,
                    "policies": entries,
                    "lower_slope": 10 / 2.302585,
                    "drawn_slope": 10 / 2.302585 * changes.get("drawn", 1.0),
                }
            )
    return parts


def test_what_the_paper_shows_bears_its_claims_out() -> None:
    assert [verdict(each) for each in trinh2020.claims(made_up())] == ["holds"] * 7


@pytest.mark.parametrize(
    ("changes", "claim", "each"),
    [
        ({"uts_4": 1.7}, 0, [False, True, True]),
        ({"osub_8": 0.4}, 1, [True, False, True, True, True, True]),
        ({"slope": 1.6}, 2, [False] * 3),
        ({"slope": 0.4}, 2, [False] * 3),
        ({"uts_gamma_30": 1.1}, 3, [True, False]),
        ({"uts_gamma_5": 0.9}, 3, [False, True]),
        ({"drawn": 0.72}, 4, [False] * 3),
        ({"rank1elim_kl_64": 2.5}, 6, [True, False, True]),
    ],
)
def test_every_claim_can_fail(changes: dict[str, float], claim: int, each: list[bool]) -> None:
    assert trinh2020.claims(made_up(**changes))[claim]["each"] == each


def test_values_off_the_figures_are_seen() -> None:
    claim = trinh2020.claims(made_up(kl_ucb_16=1.12))[5]
    assert claim["each"].count(False) == 1
    assert verdict(claim) == "holds in part"


@pytest.mark.validate
def test_the_page_has_a_part_for_each_paper(
    document: dict[str, Any], documents: dict[str, dict[str, Any]], options: Options
) -> None:
    both = report.page(documents | {"trinh2020": document}, options)
    for paper in PAPERS:
        assert both.count(paper.title) == 2  # at the top, and where its part begins
    assert "claims of the papers." in both
    first = both.index(f'<p class="part">{PAPERS[0].where}')
    second = both.index(f'<p class="part">{PAPERS[1].where}')
    assert first < both.index('id="table1"') < second < both.index('id="trinh2020"')
    one = report.page(documents, options)
    assert PAPERS[1].title not in one
    assert 'class="part"' not in one


def test_what_the_command_makes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`all` is the first paper, `all-papers` every one; a paper's name is its own."""
    made: list[str] = []

    def make_all(names: Sequence[str], options: Options) -> Iterator[tuple[str, Any]]:
        for name in names:
            made.append(name)
            yield name, {"claims": [], "made": {"label": ""}}

    monkeypatch.setattr("rank1.paper.artefact.make_all", make_all)
    monkeypatch.setattr("rank1.paper.artefact.draw", lambda *_: {})
    for asked, names in (
        ([], PAPERS[0].artefacts),
        (["all"], PAPERS[0].artefacts),
        (["trinh2020"], ("trinh2020",)),
        (["all-papers"], ARTEFACTS),
    ):
        made.clear()
        ran = Output(capsys, "paper", *asked, "--quick", "--json", "--out", str(tmp_path))
        assert ran.status == 0, ran.err
        assert tuple(made) == names
    assert set(ARTEFACTS) == {*PAPERS[0].artefacts, "trinh2020"}
