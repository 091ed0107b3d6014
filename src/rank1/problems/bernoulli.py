"""Bernoulli factors: the paper's model, its spike, and the two forms that motivate it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import jit
from rank1.errors import InputError, InputTypeError
from rank1.problems.base import Floats, twins
from rank1.problems.hypergeometric import hypergeometric
from rank1.problems.rank_one import RankOne

__all__ = ["Bernoulli", "Campaign", "PositionBased", "spike"]

#: A larger side is surely a slip of the pen; vectors given in full may be of any size.
MAX_SIDE = 2**24


@jit
def binomial(count: int, p: float, rng: np.random.Generator) -> int:
    """Successes in `count` trials; p may lie outside [0, 1] by a rounding error."""
    if p <= 0.0:
        return 0
    if p >= 1.0:
        return count
    return rng.binomial(count, p)


@jit
def both(law: Any, row: int, column: int) -> float:
    """P(this pair and the best pair both give 1): a factor that they share counts once."""
    p = law.u[law.best_row] * law.v[law.best_column]
    if row != law.best_row:
        p *= law.u[row]
    if column != law.best_column:
        p *= law.v[column]
    return p


class BernoulliLaw(NamedTuple):
    """Independent Bernoulli entries: a reward is 1 when both factors are."""

    u: Floats
    v: Floats
    best_row: int
    best_column: int
    row_twin: NDArray[np.int64]
    column_twin: NDArray[np.int64]

    @property
    def tally_size(self) -> int:
        """Counts of costs and of gains."""
        return 2

    def gap(self, row: int, column: int) -> float:
        """Mean of the best pair less that of this one."""
        return self.u[self.best_row] * self.v[self.best_column] - self.u[row] * self.v[column]

    def draw(self, row: int, column: int, rng: np.random.Generator) -> tuple[float, float]:
        """One uniform number picks among the four outcomes of (this pair, best pair)."""
        x = rng.random()
        p = self.u[row] * self.v[column]
        if row == self.best_row and column == self.best_column:
            return (1.0 if x < p else 0.0), 0.0
        # Side by side in [0, 1): (1, 1), (1, 0), (0, 1), (0, 0).
        joint = both(self, row, column)
        if x < p:
            return 1.0, (0.0 if x < joint else -1.0)
        best = self.u[self.best_row] * self.v[self.best_column]
        return 0.0, (1.0 if x < p + best - joint else 0.0)

    def tally(
        self, row: int, column: int, count: int, rng: np.random.Generator, tally: Floats
    ) -> tuple[float, float]:
        """Binomial sums: this pair's successes, then the best pair's given those.

        The tally is how many pulls cost 1, and how many gained 1. Where nothing is shared, the
        successes of the best pair and those of this one will do: each is split by itself.
        """
        p = self.u[row] * self.v[column]
        best = self.u[self.best_row] * self.v[self.best_column]
        ones = binomial(count, p, rng)
        if row == self.best_row and column == self.best_column:
            cost = gain = 0
        elif row != self.best_row and column != self.best_column:
            cost, gain = binomial(count, best, rng), ones
        else:
            joint = both(self, row, column)
            cost, gain = 0, 0
            if ones > 0:
                gain = ones - binomial(ones, joint / p, rng)
            if ones < count:
                cost = binomial(count - ones, (best - joint) / (1.0 - p), rng)
        tally[0] = cost
        tally[1] = gain
        return float(ones), float(cost - gain)

    def split(
        self,
        row: int,
        column: int,
        count: int,
        part: int,
        rng: np.random.Generator,
        tally: Floats,
    ) -> float:
        """Hypergeometric counts."""
        cost, gain = int(tally[0]), int(tally[1])
        first = hypergeometric(count, cost, part, rng)
        if row == self.best_row or column == self.best_column:
            # A pull that cost something didn't gain.
            gained = hypergeometric(count - cost, gain, part - first, rng)
        else:
            gained = hypergeometric(count, gain, part, rng)
        tally[0] -= first
        tally[1] -= gained
        return float(first - gained)


class Bernoulli(RankOne):
    """Independent Bernoulli factors: the reward of (i, j) is 1 with probability u[i]·v[j].

    Parameters
    ----------
    u, v
        Means of the row and of the column factors, each in [0, 1].

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.Bernoulli(u=[0.9, 0.5], v=[0.4, 0.8, 0.2])
    >>> problem.best_pair, round(problem.best_mean, 2)
    ((0, 1), 0.72)
    >>> round(problem.mu, 4)
    0.4667

    References
    ----------
    Katariya, Kveton, Szepesvári, Vernade, Wen: Stochastic Rank-1 Bandits. AISTATS 2017, section 2.
    https://arxiv.org/abs/1608.03023
    """

    def __init__(self, u: ArrayLike, v: ArrayLike) -> None:
        self.u = checks.vector("u", u)
        self.v = checks.vector("v", v)
        settings = {"u": self.u.tolist(), "v": self.v.tolist()}
        self.description = {"name": "bernoulli", "settings": settings}

    @cached_property
    def law(self) -> BernoulliLaw:
        """The compiled side of the problem."""
        row, column = self.best_pair
        return BernoulliLaw(self.u, self.v, row, column, twins(self.u, row), twins(self.v, column))


def spike(K: int, L: int, p_u: float, p_v: float, delta_u: float, delta_v: float) -> Bernoulli:
    """The paper's B_spike: one row and one column stand out.

    ū(i) = p_u + delta_u·1{i = 0} and v̄(j) = p_v + delta_v·1{j = 0}; the best pair is (0, 0).

    >>> import rank1
    >>> rank1.spike(K=3, L=2, p_u=0.7, p_v=0.5, delta_u=0.2, delta_v=0.1).u
    array([0.9, 0.7, 0.7])
    """
    K = checks.integer("K", K, 1, MAX_SIDE)
    L = checks.integer("L", L, 1, MAX_SIDE)
    sides = []
    for side, size, p, delta in (("u", K, p_u, delta_u), ("v", L, p_v, delta_v)):
        p = checks.number(f"p_{side}", p, 0, 1)
        delta = checks.number(f"delta_{side}", delta, 0, 1)
        if p + delta > 1 + 1e-12:
            raise InputError(
                f"p_{side} + delta_{side} is a probability and at most 1, got {p} + {delta}"
            )
        mean = np.full(size, p)
        mean[0] = min(p + delta, 1.0)
        sides.append(mean)
    problem = Bernoulli(*sides)
    problem.description = {
        "name": "spike",
        "settings": {
            "K": K, "L": L, "p_u": float(p_u), "p_v": float(p_v),
            "delta_u": float(delta_u), "delta_v": float(delta_v),
        },
    }  # fmt: skip
    return problem


class PositionBased(Bernoulli):
    """Which item, in which position? A click needs attraction and examination.

    Parameters
    ----------
    attraction
        Probability that each item attracts (rows).
    examination
        Probability that each position is looked at (columns).

    Examples
    --------
    >>> import rank1
    >>> rank1.PositionBased(attraction=[0.1, 0.4], examination=[0.9, 0.5]).best_pair
    (1, 0)

    References
    ----------
    Richardson, Dominowska, Ragno: Predicting clicks. WWW 2007.
    https://doi.org/10.1145/1242572.1242643
    """

    def __init__(self, attraction: ArrayLike, examination: ArrayLike) -> None:
        super().__init__(
            checks.vector("attraction", attraction), checks.vector("examination", examination)
        )
        settings = {"attraction": self.u.tolist(), "examination": self.v.tolist()}
        self.description = {"name": "position_based", "settings": settings}


class Campaign(Bernoulli):
    """Which population segment, through which channel? A conversion needs both to work.

    Parameters
    ----------
    segments, channels
        Success probability of each segment (rows) and channel (columns), by label.

    Examples
    --------
    >>> import rank1
    >>> campaign = rank1.Campaign({"18-24": 0.2, "25-34": 0.5}, {"email": 0.1, "push": 0.3})
    >>> campaign.best_labels
    ('25-34', 'push')
    """

    def __init__(self, segments: Mapping[str, float], channels: Mapping[str, float]) -> None:
        for name, given in (("segments", segments), ("channels", channels)):
            if not isinstance(given, Mapping):
                raise InputTypeError(
                    f"{name} must map labels to probabilities, like {{'email': 0.1}}, "
                    f"got {checks.shown(given)}"
                )
        super().__init__(
            checks.vector("segments", list(segments.values())),
            checks.vector("channels", list(channels.values())),
        )
        self.row_labels = [str(label) for label in segments]
        self.column_labels = [str(label) for label in channels]
        settings = {
            "segments": dict(zip(self.row_labels, self.u.tolist(), strict=True)),
            "channels": dict(zip(self.column_labels, self.v.tolist(), strict=True)),
        }
        self.description = {"name": "campaign", "settings": settings}

    @property
    def best_labels(self) -> tuple[str, str]:
        """Segment and channel of the best pair."""
        assert self.row_labels is not None
        assert self.column_labels is not None
        row, column = self.best_pair
        return self.row_labels[row], self.column_labels[column]
