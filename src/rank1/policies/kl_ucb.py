"""KL-UCB on all arms, solving only one or two equations per step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rank1 import checks
from rank1.compiled import inlined, record
from rank1.divergences import kl_level, kl_upper
from rank1.policies.averages import Averages
from rank1.policies.base import Known, require_unit_rewards
from rank1.policies.every_arm_once import (
    SHARED,
    BeginsWithAll,
    EveryArmOnce,
    first_pull,
    note_first,
)
from rank1.policies.kinetic import (
    Competing,
    next_above,
    put,
    refresh,
    root_of,
    start_competing,
)

__all__ = ["KLUCB"]

AT = record(
    *SHARED,
    "winner",  # the arm to play once every arm has been issued
    "settled",  # t when it was found
    c=float,  # the setting
    level=float,  # f
)

# `kl_upper` and the tangents made from it are accurate to about 1e-15: an arm whose tangent lies
# this far below an index has a smaller computed index.
MARGIN = 1e-12


class KLUCBState(Competing, BeginsWithAll, Averages):
    """Counts and sums of each arm, and the tournament of bounds on their indices.

    The index U(f) = max{q : T·kl(mean, q) ≤ f} is concave in the level f = log t + c·log log t,
    so it lies below each of its tangents. An arm's score in the tournament is the tangent at the
    level at which its index was last computed: an upper bound for all levels, and hardly above
    the index after few steps.
    """

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """Every arm once, then the arm with the largest index."""
        arm, tag = first_pull(self.at, self.begun)
        return settled(self) if arm < 0 else arm, tag

    def issued(self, arm: int, tag: int) -> None:
        """Record a first pull, or that the largest index was looked for."""
        if not note_first(self.at, self.begun, arm, tag):
            settled(self)

    def learn(self, arm: int, count: int, total: float) -> None:
        """Give the arm a new tangent."""
        at = self.at[0]
        at.reported += count
        self.counts[arm] += count
        self.sums[arm] += total
        at.level = kl_level(at.reported, at.c)
        put_tangent(self, arm, index_of(self, arm, at.level), at.level)


@inlined
def settled(state: KLUCBState) -> int:
    """The arm with the largest index; computed once after each report."""
    at = state.at[0]
    if at.settled != at.reported:
        at.settled = at.reported
        at.winner = largest_index(state, at.level)
    return at.winner


@inlined
def index_of(state: KLUCBState, arm: int, f: float) -> float:
    """The index of an arm at level f."""
    T = state.counts[arm]
    return kl_upper(min(state.sums[arm] / T, 1.0), f / T)


@inlined
def put_tangent(state: KLUCBState, arm: int, q: float, f: float) -> None:
    """Make the tangent to the arm's index, which is q at level f, its score."""
    T = state.counts[arm]
    mean = min(state.sums[arm] / T, 1.0)
    a, b = 1.0, 0.0  # no index is larger than 1
    if mean < q < 1.0:
        b = q * (1.0 - q) / (T * (q - mean))  # dU/df, from T·kl(mean, U) = f
        a = q - b * f
    put(state, arm, a, b, f, 0.0)


@inlined
def largest_index(state: KLUCBState, f: float) -> int:
    """The argmax of the indices at level f.

    Computes the index of the arm with the largest tangent, then of all arms whose tangents are not
    below it, which are rare. Arms with the same sum and count have the same index, whatever their
    tangents; and once an index is 1, no later arm can have a larger one.
    """
    counts, sums = state.counts, state.sums
    refresh(state, f, 0.0)
    best = state.winner[root_of(state)]
    largest = index_of(state, best, f)
    k = next_above(state, 0, f, largest - MARGIN)
    while k < len(counts) and not (largest >= 1.0 and k > best):
        if counts[k] == counts[best] and sums[k] == sums[best]:
            best = min(best, k)
        else:
            value = index_of(state, k, f)
            put_tangent(state, k, value, f)
            if value > largest or (value == largest and k < best):
                best, largest = k, value
        k = next_above(state, k + 1, f, largest - MARGIN)
    return best


@dataclass(frozen=True)
class KLUCB(EveryArmOnce):
    """Play every arm once, then the largest mean compatible with its rewards.

    The index of an arm is max{q : T·kl(mean, q) ≤ log t + c·log log t}, where kl is the divergence
    of Bernoulli laws, T the number of the arm's rewards and t the number of all rewards. Ties go to
    the lowest arm. The grid's structure is not used. Choices are those of the plain argmax.

    Parameters
    ----------
    c
        Factor of log log t. The analysis needs 3; 0 is better in practice.

    Notes
    -----
    If the level log t + c·log log t is undefined (t = 1) or negative (possible at t = 2), it is 0
    and an index is the mean. An arm whose mean is 1 has the index 1.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.KLUCB(), problem, n=20_000, runs=3, seed=1)
    >>> result.best_pairs("kl_ucb")
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Garivier, Cappé: The KL-UCB algorithm for bounded stochastic bandits and beyond. COLT 2011.
    https://arxiv.org/abs/1102.2490
    """

    name = "kl_ucb"
    layout = 3
    c: float = 3.0

    def __post_init__(self) -> None:
        checks.number("c", self.c, 0, 1e9)

    def start(self, known: Known) -> KLUCBState:
        """The state before the first step."""
        self.check(known.grid)
        require_unit_rewards(self.name, known)
        at = np.zeros(1, AT)
        at[0].c = self.c
        return KLUCBState(*start_competing(known, at))
