"""What a study has found: the leader, intervals that agree with the rule, and whether to stop."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rank1 import notebook
from rank1.documents import to_document
from rank1.studies.spec import Spec
from rank1.studies.state import StudyState

if TYPE_CHECKING:
    from rank1 import stopping

__all__ = ["Best", "best_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Best:
    """What a study has found so far; what `Study.best` returns.

    Tables have a dimension for each side, over the levels that live. Means, intervals, rates and
    costs are in the units of the rewards.
    """

    #: The levels that live, by side.
    sides: dict[str, list[str]]
    #: The arm of the largest mean, as labels in the order of the sides; None before the first
    #: report.
    leader: tuple[str, ...] | None
    mean: float
    counts: Floats
    means: Floats
    #: Each mean by itself, all at once, at any time.
    mean_lower: Floats
    mean_upper: Floats
    #: Each arm beside the leader: it is out where `upper` is at most `mark`, and the rule that
    #: assumes rank one says «stop» exactly when all others are out.
    lower: Floats
    upper: Floats
    mark: float
    out: NDArray[np.bool_]
    #: The same without assuming rank one.
    any_grid_upper: Floats
    any_grid_out: NDArray[np.bool_]
    #: By side, of each level: its factor relative to the leader's level; estimate, lower and upper
    #: end.
    effects: dict[str, Floats]
    #: Average reward so far, and an estimate of what playing all arms alike would have given.
    rate: float
    equal_split: float
    #: May one stop, assuming rank one and not assuming it; the reasons, in words.
    stop: bool
    reason: str
    any_grid_stop: bool
    any_grid_reason: str
    #: The best arm's mean exceeds the leader's by at most this.
    cost: float
    any_grid_cost: float
    confidence: float
    tolerance: float
    #: What the policy recommends; it may differ from the leader.
    recommended: tuple[str, ...]
    #: How many suggestions there are, and what became of them.
    totals: dict[str, int]
    #: Suggestions of each arm that wait for a reward.
    pending: NDArray[np.int64]

    @property
    def rows(self) -> list[str]:
        """The levels of the first of two sides."""
        return self._two(self.sides)[0]

    @property
    def columns(self) -> list[str]:
        """The levels of the second of two sides."""
        return self._two(self.sides)[1]

    @property
    def row_effects(self) -> Floats:
        """The effects of the first of two sides."""
        return self._two(self.effects)[0]

    @property
    def column_effects(self) -> Floats:
        """The effects of the second of two sides."""
        return self._two(self.effects)[1]

    def _two(self, by_side: dict[str, Any]) -> tuple[Any, Any]:
        if len(by_side) != 2:
            raise AttributeError(f"rows and columns are for two sides, not {len(by_side)}")
        first, second = by_side.values()
        return first, second

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON; NaN and infinity are None.

        Of two sides, also as rows and columns.
        """
        found: dict[str, Any] = to_document(self)
        if len(self.sides) == 2:
            found["rows"], found["columns"] = found["sides"].values()
            found["row_effects"], found["column_effects"] = found["effects"].values()
        return found

    @notebook.never_fails
    def _repr_html_(self) -> str:
        return self.html("")

    def html(self, caption: str) -> str:
        """The leader, the verdict and the means as a notebook shows them."""
        told = [
            (" × ".join(self.sides), " × ".join(f"{len(each):,}" for each in self.sides.values())),
            ("leader", "none yet" if self.leader is None else " × ".join(self.leader)),
            ("its mean", self.mean if self.leader else math.nan),
            ("average so far", self.rate),
            ("equal split", self.equal_split),
            ("reports", self.totals["reports"]),
            ("pending", self.totals["pending"]),
            ("assuming rank one", self.reason),
            ("any grid", self.any_grid_reason),
        ]
        facts = notebook.facts(told, caption)
        if len(self.sides) != 2:
            return facts
        at = None
        if self.leader is not None:
            at = self.rows.index(self.leader[0]), self.columns.index(self.leader[1])
        picture = notebook.heat_map(
            lambda some, across: self.means[np.ix_(some, across)],
            self.rows,
            self.columns,
            at,
            "means of the rewards reported",
        )
        return notebook.beside(facts, picture)


def best_of(state: StudyState, spec: Spec, now: float) -> Best:
    """What a study has found by now."""
    from rank1 import stopping
    from rank1.fit.pooled import mean_of_all

    low, high = spec.reward_range
    width = high - low
    counts, sums = state.evidence(now)
    if spec.forgetting is not None:
        counts, sums = state.of_living(state.book.known), state.of_living(state.book.known_sums)
    won = np.clip(sums, 0, counts)
    lost = counts - won
    sides = {side: state.living_labels(side) for side in state.labels}
    level = spec.confidence, min(spec.tolerance / width, math.nextafter(1, 0))
    total = counts.sum()
    with np.errstate(all="ignore"):
        ruled = stopping.verdict(won, lost, *level)
        any_grid = stopping.verdict(won, lost, *level, rank_one=False)
        drawn = stopping.relative_intervals(won, lost, *level)
        drawn_any = stopping.relative_intervals(won, lost, *level, rank_one=False)
        lower, upper = stopping.mean_intervals(won, lost, spec.confidence)
        means = np.where(counts > 0, won / counts, np.nan)
        effects = stopping.effects(won, lost, spec.confidence)

    def labels(*levels: int) -> tuple[str, ...]:
        return tuple(names[k] for names, k in zip(sides.values(), levels, strict=True))

    def name(*levels: int) -> str:
        return " × ".join(labels(*levels))

    def reason(one: stopping.Verdict) -> str:
        if spec.forgetting is not None:
            return (
                "no rule for when to stop: the study forgets, because means may move; "
                f"{name(*one.leader)} leads"
            )
        return _in_units(one, width).reason_with(name)

    may_stop = spec.forgetting is None
    return Best(
        sides=sides,
        leader=labels(*ruled.leader) if total else None,
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
        effects=dict(zip(sides, effects.sides, strict=True)),
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
        recommended=state.recommended(),
        totals=state.counts(),
        pending=state.pending(),
    )


def _in_units(verdict: stopping.Verdict, width: float) -> stopping.Verdict:
    """A verdict whose cost and tolerance are in the units of the rewards."""
    return dataclasses.replace(
        verdict, cost=verdict.cost * width, tolerance=verdict.tolerance * width
    )
