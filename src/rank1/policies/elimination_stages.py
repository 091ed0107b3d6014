"""The mechanics of elimination in stages: tags of pulls, rounds, and the end of a stage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit, method
from rank1.rows import row_of

__all__ = [
    "advance",
    "end_stages",
    "is_eliminated",
    "keep_own",
    "line_of",
    "make_tag",
    "round_of",
    "side_of",
    "stage_of",
    "take_back",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

interval = method("interval", inline=False)


# A pull's tag: its side, then five bits for the stage, then the round.


@inlined
def make_tag(side: int, stage: int, round_: int) -> int:
    """The tag of a pull."""
    return side + 2 * stage + 64 * round_


@inlined
def side_of(tag: int) -> int:
    """0 for exploring a row, 1 for exploring a column."""
    return tag & 1


@inlined
def stage_of(tag: int) -> int:
    """ℓ."""
    return (tag >> 1) & 31


@inlined
def round_of(tag: int) -> int:
    """The round of the pull."""
    return tag >> 6


@inlined
def line_of(state: Any, arm: int, side: int) -> int:
    """The row of an arm, or the column on side 1."""
    columns = state.limits[1].levels
    row = row_of(arm, state.at[0].magic, columns)
    return row if side == 0 else arm - row * columns


@inlined
def is_eliminated(state: Any, arm: int, tag: int) -> bool:
    """Whether the line that this pull explores is eliminated."""
    line, stage = line_of(state, arm, side_of(tag)), state.at[0].stage
    h = state.h_row if side_of(tag) == 0 else state.h_column
    return bool(h[stage, line] != line)


@jit
def take_back(state: Any, arm: int, tag: int) -> bool:
    """Whether this pull was given back; if so, remove it, because it is pending again."""
    at, pulls = state.at[0], state.given_back
    for k in range(at.given_back - 1, -1, -1):
        if pulls[k, 0] == arm and pulls[k, 1] == tag:
            at.given_back -= 1
            for later in range(k, at.given_back):
                pulls[later, 0], pulls[later, 1] = pulls[later + 1, 0], pulls[later + 1, 1]
            return True
    return False


@inlined
def advance(state: Any, count: int) -> None:
    """Record that a pull of the current round was handed out; `count` lines remain on its side."""
    at = state.at[0]
    state.awaited[at.issuing] += 1
    at.place += 1
    if at.place == count:
        next_side(state)


@inlined
def next_side(state: Any) -> None:
    """Go on to the columns, or to the next round, which may belong to the next stage."""
    at = state.at[0]
    at.place = 0
    at.partner = -1
    if at.side == 0:
        at.side = 1
    else:
        at.side = 0
        at.rounds += 1
        if at.rounds == state.n_stage[at.issuing]:
            at.issuing += 1


@jit
def end_stages(state: Any) -> None:
    """End the stage, and later stages whose rewards have all arrived."""
    at = state.at[0]
    while at.issuing > at.stage and state.awaited[at.stage] == 0:
        stage = at.stage
        last = -1  # the last line that the unfinished round has visited
        if at.place > 0:
            last = (state.rows if at.side == 0 else state.columns)[at.place - 1]
        at.rows = eliminate(
            state, state.rows, at.rows, state.h_row, state.C_row, state.row_intervals
        )
        at.columns = eliminate(
            state,
            state.columns,
            at.columns,
            state.h_column,
            state.C_column,
            state.column_intervals,
        )
        state.ended[stage] = at.reported
        at.stage = stage + 1
        if at.given_back > 0:
            drop_eliminated(state)
        if last >= 0:  # continue the round over the lines that remain
            lines, count = (state.rows, at.rows) if at.side == 0 else (state.columns, at.columns)
            at.place = 0
            while at.place < count and lines[at.place] <= last:
                at.place += 1
            if at.place == count:
                next_side(state)


@jit
def eliminate(state: Any, lines: Ints, count: int, h: Ints, C: Floats, intervals: Floats) -> int:
    """Intervals and elimination on one side (lines 22 to 41). Returns how many lines remain."""
    stage = state.at[0].stage
    leader = -1
    partners = state.limits[0].levels + state.limits[1].levels - h.shape[1]
    for k in range(count):
        i = lines[k]
        lower, upper = interval(state, stage, C[stage, i] / state.n_stage[stage], partners)
        intervals[stage, i, 0] = lower
        intervals[stage, i, 1] = upper
        if leader < 0 or lower > intervals[stage, leader, 0]:
            leader = i
    for i in range(h.shape[1]):
        gone = intervals[stage, h[stage, i], 1] <= intervals[stage, leader, 0]
        h[stage + 1, i] = leader if gone else h[stage, i]
        C[stage + 1, i] += C[stage, i]
    return keep_own(lines, count, h[stage + 1])


@jit
def keep_own(lines: Ints, count: int, h: Ints) -> int:
    """Keep the lines that still stand for themselves. Returns how many there are."""
    remaining = 0
    for k in range(count):
        if h[lines[k]] == lines[k]:
            lines[remaining] = lines[k]
            remaining += 1
    return remaining


@jit
def drop_eliminated(state: Any) -> None:
    """Drop given-back pulls of eliminated lines: they aren't issued again."""
    at = state.at[0]
    kept = 0
    for k in range(at.given_back):
        arm, tag = state.given_back[k, 0], state.given_back[k, 1]
        if is_eliminated(state, arm, tag):
            state.awaited[stage_of(tag)] -= 1
        else:
            state.given_back[kept, 0], state.given_back[kept, 1] = arm, tag
            kept += 1
    at.given_back = kept
