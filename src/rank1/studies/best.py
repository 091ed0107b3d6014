"""What a study has found: the leader, intervals that agree with the rule, and whether to stop."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from rank1.documents import Best
from rank1.studies.spec import Spec
from rank1.studies.state import StudyState

if TYPE_CHECKING:
    from rank1 import stopping

__all__ = ["Best", "best_of"]


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
