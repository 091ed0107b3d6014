"""What an elimination policy did in one run, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rank1.errors import InputError
from rank1.notebook import never_fails
from rank1.problems.shuffled import Shuffled
from rank1.simulation.series import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Side", "Stage", "Trace", "trace_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """The rows, or the columns, at the end of a stage."""

    #: The lines explored in this stage (I_ℓ or J_ℓ).
    lines: list[int]
    #: Confidence bounds of each of those lines.
    lower: Floats
    upper: Floats
    #: The expected reward that each interval should hold (ū_ℓ or v̄_ℓ of the paper's proof).
    expected: Floats
    #: Which line was eliminated, and by which.
    eliminated: dict[int, int]

    @property
    def held(self) -> bool:
        """Whether every interval holds the expected reward."""
        return bool(np.all((self.lower <= self.expected) & (self.expected <= self.upper)))


@dataclass(frozen=True)
class Stage:
    """A stage that has ended."""

    number: int
    #: n_ℓ: observations of each line by the end of the stage.
    observations: int
    #: The step after which it ended.
    step: int
    rows: Side
    columns: Side


@dataclass(frozen=True)
class Trace:
    """One run of an elimination policy: its stages, and what remained at the end."""

    policy: str
    run: int
    n: int
    K: int
    L: int
    stages: list[Stage]
    #: What remained at the end.
    rows: list[int]
    columns: list[int]
    best_pair: tuple[int, int] = field(default=(0, 0))

    @property
    def held(self) -> bool:
        """Whether every interval of every stage held."""
        return all(stage.rows.held and stage.columns.held for stage in self.stages)

    def plot(self) -> Figure:
        """Rows and columns disappearing over time, and the intervals that decided it."""
        from rank1.plots import plot_trace

        return plot_trace(self)

    @never_fails
    def _repr_html_(self) -> str:
        from rank1.plots.html import trace_html

        return trace_html(self)


def trace_of(series: Series, run: int) -> Trace:
    """Play a run again, and read its stages off its last state."""
    policy = series.policy
    if not policy.eliminates:
        raise InputError(f"policy must be an elimination policy to be traced, got {policy.label}")
    played = series.play_run(run)
    state, problem = played.state, played.problem
    # The problem's own numbers of rows and columns, which a run may have in another order.
    rows, columns = np.arange(problem.K), np.arange(problem.L)
    if isinstance(problem, Shuffled):
        rows, columns = problem.rows, problem.columns
    at = state.at[0]
    stages = []
    row_total, column_total = np.zeros(problem.K), np.zeros(problem.L)
    before = 0
    for stage in range(at.stage):
        observations = int(state.n_stage[stage])
        row_total += (observations - before) * problem.row_means(state.h_column[stage])
        column_total += (observations - before) * problem.column_means(state.h_row[stage])
        before = observations
        row_side = _side(state.h_row, state.row_intervals, stage, row_total / observations, rows)
        column_side = _side(
            state.h_column, state.column_intervals, stage, column_total / observations, columns
        )
        stages.append(Stage(stage, observations, int(state.ended[stage]), row_side, column_side))
    return Trace(
        policy.label,
        run,
        series.n,
        problem.K,
        problem.L,
        stages,
        sorted(rows[state.rows[: at.rows]].tolist()),
        sorted(columns[state.columns[: at.columns]].tolist()),
        series.problem.best_pair,
    )


def _side(h: Any, intervals: Any, stage: int, expected: Floats, names: NDArray[np.int64]) -> Side:
    lines = np.unique(h[stage])
    lines = lines[np.argsort(names[lines])]
    after = h[stage + 1]
    return Side(
        names[lines].tolist(),
        intervals[stage, lines, 0],
        intervals[stage, lines, 1],
        expected[lines],
        {int(names[line]): int(names[after[line]]) for line in lines if after[line] != line},
    )
