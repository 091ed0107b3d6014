"""The results of a study: the leader, its lift, how certain that is, and whether to stop."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rank1.documents import Best
from rank1.studies.arms import NO_TOTALS, leading_arms, level_totals
from rank1.studies.best_drawn import best_drawn, conclusions
from rank1.studies.delays import NO_RULE, delay_warnings, silence_warnings
from rank1.studies.examination import examine
from rank1.studies.spec import Spec
from rank1.studies.state import StudyState
from rank1.studies.words import ORDER, Doubt, Finding, Lift, name

if TYPE_CHECKING:
    from rank1 import stopping

__all__ = ["Best", "best_of"]

Floats = NDArray[np.float64]


def best_of(state: StudyState, spec: Spec, now: float, tables: bool = True) -> Best:
    """Return a study's results so far; tables of arms are optional, and slow for many arms."""
    if state.design is None:
        return best_counted(state, spec, now, tables)
    best = best_drawn(state.as_of(now), now)
    return best if tables else dataclasses.replace(best, **_no_tables())


def _no_tables() -> dict[str, Any]:
    fields = dataclasses.fields(Best)
    names = [each.name for each in fields if str(each.type).startswith(("Floats", "NDArray"))]
    return {name: np.zeros(0) for name in names}


def best_counted(state: StudyState, spec: Spec, now: float, tables: bool) -> Best:
    """Return the results so far of a study with a policy, from counts alone."""
    from rank1 import stopping
    from rank1.fit.pooled import mean_of_all
    from rank1.stopping.intervals import ruled_out

    low, high = spec.reward_range
    width = high - low
    counts, sums = state.evidence(now)
    if spec.forgetting is not None:
        counts, sums = state.of_living(state.book.known), state.of_living(state.book.known_sums)
    won, lost, tried = np.zeros(counts.shape), np.zeros(counts.shape), np.flatnonzero(counts)
    won.flat[tried] = np.clip(sums.flat[tried], 0, counts.flat[tried])
    lost.flat[tried] = counts.flat[tried] - won.flat[tried]
    sides = {side: state.living_labels(side) for side in state.labels}
    level = spec.confidence, min(spec.tolerance / width, math.nextafter(1, 0))
    total, pending = counts.sum(), state.pending()
    with np.errstate(all="ignore"):
        ruled = stopping.verdict(won, lost, *level)
        any_grid = stopping.verdict(won, lost, *level, rank_one=False)
        effects = dict(zip(sides, stopping.effects(won, lost, spec.confidence).sides, strict=True))
        found_tables, out = _no_tables(), ruled_out(won, lost, *level)
        if tables:
            found_tables = _tables(counts, won, lost, level, low, width)
            found_tables["pending"] = pending

    warnings = delay_warnings(state)
    no_rule = NO_RULE if warnings else ""
    if spec.forgetting is not None:
        no_rule = "no stopping rule applies, because the study forgets old rewards"
    may_stop = not no_rule

    def labels(*levels: int) -> tuple[str, ...]:
        return tuple(names[k] for names, k in zip(sides.values(), levels, strict=True))

    def called(*levels: int) -> str:
        return name(labels(*levels))

    def worded(one: stopping.Verdict) -> dict[str, Any]:
        if not may_stop:
            return {"stop": False, "reason": f"{no_rule}; {called(*one.leader)} leads"}
        told = dataclasses.replace(one, tolerance=one.tolerance * width)
        return {"stop": one.stop, "reason": told.reason_with(called)}

    doubt = None
    if ruled.stop and may_stop and not any_grid.stop:
        found = examine(won, lost, ruled.leader)
        if found is not None:
            arm = found.arm
            doubt = Doubt(
                labels(*arm), float(low + width * np.divide(won[arm], counts[arm])),
                low + width * ruled.mean, int(counts[arm]), found.speaks,
            )  # fmt: skip
    finding = Finding(
        leader=labels(*ruled.leader) if total else None,
        lift=_lift(spec, sides, ruled.leader, effects, won, counts) if counts.size > 1 else None,
        order_stop=ruled.stop and may_stop,
        doubt=doubt,
        confidence=spec.confidence,
        tolerance=spec.tolerance,
        drawn=False,
        no_rule=no_rule,
        ended=bool(state.book.at[0].retired),
    )
    arms = leading_arms(state, won, counts, pending, out, finding.leader)
    return Best(
        sides=sides,
        leader=finding.leader,
        mean=low + width * ruled.mean,
        **found_tables,
        mark=low + width * (ruled.mean + level[1]),
        effects=effects,
        rate=float(low + width * won.sum() / total) if total else math.nan,
        equal_split=low + width * mean_of_all(won, lost),
        assumes=_assumed(spec, len(sides)),
        levels=_levels(state, effects, out, level_totals(state, won, counts, pending)),
        arms=arms,
        out_arms=int(out.sum()),
        interval=tuple(arms[0]["interval"]) if arms else None,
        warnings=warnings + silence_warnings(state),
        **conclusions(state, finding, worded(ruled), worded(any_grid)),
    )


def _tables(
    counts: Floats, won: Floats, lost: Floats, level: tuple[float, float], low: float, width: float
) -> dict[str, Any]:
    """Return the tables with an entry for each arm."""
    from rank1 import stopping

    drawn = stopping.relative_intervals(won, lost, *level)
    drawn_any = stopping.relative_intervals(won, lost, *level, rank_one=False)
    lower, upper = stopping.mean_intervals(won, lost, level[0])
    return {
        "counts": counts,
        "means": low + width * np.where(counts > 0, won / counts, np.nan),
        "mean_lower": low + width * lower,
        "mean_upper": low + width * upper,
        "lower": low + width * drawn.lower,
        "upper": low + width * drawn.upper,
        "out": drawn.out,
        "any_grid_upper": low + width * drawn_any.upper,
        "any_grid_out": drawn_any.out,
    }


def _lift(
    spec: Spec, sides: dict[str, list[str]], leader: Sequence[int], effects: dict[str, Floats],
    won: Floats, counts: Floats,
) -> Lift:  # fmt: skip
    """Return the leader's lift over the control, or over the runner-up.

    It is over the runner-up if the leader is the control, or there is no control.
    """
    over, control = list(leader), spec.control
    if control is not None and all(control[side] in sides[side] for side in sides):
        over = [sides[side].index(control[side]) for side in sides]
    is_control = over != list(leader)
    if not is_control:
        others = {
            (side, k): effect[0]
            for side, table in enumerate(effects.values())
            for k, effect in enumerate(table.tolist())
            if k != leader[side]
        }
        side, k = max(others, key=lambda one: np.nan_to_num(others[one], nan=-1.0))
        over[side] = k
    estimate, low, high = 1.0, 1.0, 1.0
    with np.errstate(divide="ignore"):
        for table, level, first in zip(effects.values(), over, leader, strict=True):
            if level != first:
                at, least, most = table[level]
                estimate, low, high = estimate / at, low / most, high / least
    labels = tuple(names[k] for names, k in zip(sides.values(), over, strict=True))
    lowest, width = spec.reward_range[0], spec.reward_range[1] - spec.reward_range[0]
    with np.errstate(invalid="ignore"):
        mean, over_mean = (
            float(lowest + width * np.divide(won[tuple(arm)], counts[tuple(arm)]))
            for arm in (leader, over)
        )
    ends = float(estimate - 1), float(low - 1), float(high - 1)
    return Lift(labels, is_control, *ends, lowest, mean, over_mean)


def _levels(
    state: StudyState,
    effects: dict[str, Floats],
    out: Any,
    totals: dict[str, dict[str, dict[str, Any]]],
) -> dict[str, list[dict[str, Any]]]:
    """Return the results for each level, relative to the leader's level."""
    found: dict[str, list[dict[str, Any]]] = {}
    for axis, (side, names) in enumerate(state.labels.items()):
        others = tuple(k for k in range(out.ndim) if k != axis)
        gone = dict(zip(totals[side], out.all(axis=others).tolist(), strict=True))
        known = dict(zip(totals[side], effects[side].tolist(), strict=True))
        found[side] = [
            {
                "label": label,
                "living": label in known and not gone[label],
                "share": None,
                "estimate": known[label][0] - 1 if label in known else None,
                "lift": [end - 1 for end in known[label][1:]] if label in known else None,
                **totals[side].get(label, NO_TOTALS),
                "gone_at": None,
                "why": None if label in known else "retired",
            }
            for label in names
        ]
    return found


def _assumed(spec: Spec, sides: int) -> list[str]:
    found = [f"One order: {ORDER}."] if sides > 1 else []
    found.append("The means don't change while the study runs.")
    if spec.on_expiry != "default":
        found.append("Whether and when a reward arrives doesn't depend on its value.")
    return found
