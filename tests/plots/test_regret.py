"""Plots of regret: axes, their owners, and bounds."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import rank1
from rank1 import theory
from rank1.plots import save_figure

SPIKE = rank1.spike(4, 3, 0.5, 0.4, 0.4, 0.5)


def legend(ax: Axes) -> list[str]:
    box = ax.get_legend()
    assert box
    return [text.get_text() for text in box.get_texts()]


def drawn(
    problem: rank1.Problem, *policies: rank1.Policy, n: int = 2000
) -> tuple[dict[str, Any], Any]:
    """Lines of a plot by their label, which may be broken into several lines of text."""
    result = rank1.simulate(policies or rank1.Rank1Elim(), problem, n, 2, seed=1)
    ax = result.plot(bounds=True)
    texts = {" ".join(text.split()) for text in legend(ax)}
    lines = {" ".join(str(line.get_label()).split()): line for line in ax.lines}
    assert texts <= set(lines)
    return {label: lines[label] for label in texts}, ax


def of(lines: dict[str, Any], start: str) -> Any:
    (found,) = (line for label, line in lines.items() if label.startswith(start))
    return found


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("problem", "name"),
    [(SPIKE, "Theorem 2"), (rank1.Gaussian(SPIKE.u, SPIKE.v, sigma=0.5), "Theorem 3")],
)
def test_the_lower_bound_is_a_dashed_line(problem: rank1.Problem, name: str) -> None:
    lines, ax = drawn(problem)
    line = of(lines, name)
    x, y = line.get_data()
    assert line.get_linestyle() == "--"
    assert (x[0], x[-1]) == pytest.approx((1, 2000))
    assert y == pytest.approx(theory.lower_bound(problem) * np.log(x))
    assert y.max() <= ax.get_ylim()[1]


@pytest.mark.uncompiled
def test_the_lower_bound_makes_room_for_itself() -> None:
    lines, ax = drawn(SPIKE, rank1.Oracle())
    assert of(lines, "Theorem 2").get_ydata().max() <= ax.get_ylim()[1]
    assert len(lines) == 2  # Theorem 1 says nothing of other policies


def test_the_upper_bound_is_drawn_where_it_fits() -> None:
    easy = rank1.Bernoulli([0.9, 0.1], [0.9, 0.1])
    lines, _ = drawn(easy, rank1.Rank1Elim(), rank1.Uniform(), n=1_000_000)
    most = theory.upper_bound(easy, 1_000_000)
    line = lines[f"Theorem 1: rank1elim at most {most:,.0f}"]
    assert list(line.get_ydata()) == [most, most]
    assert line.get_linestyle() == ":"

    lines, ax = drawn(easy, rank1.Rank1Elim(), n=1_000_000)
    note = lines[f"Theorem 1: rank1elim at most {most:,.0f}, above the frame"]
    assert len(note.get_xdata()) == 0
    assert ax.get_ylim()[1] < most
    # The theorem is about the paper's radius.
    lines, _ = drawn(easy, rank1.Rank1Elim(confidence_scale=0.5), rank1.Uniform(), n=1_000_000)
    assert not any(label.startswith("Theorem 1") for label in lines)


@pytest.mark.parametrize(
    ("problem", "notes"),
    [
        (
            rank1.Factors([["beta", 3, 1], 0.2], [0.5]),
            ["no lower bound: problem must be a rank1.Product or", "Theorem 1: rank1elim at most"],
        ),
        (
            rank1.Categorical([0, 1], [[[0.5, 0.5], [0.1, 0.9]]]),
            ["no lower bound: problem must be a rank1.Product or", "no upper bound: problem must"],
        ),
        (
            rank1.spike(3, 3, 0.5, 0.5, 0.0, 0.3),
            ["no lower bound: problem must be one with a single", "Theorem 1: rank1elim at most"],
        ),
        (
            rank1.Bernoulli([0.0, 0.0], [0.5, 0.1]),
            ["no lower bound: problem must be one with a single", "Theorem 1: rank1elim at most ∞"],
        ),
    ],
    ids=repr,
)
@pytest.mark.uncompiled
def test_what_does_not_apply_is_said(
    problem: rank1.Problem, notes: list[str], tmp_path: Path
) -> None:
    lines, ax = drawn(problem)
    for note in notes:
        assert len(of(lines, note).get_xdata()) == 0
    assert not any(line.get_linestyle() == "--" for line in ax.lines)
    save_figure(ax.figure, tmp_path / "a.png")


@pytest.mark.uncompiled
def test_three_sides_have_the_bound_over_neighbours() -> None:
    problem = rank1.Product([[0.9, 0.5], [0.8, 0.6], [0.9, 0.7]])
    result = rank1.simulate([rank1.UTS(), rank1.Uniform()], problem, 1000, 2, seed=1)
    ax = result.plot(bounds=True)
    assert ax.get_title("left") == "product, 2×2×2, mean of 2 runs"
    lines = dict(zip(legend(ax), ax.lines, strict=True))
    x, y = of(lines, "Lower bound over").get_data()
    assert y == pytest.approx(theory.unimodal_bound(problem) * np.log(x))
    assert "product 2×2×2" in str(result._repr_html_())
    found = rank1.identify(rank1.TopTwo(), problem, n=1500, runs=2)
    drawn = found.plot()
    assert drawn.get_title("left") == "product, 2×2×2, confidence 0.95"
    assert any("of its neighbours" in label for label in legend(drawn))


@pytest.mark.uncompiled
def test_a_problem_that_is_not_in_the_file(tmp_path: Path) -> None:
    sampler = rank1.Sampler(lambda size, rng: rng.random((size, 2)), mean=[0.5, 0.5])
    result = rank1.simulate(rank1.Uniform(), rank1.Factors(sampler, [0.5]), 100, 1)
    result.save(tmp_path / "a.parquet")
    ax = rank1.load(tmp_path / "a.parquet").plot(bounds=True)
    assert legend(ax)[1] == "no bounds: factors can't be rebuilt from a file"


# Axes of one's own.


def played(n: int = 2000) -> rank1.Result:
    return rank1.simulate([rank1.Rank1Elim(), rank1.Uniform()], SPIKE, n, 3, seed=1)


def test_a_new_figure_is_finished() -> None:
    ax = played().plot()
    assert ax.get_title("left") == "spike, 4×3, mean of 3 runs"
    assert ax.get_xlim() == (0, 2000)
    assert ax.get_ylim()[0] == 0
    paths = [path for band in ax.collections for path in band.get_paths()]
    top = max(float(np.asarray(path.vertices)[:, 1].max()) for path in paths)
    assert ax.get_ylim()[1] == pytest.approx(1.05 * top)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Step", "Expected regret")
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")


@pytest.mark.uncompiled
def test_realised_regret_below_zero_is_in_the_frame() -> None:
    ax = rank1.simulate(rank1.Oracle(), SPIKE, 500, 2, seed=3).plot(regret="realised")
    lowest = min(np.asarray(line.get_ydata(), float).min() for line in ax.lines)
    assert ax.get_ylim()[0] <= min(0, lowest)


def test_given_axes_keep_what_their_owner_set() -> None:
    figure = Figure()
    ax = figure.subplots()
    ax.set(title="Mine", xlabel="Visits", xscale="log", xlim=(10, 500), ylim=(-3, 77))
    ticks = ax.xaxis.get_major_formatter()
    spines = [spine.get_visible() for spine in ax.spines.values()]
    assert played().plot(ax=ax) is ax
    assert (ax.get_title(), ax.get_title("left")) == ("Mine", "")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Visits", "Expected regret")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert (ax.get_xlim(), ax.get_ylim()) == ((10, 500), (-3, 77))
    assert ax.xaxis.get_major_formatter() is ticks
    assert [spine.get_visible() for spine in ax.spines.values()] == spines
    assert min(np.asarray(line.get_xdata(), float).min() for line in ax.lines) > 0
    figure.savefig(io.BytesIO())


def test_axes_that_show_something_show_it_still() -> None:
    ax = Figure().subplots()
    ax.plot([0, 9000], [0, 1e6], label="target")
    ax.set_yscale("log")
    ax = played().plot(ax=ax)
    assert ax.get_yscale() == "log"
    assert ax.get_xlim()[1] >= 9000
    assert ax.get_ylim()[1] >= 1e6
    assert legend(ax) == ["target", "rank1elim", "uniform"]
    # Two results side by side: the frame has room for both.
    ax = played(2000).plot()
    played(5000).plot(ax=ax)
    assert ax.get_xlim() == (0, 5000)
    assert ax.get_title("left") == "spike, 4×3, mean of 3 runs"


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(("log_x", "log_y"), [(True, False), (False, True), (True, True)])
def test_logarithmic_axes(log_x: bool, log_y: bool, own: bool, tmp_path: Path) -> None:
    result = played()
    given = Figure().subplots() if own else None
    ax = result.plot(bounds=True, log_x=log_x, log_y=log_y, ax=given)
    assert (ax.get_xscale() == "log", ax.get_yscale() == "log") == (log_x, log_y)
    for line in ax.lines:
        assert np.all(np.asarray(line.get_xdata(), float) > 0)
    assert 0 < ax.get_xlim()[0] <= result.checkpoints[0] or not log_x
    assert ax.get_xlim()[1] == 2000
    save_figure(ax.figure, tmp_path / "a.png")
