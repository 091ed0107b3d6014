"""What a sweep's pictures show: bands, who wins by which regret, and signs that are explained."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_hex

from rank1.sweeps import plots
from rank1.sweeps.plots import plot_lines, plot_winners

#: Means of expected and realised regret and the error of both, of two policies at four points.
#: By expected regret ucb1 wins where K is 2, clearly where delta_u is 0.1.
ROWS = [
    (2, 0.1, "ucb1", 10.0, 30.0, 1.0), (2, 0.1, "kl_ucb", 20.0, 10.0, 1.0),
    (2, 0.2, "ucb1", 10.0, 30.0, 9.0), (2, 0.2, "kl_ucb", 20.0, 10.0, 9.0),
    (4, 0.1, "ucb1", 90.0, 30.0, 1.0), (4, 0.1, "kl_ucb", 20.0, 10.0, 1.0),
    (4, 0.2, "ucb1", 90.0, 30.0, 1.0), (4, 0.2, "kl_ucb", 20.0, 10.0, 1.0),
]  # fmt: skip


@pytest.fixture
def sweep(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A sweep of which only the summary is asked for."""
    rows = pl.DataFrame(
        [
            {"K": K, "delta_u": d, "label": name, "policy": name, "expected_mean": expected}
            | {"realised_mean": realised, "expected_se": se, "realised_se": 2 * se, "runs": 5}
            for K, d, name, expected, realised, se in ROWS
        ]
    )
    monkeypatch.setattr(plots, "summary", lambda *_: rows)
    monkeypatch.setattr(plots, "check_points", lambda *_: None)
    schema = rows.schema | {"n": pl.Int64(), "step": pl.Int64()}
    frame = SimpleNamespace(collect_schema=lambda: schema)
    settings = ["K", "delta_u"]
    return SimpleNamespace(problem_settings=settings, policy_settings=[], frame=frame, gap="")


def legend(figure: Any) -> dict[str, Any]:
    (box,) = figure.legends
    return dict(zip([text.get_text() for text in box.get_texts()], box.legend_handles, strict=True))


def squares(figure: Any) -> dict[tuple[float, float], tuple[str, str, float]]:
    """Colour, hatch and opacity of each square, by its place."""
    return {
        tuple(np.round(path.vertices[:4].mean(axis=0)).tolist()): (
            to_hex(own.get_facecolor()[0]).upper(),
            own.get_hatch() or "",
            own.get_alpha(),
        )
        for own in figure.axes[0].collections
        for path in own.get_paths()
    }


def test_a_square_is_its_winners(sweep: Any) -> None:
    figure, document = plot_winners(sweep, "delta_u", "K")
    assert squares(figure) == {
        (0, 0): ("#DD5500", "", 1.0), (1, 0): ("#DD5500", "", 0.5),
        (0, 1): ("#BB8800", "//", 1.0), (1, 1): ("#BB8800", "//", 1.0),
    }  # fmt: skip
    assert [cell["winner"] for cell in document["panels"][0]["cells"]] == [
        "ucb1", "kl_ucb", "ucb1", "kl_ucb"
    ]  # fmt: skip
    # 10 is less than twice the error of the difference, 9·√2.
    assert [text.get_text() for text in figure.axes[0].texts] == ["≈"]
    shown = legend(figure)
    assert list(shown) == ["ucb1", "kl_ucb", "within 2 standard errors of the second best"]
    assert to_hex(shown["kl_ucb"].get_facecolor()).upper() == "#BB8800"
    assert shown["kl_ucb"].get_hatch() == "//"


def test_the_regret_that_is_asked_for_decides(sweep: Any) -> None:
    figure, document = plot_winners(sweep, "delta_u", "K", regret="realised")
    cells = document["panels"][0]["cells"]
    assert {cell["winner"] for cell in cells} == {"kl_ucb"}
    assert {cell["mean"] for cell in cells} == {10.0}
    assert "ucb1" not in legend(figure)


def test_no_sign_is_explained_that_is_not_there(
    sweep: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything: Any = vars(plots)["summary"]
    clear = everything(sweep).filter(pl.col("expected_se") < 9)
    monkeypatch.setattr(plots, "summary", lambda *_: clear)
    figure, _ = plot_winners(sweep, "delta_u", "K")
    assert list(legend(figure)) == ["ucb1", "kl_ucb"]


def test_lines_have_bands_of_standard_errors_and_their_policies_dashes(sweep: Any) -> None:
    figure, _ = plot_lines(sweep, "delta_u", ["K"])
    ax: Any = figure.axes[0]
    assert [line.get_linestyle() for line in ax.lines] == ["-", "--"]
    assert [line.get_ydata().tolist() for line in ax.lines] == [[10, 10], [20, 20]]
    edges = [path.vertices for band in ax.collections for path in band.get_paths()]
    for mean, vertices in zip((10, 20), edges, strict=True):
        at = {x: sorted({y for a, y in vertices.tolist() if a == x}) for x in (0.1, 0.2)}
        assert at == {0.1: [mean - 1, mean + 1], 0.2: [mean - 9, mean + 9]}


def test_a_picture_says_that_runs_are_missing(sweep: Any) -> None:
    for missing in ("", "3 of 8 runs are missing"):
        sweep.gap = missing
        for figure, _ in (plot_lines(sweep, "delta_u", ["K"]), plot_winners(sweep, "delta_u", "K")):
            assert figure.get_suptitle() == missing
