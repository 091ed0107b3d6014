"""Policies that learn only the average reward of each arm."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit, record
from rank1.errors import InputTypeError
from rank1.policies.base import Policy, Simple, State
from rank1.policies.known import Known, Records

__all__ = ["Averages", "AveragesPolicy", "AveragesState", "largest_average"]


@jit
def largest_average(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> int:
    """The first arm with the largest average; 0 for an arm without rewards. For `choose`."""
    arm, largest = 0, -np.inf
    for k in range(len(counts)):
        average = sums[k] / max(counts[k], 1)
        if average > largest:
            arm, largest = k, average
    return arm


class Averages(Simple):
    """State methods for policies that learn the average reward of each arm.

    The state has the arrays `sums` and `counts`, with one entry per arm.
    """

    sums: NDArray[np.float64]
    counts: NDArray[np.int64]

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Count the reward."""
        self.sums[arm] += reward
        self.counts[arm] += 1

    def load(self, arm: int, count: int, total: float) -> None:
        """Count the rewards."""
        self.sums[arm] += total
        self.counts[arm] += count

    def best(self) -> int:
        """The arm with the largest average reward, among the arms that have one."""
        means = np.where(self.counts > 0, self.sums / np.maximum(self.counts, 1), -np.inf)
        return int(means.argmax())


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    settings: Records  # of the policy, by name
    sums: NDArray[np.float64]
    counts: NDArray[np.int64]


class AveragesState(_Arrays, Averages):
    """A state without `choose`, which the policy adds; `settings[0]` has its settings by name."""


@dataclasses.dataclass(frozen=True)
class AveragesPolicy(Policy):
    """A policy whose state is an `AveragesState` with a method `choose`."""

    state: ClassVar[Callable[..., State]]

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, Real):
                raise InputTypeError(name, value, "a number")

    def start(self, known: Known) -> State:
        """The state before the first step."""
        self.check(known.grid)
        numbers = {name: float(value) for name, value in vars(self).items()}
        settings = np.array([tuple(numbers.values())], record(**dict.fromkeys(numbers, float)))
        sums, counts = np.zeros(known.arms), np.zeros(known.arms, np.int64)
        return self.state(known.limits, settings, sums, counts)
