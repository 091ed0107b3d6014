"""Versions of BetElim: drop refuted levels, and derive new shares, leaders and a fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import apart, jit
from rank1.design.bets import give_slots, log_mean, prepare
from rank1.design.shares import FIRST_PASSES, PRIOR, drop, find_leaders, fit_factors, set_shares

__all__ = ["add_up", "next_version"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The share of all rewards that must be mature before the fit uses mature rewards alone.
MATURE = 0.5


@apart
def next_version(state: Any) -> None:
    """Drop the refuted levels, and start a version from the reports received so far."""
    at, sides = state.at[0], state.sides
    for k in range(len(state.log_e)):
        state.log_e[k] = log_mean(state.logs, state.wealth, k)
    drop(sides, state.log_e, at.threshold, state.living)
    if at.early == 1 and at.gained < MATURE * at.hoped:
        fit_early(state)
    else:
        first = at.version == 0 or at.early == 1
        for _ in range(FIRST_PASSES if first else 1):
            fit_factors(sides, state.counts, state.sums, state.fit, state.room)
        at.early = 0
    at.version += 1
    slot = at.version % len(state.number)
    leaders = state.leaders
    find_leaders(sides, state.fit, state.living, leaders)
    set_shares(sides, leaders, state.log_e, state.living, at.floor, state.shares)
    state.number[slot], at.prepared = at.version, -1
    prepare(sides, leaders, state.shares, state.fit, state.rho[0], state.base[0])
    for k in range(len(state.shares)):
        state.drawn_by[slot, k] = state.shares[k]
    add_up(sides, state.shares, state.up_to)
    if at.lift > 0.0:
        give_slots(sides, leaders, state.slots)
    at.next_at = at.reports + max(at.shortest, int(at.growth * at.reports))
    at.done = 1 if is_done(state, leaders) else 0


@jit
def fit_early(state: Any) -> None:
    """Fit from the rewards so far, while too few reports are mature.

    If successes arrive before failures, averages are misleading. But levels are drawn by their
    shares, independently of the other sides, so a level's gain relative to its share of the total
    gain tells how good it is. The overall mean is at least the total gain divided by the number of
    all pulls handed out.
    """
    mean = max(state.at[0].hoped, 0.5) / max(state.at[0].pulls, 1)
    for k in range(len(state.fit)):
        state.fit[k] = (state.early_sums[k] + PRIOR) / (state.early_shares[k] + PRIOR)
        if k < state.sides[0].levels:
            state.fit[k] *= mean


@jit
def add_up(sides: Any, shares: Floats, up_to: Floats) -> None:
    """Cumulate the shares, up to 1 at the last level with a share, so no later level is drawn."""
    for d in range(len(sides)):
        begin, end = sides[d].begin, sides[d].begin + sides[d].levels
        total, last = 0.0, begin
        for k in range(begin, end):
            total += shares[k]
            up_to[k] = total
            if shares[k] > 0.0:
                last = k
        for k in range(last, end):
            up_to[k] = 1.0


@jit
def is_done(state: Any, leaders: Ints) -> bool:
    """Whether each level except the leaders is dropped or can't exceed its leader by the lift."""
    lift, threshold = state.at[0].lift, state.at[0].threshold
    for d in range(len(state.sides)):
        begin, levels, leader = state.sides[d].begin, state.sides[d].levels, leaders[d]
        for k in range(begin, begin + levels):
            if state.living[k] and k != begin + leader:
                if lift == 0.0 or state.slots[begin + leader] < 0:
                    return False
                row = state.rows[d] + state.slots[begin + leader] * levels + k - begin
                against = log_mean(state.logs, state.wealth, row)
                if against < threshold + math.log(levels - 1.0):
                    return False
    return True
