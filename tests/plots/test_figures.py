"""Figures that belong to nobody and that notebooks show; curves with bands."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

import rank1
from rank1.plots import draw_curve, line_styles, new_figure

SPIKE = rank1.spike(4, 3, 0.5, 0.4, 0.4, 0.5)
STYLE = line_styles(["ucb1"])["ucb1"]


def result(runs: int = 3, n: int = 2000) -> rank1.Result:
    return rank1.simulate([rank1.Rank1Elim(), rank1.UCB1()], SPIKE, n, runs, seed=1)


def is_a_picture(png: bytes) -> None:
    pixels = imread(io.BytesIO(png), format="png")
    assert pixels.shape[0] > 200
    assert len(set(map(tuple, pixels[::7, ::7].reshape(-1, pixels.shape[2])))) > 20


def test_a_notebook_shows_axes_and_figures() -> None:
    """IPython asks the last value of a cell for its `_repr_png_`."""
    played = result()
    ax: Any = played.plot()
    is_a_picture(ax._repr_png_())
    is_a_picture(ax.figure._repr_png_())
    trace: Any = played.trace().plot()
    is_a_picture(trace._repr_png_())
    figure, grid = new_figure(4, 3, nrows=2, sharex=True)
    assert grid[0]._repr_png_() == grid[1]._repr_png_() == figure._repr_png_()  # type: ignore[attr-defined]


def test_nothing_is_kept_anywhere() -> None:
    code = (
        "import sys, rank1; problem = rank1.spike(2, 2, 0.5, 0.4, 0.4, 0.5);"
        "rank1.simulate(rank1.Uniform(), problem, 100, 2).plot();"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def band(ax: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Lower and upper edge of the only band, at the places where it has vertices."""
    (collection,) = ax.collections
    (path,) = collection.get_paths()
    edges: dict[float, list[float]] = {}
    for x, y in path.vertices:
        edges.setdefault(float(x), []).append(float(y))
    places = sorted(edges)
    return (
        np.array([min(edges[x]) for x in places]),
        np.array([max(edges[x]) for x in places]),
    )


def test_a_band_reaches_one_error_to_either_side() -> None:
    _, ax = new_figure()
    line = draw_curve(ax, [1, 2, 3], [5, 7, 8], [1, np.nan, 3], STYLE, label="a")
    assert line.get_xydata().tolist() == [[0, 0], [1, 5], [2, 7], [3, 8]]  # type: ignore[union-attr]
    lower, upper = band(ax)
    assert (lower.tolist(), upper.tolist()) == ([0, 4, 7, 5], [0, 6, 7, 11])


@pytest.mark.parametrize("regret", ["expected", "realised"])
def test_bands_of_results_are_standard_errors(regret: str) -> None:
    played = rank1.simulate(rank1.UCB1(), SPIKE, 2000, 7, seed=1)
    curves = getattr(played.outcomes[0], regret)
    error = np.sqrt(((curves - curves.mean(axis=0)) ** 2).sum(axis=0) / 6 / 7)
    assert error[-1] > 1
    lower, upper = band(played.plot(regret=regret))
    assert lower == pytest.approx([0, *(curves.mean(axis=0) - error)])
    assert upper == pytest.approx([0, *(curves.mean(axis=0) + error)])


def test_a_single_run_has_no_band() -> None:
    assert not result(runs=1).plot().collections


@pytest.mark.parametrize("scale", ["set_xscale", "set_yscale"])
def test_there_is_no_origin_on_a_logarithmic_axis(scale: str) -> None:
    _, ax = new_figure()
    getattr(ax, scale)("log")
    line = draw_curve(ax, [1, 2], [5, 7], [0, 0], STYLE, label="a")
    assert line.get_xydata().tolist() == [[1, 5], [2, 7]]  # type: ignore[union-attr]
