"""Checksums of events, each of which covers the one before: by them damage to a log is seen.

An event's checksum is BLAKE2b, 8 bytes long, of the checksum of the event before (0 before the
first), of the columns that are folded (`Events`), little-endian and without gaps, and of the `data`
that is folded (`WITH_DATA`), as ASCII. Units, keys and the data of suggestions aren't covered, so
that they can be forgotten.

A log from before there were checksums has 0 in each event; it is covered from its first event with
a checksum on.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.studies.events import COLUMNS, RECORD, WITH_DATA, Events

__all__ = ["chained", "first_wrong", "packed"]

_CODES = {"int2": "h", "int4": "i", "int8": "q", "float8": "d"}
_PACK = struct.Struct("<" + "".join(_CODES[COLUMNS[name]] for name in Events._fields)).pack
#: What `_PACK` makes, as a type of NumPy's. A column that is added to `Events` changes all
#: checksums: once there are logs with them, it has to be packed only where it isn't its default.
_PACKED = np.dtype([(name, RECORD[name].newbyteorder("<")) for name in Events._fields])
_LINK = struct.Struct("<q")
#: How many events are packed at once.
_PART = 100_000


def packed(columns: Mapping[str, Iterable[Any]]) -> list[bytes]:
    """What the checksums of events are of, from columns; no float is -0.0, and no NaN special."""
    return list(map(_PACK, *(columns[name] for name in Events._fields)))


def chained(pieces: Iterable[bytes], before: int) -> list[int]:
    """The checksums of events, after one that has the checksum `before`."""
    link, links = _LINK.pack(before), []
    for piece in pieces:
        link = blake2b(link + piece, digest_size=8).digest()
        links.append(link)
    return list(struct.unpack(f"<{len(links)}q", b"".join(links)))


def first_wrong(records: NDArray[Any], texts: Mapping[int, str | None], before: int) -> int | None:
    """The place of the first event that isn't what its checksum says.

    Parameters
    ----------
    records
        Events that follow each other, with the fields of `RECORD`.
    texts
        The `data` of those that are of a kind `WITH_DATA`, by seq.
    before
        The checksum of the event before them.
    """
    begin = 0
    if not before:
        sealed = records["checksum"] != 0
        begin = int(sealed.argmax()) if sealed.any() else len(records)
    for start in range(begin, len(records), _PART):
        part = records[start : start + _PART]
        raw, size = part[list(Events._fields)].astype(_PACKED).tobytes(), _PACKED.itemsize
        pieces = [raw[k : k + size] for k in range(0, len(raw), size)]
        for k in np.flatnonzero(np.isin(part["kind"], WITH_DATA)).tolist():
            pieces[k] += (texts.get(int(part["seq"][k])) or "").encode()
        links = np.array(chained(pieces, before), np.int64)
        wrong = links != part["checksum"]
        if wrong.any():
            return start + int(wrong.argmax())
        before = int(links[-1])
    return None
