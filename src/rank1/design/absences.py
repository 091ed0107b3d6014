"""Check that levels are recorded as often as their shares say; if not, visitors are missing.

If every visitor is recorded, each exposure shows level l with the share s of its version. If level
l is recorded w times as often as that, an exposure multiplies the evidence by

    w / (1 + (w − 1)·s)    if it shows l
    1 / (1 + (w − 1)·s)    otherwise

whose mean is 1 if nobody is missing, so the evidence is valid at any time. It is averaged over some
values of w and over all levels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rank1.design.counts import log_average, tally
from rank1.design.values import Design, Floats, Ints, Version

__all__ = ["Uneven", "uneven"]

#: The values of w.
TIMES = np.array([0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.01, 1.02, 1.05, 1.1, 1.25, 1.4, 2.0])
#: If nobody is missing, at most one test in this many is ever said to be uneven.
RARE = 1000
#: With more versions × levels than this, nothing is compared, as it would take too long.
ROOM = 2**18


class Uneven(NamedTuple):
    """The level that departs most clearly from its share."""

    side: int
    level: int
    recorded: int
    #: The number that its shares make likely.
    expected: float
    total: int

    def warning(self, side: str, label: str) -> str:
        """Return what to tell people."""
        some = "fewer" if self.recorded < self.expected else "more"
        return (
            f"{side} {label} was recorded {self.recorded:,} times in {self.total:,}, {some} than "
            f"the {self.expected:,.0f} times that its shares make likely. That is no coincidence: "
            "some visitors aren't recorded, and whether they are depends on what they see. So "
            "averages, lifts and the verdict may be wrong. Find the cause before you act on them: "
            "record every visitor as soon as the levels are drawn."
        )


def uneven(
    design: Design, versions: Mapping[int, Version], version: Ints, arm: Ints, pulls: Floats
) -> Uneven | None:
    """Return the level whose number of exposures contradicts its shares, or None.

    Parameters
    ----------
    design, versions
        The design and its versions, by number.
    version, arm, pulls
        How many exposures there were of each arm under each version, in any order. All exposures
        count, whether or not they have a reward yet; each visitor counts once.

    Examples
    --------
    >>> from rank1.design import first_version
    >>> design = Design([2])
    >>> versions, exposures = {0: first_version(design)}, np.array([5_300.0, 4_700.0])
    >>> uneven(design, versions, np.array([0, 0]), np.array([0, 1]), exposures)
    Uneven(side=0, level=1, recorded=4700, expected=5000.0, total=10000)
    >>> uneven(design, versions, np.array([0, 0]), np.array([0, 1]), exposures / 10) is None
    True
    """
    if len(versions) * max(design.sizes) > ROOM:
        return None
    found = evidence(design, versions, version, arm, pulls)
    every = np.concatenate([each.log_e for each in found])
    if log_average(every) < math.log(RARE):
        return None
    # If a level has too few, the others on its side have too many: name the one with too few, if
    # that is nearly as clear.
    clear = float(every.max()) / 2
    levels = [
        (float(log_e), float(recorded), float(expected), side, level)
        for side, each in zip(design.chosen, found, strict=True)
        for level, (log_e, recorded, expected) in enumerate(zip(*each, strict=True))
    ]
    _, recorded, expected, side, level = max(
        levels, key=lambda row: (row[0] >= clear and row[1] < row[2], row[0])
    )
    return Uneven(side, level, round(recorded), expected, round(float(pulls.sum())))


class _Evidence(NamedTuple):
    """For each level of a side: the log of the evidence, and its exposures."""

    log_e: Floats
    recorded: Floats
    expected: Floats


def evidence(
    design: Design, versions: Mapping[int, Version], version: Ints, arm: Ints, pulls: Floats
) -> list[_Evidence]:
    """Return the evidence that visitors are missing, for each side that is chosen."""
    used, at = np.unique(version, return_inverse=True)
    exposures, found = tally(at, pulls, len(used)), []
    for side in design.chosen:
        size = design.sizes[side]
        shares = np.array([versions[number].shares[side] for number in used.tolist()])
        shares = shares.reshape(len(used), size)
        recorded = tally(arm // design.grid.strides[side] % size, pulls, size)
        logs = [
            recorded * math.log(times) - exposures @ np.log1p((times - 1) * shares)
            for times in TIMES.tolist()
        ]
        found.append(_Evidence(log_average(np.array(logs)), recorded, exposures @ shares))
    return found
