"""The parts of a new version of the design: a fit of the factors, leaders, and shares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit

__all__ = ["FIRST_PASSES", "drop", "find_leaders", "fit_factors", "set_shares"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Records = NDArray[Any]

#: Prior successes of each level, at the rate of the whole side.
PRIOR = 2.0
#: Passes of the first fit; each later fit starts from the previous one.
FIRST_PASSES = 8
#: A living level's share is at least exp(−this) of the largest share of a level but the leader.
WIDEST = 50.0


@jit
def fit_factors(sides: Records, counts: Floats, sums: Floats, fit: Floats, room: Floats) -> None:
    """Do one pass of alternating ratios.

    The factor of level l of side d becomes (S_l + 2)/(Σ N_x·Π_{e≠d} f_e(x_e) + 2/g): `sums` has S
    of each level, `counts` has N of each arm, and g is the same ratio over all levels of the side.
    The last side's levels are adjacent in `counts`, so arms that differ only in that level are
    processed together.
    """
    last = len(sides) - 1
    begin_last, run = sides[last].begin, sides[last].levels
    for d in range(len(sides)):
        begin, levels = sides[d].begin, sides[d].levels
        for k in range(begin, begin + levels):
            room[k] = 0.0
        for arm in range(0, len(counts), run):
            product, level = 1.0, 0
            for e in range(last):
                place = arm // sides[e].stride % sides[e].levels
                if e == d:
                    level = place
                else:
                    product *= fit[sides[e].begin + place]
            if d == last:
                for k in range(run):
                    room[begin + k] += product * counts[arm + k]
            else:
                # Two sums, because with one, each addition would wait for the previous one.
                even = odd = 0.0
                for k in range(0, run - 1, 2):
                    even += counts[arm + k] * fit[begin_last + k]
                    odd += counts[arm + k + 1] * fit[begin_last + k + 1]
                if run % 2 == 1:
                    even += counts[arm + run - 1] * fit[begin_last + run - 1]
                room[begin + level] += product * (even + odd)
        exposure = total = 0.0
        for k in range(begin, begin + levels):
            exposure += room[k]
            total += sums[k]
        if exposure > 0.0:
            g = max(total, 0.5) / exposure
            for k in range(begin, begin + levels):
                fit[k] = (sums[k] + PRIOR) / (room[k] + PRIOR / g)


@jit
def drop(sides: Records, log_e: Floats, threshold: float, living: Bools) -> None:
    """Eliminate levels whose evidence reaches the threshold; a side keeps its last level."""
    for d in range(len(sides)):
        begin, end = sides[d].begin, sides[d].begin + sides[d].levels
        keeper, left = -1, 0
        for k in range(begin, end):
            if living[k]:
                if keeper < 0 or log_e[k] < log_e[keeper]:
                    keeper = k
                if log_e[k] >= threshold:
                    living[k] = False
                else:
                    left += 1
        if left == 0 and keeper >= 0:
            living[keeper] = True


@jit
def find_leaders(sides: Records, fit: Floats, living: Bools, leaders: Ints) -> None:
    """Find each side's leader: the first living level with the largest factor."""
    for d in range(len(sides)):
        begin, leader = sides[d].begin, -1
        for k in range(begin, begin + sides[d].levels):
            if living[k] and (leader < 0 or fit[k] > fit[leader]):
                leader = k
        leaders[d] = leader - begin


@jit
def set_shares(
    sides: Records, leaders: Ints, log_e: Floats, living: Bools, floor: float, shares: Floats
) -> None:
    """Give the leader 1/(1 + √(living − 1)), and others more the less evidence is against them."""
    for d in range(len(sides)):
        begin, levels = sides[d].begin, sides[d].levels
        leader, least, others = begin + leaders[d], math.inf, 0
        for k in range(begin, begin + levels):
            if living[k] and k != leader:
                least = min(least, log_e[k])
                others += 1
        total = 0.0
        for k in range(begin, begin + levels):
            shares[k] = 0.0
            if living[k] and k != leader:
                shares[k] = math.exp(max(least - log_e[k], -WIDEST))
                total += shares[k]
        own = 1.0 / (1.0 + math.sqrt(others))
        free = 1.0 - floor * levels
        for k in range(begin, begin + levels):
            share = own if k == leader else 0.0
            if k != leader and total > 0.0:
                share = (1.0 - own) * shares[k] / total
            shares[k] = floor + free * share
