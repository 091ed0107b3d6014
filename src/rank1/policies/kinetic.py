"""A kinetic tournament: the largest of many scores that are linear in x, while x only grows.

Every arm is a leaf with a score, intercept + slope·x. Four leaves meet in a match, the winners of
four matches meet in the next, up to the root. A match records the x until which its winner is sure
to stay ahead: two scores cross at most once, so with the gap to the best of the others and the
steepest slope among them that is x + gap / (steepest − slope of the winner). A new score replays
the log₄(arms) matches on its way up; as x grows, only matches past their `until` are replayed.

The arrays, each stored level by level from the leaves to the root:

- `intercept`, `slope`: of a node's winner; −∞ and 0 if there is no score yet,
- `until`: the matches here and below need no replay up to this x,
- `winner`: the leaf that won,
- `close`: whether, in a match here or below, another score came within `margin` of the winner's.
  Scores with the same intercept and slope don't count: the lowest of these leaves always wins,
- `offset`: where each level begins.

A caller whose scores are only approximate checks `close`, and visits all leaves with scores near
the largest with `next_above`.

Reference: Basch, Guibas, Hershberger: Data structures for mobile data. Journal of Algorithms 1999.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit

__all__ = ["next_above", "put", "refresh", "root_of", "start_kinetic"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Unsigned = NDArray[np.uint64]

# Places in the arrays are unsigned, because Numba checks whether signed indices are negative. A
# literal is signed, and Numba turns signed plus unsigned into a float: hence these constants.
ZERO, ONE, TWO, THREE, FOUR = (np.uint64(number) for number in range(5))


def start_kinetic(leaves: int) -> tuple[Floats, Floats, Floats, Ints, Bools, Unsigned]:
    """Intercept, slope, until, winner, close and offset before there is a score."""
    offset, nodes, width = [0], leaves, leaves
    while width > 1:
        nodes += -nodes % 4  # every match has four places; some stay empty
        offset.append(nodes)
        width = -(-width // 4)
        nodes += width
    return (
        np.full(nodes, -np.inf),
        np.zeros(nodes),
        np.full(nodes, np.inf),
        np.pad(np.arange(leaves), (0, nodes - leaves)),
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
def _match(
    intercept: Floats,
    slope: Floats,
    until: Floats,
    winner: Ints,
    close: Bools,
    c0: Any,
    node: Any,
    x: float,
    margin: float,
) -> None:
    """Play one match between the children c0 … c0 + 3.

    There are no branches, only minima, maxima and conditional moves: the winner is unpredictable,
    and a mispredicted branch takes longer than the whole match.
    """
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
    intercept[node], slope[node], winner[node] = a, b, winner[w]

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
def root_of(offset: Unsigned) -> Any:
    """The node of the last match."""
    return offset[len(offset) - 1]


@inlined
def _replay(
    intercept: Floats,
    slope: Floats,
    until: Floats,
    winner: Ints,
    close: Bools,
    offset: Unsigned,
    level: int,
    place: Any,
    x: float,
    margin: float,
) -> None:
    """Play the matches above the given place on a level, up to the root."""
    while level < len(offset) - 1:
        place >>= TWO
        first = offset[level] + (place << TWO)
        level += 1
        _match(intercept, slope, until, winner, close, first, offset[level] + place, x, margin)


@inlined
def put(
    intercept: Floats,
    slope: Floats,
    until: Floats,
    winner: Ints,
    close: Bools,
    offset: Unsigned,
    leaf: int,
    a: float,
    b: float,
    x: float,
    margin: float,
) -> None:
    """Give a leaf the score a + b·x, b ≥ 0. Later calls must not use a smaller x."""
    place = np.uint64(leaf)
    intercept[place], slope[place] = a, b
    _replay(intercept, slope, until, winner, close, offset, 0, place, x, margin)


@jit
def refresh(
    intercept: Floats,
    slope: Floats,
    until: Floats,
    winner: Ints,
    close: Bools,
    offset: Unsigned,
    x: float,
    margin: float,
) -> None:
    """Replay every match whose winner may have been overtaken before x."""
    while until[root_of(offset)] < x:
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
        _replay(intercept, slope, until, winner, close, offset, level - 1, place << TWO, x, margin)


@jit
def next_above(
    intercept: Floats,
    slope: Floats,
    offset: Unsigned,
    leaf: int,
    leaves: int,
    x: float,
    threshold: float,
) -> Any:
    """The first leaf, starting at the given one, whose score at x is at least `threshold`.

    Returns `leaves` if there is none. Skips all leaves of a match whose winner is below.
    """
    place, end = np.uint64(leaf), np.uint64(leaves)
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
    return leaves
