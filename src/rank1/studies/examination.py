"""Check from the counts whether an arm could contradict one order of the levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from numpy.typing import ArrayLike

__all__ = ["Suspect", "examine"]

#: The power at which an arm was tried often enough to tell whether it matches the leader.
ENOUGH = 0.9


class Suspect(NamedTuple):
    """An arm that casts doubt on the order."""

    #: Its levels.
    arm: tuple[int, ...]
    #: True if it looks better than the order allows; False if it was tried too rarely to tell.
    speaks: bool


def examine(won: ArrayLike, lost: ArrayLike, leader: Sequence[int]) -> Suspect | None:
    """Return an arm that contradicts one order, or could; None if the order was examined.

    >>> examine([[300, 40], [150, 1]], [[700, 360], [850, 9]], (0, 0))
    Suspect(arm=(1, 1), speaks=False)
    """
    from rank1.fit.peaks import second_peak

    peak = second_peak(won, lost, leader)
    if peak.against is not None:
        return Suspect(peak.against, True)
    if peak.arm is not None and peak.power < ENOUGH:
        return Suspect(peak.arm, False)
    return None
