"""Elimination of rows and columns in stages: the state shared by Rank1Elim and Rank1ElimKL."""

from __future__ import annotations

from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import ready, record
from rank1.policies.base import Known, Records, Simple
from rank1.policies.elimination_stages import (
    advance,
    end_stages,
    is_eliminated,
    line_of,
    make_tag,
    round_of,
    side_of,
    stage_of,
    take_back,
)
from rank1.rows import row_magic

__all__ = ["EliminationState", "start_elimination"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: The position of an elimination policy: the record `EliminationState.at`.
AT = record(
    "stage",  # ℓ: the stage whose rewards are pending
    "issuing",  # the stage of the round being issued; larger than `stage` while rewards are late
    "rounds",  # rounds issued so far: each explores the rows once, then the columns
    "side",  # 0 while exploring rows, 1 while exploring columns
    "place",  # how many of the remaining lines this round has visited on this side
    "partner",  # the random column (row) over which this round explores the rows (columns), or -1
    "rows",  # |I_ℓ|
    "columns",  # |J_ℓ|
    "given_back",  # pulls that were given back and will be issued again
    "reported",  # rewards received
    "magic",  # see `row_of`
)

_NEVER = 2**60  # length of the last stage: no run of n steps reaches its end


class SideFacts(NamedTuple):
    """The rows, or the columns, in a stage that has ended."""

    #: h_ℓ: the line that represented each line.
    stands_for: Ints
    #: h_ℓ₊₁: the line that represents each line afterwards.
    after: Ints
    #: Confidence bounds of each line: (lines, 2); NaN if it was eliminated before.
    intervals: Floats


class StageFacts(NamedTuple):
    """A stage that has ended."""

    #: n_ℓ: observations of each line by its end.
    observations: int
    #: The number of rewards received by its end.
    step: int
    #: Rows and columns.
    sides: tuple[SideFacts, SideFacts]


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    rows: Ints  # I_ℓ, ascending; the first at.rows entries count
    columns: Ints  # J_ℓ, likewise
    h_row: Ints  # h_ℓ for rows: (stages, K)
    h_column: Ints  # h_ℓ for columns: (stages, L)
    C_row: Floats  # Σ_j C_ℓ(i, j) from exploring rows: (stages, K)
    C_column: Floats  # Σ_i C_ℓ(i, j) from exploring columns: (stages, L)
    n_stage: Ints  # n_ℓ
    width: Floats  # half the width of an interval, or what `interval` needs instead
    awaited: Ints  # pending pulls of each stage
    ended: Ints  # rewards received by the end of each stage; -1 before
    row_intervals: Floats  # L_ℓ and U_ℓ of rows: (stages, K, 2); NaN if eliminated
    column_intervals: Floats
    given_back: Ints  # (arm, tag) of each pull given back


class EliminationState(_Arrays, Simple):
    """The position of an elimination policy, and what happened at the ends of its stages.

    The paper's reward matrices C are only read through their row sums and column sums, so the state
    stores those. Arrays whose first axis is the stage hold the paper's quantities of stage ℓ.
    """

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """The next pull of the current round (lines 10 to 20 of Algorithm 1)."""
        at = self.at[0]
        if at.given_back > 0:
            at.given_back -= 1
            pull = self.given_back[at.given_back]
            return pull[0], pull[1]
        tag = make_tag(at.side, at.issuing, at.rounds)
        if at.side == 0:
            if at.partner < 0:
                h = self.h_column[at.stage]
                at.partner = h[int(rng.random() * len(h))]
            row, column = self.rows[at.place], at.partner
            advance(self, at.rows)
        else:
            if at.partner < 0:
                h = self.h_row[at.stage]
                at.partner = h[int(rng.random() * len(h))]
            row, column = at.partner, self.columns[at.place]
            advance(self, at.columns)
        return row * self.limits[1].levels + column, tag

    def issued(self, arm: int, tag: int) -> None:
        """Advance the round by this pull; if it doesn't fit in, only record it as pending."""
        at = self.at[0]
        if at.given_back > 0 and take_back(self, arm, tag):
            return
        line, partner = line_of(self, arm, side_of(tag)), line_of(self, arm, 1 - side_of(tag))
        lines, count = (self.rows, at.rows) if side_of(tag) == 0 else (self.columns, at.columns)
        fits = tag == make_tag(at.side, at.issuing, at.rounds) and lines[at.place] == line
        if fits and (at.partner < 0 or at.partner == partner):
            at.partner = partner
            advance(self, count)
        elif tag >= 0 and at.stage <= stage_of(tag) <= at.issuing:
            self.awaited[stage_of(tag)] += 1

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Add a reward to its line; end the stage if it was the last pending one."""
        stage = stage_of(tag)
        if side_of(tag) == 0:
            self.C_row[stage, line_of(self, arm, 0)] += reward
        else:
            self.C_column[stage, line_of(self, arm, 1)] += reward
        self.awaited[stage] -= 1
        self.at[0].reported += 1
        if self.awaited[stage] == 0 and stage == self.at[0].stage:
            end_stages(self)

    def expects(self, arm: int, tag: int) -> bool:
        """Whether the pull's stage has pending rewards: one report too many would break it."""
        at, stage = self.at[0], stage_of(tag)
        if tag < 0 or round_of(tag) > at.rounds or stage > at.issuing:
            return False
        return bool(self.awaited[stage] > 0)

    def forget(self, arm: int, tag: int) -> Self:
        """Issue the same pull again, before any other, unless its line is eliminated."""
        eliminated = is_eliminated(self, arm, tag)
        if eliminated:
            self.awaited[stage_of(tag)] -= 1
        ready(_end_stages, self)(self)  # a no-op unless eliminated, but `warm_up` needs the call
        if eliminated:
            return self
        waiting = int(self.at[0].given_back)
        state = self
        if waiting == len(self.given_back):
            room = np.zeros((max(16, 2 * waiting), 2), np.int64)
            room[:waiting] = self.given_back
            # The old state must not see a count that its smaller array doesn't hold.
            state = self._replace(given_back=room, at=self.at.copy())
        state.given_back[waiting] = arm, tag
        state.at[0].given_back += 1
        return state

    def best(self) -> int:
        """The remaining row and column with the largest sums so far.

        Sums order the lines like means: up to the current round and late rewards, all remaining
        lines have the same number of observations.
        """
        stage = self.at[0].stage
        rows, columns = self.rows[: self.at[0].rows], self.columns[: self.at[0].columns]
        row = int(rows[self.C_row[stage, rows].argmax()])
        return row * int(self.limits[1].levels) + int(
            columns[self.C_column[stage, columns].argmax()]
        )

    def history(self) -> list[StageFacts]:
        """What happened in each completed stage."""
        return [
            StageFacts(
                int(self.n_stage[stage]),
                int(self.ended[stage]),
                (
                    SideFacts(self.h_row[stage], self.h_row[stage + 1], self.row_intervals[stage]),
                    SideFacts(
                        self.h_column[stage],
                        self.h_column[stage + 1],
                        self.column_intervals[stage],
                    ),
                ),
            )
            for stage in range(self.at[0].stage)
        ]

    def interval(self, stage: int, mean: float, partners: int) -> tuple[float, float]:
        """Lower and upper confidence bound (lines 22 to 28) for this mean.

        `partners` is the number of cells in the line.
        """
        return mean - self.width[stage], mean + self.width[stage]


S = TypeVar("S", bound=EliminationState)


def _end_stages(state: Any) -> None:
    end_stages(state)


def start_elimination(kind: type[S], known: Known, n_stage: list[int], width: list[float]) -> S:
    """The state before the first step, for stages of the given lengths."""
    K, L = known.K, known.L
    # A round has at least two pulls, so a stage with 2·n_ℓ > n can't end within the horizon.
    lengths = [length for length in n_stage if 2 * length <= known.n]
    stages = len(lengths) + 1
    at = np.zeros(1, AT)
    at[0].rows, at[0].columns, at[0].partner, at[0].magic = K, L, -1, row_magic(K, L)
    return kind(
        limits=known.limits,
        at=at,
        rows=np.arange(K),
        columns=np.arange(L),
        h_row=np.tile(np.arange(K), (stages, 1)),
        h_column=np.tile(np.arange(L), (stages, 1)),
        C_row=np.zeros((stages, K)),
        C_column=np.zeros((stages, L)),
        n_stage=np.array([*lengths, _NEVER]),
        width=np.array(width[:stages]),
        awaited=np.zeros(stages, np.int64),
        ended=np.full(stages, -1),
        row_intervals=np.full((stages, K, 2), np.nan),
        column_intervals=np.full((stages, L, 2), np.nan),
        given_back=np.empty((0, 2), np.int64),
    )
