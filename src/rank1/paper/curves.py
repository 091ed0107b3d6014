"""The shape of a regret curve: its slope at both ends, whether it is concave, and its power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1.simulation.result import Outcome
from rank1.statistics import mean_and_error

__all__ = ["EARLY", "LATE", "concave", "mark", "power_law", "slopes"]

#: The beginning ends at the first share of the steps, and the end begins at the second.
EARLY, LATE = 0.05, 0.75


def mark(steps: Sequence[int] | NDArray[np.int64], share: float) -> int:
    """The checkpoint at a share of the steps: the last one up to it, or the first.

    >>> mark([10, 20, 30, 40], 0.5), mark([10, 20, 30, 40], 0.6), mark([10, 20, 30, 40], 0.1)
    (1, 1, 0)
    """
    return max(0, int(np.searchsorted(steps, share * steps[-1], side="right")) - 1)


class PowerLaw(NamedTuple):
    """y = exp(constant)·x^exponent, with the scatter of log y around it."""

    exponent: float
    constant: float
    scatter: float
    #: The exponent is the sum of these times log y.
    weights: NDArray[np.float64]

    @property
    def se(self) -> float:
        """The exponent's standard error, by the scatter."""
        return self.scatter * float(np.linalg.norm(self.weights))


def power_law(x: ArrayLike, y: ArrayLike) -> PowerLaw:
    """Fit log y to log x by least squares."""
    x, y = np.log(x), np.log(y)
    centred = x - x.mean()
    weights = centred / (centred @ centred)
    exponent = float(weights @ y)
    residuals = y - y.mean() - exponent * centred
    scatter = math.sqrt(residuals @ residuals / max(1, len(x) - 2))
    return PowerLaw(exponent, float(y.mean() - exponent * x.mean()), scatter, weights)


def slopes(outcome: Outcome, steps: NDArray[np.int64]) -> dict[str, Any]:
    """Expected regret per step at the beginning and at the end, over the runs."""
    first, last = mark(steps, EARLY), mark(steps, LATE)
    early = outcome.expected[:, first] / steps[first]
    late = early  # with a single checkpoint there is only one slope
    if last < len(steps) - 1:
        late = (outcome.expected[:, -1] - outcome.expected[:, last]) / (steps[-1] - steps[last])
    return {
        "early": mean_and_error(early) | {"until": int(steps[first])},
        "late": mean_and_error(late) | {"from": int(steps[last])},
    }


def concave(outcome: Outcome, steps: NDArray[np.int64]) -> bool:
    """Whether no tenth of the steps is steeper than the one before, by three standard errors."""
    marks = sorted({0, *(1 + mark(steps, k / 10) for k in range(1, 11))})
    regret = np.insert(outcome.expected, 0, 0.0, axis=1)[:, marks]
    slope = np.diff(regret) / np.diff(np.insert(steps, 0, 0)[marks])
    rises = [mean_and_error(rise) for rise in np.diff(slope).T]
    return all((rise["mean"] or 0.0) <= 3 * (rise["se"] or 0.0) for rise in rises)
