"""The results of a study that draws by shares, as one document."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.documents import Best
from rank1.studies.arms import NO_TOTALS, leading_arms, level_totals
from rank1.studies.look import Look
from rank1.studies.state import StudyState
from rank1.studies.words import Finding

__all__ = ["best_drawn", "conclusions"]

Floats = NDArray[np.float64]


def best_drawn(state: StudyState, now: float) -> Best:
    """Return the results so far."""
    from rank1 import stopping

    look, spec = Look(state), state.spec
    low, width = look.low, look.width
    counts, sums = state.evidence(now)
    won, total = np.clip(sums, 0, counts), float(counts.sum())
    with np.errstate(all="ignore"):
        means = low + width * np.where(counts > 0, won / counts, np.nan)
    lower, upper = (
        low + width * ends for ends in stopping.mean_intervals(won, counts - won, spec.confidence)
    )
    sides = {side: state.living_labels(side) for side in state.labels}
    at = tuple(state.living[side].index(k) for side, k in zip(sides, look.leader, strict=True))
    out, any_out = look.out(), look.arms_out()
    out[at] = any_out[at] = False
    mark = float(means[at])
    finding, effects, pending = look.finding(total > 0), look.effects(), state.pending()
    leader = tuple(names[k] for names, k in zip(sides.values(), at, strict=True))
    totals = level_totals(state, won, counts, pending)
    levels = {
        side: [each | totals[side].get(each["label"], NO_TOTALS) for each in found]
        for side, found in look.levels().items()
    }
    return Best(
        sides=sides,
        leader=leader if total else None,
        mean=mark,
        counts=counts,
        means=means,
        mean_lower=lower,
        mean_upper=upper,
        lower=lower,
        upper=_beside(upper, mark, out),
        mark=mark,
        out=out,
        any_grid_upper=_beside(upper, mark, any_out),
        any_grid_out=any_out,
        effects=effects,
        rate=float(low + width * won.sum() / total) if total else math.nan,
        equal_split=_equal_split(look),
        pending=pending,
        assumes=look.assumed(),
        levels=levels,
        arms=leading_arms(state, won, counts, pending, out, leader),
        out_arms=int(out.sum()),
        interval=(float(lower[at]), float(upper[at])) if total else None,
        holdout=_holdout(look),
        version=look.live.number,
        warnings=look.warnings() + _guardrails(look),
        **conclusions(state, finding, look.order, look.arms),
    )


def conclusions(
    state: StudyState, finding: Finding, one_order: dict[str, Any], any_grid: dict[str, Any]
) -> dict[str, Any]:
    """Return the fields of `Best` that follow from a finding and the two verdicts."""
    return {
        "stop": finding.stop,
        "reason": one_order["reason"],
        "any_grid_stop": any_grid["stop"],
        "any_grid_reason": any_grid["reason"],
        "verdicts": {"one_order": one_order, "any_grid": any_grid},
        "confidence": state.spec.confidence,
        "tolerance": state.spec.tolerance,
        "recommended": state.recommended(),
        "totals": state.counts(),
        "statement": finding.statement,
        "next_step": finding.next_step,
        "doubt": finding.objection,
        "lift": None if finding.lift is None else finding.lift.to_dict(),
    }


def _beside(upper: Floats, mark: float, out: NDArray[np.bool_]) -> Floats:
    """Adjust upper ends so that they are at most the mark exactly for arms that are out."""
    return np.where(out, np.minimum(upper, mark), np.maximum(upper, np.nextafter(mark, np.inf)))


def _equal_split(look: Look) -> float:
    """Return what drawing all levels equally would have earned, according to the fit."""
    version, counts = look.live.current, look.state.book.counts
    if not version.bets:
        total = counts.sum()
        mean = float(look.state.book.sums.sum() / total) if total else math.nan
        return look.low + look.width * mean
    mean = 1.0
    for side, fit in enumerate(version.fit):
        weights = look.live.allowed(side).astype(float)
        if side not in look.chosen:
            others = tuple(d for d in range(len(version.fit)) if d != side)
            weights = counts.reshape(look.live.design.sizes).sum(others)
        mean *= float(np.average(fit, weights=weights))
    return look.low + look.width * min(mean, 1.0)


def _guardrails(look: Look) -> list[str]:
    """Return levels that were dropped for harm, and harm of the leader that isn't proven yet."""
    found, rows = [], look.live.evidence.rows()
    for (side, level), gone in look.live.gone.items():
        if gone.why not in ("refuted", "retired"):
            found.append(f"{look.names[side][level]} was dropped, because it {gone.why}.")
    for metric, (name, rule) in enumerate(look.spec.guardrails.items(), 1):
        own = rows[rows["metric"] == metric]
        for side, base in enumerate(look.live.control() or ()):
            at, leader = look.live.design.sides[side], look.leader[side]
            levels = own["arm"] // at.stride % at.levels
            some = [own[levels == level] for level in (leader, base)]
            if base in (-1, leader) or not all(map(len, some)):
                continue
            worse, usual = (
                float(np.average(each["value"], weights=each["count"])) for each in some
            )
            if worse > usual + rule["worse_by"]:
                labels = look.names[side]
                found.append(
                    f"{name} is {worse:.1%} with {labels[leader]} and {usual:.1%} with "
                    f"{labels[base]}, the control: worse by more than {rule['worse_by']:.1%}, "
                    "though that isn't proven yet"
                )
    return found


def _holdout(look: Look) -> dict[str, Any] | None:
    """Return what the study has earned compared with the units that stay on the control."""
    if not look.spec.holdout:
        return None
    at = look.state.book.at[0]
    held, rest = int(at.held), int(at.evidence)
    found: dict[str, Any] = {"units": held, "rate": None, "rest_rate": None}
    found |= dict.fromkeys(("earned", "low", "high"))
    if held and rest:
        one, two = float(at.held_sum) / held, float(at.gained) / rest
        spreads = float(at.held_squares) / held - one**2, float(at.squares) / rest - two**2
        error = math.sqrt(max(spreads[0], 0.0) / held + max(spreads[1], 0.0) / rest)
        reach = NormalDist().inv_cdf((1 + look.spec.confidence) / 2) * error
        found |= {"rate": look.low + look.width * one, "rest_rate": look.low + look.width * two}
        for end, way in (("earned", 0.0), ("low", -reach), ("high", reach)):
            found[end] = look.width * rest * (two - one + way)
    return found
