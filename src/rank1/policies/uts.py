"""UTS: unimodal Thompson sampling for rank-one bandits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import inlined, record
from rank1.errors import InputError, InputTypeError
from rank1.grid import MAX_KEPT
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
from rank1.policies.every_arm_once import (
    LATER,
    SHARED,
    BeginsWithAll,
    first_pull,
    mark_begun,
    note_first,
)
from rank1.policies.neighbours import gather
from rank1.tournament import leaves_of, put_second, start_tournament, tied_winner

__all__ = ["UTS"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT = record(
    *SHARED,
    "gamma",  # γ, or a number that no count reaches
    "first_round",  # 1 if every arm is played once first
    "home",  # see `neighbours`
)

# A pull's tag: whether it was its arm's first, then the uniform number for the Bernoulli trick,
# then MAX_KEPT plus the arm that was the leader.


@inlined
def make_tag(first: int, uniform: int, leader: int) -> int:
    """The tag of a pull."""
    return first + 2 * (uniform + ((MAX_KEPT + leader) << UNIFORM_BITS))


@inlined
def uniform_of(tag: int) -> int:
    """The uniform number, as `betas` uses it."""
    return (tag >> 1) & ((1 << UNIFORM_BITS) - 1)


@inlined
def leader_of(limits: Records, arm: int, tag: int) -> int:
    """The arm that led when this pull was chosen; the pull's own arm if the tag is invalid."""
    place = tag >> (1 + UNIFORM_BITS)
    if MAX_KEPT <= place < MAX_KEPT + limits[0].arms:
        return place - MAX_KEPT
    if len(limits) == 2 and place >= 0:  # from a log of version 0.1, which had only two sides
        L = limits[1].levels
        if place < L:  # the leader's column, if it was in the pull's row
            return arm - arm % L + place
        if place < L + limits[0].levels:  # otherwise L plus its row
            return (place - L) * L + arm % L
    return arm


class _Arrays(NamedTuple):
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
    begun: NDArray[np.bool_]  # arms whose first pull was issued
    slot: Ints
    top: Floats
    ties: Ints
    sums: Floats  # of rewards
    led: Ints  # ℓ: how often an arm has been the leader


class UTSState(_Arrays, BeginsWithAll):
    """Posteriors (see `betas`), the tournament of means, and the leader's `neighbours`."""

    caches = CACHES

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """Draws one number if leaders are tied, the samples, and one for the Bernoulli trick."""
        arm, first = -1, LATER
        if self.at[0].first_round == 1:
            arm, first = first_pull(self.at, self.begun)
        leader = arm
        if arm < 0:
            tied = self.ties[1]
            leader = tied_winner(self.top, self.ties, int(rng.random() * tied) if tied > 1 else 0)
            arm = leader if lead(self, leader) else largest(self, rng)
        return arm, make_tag(first, uniform_tag(rng), leader)

    def issued(self, arm: int, tag: int) -> None:
        """Record a first pull, or that the leader has led once more."""
        rounds = self.at[0].first_round == 1
        if not (rounds and note_first(self.at, self.begun, arm, tag)):
            lead(self, leader_of(self.limits, arm, tag))

    def load(self, arm: int, count: int, total: float) -> None:
        """Count the rewards."""
        if count > 0:
            mark_begun(self.at, self.begun, arm)
            load_counts(self, arm, count, total)
            learn(self, arm, count, total)

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Count a success with probability `reward`, and update the mean."""
        count(self, arm, is_success(uniform_of(tag), reward))
        learn(self, arm, 1, reward)

    def best(self) -> int:
        """The leader (the first, if tied). An arm without a report is never recommended."""
        reported = self.successes + self.failures > 0
        return int(np.where(reported, leaves_of(self.top, len(reported)), -math.inf).argmax())


@inlined
def learn(state: UTSState, arm: int, count: int, total: float) -> None:
    """Update the mean of an arm whose posterior is already updated."""
    state.at[0].reported += count
    state.sums[arm] += total
    mean = state.sums[arm] / (state.successes[arm] + state.failures[arm])
    put_second(state.top, state.ties, arm, mean)
    if state.slot[arm] >= 0:
        refresh(state, state.slot[arm])


@inlined
def lead(state: UTSState, leader: int) -> bool:
    """Count that this arm leads. True if it is to be played; otherwise its neighbours compete."""
    state.led[leader] += 1
    if state.led[leader] % state.at[0].gamma == 0:
        return True
    if leader != state.at[0].home:
        gather(state.limits, state.at, state.arms, state.slot, leader)
        restart(state)
    return False


@dataclass(frozen=True)
class UTS(Policy):
    """Thompson sampling among the leader and its neighbours, the arms with one level changed.

    Plays every arm once. Then the leader is the arm with the largest average reward, with ties
    broken at random. An arm is played every γ-th time that it leads; otherwise the arm with the
    largest Beta sample among the leader and its neighbours is played (with two sides: its row and
    its column). A reward between 0 and 1 counts for the Beta posterior as a success with that
    probability.

    Parameters
    ----------
    gamma
        γ, at least 2; inf: the leader is never played just for leading.
    first_round
        Whether to play every arm once first. Otherwise an arm without a reward has mean 0.

    Notes
    -----
    In a grid of rank one, if the factors of all sides but one are positive, an arm that isn't the
    best has a better neighbour. If two sides have factors of 0, an arm with both has only
    neighbours of mean 0, and the best arm may not be found.

    Only samples that can win are drawn, see `rank1.policies.betas`, and a tournament finds the
    leader, so a step costs little more than half a Beta sample on any grid; choices have exactly
    the same law as with all samples.

    A neighbour of the leader whose reward is still pending has the posterior Beta(1, 1); it can't
    be the leader.

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
    layout = 3
    gamma: float = 2
    first_round: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.gamma, str | float) and str(self.gamma) == "inf":  # a string in JSON
            object.__setattr__(self, "gamma", math.inf)
        else:
            try:
                checks.integer("gamma", self.gamma, 2)
            except (InputError, InputTypeError) as error:
                error.expected += ", or inf"
                raise
        checks.boolean("first_round", self.first_round)

    def first_pulls(self, arms: int) -> int:
        """Every arm once."""
        return arms if self.first_round else 0

    def start(self, known: Known) -> UTSState:
        """The state before the first step."""
        self.check(known.grid)
        require_unit_rewards(self.name, known)
        arms = known.arms
        at = np.zeros(1, AT)
        at[0].gamma, at[0].home = min(self.gamma, 2**62), -1
        at[0].first_round = self.first_round
        top, ties = start_tournament(arms, -math.inf if self.first_round else 0.0)
        return UTSState(
            known.limits,
            **start_betas(arms, known.grid.cross + 1),
            at=at,
            begun=np.zeros(arms, np.bool_),
            slot=np.full(arms, -1),
            top=top,
            ties=ties,
            sums=np.zeros(arms),
            led=np.zeros(arms, np.int64),
        )
