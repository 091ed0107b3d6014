"""Records: named scalars of a state."""

from __future__ import annotations

import copyreg
import functools
from operator import itemgetter
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
        if hasattr(np.void, name) or name == "names":  # the method would hide the entry in Python
            raise InputError("name", name, "other than the methods of NumPy's records")
    return np.dtype((_class(tuple(fields)), list(fields.items())))


class _Records(type):
    """The type of classes of records, which `pickle` makes again from their names."""


@functools.cache
def _class(names: tuple[str, ...]) -> type:
    # Properties take a sixth of the time of `np.record`, which looks names up in Python.
    entries = {name: property(itemgetter(name), _setter(name)) for name in names}
    return _Records("Record", (np.void,), entries | {"names": names})


def _reduce(one: Any) -> tuple[Any, ...]:
    return _class, (one.names,)


copyreg.pickle(_Records, _reduce)


def _setter(name: str) -> Any:
    def assign(at: Any, value: Any) -> None:
        at[name] = value

    return assign
