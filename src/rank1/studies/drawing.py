"""Draw the levels of an exposure from the current shares, or repeat what a unit has seen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rank1.assignment import assign, held_out
from rank1.compiled import generator
from rank1.errors import InputError, InputTypeError, shown
from rank1.studies.events import HELD_OUT, REPEAT, Event, check_text
from rank1.studies.state import StudyState
from rank1.studies.unit_of_work import UnitOfWork

__all__ = ["drawn", "given_levels", "shares_of"]

#: Seconds for which a client may use shares before it must refresh them.
MAX_AGE = 60


def shares_of(state: StudyState) -> dict[str, Any]:
    """Return the current version of the shares, by labels: the input of `rank1.assign`."""
    spec, design = state.spec, state.live
    sides = {}
    for side, (name, labels) in enumerate(state.labels.items()):
        if name not in spec.given:
            shares = design.versions[design.number].shares[side].tolist()
            control = (spec.control or {}).get(name)
            sides[name] = {
                label: share
                for label, share, lives in zip(labels, shares, design.living[side], strict=True)
                if share > 0 or lives or label == control
            }
    found: dict[str, Any] = {
        "version": design.number, "salt": spec.salt, "max_age": MAX_AGE, "sides": sides,
    }  # fmt: skip
    if spec.given:  # with their levels, if no others are accepted
        known = {side: state.living_labels(side) for side in spec.given}
        found["given"] = list(spec.given) if spec.new_levels == "add" else known
    if spec.holdout:
        found["holdout"] = spec.holdout
    if spec.control:
        found["control"] = spec.control
    return found


def given_levels(
    work: UnitOfWork, given: Mapping[str, str] | None
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Return the levels of given sides, and those among them to add; others are refused."""
    spec, state = work.spec, work.state
    if not spec.given:
        if given:
            raise InputError("given", given, "left out: no side of the study is given")
        return {}, {}
    if not isinstance(given, Mapping):
        raise InputTypeError("given", given, f"a level of each of {', '.join(spec.given)}")
    if set(given) != set(spec.given):
        raise InputError("given", dict(given), f"a level of each of {', '.join(spec.given)}")
    new: dict[str, tuple[str, ...]] = {}
    for side in spec.given:
        living = state.living_labels(side)
        if given[side] not in living:
            check_text(f"given.{side}", given[side])
            if spec.new_levels == "refuse":
                raise InputError(f"given.{side}", given[side], f"among {shown(living)}")
            new[side] = (given[side],)
    return {side: given[side] for side in spec.given}, new


def drawn(
    work: UnitOfWork, count: int, unit: str | None, given: Mapping[str, str], last: Event | None
) -> list[tuple[int, int, float]]:
    """Return arms (log numbers), tags and propensities; `last` is the unit's last exposure."""
    spec, state = work.spec, work.state
    design = state.live
    if unit is not None:
        return [_for_unit(work, unit, given, last)]
    fixed = sum(
        state.labels[side].index(given[side]) * stride
        for side, stride in zip(state.labels, state.room.strides, strict=True)
        if side in given
    )
    tags = [design.number] * count
    with generator(np.random.SeedSequence((spec.seed, state.seq))) as rng:
        arms, propensities = design.draw(rng, count, fixed)
        held = np.flatnonzero(rng.random(count) < spec.holdout) if spec.holdout else ()
    for k in held:
        arms[k] = state.arm_of({**(spec.control or {}), **given})
        tags[k], propensities[k] = HELD_OUT, math.nan
    return list(zip(arms.tolist(), tags, propensities.tolist(), strict=True))


def _for_unit(
    work: UnitOfWork, unit: str, given: Mapping[str, str], last: Event | None
) -> tuple[int, int, float]:
    spec, state = work.spec, work.state
    design, shares = state.live, shares_of(state)
    if held_out(shares, unit):
        arm = state.arm_of({**(spec.control or {}), **given})
        counts = last is None or spec.repeat == "each"
        return arm, HELD_OUT if counts else REPEAT, math.nan
    if last is not None:
        arm = state.arm_of({**state.named(last.arm), **given})
        if state.lives(arm):
            once = spec.repeat == "once" or last.tag < 0
            return arm, REPEAT if once else last.tag, math.nan
    arm = state.arm_of(assign(shares, unit, given))
    if last is not None and spec.repeat == "once":
        return arm, REPEAT, math.nan
    return arm, design.number, float(design.propensity(state.levels_of(arm)))
