"""Rows and columns of arms in compiled code, without a division.

In row-major order the row is a quotient. In a simulation's loop an integer division takes a good
part of a step, and so does floating-point division; a multiplication and a shift don't.
"""

from __future__ import annotations

from rank1.compiled import inlined

__all__ = ["row_magic", "row_of"]

SHIFT = 40


def row_magic(rows: int, columns: int) -> int:
    """The factor of `row_of`: 2⁴⁰/columns rounded up; 0 if that isn't exact for all arms.

    With e = magic·columns − 2⁴⁰ the product is too large by arm·e, which must stay below 2⁴⁰, while
    the product itself must stay below 2⁶³.

    >>> row_magic(4096, 4096) == 2**28, row_magic(10**6, 10**6)
    (True, 0)
    """
    magic = -(-(2**SHIFT) // columns)
    arms = rows * columns
    exact = arms * (magic * columns - 2**SHIFT) < 2**SHIFT and arms * magic < 2**63
    return magic if exact else 0


@inlined
def row_of(arm: int, magic: int, columns: int) -> int:
    """The row of an arm.

    >>> [row_of(arm, row_magic(3, 3), 3) for arm in range(7)]
    [0, 0, 0, 1, 1, 1, 2]
    """
    if magic > 0:
        return (arm * magic) >> SHIFT
    return arm // columns
