"""Was the order of the levels examined? Which arm could still be better, from the counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from numpy.typing import ArrayLike

__all__ = ["Suspect", "examine"]

#: The power from which on an arm was tried often enough to see whether it is as good as the leader.
ENOUGH = 0.9


class Suspect(NamedTuple):
    """An arm because of which the order isn't to be relied on."""

    #: Its levels.
    arm: tuple[int, ...]
    #: Whether it looks better than the order allows, or was tried too rarely to tell.
    speaks: bool


def examine(won: ArrayLike, lost: ArrayLike, leader: Sequence[int]) -> Suspect | None:
    """The arm that speaks against one order, or could, unseen; None if the order was examined.

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
