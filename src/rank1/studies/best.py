"""What a study has found: the leader, intervals that agree with the rule, and whether to stop."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1 import notebook, stopping
from rank1.fit.pooled import mean_of_all
from rank1.studies.asking import counts_of
from rank1.studies.memory import Memory
from rank1.studies.spec import Spec

__all__ = ["Best", "best_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Best:
    """What a study has found so far; what `Study.best` returns.

    Tables are K×L, over the rows and columns that live. Means, intervals, rates and costs are in
    the units of the rewards.
    """

    rows: list[str]
    columns: list[str]
    #: The pair of the largest mean; None before the first report.
    leader: tuple[str, str] | None
    mean: float
    counts: Floats
    means: Floats
    #: Each mean by itself, all at once, at any time.
    mean_lower: Floats
    mean_upper: Floats
    #: Each pair beside the leader: it is out where `upper` is at most `mark`, and the rule that
    #: assumes rank one says «stop» exactly when all others are out.
    lower: Floats
    upper: Floats
    mark: float
    out: NDArray[np.bool_]
    #: The same without assuming rank one.
    any_grid_upper: Floats
    any_grid_out: NDArray[np.bool_]
    #: u[i]/u[leader's row]: estimate, lower and upper end, K×3; L×3 for columns.
    row_effects: Floats
    column_effects: Floats
    #: Average reward so far, and an estimate of what playing all pairs alike would have given.
    rate: float
    equal_split: float
    #: May one stop, assuming rank one and not assuming it; the reasons, in words.
    stop: bool
    reason: str
    any_grid_stop: bool
    any_grid_reason: str
    #: The best pair's mean exceeds the leader's by at most this.
    cost: float
    any_grid_cost: float
    confidence: float
    tolerance: float
    #: What the policy recommends; it may differ from the leader.
    recommended: tuple[str, str]
    #: How many suggestions there are, and what became of them.
    totals: dict[str, int]
    #: Suggestions of each pair that are out.
    pending: NDArray[np.int64]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON; NaN and infinity are None."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}

    @notebook.never_fails
    def _repr_html_(self) -> str:
        return self.html("")

    def html(self, caption: str) -> str:
        """The leader, the verdict and the means as a notebook shows them."""
        rows, columns = self.rows, self.columns
        at = None
        if self.leader is not None:
            at = rows.index(self.leader[0]), columns.index(self.leader[1])
        told = [
            ("rows × columns", f"{len(rows):,} × {len(columns):,}"),
            ("leader", "none yet" if self.leader is None else " × ".join(self.leader)),
            ("its mean", self.mean if self.leader else math.nan),
            ("average so far", self.rate),
            ("equal split", self.equal_split),
            ("reports", self.totals["reports"]),
            ("pending", self.totals["pending"]),
            ("assuming rank one", self.reason),
            ("any grid", self.any_grid_reason),
        ]
        picture = notebook.heat_map(
            lambda some, across: self.means[np.ix_(some, across)],
            rows,
            columns,
            at,
            "means of the rewards reported",
        )
        return notebook.beside(notebook.facts(told, caption), picture)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def pending_of(memory: Memory) -> NDArray[np.int64]:
    """How many suggestions of each pair that lives are out."""
    from rank1.studies import fold

    table = memory.pending_table()
    out = table[np.isin(table["status"], (fold.PENDING, fold.WAITING))]
    counts = np.zeros(memory.book.counts.shape, np.int64)
    np.add.at(counts, (out["row"], out["column"]), 1)
    return memory.of_living(counts)


def best_of(memory: Memory, spec: Spec, now: float) -> Best:
    """What a study has found by now."""
    low, high = spec.reward_range
    width = high - low
    counts, sums = memory.evidence(now)
    if spec.forgetting is not None:
        counts, sums = memory.of_living(memory.book.known), memory.of_living(memory.book.known_sums)
    won = np.clip(sums, 0, counts)
    lost = counts - won
    rows, columns = memory.living_labels("rows"), memory.living_labels("columns")
    level = spec.confidence, spec.tolerance / width if spec.tolerance else 0.0
    level = level[0], min(level[1], math.nextafter(1, 0))
    ruled = stopping.verdict(won, lost, *level)
    any_grid = stopping.verdict(won, lost, *level, rank_one=False)
    drawn = stopping.relative_intervals(won, lost, *level)
    drawn_any = stopping.relative_intervals(won, lost, *level, rank_one=False)
    lower, upper = stopping.mean_intervals(won, lost, spec.confidence)
    total = counts.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(counts > 0, won / counts, np.nan)
        effects = stopping.effects(won, lost, spec.confidence)

    def name(row: int, column: int) -> str:
        return f"{rows[row]} × {columns[column]}"

    def reason(one: stopping.Verdict) -> str:
        if spec.forgetting is not None:
            return (
                "no rule for when to stop: the study forgets, because means may move; "
                f"{name(*one.leader)} leads"
            )
        return _in_units(one, width).reason_with(name)

    may_stop = spec.forgetting is None
    at = ruled.leader
    return Best(
        rows=rows,
        columns=columns,
        leader=(rows[at[0]], columns[at[1]]) if total else None,
        mean=low + width * ruled.mean,
        counts=counts,
        means=low + width * means,
        mean_lower=low + width * lower,
        mean_upper=low + width * upper,
        lower=low + width * drawn.lower,
        upper=low + width * drawn.upper,
        mark=low + width * drawn.mark,
        out=drawn.out,
        any_grid_upper=low + width * drawn_any.upper,
        any_grid_out=drawn_any.out,
        row_effects=effects.rows,
        column_effects=effects.columns,
        rate=float(low + width * won.sum() / total) if total else math.nan,
        equal_split=low + width * mean_of_all(won, lost),
        stop=ruled.stop and may_stop,
        reason=reason(ruled),
        any_grid_stop=any_grid.stop and may_stop,
        any_grid_reason=reason(any_grid),
        cost=width * ruled.cost,
        any_grid_cost=width * any_grid.cost,
        confidence=spec.confidence,
        tolerance=spec.tolerance,
        recommended=_recommended(memory, rows, columns),
        totals=counts_of(memory),
        pending=pending_of(memory),
    )


def _in_units(verdict: stopping.Verdict, width: float) -> stopping.Verdict:
    """A verdict whose cost and tolerance are in the units of the rewards."""
    return dataclasses.replace(
        verdict, cost=verdict.cost * width, tolerance=verdict.tolerance * width
    )


def _recommended(memory: Memory, rows: list[str], columns: list[str]) -> tuple[str, str]:
    row, column = memory.state.best()
    return rows[row], columns[column]
