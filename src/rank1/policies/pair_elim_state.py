"""PairElim's state: processes that compare rows within columns, and columns within rows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import apart, inlined, jit, record
from rank1.policies.base import Known, Records, Simple
from rank1.policies.elimination_stages import keep_own
from rank1.policies.stages import after
from rank1.rows import row_magic, row_of

__all__ = [
    "BETWEEN",
    "PairElimState",
    "begin_phase",
    "look_at_columns",
    "look_at_rows",
    "phase_of",
    "side_of",
    "start_pair_elim",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT = record(
    "rows",  # the number of remaining rows
    "columns",
    "side",  # 0 while playing the rows in one column, 1 while playing the columns in one row
    "place",  # the number of remaining lines up to the one played last on this side
    "row",  # the row in which this round plays the columns
    "column",  # the column in which it plays the rows
    "reported",  # t: rewards received
    "phase",  # w: the horizon of the columns' processes is 2^(2^w)
    "leader",  # the best column at the end of the previous phase, or −1
    "magic",  # see `row_of`
    log_rows=float,  # log of the horizon of the rows' processes
    log_columns=float,  # and of the columns'
)
BETWEEN = 2  # the side between two rounds
LAST_PHASE = 6  # no run is longer than 2^(2^6) steps


# A pull's tag: its side, then three bits for the phase, then the row of its round.


@inlined
def make_tag(side: int, phase: int, row: int) -> int:
    """The tag of a pull."""
    return side + 2 * phase + 16 * row


@inlined
def side_of(tag: int) -> int:
    """0 for an observation of a row, 1 for one of a column."""
    return tag & 1


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    rows: Ints  # remaining rows, ascending; the first at.rows entries count
    columns: Ints
    h_row: Ints  # the remaining row that represents each row
    h_column: Ints
    row_sums: Floats  # (L + 1, K)
    row_counts: Ints
    row_stages: Ints  # how often each process has looked: its gap D is 2^−stage
    row_lengths: Ints  # the observations of each line at which each process looks next
    column_sums: Floats  # (K + 1, L)
    column_counts: Ints
    column_stages: Ints
    column_lengths: Ints


class PairElimState(_Arrays, Simple):
    """Processes on rows, one per column and the last for all columns; the same for columns.

    The lines that a process compares are observed together, so without delay they have equal
    counts. If rewards are late or lost, a process waits for the line with the fewest.
    """

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """The next pull of a round. Draws two random numbers at the start of a round."""
        at = self.at[0]
        if at.side == 0 and at.place == at.rows:
            at.side, at.place = 1, 0
        elif at.side == BETWEEN or (at.side == 1 and at.place == at.columns):
            begin_phase(self, phase_of(at.reported, at.phase))
            at.side, at.place = 0, 0
            at.column = self.h_column[int(rng.random() * len(self.h_column))]
            at.row = self.h_row[int(rng.random() * len(self.h_row))]
        row, column = at.row, at.column
        if at.side == 0:
            row = self.rows[at.place]
        else:
            column = self.columns[at.place]
        at.place += 1
        return row * self.limits[1].levels + column, make_tag(at.side, at.phase, at.row)

    def issued(self, arm: int, tag: int) -> None:
        """Move the round to this pull, which can be any pull on the grid."""
        at, K, L = self.at[0], self.limits[0].levels, self.limits[1].levels
        row, column = arm // L, arm % L
        begin_phase(self, (tag >> 1) & 7)
        at.side = side_of(tag)
        if at.side == 0:
            at.place = after(self.rows, 0, at.rows, row)
            at.row, at.column = min(max(tag >> 4, 0), K - 1), column
        else:
            at.place, at.row = after(self.columns, 0, at.columns, column), row

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Add the reward to two processes, and let them eliminate."""
        at, K, L = self.at[0], self.limits[0].levels, self.limits[1].levels
        row = row_of(arm, at.magic, L)
        column = arm - row * L
        at.reported += 1
        if side_of(tag) == 0:
            for process in (column, L):
                self.row_sums[process, row] += reward
                self.row_counts[process, row] += 1
                if self.row_counts[process, row] >= self.row_lengths[process]:
                    look_at_rows(self, process)
        else:
            for process in (row, K):
                self.column_sums[process, column] += reward
                self.column_counts[process, column] += 1
                if self.column_counts[process, column] >= self.column_lengths[process]:
                    look_at_columns(self, process)

    def best(self) -> int:
        """The remaining row and column with the largest means over all partners.

        Before the first look of a phase, the column is that of the previous phase.
        """
        at, K, L = self.at[0], int(self.limits[0].levels), int(self.limits[1].levels)
        row = largest_mean(self.row_sums[L], self.row_counts[L], self.rows, at.rows)
        column = int(at.leader)
        if column < 0 or self.column_stages[K] > 0:
            sums, counts = self.column_sums[K], self.column_counts[K]
            column = largest_mean(sums, counts, self.columns, at.columns)
        return int(row) * L + int(column)


@jit
def phase_of(t: int, phase: int) -> int:
    """The phase to which a round after t steps belongs."""
    while phase < LAST_PHASE and t > 2.0 ** (2.0**phase):
        phase += 1
    return phase


@jit
def begin_phase(state: Any, phase: int) -> None:
    """If the phase is later than the current one, restart all columns and their processes."""
    at = state.at[0]
    if phase <= at.phase or phase > LAST_PHASE:
        return
    K, L = state.limits[0].levels, state.limits[1].levels
    at.leader = largest_mean(
        state.column_sums[K], state.column_counts[K], state.columns, at.columns
    )
    at.phase = phase
    at.log_columns = math.log(2.0 ** (2.0**phase))
    at.columns = L
    for j in range(L):
        state.columns[j] = state.h_column[j] = j
        for process in range(K + 1):
            state.column_sums[process, j] = 0.0
            state.column_counts[process, j] = 0
    for process in range(K + 1):
        state.column_stages[process] = 0
        state.column_lengths[process] = stage_length(at.log_columns, 0)


@jit
def largest_mean(sums: Floats, counts: Ints, lines: Ints, count: int) -> int:
    """The remaining line with the largest mean; the first line if none was observed."""
    best, largest = lines[0], -1.0
    for k in range(count):
        line = lines[k]
        if counts[line] > 0 and sums[line] / counts[line] > largest:
            best, largest = line, sums[line] / counts[line]
    return best


@jit
def stage_length(log_T: float, stage: int) -> int:
    """⌈4·log T/D²⌉."""
    return max(1, math.ceil(4.0 * log_T * 4.0**stage))


@apart
def look_at_rows(state: Any, process: int) -> None:
    """Let a process eliminate rows, if it is time."""
    at = state.at[0]
    last = state.rows[at.place - 1] if at.side == 0 and at.place > 0 else -1
    at.rows = look(
        state.row_sums[process], state.row_counts[process], state.row_stages, state.row_lengths,
        process, at.log_rows, state.rows, at.rows, state.h_row,
    )  # fmt: skip
    if at.side == 0:
        at.place = after(state.rows, 0, at.rows, last)


@apart
def look_at_columns(state: Any, process: int) -> None:
    """Let a process eliminate columns, if it is time."""
    at = state.at[0]
    last = state.columns[at.place - 1] if at.side == 1 and at.place > 0 else -1
    at.columns = look(
        state.column_sums[process], state.column_counts[process], state.column_stages,
        state.column_lengths, process, at.log_columns, state.columns, at.columns, state.h_column,
    )  # fmt: skip
    if at.side == 1:
        at.place = after(state.columns, 0, at.columns, last)


@jit
def look(
    sums: Floats,
    counts: Ints,
    stages: Ints,
    lengths: Ints,
    process: int,
    log_T: float,
    lines: Ints,
    count: int,
    h: Ints,
) -> int:
    """Eliminate if all remaining lines have enough observations; repeat if they were late."""
    while True:
        length = lengths[process]
        for k in range(count - 1, -1, -1):  # the last one was played last
            if counts[lines[k]] < length:
                return count
        stages[process] += 1
        lengths[process] = stage_length(log_T, stages[process])
        radius = math.sqrt(log_T / length)
        best = largest_mean(sums, counts, lines, count)
        lower = sums[best] / counts[best] - radius
        for x in range(len(h)):
            # A line is eliminated with its representative, which is still among the remaining.
            if sums[h[x]] / counts[h[x]] + radius < lower:
                h[x] = best
        count = keep_own(lines, count, h)


def start_pair_elim(known: Known) -> PairElimState:
    """The state before the first step."""
    K, L = known.K, known.L
    at = np.zeros(1, AT)
    at[0].rows, at[0].columns, at[0].side, at[0].leader = K, L, BETWEEN, -1
    log_rows, log_columns = math.log(max(2, known.n)), math.log(2.0)
    at[0].log_rows, at[0].log_columns = log_rows, log_columns
    at[0].magic = row_magic(K, L)
    return PairElimState(
        limits=known.limits,
        at=at,
        rows=np.arange(K),
        columns=np.arange(L),
        h_row=np.arange(K),
        h_column=np.arange(L),
        row_sums=np.zeros((L + 1, K)),
        row_counts=np.zeros((L + 1, K), np.int64),
        row_stages=np.zeros(L + 1, np.int64),
        row_lengths=np.full(L + 1, stage_length(log_rows, 0)),
        column_sums=np.zeros((K + 1, L)),
        column_counts=np.zeros((K + 1, L), np.int64),
        column_stages=np.zeros(K + 1, np.int64),
        column_lengths=np.full(K + 1, stage_length(log_columns, 0)),
    )
