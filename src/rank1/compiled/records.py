"""Records: named scalars of a state."""

from __future__ import annotations

from typing import Any

import numpy as np

from rank1.errors import InputError

__all__ = ["record"]


def record(*names: str, **types: type) -> np.dtype[Any]:
    """A type for named scalars of a state: integers, and others by their type.

    Compiled code and Python both read `state.at[0].stage`.

    >>> at = np.zeros(1, record("stage", "place", radius=float))
    >>> at[0].stage += 2
    >>> int(at[0].stage), float(at[0].radius)
    (2, 0.0)
    """
    fields = dict.fromkeys(names, np.int64) | types
    for name in fields:
        if hasattr(np.record, name):  # the method would hide the entry in Python
            raise InputError("name", name, "other than the methods of NumPy's records")
    return np.dtype((np.record, list(fields.items())))
