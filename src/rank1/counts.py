"""Tables of counts: what `rank1.stopping` and `rank1.fit` take."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.errors import InputError, InputTypeError

__all__ = ["table", "tables"]

Floats = NDArray[np.float64]


def table(name: str, values: ArrayLike) -> Floats:
    """A K×L array of finite numbers of at least 0.

    >>> table("trials", [[3, -1]])
    Traceback (most recent call last):
    ...
    rank1.InputError: trials[0, 1] must be a number of at least 0 and at most 2**53, got -1.0
    """
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"{name} must be a K×L table of numbers, got {checks.shown(values)}"
        ) from None
    if array.ndim != 2 or array.size == 0:
        raise InputError(
            f"{name} must be a K×L table of at least one pair, got shape {array.shape}"
        )
    bad = ~((array >= 0) & (array <= checks.MAX_STEPS))  # catches NaN too
    if bad.any():
        row, column = divmod(int(bad.argmax()), array.shape[1])
        raise InputError(
            f"{name}[{row}, {column}] must be a number of at least 0 and at most 2**53, "
            f"got {array[row, column]}"
        )
    return array


def tables(successes: ArrayLike, failures: ArrayLike) -> tuple[Floats, Floats]:
    """Both tables, of one shape."""
    s, f = table("successes", successes), table("failures", failures)
    if s.shape != f.shape:
        raise InputError(f"successes and failures must have one shape, got {s.shape} and {f.shape}")
    return s, f
