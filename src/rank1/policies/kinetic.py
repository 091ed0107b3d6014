"""A kinetic tournament: the largest of many scores that are linear in x, while x only grows.

Every arm is a leaf with a score, intercept + slope·x. Four leaves meet in a match, the winners of
four matches meet in the next, up to the root. A match records the x until which its winner is sure
to stay ahead: two scores cross at most once, so with the gap to the best of the others and the
steepest slope among them that is x + gap / (steepest − slope of the winner). A new score replays
the log₄(arms) matches on its way up; as x grows, only matches past their `until` are replayed.

`Competing` has the arrays, which are stored level by level from the leaves to the root.

A caller whose scores are only approximate checks `close`, and visits all leaves with scores near
the largest with `next_above`.

Reference: Basch, Guibas, Hershberger: Data structures for mobile data. Journal of Algorithms 1999.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit
from rank1.policies.known import Known, Records

__all__ = ["Competing", "next_above", "put", "refresh", "root_of", "start_competing"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Places in the arrays are unsigned, because Numba checks whether signed indices are negative. A
# literal is signed, and Numba turns signed plus unsigned into a float: hence these constants.
ZERO, ONE, TWO, THREE, FOUR = (np.uint64(number) for number in range(5))


class Competing(NamedTuple):
    """The arrays of a state whose arms compete by their scores."""

    limits: Records  # see `Known.limits`
    at: Records  # see `AT` of the policy
    begun: Bools  # arms whose first pull was issued
    counts: Ints  # T
    sums: Floats
    intercept: Floats  # of a node's winner; −∞ if there is no score yet
    slope: Floats  # of a node's winner
    until: Floats  # the matches here and below need no replay up to this x
    winner: Ints  # the leaf that won
    # Whether, in a match here or below, another score came within `margin` of the winner's. Scores
    # with the same intercept and slope don't count: the lowest of these leaves always wins.
    close: Bools
    offset: NDArray[np.uint64]  # where each level begins


def start_competing(known: Known, at: Records) -> Competing:
    """The arrays before there is a score."""
    arms = known.arms
    offset, nodes, width = [0], arms, arms
    while width > 1:
        nodes += -nodes % 4  # every match has four places; some stay empty
        offset.append(nodes)
        width = -(-width // 4)
        nodes += width
    return Competing(
        known.limits,
        at,
        np.zeros(arms, np.bool_),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.full(nodes, -np.inf),
        np.zeros(nodes),
        np.full(nodes, np.inf),
        np.pad(np.arange(arms), (0, nodes - arms)),
        np.zeros(nodes, np.bool_),
        np.array(offset, np.uint64),
    )


@inlined
def _max(a: float, b: float, c: float, d: float) -> float:
    a = a if a > b else b
    c = c if c > d else d
    return a if a > c else c


@inlined
def _min(a: float, b: float, c: float, d: float) -> float:
    a = a if a < b else b
    c = c if c < d else d
    return a if a < c else c


@inlined
def _if(condition: bool, value: float) -> float:
    return value if condition else -math.inf


@inlined
def _match(state: Any, c0: Any, node: Any, x: float, margin: float) -> None:
    """Play one match between the children c0 … c0 + 3.

    There are no branches, only minima, maxima and conditional moves: the winner is unpredictable,
    and a mispredicted branch takes longer than the whole match.
    """
    intercept, slope, until, close = state.intercept, state.slope, state.until, state.close
    c1, c2, c3 = c0 + ONE, c0 + TWO, c0 + THREE
    a0, a1, a2, a3 = intercept[c0], intercept[c1], intercept[c2], intercept[c3]
    b0, b1, b2, b3 = slope[c0], slope[c1], slope[c2], slope[c3]
    e0, e1, e2, e3 = a0 + b0 * x, a1 + b1 * x, a2 + b2 * x, a3 + b3 * x
    best = _max(e0, e1, e2, e3)
    w = c3  # compared by ==, because Numba would branch for >=
    w = c2 if e2 == best else w
    w = c1 if e1 == best else w
    w = c0 if e0 == best else w
    a, b = intercept[w], slope[w]
    intercept[node], slope[node], state.winner[node] = a, b, state.winner[w]

    # Only a steeper score can overtake the winner's.
    steeper = _max(_if(b0 > b, e0), _if(b1 > b, e1), _if(b2 > b, e2), _if(b3 > b, e3))
    gap = best - steeper - margin
    ahead = x + (gap if gap > 0.0 else 0.0) / (_max(b0, b1, b2, b3) - b)
    soonest = _min(until[c0], until[c1], until[c2], until[c3])
    # If no leaf has a score yet, `ahead` is NaN (−∞ minus −∞) and the comparison is false.
    until[node] = ahead if ahead < soonest else soonest

    o0, o1 = _if((a0 != a) | (b0 != b), e0), _if((a1 != a) | (b1 != b), e1)
    o2, o3 = _if((a2 != a) | (b2 != b), e2), _if((a3 != a) | (b3 != b), e3)
    below = close[c0] | close[c1] | close[c2] | close[c3]
    close[node] = below | (best - _max(o0, o1, o2, o3) <= margin)


@inlined
def root_of(state: Any) -> Any:
    """The node of the last match."""
    return state.offset[len(state.offset) - 1]


@inlined
def _replay(state: Any, level: int, place: Any, x: float, margin: float) -> None:
    """Play the matches above the given place on a level, up to the root."""
    offset = state.offset
    while level < len(offset) - 1:
        place >>= TWO
        first = offset[level] + (place << TWO)
        level += 1
        _match(state, first, offset[level] + place, x, margin)


@inlined
def put(state: Any, leaf: int, a: float, b: float, x: float, margin: float) -> None:
    """Give a leaf the score a + b·x, b ≥ 0. Later calls must not use a smaller x."""
    place = np.uint64(leaf)
    state.intercept[place], state.slope[place] = a, b
    _replay(state, 0, place, x, margin)


@jit
def refresh(state: Any, x: float, margin: float) -> None:
    """Replay every match whose winner may have been overtaken before x."""
    until, offset = state.until, state.offset
    while until[root_of(state)] < x:
        # Descend to a match that is past its `until` and has no such match below it.
        level, place = len(offset) - 1, ZERO
        while level > 1:
            first = offset[level - 1] + (place << TWO)
            child = first
            while child < first + FOUR and until[child] >= x:
                child += ONE
            if child == first + FOUR:
                break
            level -= 1
            place = child - offset[level]
        _replay(state, level - 1, place << TWO, x, margin)


@jit
def next_above(state: Any, leaf: int, x: float, threshold: float) -> Any:
    """The first leaf, starting at the given one, whose score at x is at least `threshold`.

    Returns the number of leaves if there is none. Skips all leaves of a match whose winner is
    below.
    """
    intercept, slope, offset = state.intercept, state.slope, state.offset
    place, end = np.uint64(leaf), np.uint64(len(state.counts))
    while place < end:
        if intercept[place] + slope[place] * x >= threshold:
            return np.int64(place)
        level, shift, above = 0, ZERO, place
        while level < len(offset) - 1 and above & THREE == ZERO:
            node = offset[level + 1] + (above >> TWO)
            if intercept[node] + slope[node] * x >= threshold:
                break
            level += 1
            shift += TWO
            above >>= TWO
        place = (above + ONE) << shift
    return len(state.counts)
