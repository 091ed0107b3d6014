"""What an elimination policy did in one run, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rank1.errors import InputError
from rank1.notebook import never_fails
from rank1.problems.shuffled import Shuffled
from rank1.simulation.known import smallest_start
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
    #: The expected reward that each interval should contain (ū_ℓ or v̄_ℓ of the paper's proof).
    expected: Floats
    #: Eliminated lines, each with the line that eliminated it.
    eliminated: dict[int, int]

    @property
    def held(self) -> bool:
        """Whether every interval contains the expected reward."""
        return bool(np.all((self.lower <= self.expected) & (self.expected <= self.upper)))


@dataclass(frozen=True)
class Stage:
    """A completed stage."""

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
    #: The lines that remained at the end.
    rows: list[int]
    columns: list[int]
    best_pair: tuple[int, int] = field(default=(0, 0))

    @property
    def held(self) -> bool:
        """Whether every interval of every stage contained its expected reward."""
        return all(stage.rows.held and stage.columns.held for stage in self.stages)

    def plot(self) -> Figure:
        """Plot how rows and columns disappear over time, and the intervals that decided it."""
        from rank1.plots import plot_trace

        return plot_trace(self)

    @never_fails
    def _repr_html_(self) -> str:
        from rank1.plots.html import trace_html

        return trace_html(self)


def trace_of(series: Series, run: int) -> Trace:
    """Play a run again, and read its stages from its final state.

    The policy's state must have `history()`, as `EliminationState` does.
    """
    policy = series.policy
    if not hasattr(smallest_start(policy, series.problem, series.n), "history"):
        raise InputError("policy", policy, "an elimination policy, for a trace", got=policy.label)
    played = series.play_run(run)
    problem, K, L = played.problem, series.problem.K, series.problem.L
    # The problem's own numbers of rows and columns; a run may have them in another order.
    names = [np.arange(K), np.arange(L)]
    if isinstance(problem, Shuffled):
        names = problem.orders
    remaining, stages = [names[0].tolist(), names[1].tolist()], []
    row_total, column_total, before = np.zeros(K), np.zeros(L), 0
    for number, stage in enumerate(played.state.history()):
        stands_for = [side.stands_for for side in stage.sides]
        row_total += (stage.observations - before) * problem.row_means(stands_for[1])
        column_total += (stage.observations - before) * problem.column_means(stands_for[0])
        before = stage.observations
        sides = [
            _side(side, total / stage.observations, own)
            for side, total, own in zip(stage.sides, (row_total, column_total), names, strict=True)
        ]
        stages.append(Stage(number, stage.observations, stage.step, *sides))
        remaining = [
            own[np.unique(side.after)].tolist()
            for side, own in zip(stage.sides, names, strict=True)
        ]
    rows, columns = map(sorted, remaining)
    return Trace(policy.label, run, series.n, K, L, stages, rows, columns, series.problem.best_pair)


def _side(facts: Any, expected: Floats, names: NDArray[np.int64]) -> Side:
    lines = np.unique(facts.stands_for)
    lines = lines[np.argsort(names[lines])]
    after = facts.after
    return Side(
        names[lines].tolist(),
        facts.intervals[lines, 0],
        facts.intervals[lines, 1],
        expected[lines],
        {int(names[line]): int(names[after[line]]) for line in lines if after[line] != line},
    )
