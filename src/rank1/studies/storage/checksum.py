"""Chained checksums of events, each covering the one before, to detect damage to a log.

An event's checksum is an 8-byte BLAKE2b hash of three things: the checksum of the event before (0
before the first); the columns that are folded (`Events`), little-endian and without gaps; and the
`data` that is folded (`WITH_DATA`), as ASCII. It doesn't cover units, keys and the data of
suggestions, so that these can be removed.

Events from before checksums existed have 0; such a log is covered from its first event with a
checksum on.
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
#: The output of `_PACK` as a NumPy type. A new column in `Events` changes all checksums: once there
#: are logs with checksums, pack such a column only if it differs from its default.
_PACKED = np.dtype([(name, RECORD[name].newbyteorder("<")) for name in Events._fields])
_LINK = struct.Struct("<q")
#: Events to pack at once.
_PART = 100_000


def packed(columns: Mapping[str, Iterable[Any]]) -> list[bytes]:
    """Return the bytes to hash for each event, from columns without -0.0 or unusual NaNs."""
    return list(map(_PACK, *(columns[name] for name in Events._fields)))


def chained(pieces: Iterable[bytes], before: int) -> list[int]:
    """Return the checksums of events that follow one with the checksum `before`."""
    link, links = _LINK.pack(before), []
    for piece in pieces:
        link = blake2b(link + piece, digest_size=8).digest()
        links.append(link)
    return list(struct.unpack(f"<{len(links)}q", b"".join(links)))


def first_wrong(records: NDArray[Any], texts: Mapping[int, str | None], before: int) -> int | None:
    """Return the index of the first event that doesn't match its checksum, or None.

    Parameters
    ----------
    records
        Consecutive events, with the fields of `RECORD`.
    texts
        The `data` of the events whose kind is in `WITH_DATA`, by seq.
    before
        The checksum of the event before the first of them.
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
