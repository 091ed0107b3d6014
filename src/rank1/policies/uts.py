"""UTS: unimodal Thompson sampling for rank-one bandits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import inlined, jit, record
from rank1.errors import InputError, InputTypeError
from rank1.policies.base import Known, Policy, Records, require_unit_rewards
from rank1.policies.betas import (
    CACHES,
    UNIFORM_BITS,
    count,
    is_success,
    largest,
    load_counts,
    refresh,
    restart,
    start_betas,
    uniform_tag,
)
from rank1.policies.every_pair_once import (
    LATER,
    SHARED,
    first_pulls,
    issue_again,
    mark_begun,
    note_first,
)
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

# A pull's tag: whether it was its pair's first, then the uniform number for the Bernoulli trick,
# then who was the leader: its column if it was in the pull's row, else L and its row.
LEADER_BITS = 62 - UNIFORM_BITS


@inlined
def make_tag(first: int, uniform: int, leader: int) -> int:
    """The tag of a pull."""
    return first + 2 * (uniform + (leader << UNIFORM_BITS))


@inlined
def first_of(tag: int) -> int:
    """1 for a pair's first pull, as in `every_pair_once`."""
    return tag & 1


@inlined
def uniform_of(tag: int) -> int:
    """The uniform number, as `betas` knows it."""
    return (tag >> 1) & ((1 << UNIFORM_BITS) - 1)


@inlined
def leader_of(state: Any, row: int, column: int, tag: int) -> int:
    """The pair that led when this pull was chosen; itself, if the tag makes no sense."""
    place, L = tag >> (1 + UNIFORM_BITS), state.limits[0].L
    if 0 <= place < L:
        return row * L + place
    if L <= place < L + state.limits[0].K:
        return (place - L) * L + column
    return row * L + column


class UTSState(NamedTuple):
    """Posteriors, means and leaders; see `betas` and `unimodal`.

    Slots 0 … L − 1 have the pairs of the leader's row, slots L … L + K − 1 the other pairs of its
    column; the leader's own slot among the latter is empty.
    """

    limits: Records  # see `Known.limits`
    successes: Ints
    failures: Ints
    log_beta: Floats
    rest: Floats
    arms: Ints
    rates: Floats
    block_rates: Floats
    level: Records
    at: Records  # see `AT`
    begun: NDArray[np.bool_]  # pairs whose first pull was issued
    top: Floats
    ties: Ints
    sums: Floats  # of rewards
    led: Ints  # ℓ: how often a pair has been the leader

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        """Random numbers: one if leaders are tied, the samples, one for the Bernoulli trick."""
        k, first = -1, LATER
        if self.at[0].first_round == 1:
            k, first = first_pulls(self.at, self.begun)
        leader = k
        if k < 0:
            leader = next_leader(self, rng)
            k = leader if lead(self, leader) else largest(self, rng)
        L = self.limits[0].L
        row = k // L
        column = k - row * L
        place = leader - row * L  # in the pull's row?
        if k != leader and not 0 <= place < L:
            place = L + leader // L
        return row, column, make_tag(first, uniform_tag(rng), place)

    def issued(self, row: int, column: int, tag: int) -> None:
        """A first pull is noted; for any other the leader has led once more."""
        k = row * self.limits[0].L + column
        rounds = self.at[0].first_round == 1
        if not (rounds and note_first(self.at, self.begun, k, first_of(tag))):
            lead(self, leader_of(self, row, column, tag))

    def load(self, row: int, column: int, count: int, total: float) -> None:
        """So many rewards are known of the pair."""
        if count > 0:
            at, L = self.at[0], self.limits[0].L
            k = row * L + column
            mark_begun(self.at, self.begun, k)
            at.reported += count
            load_counts(self, k, count, total)
            self.sums[k] += total
            report_mean(self, k, self.sums[k] / (self.successes[k] + self.failures[k]))
            if row == at.row:
                refresh(self, column)
            elif column == at.column:
                refresh(self, L + row)

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
        issue_again(self.at, self.begun, pair, first_of(tag))
        return self

    def best(self) -> tuple[int, int]:
        """The leader; of several, the first. A pair with no report isn't recommended."""
        reported = self.successes + self.failures > 0
        row, column = divmod(best_reported(self, reported), int(self.limits[0].L))
        return row, column


@inlined
def next_leader(state: UTSState, rng: np.random.Generator) -> int:
    """The pair of the largest mean, ties at random."""
    tied = state.ties[1]
    place = int(rng.random() * tied) if tied > 1 else 0
    return tied_leader(state.top, state.ties, place)


@inlined
def lead(state: UTSState, leader: int) -> bool:
    """This pair leads once more. True if it is to be played, else its row and column compete."""
    state.led[leader] += 1
    at, columns = state.at[0], state.limits[0].L
    if state.led[leader] % at.gamma == 0:
        return True
    row = leader // columns
    column = leader - row * columns
    if row != at.row or column != at.column:
        at.row, at.column = row, column
        gather(state.arms, state.limits[0].K, columns, row, column)
        restart(state)
    return False


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
    sampling. ALT 2020. https://arxiv.org/abs/1912.03074
    """

    name = "uts"
    every_pair_first = True
    layout = 2
    counts = True
    caches = CACHES
    later: ClassVar[tuple[str, ...]] = ("first_round",)
    gamma: float = 2
    first_round: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.gamma, str | float) and str(self.gamma) == "inf":  # a text in JSON
            object.__setattr__(self, "gamma", math.inf)
        else:
            try:
                checks.integer("gamma", self.gamma, 2)
            except (InputError, InputTypeError) as error:
                raise type(error)(f"{error}, or inf") from None
        checks.boolean("first_round", self.first_round)

    def start(self, known: Known) -> UTSState:
        """The state before the first step."""
        require_unit_rewards(self.name, known)
        if known.K + known.L >= 1 << LEADER_BITS:
            raise InputError(
                f"K + L must be below {1 << LEADER_BITS:,} for {self.name}, "
                f"got {known.K + known.L:,}"
            )
        pairs = known.K * known.L
        at = np.zeros(1, AT)
        at[0].gamma, at[0].row, at[0].column = min(self.gamma, 2**62), -1, -1
        at[0].first_round = self.first_round
        return UTSState(
            known.limits,
            **start_betas(pairs, known.K + known.L),
            at=at,
            begun=np.zeros(pairs, np.bool_),
            **start_unimodal(pairs, mean=-math.inf if self.first_round else 0.0),
            sums=np.zeros(pairs),
            led=np.zeros(pairs, np.int64),
        )
