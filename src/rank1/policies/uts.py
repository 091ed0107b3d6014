"""UTS: unimodal Thompson sampling for rank-one bandits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import inlined, jit
from rank1.policies.base import Known, Policy, Records, record, require_unit_rewards
from rank1.policies.betas import (
    count,
    is_success,
    largest,
    refresh,
    restart,
    start_betas,
    uniform_tag,
)
from rank1.policies.every_pair_once import LATER, SHARED, first_pulls, issue_again
from rank1.policies.unimodal import best_reported, report_mean, start_unimodal, tied_leader

__all__ = ["UTS"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT = record(
    *SHARED,
    "gamma",  # γ, or what no count reaches
    "first_round",  # 1 if every pair is played once at first
    "row",  # row of the pair whose row and column are in the slots; −1 at first
    "column",  # its column
)

# A pull's tag: whether it was its pair's first, then the uniform number for the Bernoulli trick.


@inlined
def make_tag(first: int, uniform: int) -> int:
    """The tag of a pull."""
    return first + 2 * uniform


@inlined
def first_of(tag: int) -> int:
    """1 for a pair's first pull, as in `every_pair_once`."""
    return tag & 1


@inlined
def uniform_of(tag: int) -> int:
    """The uniform number, as `betas` knows it."""
    return tag >> 1


class UTSState(NamedTuple):
    """Posteriors, means and leaders; see `betas` and `unimodal`.

    Slots 0 … L − 1 have the pairs of the leader's row, slots L … L + K − 1 the other pairs of its
    column; the leader's own slot among the latter is empty.
    """

    limits: Records  # see `Known.limits`
    successes: Ints
    failures: Ints
    log_beta: Floats
    arms: Ints
    rates: Floats
    block_rates: Floats
    level: Records
    at: Records  # see `AT`
    issued: NDArray[np.bool_]
    top: Floats
    ties: Ints
    sums: Floats  # of rewards
    led: Ints  # ℓ: how often a pair has been the leader

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        """Random numbers: one if leaders are tied, the samples, one for the Bernoulli trick."""
        k, first = -1, LATER
        if self.at[0].first_round == 1:
            k, first = first_pulls(self.at, self.issued)
        if k < 0:
            k = play_leader(self, rng)
        L = self.limits[0].L
        row = k // L
        return row, k - row * L, make_tag(first, uniform_tag(rng))

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        """A success with probability `reward`, and a new mean."""
        at, L = self.at[0], self.limits[0].L
        k = row * L + column
        at.reported += 1
        count(self, k, is_success(uniform_of(tag), reward))
        self.sums[k] += reward
        report_mean(self, k, self.sums[k] / (self.successes[k] + self.failures[k]))
        if row == at.row:
            refresh(self, column)
        elif column == at.column:
            refresh(self, L + row)

    def expects(self, row: int, column: int, tag: int) -> bool:
        """Any pull may be reported."""
        return True

    def forget(self, row: int, column: int, tag: int) -> UTSState:
        """A pair's first pull is issued again; nothing else depends on the pull."""
        pair = row * int(self.limits[0].L) + column
        issue_again(self.at, self.issued, pair, first_of(tag))
        return self

    def best(self) -> tuple[int, int]:
        """The leader; of several, the first. A pair with no report isn't recommended."""
        reported = self.successes + self.failures > 0
        row, column = divmod(best_reported(self, reported), int(self.limits[0].L))
        return row, column


@inlined
def play_leader(state: UTSState, rng: np.random.Generator) -> int:
    """The leader, or the largest sample among it, its row and its column."""
    tied = state.ties[1]
    place = int(rng.random() * tied) if tied > 1 else 0
    leader = tied_leader(state.top, state.ties, place)
    state.led[leader] += 1
    at, columns = state.at[0], state.limits[0].L
    if state.led[leader] % at.gamma == 0:
        return leader
    row = leader // columns
    column = leader - row * columns
    if row != at.row or column != at.column:
        at.row, at.column = row, column
        gather(state.arms, state.limits[0].K, columns, row, column)
        restart(state)
    return largest(state, rng)


@jit
def gather(arms: Ints, rows: int, columns: int, row: int, column: int) -> None:
    """Put the pairs of this row and this column into the slots."""
    for j in range(columns):
        arms[j] = row * columns + j
    for i in range(rows):
        arms[columns + i] = i * columns + column if i != row else -1


@dataclass(frozen=True)
class UTS(Policy):
    """Thompson sampling among the pairs that share a row or a column with the leader.

    Every pair once; then the leader is the pair of the largest average reward, ties at random. Each
    γ-th time that a pair leads it is played itself, else the pair of the largest Beta sample among
    the leader, its row and its column: in a rank-one grid one of these is better than the leader
    unless the leader is best. A reward between 0 and 1 counts for the Beta posterior as a success
    with that probability.

    Parameters
    ----------
    gamma
        γ, at least 2; infinite if the leader is never played for leading alone.
    first_round
        Whether every pair is played once at first. Without, a pair that has no reward has mean 0.

    Notes
    -----
    Only samples that may win are drawn, see `rank1.policies.betas`, and the leader is found by a
    tournament, so that a step costs little more than half a Beta sample on any grid; the law of
    the choices is exactly that of drawing all K + L − 1.

    A pair of the leader's row or column whose reward is not reported yet has the posterior
    Beta(1, 1); it can't be the leader.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.UTS(), problem, n=100_000, runs=3, seed=1)
    >>> result.best_pairs("uts")
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Trinh, Kaufmann, Vernade, Combes: Solving Bernoulli rank-one bandits with unimodal Thompson
    sampling. ALT 2020.
    """

    name = "uts"
    layout = 2
    later: ClassVar[tuple[str, ...]] = ("first_round",)
    gamma: float = 2
    first_round: bool = True

    def __post_init__(self) -> None:
        if self.gamma in (math.inf, "inf"):  # as a text in JSON
            object.__setattr__(self, "gamma", math.inf)
        else:
            checks.integer("gamma", self.gamma, 2)
        checks.boolean("first_round", self.first_round)

    def start(self, known: Known) -> UTSState:
        """The state before the first step."""
        require_unit_rewards(self.name, known)
        pairs = known.K * known.L
        at = np.zeros(1, AT)
        at[0].gamma, at[0].row, at[0].column = min(self.gamma, 2**62), -1, -1
        at[0].first_round = self.first_round
        return UTSState(
            known.limits,
            **start_betas(pairs, known.K + known.L),
            at=at,
            issued=np.zeros(pairs, np.bool_),
            **start_unimodal(pairs, mean=-math.inf if self.first_round else 0.0),
            sums=np.zeros(pairs),
            led=np.zeros(pairs, np.int64),
        )
