"""The arms that compete around a leader: itself and its neighbours."""

from __future__ import annotations

from rank1.compiled import jit
from rank1.policies.base import Records

__all__ = ["near"]


@jit
def near(limits: Records, a: int, b: int) -> bool:
    """Whether two arms differ in at most one level."""
    different = 0
    for side in range(len(limits)):
        stride, levels = limits[side].stride, limits[side].levels
        if a // stride % levels != b // stride % levels:
            different += 1
    return different <= 1
