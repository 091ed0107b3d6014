"""The pictures of the gallery show every policy."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1 import theory
from rank1.plots import new_figure
from rank1.policies import POLICIES

SCRIPT = Path(__file__).parent.parent / "docs" / "gallery_figures.py"


@pytest.fixture(scope="module")
def gallery() -> Any:
    spec = importlib.util.spec_from_file_location("gallery_figures", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.uncompiled
def test_every_policy_is_drawn_with_its_ratio(gallery: Any) -> None:
    results = gallery.all_policies(gallery.PROBLEM, n=120, runs=2, jobs=1, shuffle=False)
    assert [result.outcomes[0].policy for result in results] == list(POLICIES)
    over_time, at_end = gallery.draw_ratios(results).axes
    labels = [tick.get_text() for tick in at_end.get_yticklabels()]
    assert sorted(labels) == sorted(POLICIES)
    shown = dict(zip(labels, (text.get_text() for text in at_end.texts), strict=True))
    bound = theory.lower_bound(gallery.PROBLEM) * np.log(120)
    for result in results:
        outcome = result.outcomes[0]
        ratio = outcome.expected[:, -1].mean() / bound
        number = float(shown[outcome.policy].split(" ± ")[0].replace(",", ""))
        assert number == pytest.approx(
            ratio, abs=0.5 if ratio >= 100 else 0.05 if ratio >= 10 else 0.005
        )
    assert shown["oracle"] == "0"
    assert len(over_time.lines) == len(POLICIES)  # all but the oracle, plus the bound


def test_a_policy_that_can_not_play_is_left_out_and_named(
    gallery: Any, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    class Picky(rank1.Policy):
        name = "picky"

        def start(self, known: rank1.Known) -> Any:
            raise ValueError("rewards must be temperatures")

    monkeypatch.setattr(gallery, "POLICIES", {"picky": Picky, "uniform": rank1.Uniform})
    results = gallery.all_policies(gallery.PROBLEM, n=200, runs=1, jobs=1, shuffle=False)
    assert [result.outcomes[0].policy for result in results] == ["uniform"]
    said = capsys.readouterr().out
    assert re.search(r"picky is left out: .*rewards must be temperatures\n", said)


@pytest.mark.uncompiled
def test_pulls_until_a_stop_are_drawn_over_their_bound(gallery: Any, monkeypatch: Any) -> None:
    easy = rank1.spike(2, 3, 0.4, 0.4, 0.5, 0.5)
    monkeypatch.setattr(gallery, "SEARCHES", {"K = L": [(2, easy)], "gap": [(1, easy)]})
    monkeypatch.setattr(gallery, "GIVE_UP", 20)
    found = gallery.pulls_until_a_stop(runs=3, jobs=1)
    bound = theory.characteristic_time(easy).pulls(0.95)
    n = int(20 * bound)
    ours = rank1.identify(rank1.BetElim(), easy, n=n, runs=3, shuffle=True)["bet_elim"]
    first = found["gap"][0]
    assert (first["policy"], first["stopped"]) == ("bet_elim", True)
    assert first["mean"] == pytest.approx(ours.pulls.mean() / bound)
    assert [cell["policy"] for cell in found["gap"]] == ["bet_elim", "top_two", "uts", "uniform"]
    monkeypatch.setattr(gallery, "new_figure", lambda *_, **kw: new_figure(ncols=2))
    axes = gallery.draw_searches(found, 3).axes
    assert [ax.get_xlabel() for ax in axes] == ["K = L", "gap"]
    heights = [float(line.get_ydata()[0]) for line in axes[0].lines]
    assert any(height == pytest.approx(first["mean"]) for height in heights)
