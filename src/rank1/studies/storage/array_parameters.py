"""Columns as parameters of a PostgreSQL statement: arrays, in binary or as SQL.

psycopg converts lists element by element, which takes longer than inserting them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import Format

__all__ = ["arrays", "literals", "register"]


class _Array(bytes):
    """An array in PostgreSQL's binary format; there is a subclass for each type."""


#: By type: the OIDs of its arrays and of itself, and its NumPy type.
_OIDS: dict[str, tuple[int, int, str | None]] = {
    "int2": (1005, 21, ">i2"),
    "int4": (1007, 23, ">i4"),
    "int8": (1016, 20, ">i8"),
    "float8": (1022, 701, ">f8"),
    "text": (1009, 25, None),
}
_CLASSES = {of: type(f"_{of}", (_Array,), {}) for of in _OIDS}
_HEAD = struct.Struct(">5i").pack
_LENGTH = struct.Struct(">i").pack
_NULL = _LENGTH(-1)


def arrays(types: Iterable[str], columns: Iterable[Sequence[Any]]) -> list[Any]:
    """Return columns as parameters; each has at least one value.

    >>> arrays(["int2"], [[1, 2]])[0].hex(" ", 4)
    '00000001 00000000 00000015 00000002 00000001 00000002 00010000 00020002'
    """
    return [_CLASSES[of](_packed(of, column)) for of, column in zip(types, columns, strict=True)]


def literals(
    escape: Callable[[bytes], Buffer], types: Iterable[str], columns: Iterable[Sequence[Any]]
) -> bytes:
    """Return columns as SQL, separated by commas; `escape` makes a literal of a text.

    >>> literals(lambda text: b"'%b'" % text, ["int2", "text"], [[1, 2], ["a", None]])
    b"'{1,2}',ARRAY['a',NULL]::text[]"
    """
    found = []
    for of, column in zip(types, columns, strict=True):
        if of == "text":
            texts = [b"NULL" if text is None else bytes(escape(text.encode())) for text in column]
            found.append(b"ARRAY[" + b",".join(texts) + b"]::text[]")
        else:
            convert = float if of == "float8" else int
            found.append(f"'{{{','.join([repr(convert(each)) for each in column])}}}'".encode())
    return b",".join(found)


def _packed(of: str, column: Sequence[Any]) -> bytes:
    _, oid, number = _OIDS[of]
    head = _HEAD(1, 0, oid, len(column), 1)
    if number is None:
        raw = [None if text is None else text.encode() for text in column]
        return head + b"".join(_NULL if text is None else _LENGTH(len(text)) + text for text in raw)
    items = np.empty(len(column), [("length", ">i4"), ("value", number)])
    items["length"], items["value"] = items.dtype["value"].itemsize, column
    return head + items.tobytes()


def register(adapters: AdaptersMap) -> None:
    """Make a connection accept these parameters."""
    for of, cls in _CLASSES.items():
        base = {"oid": _OIDS[of][0], "format": Format.BINARY, "dump": lambda self, array: array}
        adapters.register_dumper(cls, type(f"{cls.__name__}Dumper", (Dumper,), base))
