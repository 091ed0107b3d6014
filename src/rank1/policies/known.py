"""What a policy knows before the first step."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import record
from rank1.errors import InputError
from rank1.grid import Grid, two_sides

__all__ = ["Known", "Records", "Truth", "require_truth", "require_unit_rewards"]

#: An array of records, whose entries have names; see `rank1.compiled.record`.
Records = NDArray[Any]

LIMITS = record("levels", "stride", "arms", "n", low=float, high=float, sigma=float)


class Truth(NamedTuple):
    """Facts about a problem that only a simulation knows; for policies with `needs_truth`."""

    best_arm: int
    #: Mean reward of the worst arm.
    lowest_mean: float


@dataclasses.dataclass(frozen=True)
class Known:
    """What a policy knows before the first step.

    Parameters
    ----------
    K, L
        Numbers of rows and columns, for a grid of two sides.
    n
        The horizon: the planned number of steps.
    low, high
        The smallest and the largest possible reward; infinite if rewards are unbounded.
    sigma
        Standard deviation of unbounded noise.
    truth
        What only a simulation knows, for policies that declare `needs_truth`; otherwise None.
    sides
        The number of levels of each side, or a `Grid`, instead of K and L.

    Examples
    --------
    >>> Known(K=2, L=3, n=1000).arms, Known(sides=(5, 5, 5), n=1000).arms
    (6, 125)
    >>> Known(K=0, L=3, n=1000)
    Traceback (most recent call last):
    ...
    rank1.InputError: K must be a whole number of at least 1, got 0
    """

    grid: Grid
    n: int
    low: float
    high: float
    sigma: float
    truth: Truth | None

    def __init__(
        self,
        K: int | None = None,
        L: int | None = None,
        n: int = 0,
        low: float = 0.0,
        high: float = 1.0,
        sigma: float = 0.0,
        truth: Truth | None = None,
        *,
        sides: Grid | Iterable[int] | None = None,
    ) -> None:
        if sides is None:
            sides = (checks.integer("K", K, 1), checks.integer("L", L, 1))
        elif K is not None or L is not None:
            raise InputError("sides", sides, "None if K and L are given")
        # Check here, because compiled code checks nothing.
        if not low <= high:  # catches NaN too
            raise InputError("low", low, f"at most high, which is {high}")
        values = {
            "grid": sides if isinstance(sides, Grid) else Grid(sides),
            "n": checks.integer("n", n, 1),
            "low": low,
            "high": high,
            "sigma": checks.number("sigma", sigma, 0),
            "truth": truth,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.grid.arms

    @property
    def K(self) -> int:
        """Number of rows of a grid of two sides."""
        return two_sides(self.grid.sizes)[0]

    @property
    def L(self) -> int:
        """Number of columns of a grid of two sides."""
        return two_sides(self.grid.sizes)[1]

    @property
    def limits(self) -> Records:
        """Everything except the truth, for the field `limits` that every state has.

        One record per side, with its `levels` and `stride`; `arms`, `n`, `low`, `high` and
        `sigma` are the same in every record.
        """
        more = self.arms, self.n, self.low, self.high, self.sigma
        sides = zip(self.grid.sizes, self.grid.strides, strict=True)
        return np.array([(*side, *more) for side in sides], LIMITS)

    @classmethod
    def of_limits(cls, limits: Records, truth: Truth | None = None) -> Known:
        """Rebuild a `Known` from the field `limits` of a state.

        >>> Known.of_limits(Known(sides=(2, 3, 4), n=10).limits).grid
        Grid(sizes=(2, 3, 4), names=None, labels=None)
        """
        _, _, _, n, low, high, sigma = limits[0].item()
        sizes = [int(side.levels) for side in limits]
        return cls(n=n, low=low, high=high, sigma=sigma, truth=truth, sides=sizes)


def require_truth(policy: str, known: Known) -> Truth:
    """Return the truth, or raise an error that names the policy that needs it.

    >>> require_truth("oracle", Known(K=2, L=2, n=10))
    Traceback (most recent call last):
    ...
    rank1.InputError: truth must be known for oracle, got None: only a simulation knows it
    """
    if known.truth is None:
        raise InputError("truth", None, f"known for {policy}", "only a simulation knows it")
    return known.truth


def require_unit_rewards(policy: str, known: Known) -> None:
    """Reject a problem whose rewards may lie outside [0, 1].

    >>> require_unit_rewards("uts", Known(K=2, L=2, n=10, low=0.0, high=5.0))
    Traceback (most recent call last):
    ...
    rank1.InputError: rewards must be in [0, 1] for uts, got [0, 5]: scale them, or use a policy for any noise, such as rank1elim
    """  # noqa: E501
    if known.low < 0 or known.high > 1:
        raise InputError(
            "rewards",
            (known.low, known.high),
            f"in [0, 1] for {policy}",
            "scale them, or use a policy for any noise, such as rank1elim",
            got=f"[{known.low:g}, {known.high:g}]",
        )
