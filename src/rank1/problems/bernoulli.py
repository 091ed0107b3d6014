"""Bernoulli factors: the paper's model, its spike, and the two models that motivate it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import inlined
from rank1.errors import InputError, InputTypeError
from rank1.problems.arms import (
    ArmsLaw,
    arms_law,
    binomial,
    checked_factors,
    draw_joint,
    split_joint,
    tally_joint,
)
from rank1.problems.base import Floats, twins
from rank1.problems.rank_one import MAX_TABLE, RankOne
from rank1.rows import row_magic, row_of

__all__ = ["Bernoulli", "Campaign", "PositionBased", "Product", "spike"]

#: A larger side is surely a typo; vectors given in full may have any size.
MAX_SIDE = 2**24


@inlined
def joint_of(law: Any, row: int, column: int) -> float:
    """P(this pair and the best pair both give 1): a shared factor counts once."""
    p = law.u[law.best_row] * law.v[law.best_column]
    if row != law.best_row:
        p *= law.u[row]
    if column != law.best_column:
        p *= law.v[column]
    return p


class BernoulliLaw(NamedTuple):
    """Independent Bernoulli factors of two sides: a reward is 1 if both factors are."""

    u: Floats
    v: Floats
    table: Floats  # the mean and `joint_of` of each arm: (arms, 2); empty for many arms
    magic: int  # see `row_of`
    best_row: int
    best_column: int
    row_twin: NDArray[np.int64]
    column_twin: NDArray[np.int64]

    @property
    def tally_size(self) -> int:
        """Counts of costs and of gains."""
        return 2

    def gap(self, arm: int) -> float:
        """Mean of the best pair minus that of this one."""
        best = self.u[self.best_row] * self.v[self.best_column]
        if arm < len(self.table):
            return best - self.table[arm, 0]
        row = row_of(arm, self.magic, len(self.v))
        return best - self.u[row] * self.v[arm - row * len(self.v)]

    def draw(self, arm: int, rng: np.random.Generator) -> tuple[float, float]:
        """One uniform number picks among the four outcomes of (this pair, best pair)."""
        if arm < len(self.table):
            p, joint = self.table[arm, 0], self.table[arm, 1]
        else:
            row = row_of(arm, self.magic, len(self.v))
            column = arm - row * len(self.v)
            p, joint = self.u[row] * self.v[column], joint_of(self, row, column)
        if arm == self.best_row * len(self.v) + self.best_column:
            return (1.0 if rng.random() < p else 0.0), 0.0
        return draw_joint(p, self.u[self.best_row] * self.v[self.best_column], joint, rng)

    def tally(
        self, arm: int, count: int, rng: np.random.Generator, tally: Floats
    ) -> tuple[float, float]:
        """Binomial sums."""
        row = row_of(arm, self.magic, len(self.v))
        column = arm - row * len(self.v)
        p = self.u[row] * self.v[column]
        if row == self.best_row and column == self.best_column:
            tally[0] = tally[1] = 0.0
            return float(binomial(count, p, rng)), 0.0
        shared = row == self.best_row or column == self.best_column
        joint = joint_of(self, row, column) if shared else -1.0
        best = self.u[self.best_row] * self.v[self.best_column]
        return tally_joint(count, p, best, joint, rng, tally)

    def split(
        self, arm: int, count: int, part: int, rng: np.random.Generator, tally: Floats
    ) -> float:
        """Hypergeometric counts."""
        row = row_of(arm, self.magic, len(self.v))
        independent = row != self.best_row and arm - row * len(self.v) != self.best_column
        return split_joint(count, part, independent, rng, tally)


def _table(u: Floats, v: Floats, best_row: int, best_column: int) -> Floats:
    """`BernoulliLaw.table`: bit for bit the same numbers as from the factors."""
    if len(u) * len(v) > MAX_TABLE:
        return np.empty((0, 2))
    joint = np.full((len(u), len(v)), u[best_row] * v[best_column])
    joint[np.arange(len(u)) != best_row] *= u[np.arange(len(u)) != best_row, None]
    joint[:, np.arange(len(v)) != best_column] *= v[np.arange(len(v)) != best_column]
    return np.stack([np.outer(u, v).ravel(), joint.ravel()], axis=1)


class Product(RankOne):
    """Independent Bernoulli factors of any number of sides: a reward is 1 if all of them are.

    Parameters
    ----------
    factors
        Means of the factors in [0, 1], one list per side.

    Examples
    --------
    >>> import rank1
    >>> mvt = rank1.Product([[0.8, 0.6], [0.9, 0.7, 0.7], [0.5, 0.6, 0.8]])
    >>> mvt.grid.levels(mvt.best_arm), round(mvt.best_mean, 3)
    ((0, 0, 2), 0.576)
    """

    binary = True

    def __init__(self, factors: Sequence[ArrayLike]) -> None:
        self.factors = checked_factors("factors", factors)
        settings = {"factors": [side.tolist() for side in self.factors]}
        self.description = {"name": "product", "settings": settings}

    @cached_property
    def law(self) -> BernoulliLaw | ArmsLaw:
        """The compiled form of the problem."""
        if len(self.factors) == 2:
            row, column = self.best_pair
            lines = twins(self.u, row), twins(self.v, column)
            table, magic = _table(self.u, self.v, row, column), row_magic(self.K, self.L)
            return BernoulliLaw(self.u, self.v, table, magic, row, column, *lines)
        # One draw of a factor that an arm shares with the best arm serves both.
        best, joint = self.grid.levels(self.best_arm), np.ones(())
        for side, level in zip(self.factors, best, strict=True):
            own = side * side[level]
            own[level] = side[level]
            joint = np.multiply.outer(joint, own)
        apart = [np.arange(len(side)) != k for side, k in zip(self.factors, best, strict=True)]
        shares_none = np.array(True)
        for each in apart:
            shares_none = np.logical_and.outer(shares_none, each)
        return arms_law(self.means, np.where(shares_none, -1.0, joint), self.best_arm)


class Bernoulli(Product):
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
        self.factors = [checks.vector("u", u), checks.vector("v", v)]
        settings = {"u": self.u.tolist(), "v": self.v.tolist()}
        self.description = {"name": "bernoulli", "settings": settings}


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
                f"p_{side} + delta_{side}", p + delta, "at most 1", got=f"{p} + {delta}"
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
        Probability that each item (row) attracts.
    examination
        Probability that each position (column) is examined.

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
        Success probability of each segment (row) and channel (column), by label.

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
                expected = "a mapping from labels to probabilities, like {'email': 0.1}"
                raise InputTypeError(name, given, expected)
        super().__init__(
            checks.vector("segments", list(segments.values())),
            checks.vector("channels", list(channels.values())),
        )
        self.labels = [[str(label) for label in side] for side in (segments, channels)]
        settings = {
            name: dict(zip(labels, side.tolist(), strict=True))
            for name, labels, side in zip(
                ("segments", "channels"), self.labels, self.factors, strict=True
            )
        }
        self.description = {"name": "campaign", "settings": settings}

    @property
    def best_labels(self) -> tuple[str, str]:
        """Segment and channel of the best pair."""
        assert self.labels is not None
        row, column = self.best_pair
        return self.labels[0][row], self.labels[1][column]
