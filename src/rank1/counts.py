"""Arrays of counts, the input of `rank1.stopping` and `rank1.fit`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.errors import InputError, InputTypeError
from rank1.grid import MAX_SIDES

__all__ = ["table", "tables"]

Floats = NDArray[np.float64]


def table(name: str, values: ArrayLike) -> Floats:
    """An array of finite nonnegative numbers, with one axis per side of a grid.

    >>> table("trials", [[3, -1]])
    Traceback (most recent call last):
    ...
    rank1.InputError: trials[0, 1] must be a number of at least 0 and at most 2**53, got -1.0
    >>> table("trials", [[[], []]])
    Traceback (most recent call last):
    ...
    rank1.InputError: trials must be an array with an axis for each of 1 to 16 sides and at least 1 level on each, got shape (1, 2, 0)
    """  # noqa: E501
    try:
        array = np.asarray(values, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InputTypeError(name, values, "an array of numbers, one for each arm") from None
    if not 1 <= array.ndim <= MAX_SIDES or array.size == 0:
        raise InputError(
            name,
            values,
            f"an array with an axis for each of 1 to {MAX_SIDES} sides and at least 1 level on "
            "each",
            got=f"shape {array.shape}",
        )
    bad = ~((array >= 0) & (array <= checks.MAX_STEPS))  # catches NaN too
    if bad.any():
        at = np.unravel_index(int(bad.argmax()), array.shape)
        place = ", ".join(str(int(level)) for level in at)
        asked = "a number of at least 0 and at most 2**53"
        raise InputError(f"{name}[{place}]", float(array[at]), asked)
    return array


def tables(successes: ArrayLike, failures: ArrayLike) -> tuple[Floats, Floats]:
    """Both arrays, which must have the same shape."""
    s, f = table("successes", successes), table("failures", failures)
    if s.shape != f.shape:
        asked = f"of the same shape as successes, {s.shape}"
        raise InputError("failures", failures, asked, got=f"shape {f.shape}")
    return s, f
