"""Arrays of counts, the input of `rank1.stopping` and `rank1.fit`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.errors import InputError, InputTypeError
from rank1.grid import MAX_SIDES

__all__ = ["distinct", "table", "tables"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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


def distinct(successes: Floats, failures: Floats) -> tuple[Floats, Floats, Ints]:
    """The distinct pairs of successes and failures, and the index of each arm's pair.

    Many arms of a large grid have the same counts. If some were never tried, (0, 0) comes first.

    >>> distinct(np.array([0.0, 3.0, 0.0, 3.0]), np.array([0.0, 1.0, 0.0, 1.0]))
    (array([0., 3.]), array([0., 1.]), array([0, 1, 0, 1]))
    """
    tried = np.flatnonzero((successes > 0) | (failures > 0))
    # Complex numbers are sorted faster than columns.
    both, places = np.unique(successes[tried] + 1j * failures[tried], return_inverse=True)
    which = np.zeros(len(successes), np.int64)
    if len(tried) < len(which):
        both, places = np.append(0.0, both), places + 1
    which[tried] = places
    # Copies are contiguous, also of several, so code for them is compiled once.
    return both.real.copy(), both.imag.copy(), which
