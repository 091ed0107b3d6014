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

_SCALARS = frozenset({type(None), bool, float, complex, str, bytes, range, type(...)})


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
        told = ",".join(map(_told, things))
    except RecursionError:
        raise NoDigest("no digest can be taken of something nested so deeply") from None
    return hashlib.sha256(f"digest 3 {told}".encode()).hexdigest()


def _told(thing: Any) -> str:
    """A text that identifies a thing."""
    kind = type(thing)
    if kind in _SCALARS:
        return f"{kind.__name__} {thing!r}"
    if kind is int:
        return f"int {thing:x}"  # Python limits the number of decimal digits
    if isinstance(thing, type | FunctionType | BuiltinFunctionType | np.ufunc):
        return _code(thing)
    if kind in (list, tuple):
        return f"{kind.__name__}[{','.join(map(_told, thing))}]"
    if kind is dict:
        return f"dict[{','.join(sorted(map(_told, thing.items())))}]"
    if kind in (set, frozenset):
        return f"{kind.__name__}[{','.join(sorted(map(_told, thing)))}]"
    if isinstance(thing, np.ndarray | np.generic):
        return _array(np.asarray(thing))
    if isinstance(thing, MethodType):
        return f"method {_told(thing.__func__)} of {_told(thing.__self__)}"
    if isinstance(compiled := getattr(thing, "py_func", None), FunctionType):  # by Numba
        return f"compiled {_code(compiled)}"
    if callable(own := getattr(kind, "__digest__", None)):
        return f"object {_code(kind)} {_told(own(thing))}"
    return _as_pickled(thing)


def _code(thing: Any) -> str:
    """A function or a class: its name, and all source that its module depends on."""
    name = getattr(thing, "__qualname__", thing.__name__)
    home = getattr(thing, "__module__", None) or whichmodule(thing, name)
    file = thing.__code__.co_filename if isinstance(thing, FunctionType) else ""
    here_only = home == "__main__" or "<locals>" in name or file.startswith("<")
    if here_only and not version_of(home):
        raise NoDigest(
            f"no digest can be taken of {name}", "it isn't in a file that can be imported"
        )
    return f"{home}.{name} {source_digest(home)}"


def _array(array: Any) -> str:
    header = f"array {array.dtype!r} {array.shape}"
    if array.dtype.hasobject:
        return f"{header} {_told(array.tolist())}"
    if array.dtype.names:  # a record may have gaps between its entries, with arbitrary content
        return f"{header} {[_array(array[name]) for name in array.dtype.names]}"
    return f"{header} {hashlib.sha256(array.tobytes()).hexdigest()}"


def _as_pickled(thing: Any) -> str:
    """What `pickle` would store of an object, without cached values computed from the rest."""
    kind = type(thing)
    try:
        kept: Any = thing.__reduce_ex__(4)
    except Exception as error:
        raise NoDigest(f"no digest can be taken of {shown(thing)}", str(error)) from error
    if isinstance(kept, str):  # the name of a singleton
        home = whichmodule(thing, kept)
        return f"{home}.{kept} {source_digest(home)}"
    make, arguments, state, items, pairs = (*kept, None, None, None)[:5]
    if isinstance(state, dict):
        state = {
            name: value
            for name, value in state.items()
            if not isinstance(getattr(kind, str(name), None), cached_property)
        }
    return f"object{_told((kind, make, arguments, state, list(items or ()), dict(pairs or ())))}"
