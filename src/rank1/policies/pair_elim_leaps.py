"""The exact shortcut for PairElim: play all rounds until the next look at once.

Rounds are independent until a process looks and eliminates. Which process looks next is random: a
column's process gets data only when the column is the partner. But no process can look before as
many rounds as it lacks observations. The smallest of these numbers of rounds can be drawn at once,
as in `stages`: counts of partners are multinomial, and the rewards of a pair are one sum. In such a
leap a process can only reach its look in the last round, so all looks come after the leap. Leaps
are short near a look; where they don't pay, rounds are played pull by pull.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit
from rank1.policies.base import Leaps
from rank1.policies.pair_elim_state import (
    BETWEEN,
    begin_phase,
    look_at_columns,
    look_at_rows,
    phase_of,
)
from rank1.policies.stages import add_up, cut, explore, room_for, spread
from rank1.policies.step import note, step

__all__ = ["LEAPS", "leap_rounds"]

Ints = NDArray[np.int64]
Generator = np.random.Generator

#: A leap of fewer rounds than this is played pull by pull.
WORTH = 4


def leap_rounds(
    state: Any, law: Any, rng: Generator, splitter: Generator, n: int, until_done: bool, work: Any
) -> tuple[int, int]:
    """Play steps 0 to n, with the same law as the loop, for a state of PairElim.

    The arguments are those of `stages.leap_stages`, with 0, 1, … instead of twins: a line can't be
    merged with its twin here, since each has its own process.
    """
    at, limits = state.at[0], state.limits
    K, L = limits[0].levels, limits[1].levels
    checkpoints, curve, totals = work.checkpoints, work.curve, work.totals
    counts, every = work.counts[0], work.more
    t = mark = 0
    while t < n:
        rounds = 0
        if at.side == 1 and at.place == at.columns:
            at.side = BETWEEN
        if at.side == BETWEEN:
            begin_phase(state, phase_of(at.reported, at.phase))
            size = at.rows + at.columns
            rounds = min(rounds_ahead(state, size), (n - t) // size)
        if rounds < WORTH:  # play a round, or the rest of one, pull by pull
            again = True
            while again and t < n:
                inside, arm, _ = step(state, law, rng, limits[0].arms, totals)
                if not inside:
                    return t, arm
                t += 1
                if t == checkpoints[mark]:
                    note(curve, mark, totals)
                    mark += 1
                again = at.side == 0 or at.place < at.columns
            continue
        end = t + rounds * size
        pieces, last = cut(t, size, end, mark, work)
        expected, realised = totals[0], totals[1]
        spread(rounds, state.h_column, every, work, rng)
        explore(
            limits[0], limits[1], 0, state.rows[: at.rows], state.row_sums[L], state.row_sums,
            rounds, pieces, last, law, rng, splitter, work,
        )  # fmt: skip
        add_counts(state.row_counts, rounds, counts, state.rows[: at.rows])
        spread(rounds, state.h_row, every, work, rng)
        explore(
            limits[1], limits[0], at.rows, state.columns[: at.columns], state.column_sums[K],
            state.column_sums, rounds, pieces, last, law, rng, splitter, work,
        )  # fmt: skip
        add_counts(state.column_counts, rounds, counts, state.columns[: at.columns])
        for process in range(L + 1):
            look_at_rows(state, process)
        for process in range(K + 1):
            look_at_columns(state, process)
        add_up(work, mark, last, expected, realised)
        mark = last
        t = end
        at.reported += rounds * size
        if t == checkpoints[mark]:
            note(curve, mark, totals)
            mark += 1
    return t, 0


LEAPS = Leaps(leap_rounds, room_for)


@jit
def rounds_ahead(state: Any, size: int) -> int:
    """The number of rounds until a process looks or a phase begins, both at a round's end."""
    at = state.at[0]
    rounds = min(
        lacking(state.row_counts, state.row_lengths, state.rows[0], state.columns, at.columns),
        lacking(state.column_counts, state.column_lengths, state.columns[0], state.rows, at.rows),
    )
    left = 2.0 ** (2.0**at.phase) - at.reported
    return min(rounds, int(left / size) + 1)


@jit
def lacking(counts: Ints, lengths: Ints, line: int, partners: Ints, count: int) -> int:
    """The smallest number of rounds until a process of one side has enough observations."""
    every = len(lengths) - 1
    least = lengths[every] - counts[every, line]
    for process in partners[:count]:
        least = min(least, lengths[process] - counts[process, line])
    return least


@jit
def add_counts(counts: Ints, rounds: int, partners: Ints, lines: Ints) -> None:
    """Add rounds to the counts; `partners` has the number of rounds with each partner."""
    every = len(counts) - 1
    for line in lines:
        counts[every, line] += rounds
        for process in range(every):
            counts[process, line] += partners[process]
