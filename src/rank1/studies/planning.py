"""Plan the next version of a study's design: dropped levels, leaders, and shares."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1 import design
from rank1.design import Design, Totals, Version
from rank1.design.shares import PRIOR
from rank1.design.versions import with_floors
from rank1.design.wealth import level_sums
from rank1.studies.events import HELD_OUT
from rank1.studies.fold import Book, closable
from rank1.studies.live_design import LiveDesign

__all__ = ["is_due", "next_text", "plan", "totals", "with_control"]

Floats = NDArray[np.float64]

#: The fraction of rewards that must have matured before the fit uses matured rewards only.
MATURE = 0.5
#: The minimum share of the control's level on each side, until the study may stop.
CONTROL = 0.05
#: The minimum share of an active level if a side is given: it may be best in some segment.
WITH_SEGMENTS = 0.05


def is_due(live: LiveDesign, book: Book, now: float = -math.inf) -> bool:
    """Return whether a new version must begin, given the windows that have closed by now."""
    if live.stale:
        return True
    version, at = live.versions[live.number], book.at[0]
    evidence = int(at.evidence)
    closing = int(np.count_nonzero(closable(book, now)["tag"] != HELD_OUT))
    evidence = max(evidence, min(evidence + closing, int(at.limit)))
    if not version.bets:
        return _has_enough(live, book, evidence)
    if live.spec.by_window and evidence >= int(at.limit):
        return True  # windows close no further without a new version
    return design.is_due(live.design, version, live.began, evidence, 0.0)


def _has_enough(live: LiveDesign, book: Book, evidence: int | None = None) -> bool:
    """Return whether there are enough rewards, including imported ones, for a first fit."""
    first, gained = Version(0, (), (), (), ()), float(book.sums.sum())
    evidence = int(book.at[0].evidence) if evidence is None else evidence
    return design.is_due(live.design, first, 0, evidence, gained)


def next_text(live: LiveDesign, book: Book) -> str:
    """Return the next version as the JSON text of its event."""
    live.settle(book)
    harmed = _harmed(live)
    version = _next(live.without(harmed), book)
    fit = [[float(f"{factor:.6g}") for factor in side.tolist()] for side in version.fit]
    living = [side.astype(int).tolist() for side in version.living]
    columns = {
        "shares": [side.tolist() for side in version.shares], "leaders": version.leaders,
        "fit": fit, "living": living,
    }  # fmt: skip
    fields: dict[str, Any] = {
        name: dict(zip(live.spec.sides, values, strict=True)) for name, values in columns.items()
    }
    if harmed:
        fields["why"] = [[*level, why] for level, why in harmed.items()]
    return json.dumps(fields, separators=(",", ":"))


def _harmed(live: LiveDesign) -> dict[tuple[int, int], str]:
    """Return the active levels that are shown to harm a guardrail, with the reason."""
    found: dict[tuple[int, int], str] = {}
    base = live.control()
    if not live.versions or base is None:
        return found
    threshold = design.harm_threshold(live.design, len(live.spec.guardrails))
    for metric, (name, rule) in enumerate(live.spec.guardrails.items(), 1):
        counts = live.evidence.counts(metric)
        evidence = design.harmful(live.design, live.versions, counts, base, rule["worse_by"])
        for side, log_e in enumerate(evidence):
            for level in np.flatnonzero((log_e >= threshold) & live.living[side]).tolist():
                found.setdefault((side, level), f"harms {name}")
    return found


def plan(live: LiveDesign, current: Version | None = None) -> Design:
    """Return the design for new shares: only active levels have one (see `with_control`)."""
    current = current or live.current
    dead = [
        (side, level)
        for side in live.design.chosen
        for level in np.flatnonzero(~current.living[side]).tolist()
    ]
    floor = live.spec.floor
    if live.given:
        most = max(int(current.living[side].sum()) for side in live.design.chosen)
        floor = max(floor, min(WITH_SEGMENTS, 0.5 / most))
    return live.design.changed(floor=floor, retired=dead)


def with_control(live: LiveDesign, planned: Design, version: Version) -> Design:
    """Return the design with the control's minimum share, if the version gives it less."""
    fixed = {}
    for side, level in enumerate(live.control() or ()):
        if level >= 0 and live.allowed(side)[level]:
            lives = bool(planned.kept[side][level])
            others = int(planned.kept[side].sum()) - lives
            share = min(CONTROL, (1 - planned.floor * others) / 2)
            if others and version.shares[side][level] < share:
                fixed[side, level] = max(share, planned.floor * lives)
    return planned.changed(fixed=fixed, retired=planned.retired - fixed.keys())


def _next(live: LiveDesign, book: Book) -> Version:
    current = live.current
    planned = plan(live, current)
    if not live.versions or not (current.bets or _has_enough(live, book)):
        first = design.first_version(planned)
        return dataclasses.replace(first, number=live.number + 1, living=current.living)
    counts, sums = live.evidence.matured(book)
    if len(live.evidence.unripe):
        hoped = float(book.at[0].gained)
        if hoped - float(live.evidence.unripe["x"].sum()) < MATURE * hoped:
            current = dataclasses.replace(current, fit=_early_fit(live, book))
            counts, sums = np.zeros_like(counts), np.zeros_like(sums)  # keep the fit
    planned, seen = planned.changed(floor=0.0), _totals(live, counts, sums)
    version = design.next_version(planned, current, live.wealth, seen)
    stop, suspect = design.verdict(live.design, version, live.wealth).stop, None
    if stop and len(live.design.chosen) > 1:
        suspect = live.suspect(book, version.leaders)
    planned, shares = plan(live, version), list(version.shares)
    if not stop or suspect is not None or live.spec.guardrails:  # harm is relative to the control
        planned = with_control(live, planned, version)
    for side in live.design.chosen:
        leader = version.leaders[side]
        shares[side] = with_floors(planned, side, shares[side], np.array(leader))
        level = leader if suspect is None else suspect.arm[live.design.chosen.index(side)]
        if level != leader:  # test the suspect arm: it gets as much as the leader
            shares[side] = np.zeros(len(shares[side]))
            for (where, k), share in planned.fixed.items():
                shares[side][k] = share if where == side else shares[side][k]
            shares[side][[level, leader]] = 0.0
            shares[side][[level, leader]] = (1 - shares[side].sum()) / 2
    return dataclasses.replace(version, shares=tuple(shares))


def _totals(live: LiveDesign, counts: Floats, sums: Floats) -> Totals:
    return Totals(counts, level_sums(sums.reshape(live.design.sizes)))


def totals(live: LiveDesign, book: Book) -> Totals:
    """Return the totals for a fit, from rewards whose windows have closed."""
    return _totals(live, *live.evidence.matured(book))


def _early_fit(live: LiveDesign, book: Book) -> tuple[Floats, ...]:
    """Fit to the rewards so far, while too few have matured.

    Levels are drawn by their shares, so a level's total reward, relative to its share of the
    overall total, measures how good it is. The mean is at least the total reward per exposure.
    """
    rows = live.evidence.rows()
    rows = rows[rows["metric"] == 0]
    x = rows["count"] * live.design.scaled(rows["value"])
    cells: Floats = np.bincount(rows["arm"], x, live.design.grid.arms).astype(float)
    gained = np.bincount(rows["version"], x)
    shared = [
        sum((g * live.versions[k].shares[side] for k, g in enumerate(gained) if g), 0.0)
        for side in range(len(live.design.sizes))
    ]
    sums = live.design.split(level_sums(cells.reshape(live.design.sizes)))
    fit = [(own + PRIOR) / (part + PRIOR) for own, part in zip(sums, shared, strict=True)]
    for side in live.given:
        fit[side] = np.ones(len(fit[side]))
    at = book.at[0]
    fit[live.design.chosen[0]] *= max(float(at.gained), 0.5) / max(int(at.suggested), 1)
    return tuple(fit)
