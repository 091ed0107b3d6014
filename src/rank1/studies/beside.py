"""Compare arms with the leader's arm by their own rewards, without assumptions about the grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Beside", "beside"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Beside(NamedTuple):
    """Rewards of each arm, and of the leader's arm beside it: numbers and sums.

    They are effective numbers: as many rewards of one version would be as informative.
    """

    counts: Floats
    sums: Floats
    leader_counts: Floats
    leader_sums: Floats


def beside(version: Ints, arm: Ints, pulls: Floats, won: Floats, leader: int, arms: int) -> Beside:
    """Compare each of `arms` arms with the leader's, within the versions that drew both.

    An arm's share changes from version to version. If means rise or fall meanwhile, averages over
    all versions differ although the arms don't; within a version, both are drawn at the same times.
    The weights of the versions are those of Mantel and Haenszel.

    >>> version, arm = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> found = beside(version, arm, np.array([90.0, 90, 360, 45]), np.array([9.0, 9, 180, 22.5]), 0, 2)
    >>> [float((x / n)[1].round(3)) for n, x in (found[:2], found[2:])]
    [0.288, 0.288]
    """  # noqa: E501
    versions, place = np.unique(version, return_inverse=True)
    pairs, at = np.unique(place * arms + arm, return_inverse=True)
    number, total = np.bincount(at, pulls, len(pairs)), np.bincount(at, won, len(pairs))
    place, arm = np.divmod(pairs, arms)
    is_leader = arm == leader
    own_number, own_mean = np.zeros((2, len(versions)))
    own_number[place[is_leader]] = number[is_leader]
    own_mean[place[is_leader]] = total[is_leader] / number[is_leader]
    others, means = own_number[place], own_mean[place]
    some = others > 0
    arm, others, means = arm[some], others[some], means[some]
    number, total = number[some], total[some]
    weight = number * others / (number + others)

    def summed(terms: Floats) -> Floats:
        return np.bincount(arm, terms, arms).astype(np.float64)

    all_weights = summed(weight)
    with np.errstate(invalid="ignore"):
        counts, own_counts = (
            np.nan_to_num(all_weights**2 / summed(weight**2 / n)) for n in (number, others)
        )
        mean, own = (
            np.nan_to_num(summed(weight * x) / all_weights) for x in (total / number, means)
        )
    return Beside(counts, counts * mean, own_counts, own_counts * own)
