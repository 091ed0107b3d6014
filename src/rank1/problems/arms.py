"""Bernoulli rewards arm by arm: products of any number of factors, or arbitrary means."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import inlined, jit
from rank1.errors import InputError, InputTypeError
from rank1.grid import MAX_KEPT, MAX_SIDES, Grid, product_text
from rank1.hypergeometric import hypergeometric
from rank1.problems.base import AxisPerSide, Floats, Problem

__all__ = ["ArmsLaw", "Means", "binomial", "draw_joint", "split_joint", "tally_joint"]


@jit
def binomial(count: int, p: float, rng: np.random.Generator) -> int:
    """Successes in `count` trials; p may lie outside [0, 1] by a rounding error."""
    if p <= 0.0:
        return 0
    if p >= 1.0:
        return count
    return rng.binomial(count, p)


@inlined
def draw_joint(
    p: float, best: float, joint: float, rng: np.random.Generator
) -> tuple[float, float]:
    """One pull of an arm that isn't the best: its reward, and the realised regret.

    Its mean is p, the best arm's is `best`, and both give 1 with probability `joint`. One uniform
    number picks among the outcomes (1, 1), (1, 0), (0, 1), (0, 0), placed side by side in [0, 1).
    """
    x = rng.random()
    reward = 1.0 if x < p else 0.0
    best_reward = 1.0 if x < (joint if x < p else p + best - joint) else 0.0
    return reward, best_reward - reward


@jit
def tally_joint(
    count: int, p: float, best: float, joint: float, rng: np.random.Generator, tally: Floats
) -> tuple[float, float]:
    """Many pulls at once: this arm's successes, then the best arm's given those.

    The tally is how many pulls cost 1, and how many gained 1. `joint` is negative if the two arms
    are independent: then it holds the successes of each arm, which are split separately.
    """
    ones = binomial(count, p, rng)
    if joint < 0.0:
        cost, gain = binomial(count, best, rng), ones
    else:
        cost, gain = 0, 0
        if ones > 0:
            gain = ones - binomial(ones, joint / p, rng)
        if ones < count:
            cost = binomial(count - ones, (best - joint) / (1.0 - p), rng)
    tally[0] = cost
    tally[1] = gain
    return float(ones), float(cost - gain)


@jit
def split_joint(
    count: int, part: int, independent: bool, rng: np.random.Generator, tally: Floats
) -> float:
    """Hypergeometric counts among the first `part` pulls."""
    cost, gain = int(tally[0]), int(tally[1])
    first = hypergeometric(count, cost, part, rng)
    if independent:
        gained = hypergeometric(count, gain, part, rng)
    else:  # a pull that costs 1 can't gain 1
        gained = hypergeometric(count - cost, gain, part - first, rng)
    tally[0] -= first
    tally[1] -= gained
    return float(first - gained)


class ArmsLaw(NamedTuple):
    """Bernoulli rewards by arm."""

    means: Floats  # of each arm
    joint: Floats  # P(this arm and the best one both give 1); −1 if they are independent
    best: int  # the best arm
    row_twin: NDArray[np.int64]
    column_twin: NDArray[np.int64]

    @property
    def tally_size(self) -> int:
        """Counts of costs and of gains."""
        return 2

    def gap(self, arm: int) -> float:
        """Mean of the best arm minus that of this one."""
        return self.means[self.best] - self.means[arm]

    def draw(self, arm: int, rng: np.random.Generator) -> tuple[float, float]:
        """One uniform number picks among the outcomes of (this arm, best arm)."""
        p, best, joint = self.means[arm], self.means[self.best], self.joint[arm]
        if arm == self.best:
            return (1.0 if rng.random() < p else 0.0), 0.0
        return draw_joint(p, best, joint if joint >= 0.0 else p * best, rng)

    def tally(
        self, arm: int, count: int, rng: np.random.Generator, tally: Floats
    ) -> tuple[float, float]:
        """Binomial sums."""
        p = self.means[arm]
        if arm == self.best:
            tally[0] = tally[1] = 0.0
            return float(binomial(count, p, rng)), 0.0
        return tally_joint(count, p, self.means[self.best], self.joint[arm], rng, tally)

    def split(
        self, arm: int, count: int, part: int, rng: np.random.Generator, tally: Floats
    ) -> float:
        """Hypergeometric counts."""
        return split_joint(count, part, self.joint[arm] < 0.0, rng, tally)


def arms_law(means: Floats, joint: Floats, best: int) -> ArmsLaw:
    """The law of a grid, from arrays with one axis per side."""
    lines = [np.arange(size) for size in means.shape] if means.ndim == 2 else [_NONE, _NONE]
    return ArmsLaw(means.flatten(), joint.ravel(), best, *lines)


_NONE = np.empty(0, np.int64)


class Means(Problem):
    """Bernoulli rewards with arbitrary means, on a grid of any shape, not necessarily of rank one.

    Parameters
    ----------
    means
        Probabilities of success, with one axis per side.

    Examples
    --------
    >>> import rank1
    >>> odd = rank1.Means([[0.5, 0.1], [0.1, 0.52]])
    >>> odd.best_pair, odd.grid.sizes
    ((1, 1), (2, 2))
    """

    binary = True

    def __init__(self, means: AxisPerSide) -> None:
        self.means = _probabilities(means)

    @cached_property
    def description(self) -> dict[str, Any]:  # type: ignore[override]
        """The means as plain values; computed lazily, because it may be large."""
        return {"name": "means", "settings": {"means": self.means.tolist()}}

    @cached_property
    def law(self) -> ArmsLaw:
        """The compiled form of the problem; arms are independent."""
        return arms_law(self.means, np.full(self.means.shape, -1.0), self.best_arm)


def _probabilities(means: AxisPerSide) -> Floats:
    expected = "an array of probabilities with one axis per side"
    try:
        grid = np.array(means, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError("means", means, expected, "are the lists of equal length?") from None
    if grid.ndim == 0 or grid.ndim > MAX_SIDES:
        raise InputError("means", means, f"{expected}, 1 to {MAX_SIDES}", got=f"{grid.ndim} axes")
    Grid(grid.shape)  # rejects a side without levels
    if grid.size > MAX_KEPT:
        raise InputError("means", means, f"at most {MAX_KEPT:,} numbers", got=f"{grid.size:,}")
    bad = ~((grid >= 0) & (grid <= 1))  # catches NaN too
    if bad.any():
        at = [int(k) for k in np.unravel_index(int(bad.argmax()), grid.shape)]
        raise InputError(f"means{at}", float(grid[tuple(at)]), "a number in [0, 1]")
    grid.setflags(write=False)
    return grid


def checked_factors(name: str, factors: Sequence[ArrayLike]) -> list[Floats]:
    """The factors of each side as vectors, for at most 2²⁰ arms unless there are two sides.

    >>> checked_factors("factors", [[0.8, 0.6], [1.7]])
    Traceback (most recent call last):
    ...
    rank1.InputError: factors[1][0] must be a number in [0, 1], got 1.7
    """
    if isinstance(factors, str | bytes | dict) or not hasattr(factors, "__len__"):
        raise InputTypeError(name, factors, "a list of factors for each side")
    if not 1 <= len(factors) <= MAX_SIDES:
        expected = f"lists of factors for 1 to {MAX_SIDES} sides"
        raise InputError(name, factors, expected, got=f"{len(factors)} of them")
    found = [checks.vector(f"{name}[{side}]", values) for side, values in enumerate(factors)]
    grid = Grid([len(side) for side in found])
    if len(found) != 2 and grid.arms > MAX_KEPT:
        got = f"{grid.arms:,} ({product_text(grid.sizes)})"
        raise InputError(name, factors, f"few enough for {MAX_KEPT:,} arms", got=got)
    return found
