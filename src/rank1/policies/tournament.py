"""Which of many lines is the highest, while x only grows: a kinetic tournament.

Every pair has a line, intercept + slope·x. Four lines meet in a match, the winners of four matches
meet in the next, up to the root. A match notes until which x its winner surely stays ahead: lines
cross at most once, so with the gap to the best of the others and the steepest slope among them
that is x + gap / (steepest − slope of the winner). A new line replays the log₄(pairs) matches on
its way up; as x grows, only matches whose time has come are replayed.

The arrays, all of them level after level from the leaves to the root:

- `intercept`, `slope`: of a node's winner; −∞ and 0 where there is no line yet,
- `until`: the largest x up to which every match below and including this one is decided,
- `winner`: the leaf that won,
- `offset`: where each level begins.

A match is *open* while another line lies within `margin` of the winner's and isn't the same line;
then `until` is x itself. Of lines that are the same the lowest leaf wins.

Reference: Basch, Guibas, Hershberger: Data structures for mobile data. Journal of Algorithms 1999.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit

__all__ = ["next_above", "put", "refresh", "root_of", "start_tournament"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Unsigned = NDArray[np.uint64]

# Indices are unsigned, because Numba looks at the sign of every other index; a whole number that
# stands in the text is signed, and mixing the two would give a float.
ZERO, ONE, TWO, THREE, FOUR = (np.uint64(number) for number in range(5))


def start_tournament(leaves: int) -> tuple[Floats, Floats, Floats, Ints, Unsigned]:
    """Intercept, slope, until, winner and offset before there is a line."""
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
        np.arange(nodes),
        np.array(offset, np.uint64),
    )


@inlined
def _max(a: float, b: float) -> float:
    return a if a > b else b


@inlined
def _min(a: float, b: float) -> float:
    return a if a < b else b


@inlined
def _unless_same(intercept: Floats, slope: Floats, i: int, a: float, b: float, e: float) -> float:
    """The value of line i, or −∞ if it is the same line as the winner's."""
    return -math.inf if (intercept[i] == a) & (slope[i] == b) else e


@inlined
def _match(
    intercept: Floats,
    slope: Floats,
    until: Floats,
    winner: Ints,
    c0: int,
    node: int,
    x: float,
    margin: float,
) -> None:
    """Play one match between the children c0 … c0 + 3.

    A winner can't be foretold, so there is no branch here: minima, maxima and conditional moves.
    """
    c1, c2, c3 = c0 + ONE, c0 + TWO, c0 + THREE
    e0 = intercept[c0] + slope[c0] * x
    e1 = intercept[c1] + slope[c1] * x
    e2 = intercept[c2] + slope[c2] * x
    e3 = intercept[c3] + slope[c3] * x
    best = _max(_max(e0, e1), _max(e2, e3))
    w = c3
    w = c2 if e2 == best else w
    w = c1 if e1 == best else w
    w = c0 if e0 == best else w
    a, b = intercept[w], slope[w]
    o0 = _unless_same(intercept, slope, c0, a, b, e0)
    o1 = _unless_same(intercept, slope, c1, a, b, e1)
    o2 = _unless_same(intercept, slope, c2, a, b, e2)
    o3 = _unless_same(intercept, slope, c3, a, b, e3)
    gap = best - _max(_max(o0, o1), _max(o2, o3)) - margin
    steepest = _max(_max(slope[c0], slope[c1]), _max(slope[c2], slope[c3]))
    ahead = x + gap / (steepest - b)
    if gap <= 0.0:
        ahead = x
    soonest = _min(_min(until[c0], until[c1]), _min(until[c2], until[c3]))
    intercept[node], slope[node], winner[node] = a, b, winner[w]
    until[node] = _min(ahead, soonest)  # soonest, too, where there is no line: ahead isn't a number


@inlined
def root_of(offset: Unsigned) -> int:
    """The node of the last match."""
    return offset[len(offset) - 1]


@inlined
def _replay(
    intercept: Floats,
    slope: Floats,
    until: Floats,
    winner: Ints,
    offset: Unsigned,
    level: int,
    place: int,
    x: float,
    margin: float,
) -> None:
    """Play the matches above the given place on a level, up to the root."""
    while level < len(offset) - 1:
        first = offset[level] + ((place >> TWO) << TWO)
        place >>= TWO
        level += 1
        _match(intercept, slope, until, winner, first, offset[level] + place, x, margin)


@inlined
def put(
    intercept: Floats,
    slope: Floats,
    until: Floats,
    winner: Ints,
    offset: Unsigned,
    leaf: int,
    a: float,
    b: float,
    x: float,
    margin: float,
) -> None:
    """Give a leaf the line a + b·x. No x that is smaller may follow."""
    place = np.uint64(leaf)
    intercept[place], slope[place] = a, b
    _replay(intercept, slope, until, winner, offset, 0, place, x, margin)


@jit
def refresh(
    intercept: Floats,
    slope: Floats,
    until: Floats,
    winner: Ints,
    offset: Unsigned,
    x: float,
    margin: float,
) -> None:
    """Replay every match whose winner may have been overtaken before x."""
    while until[root_of(offset)] < x:
        # Walk down to a match that is undecided while all below it are decided.
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
        _replay(intercept, slope, until, winner, offset, level - 1, place << TWO, x, margin)


@jit
def next_above(
    intercept: Floats,
    slope: Floats,
    offset: Unsigned,
    leaf: int,
    leaves: int,
    x: float,
    threshold: float,
) -> int:
    """The next leaf, from the given one on, whose line is at least `threshold` at x.

    Returns `leaves` if there is none. Where a match's winner is below, so is all that it beat.
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
