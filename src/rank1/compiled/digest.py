"""Digests of values and of code: what a kernel or a run depends on.

A function or a class is represented by the source files that its module depends on (`sources`); a
value by its parts.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pickle import whichmodule  # type: ignore[attr-defined]
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from rank1.compiled.sources import source_digest, version_of
from rank1.errors import NoDigest, shown

__all__ = ["digest"]

_SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes, range, type(...)})
_LARGE = 2**1000  # Python limits the number of digits that it prints


def digest(*things: Any) -> str:
    """A hexadecimal number that changes with anything that the things depend on.

    It is the same in every process of one version of Python. The order of dicts and sets doesn't
    count. An object may have a method `__digest__`, which returns what distinguishes it.

    Raises
    ------
    NoDigest
        For things that differ in every process: a lock, an open file, a function or class that was
        defined in `__main__`, in a notebook or inside a function.

    Examples
    --------
    >>> digest(1, [2.5, "a"]) == digest(1, [2.5, "a"]) != digest(1, [2.5, "b"])
    True
    >>> digest(lambda x: x)
    Traceback (most recent call last):
    ...
    rank1.NoDigest: no digest can be taken of <lambda>: it isn't in a file that can be imported
    """
    try:
        told = ",".join([_told(thing, ()) for thing in things])
    except RecursionError:
        raise NoDigest("no digest can be taken of something nested so deeply") from None
    return hashlib.sha256(f"digest 2 {told}".encode()).hexdigest()


def _told(thing: Any, around: tuple[int, ...]) -> str:
    """A text that identifies a thing; `around` are the ids of the objects that contain it."""
    kind = type(thing)
    if kind in _SCALARS:
        large = kind is int and not -_LARGE < thing < _LARGE
        return hex(thing) if large else f"{kind.__name__} {thing!r}"
    if isinstance(thing, type | FunctionType | BuiltinFunctionType | np.ufunc):
        return _code(thing)
    if isinstance(thing, np.dtype):
        return f"dtype {thing!r} {thing.itemsize}"
    if id(thing) in around:
        raise NoDigest(f"no digest can be taken of {shown(kind)}", "it contains itself")
    around = (*around, id(thing))
    if kind in (list, tuple):
        return f"{kind.__name__}[{','.join([_told(part, around) for part in thing])}]"
    if kind is dict:
        pairs = [f"{_told(key, around)}: {_told(thing[key], around)}" for key in thing]
        return f"dict[{','.join(sorted(pairs))}]"
    if kind in (set, frozenset):
        return f"{kind.__name__}[{','.join(sorted(_told(part, around) for part in thing))}]"
    if isinstance(thing, np.ndarray | np.generic):
        return _array(np.asarray(thing), around)
    if isinstance(thing, MethodType):
        return f"method {_told(thing.__func__, around)} of {_told(thing.__self__, around)}"
    if isinstance(compiled := getattr(thing, "py_func", None), FunctionType):  # by Numba
        return f"compiled {_told(compiled, around)}"
    if callable(own := getattr(kind, "__digest__", None)):
        return f"object {_code(kind)} {_told(own(thing), around)}"
    return _as_pickled(thing, around)


def _code(thing: Any) -> str:
    """A function or a class: its name, and all source that its module depends on."""
    name = getattr(thing, "__qualname__", thing.__name__)
    home = getattr(thing, "__module__", None) or whichmodule(thing, name)
    if version := version_of(home):
        return f"{version} {home}.{name}"
    file = thing.__code__.co_filename if isinstance(thing, FunctionType) else ""
    if home == "__main__" or "<locals>" in name or file.startswith("<"):
        raise NoDigest(
            f"no digest can be taken of {name}", "it isn't in a file that can be imported"
        )
    return f"{home}.{name} {source_digest(home)}"


def _array(array: Any, around: tuple[int, ...]) -> str:
    header = f"array {array.dtype!r} {array.shape}"
    if array.dtype.hasobject:
        return f"{header} {_told(array.tolist(), around)}"
    if array.dtype.names:  # a record may have gaps between its entries, with arbitrary content
        return f"{header} {[_array(array[name], around) for name in array.dtype.names]}"
    return f"{header} {hashlib.sha256(array.tobytes()).hexdigest()}"


def _as_pickled(thing: Any, around: tuple[int, ...]) -> str:
    """What `pickle` would store of an object: its class, attributes and items."""
    kind = type(thing)
    try:
        kept: Any = thing.__reduce_ex__(4)
    except Exception as error:
        raise NoDigest(f"no digest can be taken of {shown(thing)}", str(error)) from error
    if isinstance(kept, str):  # the name of a singleton
        home = whichmodule(thing, kept)
        return f"{home}.{kept} {version_of(home) or source_digest(home)}"
    make, arguments, state, items, pairs = (*kept, None, None, None)[:5]
    parts = (kind, make, arguments, _own(kind, state), list(items or ()), dict(pairs or ()))
    return f"object({','.join(_told(part, around) for part in parts)})"


def _own(kind: type, state: Any) -> Any:
    """An object's state without cached values computed from the rest."""
    if isinstance(state, tuple):
        return tuple(_own(kind, part) for part in state)
    if not isinstance(state, dict):
        return state
    return {
        name: value
        for name, value in state.items()
        if not isinstance(getattr(kind, str(name), None), cached_property)
    }
