"""The exact shortcut for elimination policies: play whole stages at once.

Within a stage all pulls are independent of each other, and which pulls are made depends only on
the random columns and rows of its rounds. Over m rounds the columns are multinomial counts, and
the rewards of a pair that is pulled N times are one sum of N draws. So a stage costs as much time
as there are remaining pairs, however long it is.

The outcome of a stage is drawn as if there were no checkpoint before its end. Regret at checkpoints
within the stage is drawn afterwards, given its outcome, with a separate random generator: the
counts of partners in the rounds up to a checkpoint are hypergeometric, and a law splits what it
drew for a pair. So the end of a run doesn't depend on the checkpoints. See docs/exact-stages.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit, record
from rank1.grid import Grid
from rank1.hypergeometric import hypergeometric
from rank1.policies.base import Leaps, Records
from rank1.policies.elimination_stages import end_stages
from rank1.policies.step import gap, note, split, step, tally

__all__ = ["LEAPS", "Work", "after", "leap_stages"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Generator = np.random.Generator

#: A stage is cut into pieces at its checkpoints: some whole rounds, or the single round that a
#: checkpoint cuts. The part after the last checkpoint is no piece. A plan has one entry per piece;
#: its last two fields are a separate list.
PIECE = record(
    "rounds",  # the number of rounds
    "start",  # the first step of a round that is cut, otherwise -1
    "mark",  # the first checkpoint that isn't before it
    "free",  # rounds that have no partner yet
    "where",  # a piece that has rounds with the current partner
    "part",  # the number of those rounds
)


class Work(NamedTuple):
    """Where a leap records regret, as the loop does, and its work arrays: it can't allocate."""

    checkpoints: Ints
    curve: Floats  # zero before the run
    totals: Floats
    tallied: Floats  # what the law drew for a pair
    plan: Records  # see `PIECE`
    counts: Ints  # partners of the rounds, and work space
    more: Ints  # what another policy needs, see `room_for` there

    @classmethod
    def of(cls, law: Any, recorded: tuple[Ints, Floats, Floats], counts: Ints, more: Ints) -> Work:
        """Add a tally and a plan."""
        plan = np.empty(2 * len(recorded[0]), PIECE)
        return cls(*recorded, np.zeros(law.tally_size), plan, counts, more)


def room_for(law: Any, grid: Grid, *recorded: Any) -> Work:
    """The work arrays for the steps, the curve and the totals of a run."""
    longest = max(grid.sizes)
    return Work.of(law, recorded, np.empty((2, longest), np.int64), np.arange(longest))


def leap_stages(
    state: Any, law: Any, rng: Generator, splitter: Generator, n: int, until_done: bool, work: Any
) -> tuple[int, int]:
    """Play steps 0 to n, with the same law as the loop, for an elimination state.

    `rng` decides what happens; `splitter` decides only when it happens between the checkpoints of a
    stage. `work` is from `room_for`. These policies have no stopping rule.
    """
    checkpoints, curve, totals = work.checkpoints, work.curve, work.totals
    at, limits = state.at[0], state.limits
    t = mark = 0
    while t < n:
        size = at.rows + at.columns
        rounds = 0
        if at.side == 0 and at.place == 0:
            rounds = min(state.n_stage[at.stage] - at.rounds, (n - t) // size)
        if rounds == 0:  # the rest of a round
            inside, arm, _ = step(state, law, rng, limits[0].arms, totals)
            if not inside:
                return t, arm
            t += 1
        else:
            stage = at.stage
            end = t + rounds * size
            pieces, last = cut(t, size, end, mark, work)
            expected, realised = totals[0], totals[1]
            spread(rounds, state.h_column[stage], law.column_twin, work, rng)
            explore(
                limits[0], limits[1], 0, state.rows[: at.rows], state.C_row[stage], state.C_row[:0],
                rounds, pieces, last, law, rng, splitter, work,
            )  # fmt: skip
            spread(rounds, state.h_row[stage], law.row_twin, work, rng)
            explore(
                limits[1], limits[0], at.rows, state.columns[: at.columns], state.C_column[stage],
                state.C_column[:0], rounds, pieces, last, law, rng, splitter, work,
            )  # fmt: skip
            add_up(work, mark, last, expected, realised)
            mark = last
            t = end
            at.reported += rounds * size
            at.rounds += rounds
            if at.rounds == state.n_stage[stage]:
                at.issuing += 1
                end_stages(state)
        if t == checkpoints[mark]:
            note(curve, mark, totals)
            mark += 1
    return t, 0


LEAPS = Leaps(leap_stages, room_for)


@jit
def cut(t: int, size: int, end: int, mark: int, work: Any) -> tuple[int, int]:
    """Cut rounds of `size` pulls, from step t to `end`, at the checkpoints starting at `mark`.

    Returns the number of pieces, and the first checkpoint that isn't before the end.
    """
    checkpoints, plan = work.checkpoints, work.plan
    pieces = done = 0
    while checkpoints[mark] < end:
        whole = (checkpoints[mark] - t) // size
        if whole > done:
            plan[pieces].rounds = whole - done
            plan[pieces].start = -1
            plan[pieces].mark = mark
            pieces += 1
            done = whole
        # The previous checkpoint may have cut this round already.
        if done == whole and t + whole * size < checkpoints[mark]:
            plan[pieces].rounds = 1
            plan[pieces].start = t + whole * size
            plan[pieces].mark = mark
            pieces += 1
            done += 1
        mark += 1
    return pieces, mark


@jit
def spread(rounds: int, h: Ints, twin: Ints, work: Any, rng: Generator) -> None:
    """Count how often each line is the partner in `rounds` rounds; counts of twins are merged.

    The counts are in the first row of `work.counts`; the second is work space.
    """
    counts, weights = work.counts[0], work.counts[1]
    size = len(h)
    for k in range(size):
        counts[k] = 0
    if rounds <= size:
        for _ in range(rounds):
            counts[twin[h[int(rng.random() * size)]]] += 1
        return
    for k in range(size):
        weights[k] = 0
    for k in range(size):
        weights[twin[h[k]]] += 1
    # A multinomial, drawn as successive binomials.
    for k in range(size):
        if weights[k] == size:
            counts[k] = rounds
        elif weights[k] > 0:
            counts[k] = rng.binomial(rounds, weights[k] / size)
        rounds -= counts[k]
        size -= weights[k]
        if rounds == 0:
            return


@jit
def add_up(work: Any, mark: int, last: int, expected: float, realised: float) -> None:
    """Turn regret between checkpoints into regret at the checkpoints, plus the earlier regret."""
    curve, totals = work.curve, work.totals
    for k in range(mark, last):
        expected += curve[k, 0]
        realised += curve[k, 1]
        curve[k, 0] = min(expected, totals[0])  # they may differ in the last bit
        curve[k, 1] = realised


@jit
def explore(
    side: Any,
    other: Any,
    before: int,
    lines: Ints,
    sums: Floats,
    within: Floats,
    rounds: int,
    pieces: int,
    last: int,
    law: Any,
    rng: Generator,
    splitter: Generator,
    work: Any,
) -> None:
    """Draw the sums of exploring one side's lines over partners of the other, and split them.

    `side` and `other` are their records of `Known.limits`. `before` is the number of pulls in a
    round before those of this side. Rewards are added to `sums` by line and, unless it is empty, to
    `within` by partner and line. Regret between two checkpoints goes into `curve` at the second;
    regret after the checkpoint before `last` is only in `totals`.
    """
    counts, plan, curve, totals = work.counts[0], work.plan, work.curve, work.totals
    for k in range(pieces):
        plan[k].free = plan[k].rounds
    for partner in range(other.levels):
        count = counts[partner]
        if count == 0:
            continue
        parts = 0
        if pieces > 0:
            parts = place(count, rounds, pieces, plan, splitter)
            rounds -= count
        for place_, line in enumerate(lines):
            arm = line * side.stride + partner * other.stride
            loss = gap(law, arm)
            reward, regret = tally(law, arm, count, rng, work.tallied)
            sums[line] += reward
            if len(within) > 0:
                within[partner, line] += reward
            totals[0] += count * loss
            totals[1] += regret
            left = count
            for k in range(parts):
                part, piece = plan[k].part, plan[plan[k].where]
                regret = split(law, arm, left, part, splitter, work.tallied)
                left -= part
                mark = piece.mark
                if piece.start >= 0:
                    mark = after(work.checkpoints, mark, last, piece.start + before + place_)
                if mark < last:
                    curve[mark, 0] += part * loss
                    curve[mark, 1] += regret


@jit
def place(count: int, rounds: int, pieces: int, plan: Records, splitter: Generator) -> int:
    """Give this partner to `count` of the free rounds. Returns the number of pieces with any."""
    parts = 0
    for piece in range(pieces):
        if count == 0:
            break
        free = plan[piece].free
        part = hypergeometric(rounds, free, count, splitter)
        rounds -= free
        count -= part
        plan[piece].free -= part
        if part > 0:
            plan[parts].where = piece
            plan[parts].part = part
            parts += 1
    return parts


@jit
def after(ascending: Ints, low: int, high: int, t: int) -> int:
    """The first of the places `low` … `high` - 1 with a number above t; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] > t:
            high = middle
        else:
            low = middle + 1
    return low
