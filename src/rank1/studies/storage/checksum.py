"""Chained checksums of events, each covering the one before, to detect damage to a log.

An event's checksum is an 8-byte BLAKE2b hash of four things: the checksum of the event before (0
before the first); the columns in `COVERED`, little-endian and without gaps; the name and value of
each other column of `Events` that isn't at its default; and the `data` that is folded
(`WITH_DATA`), as ASCII. It doesn't cover units, keys and the data of suggestions, so that these can
be removed.

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

from rank1.studies.events import COLUMNS, RECORD, WITH_DATA, Event, Events

__all__ = ["COVERED", "chained", "first_wrong", "packed"]

#: The columns that were folded when checksums began. This list never changes. A column added to
#: `Events` later is hashed only where it differs from its default, so that existing checksums stay
#: valid.
COVERED = ("kind", "arm", "tag", "suggestion", "value", "nonce", "metric", "seq", "at")
_LATER = tuple(name for name in Events._fields if name not in COVERED)
_CODES = {"int2": "h", "int4": "i", "int8": "q", "float8": "d"}
_PACK = struct.Struct("<" + "".join(_CODES[COLUMNS[name]] for name in COVERED)).pack
#: The output of `_PACK` as a NumPy type.
_PACKED = np.dtype([(name, RECORD[name].newbyteorder("<")) for name in COVERED])
_LINK = struct.Struct("<q")
#: Events to pack at once.
_PART = 100_000


def packed(columns: Mapping[str, Iterable[Any]]) -> list[bytes]:
    """Return the bytes to hash for each event, from columns without -0.0 or unusual NaNs."""
    return _with_later(list(map(_PACK, *(columns[name] for name in COVERED))), columns)


def _with_later(pieces: list[bytes], columns: Any) -> list[bytes]:
    for name in _LATER:
        pack = struct.Struct("<" + _CODES[COLUMNS[name]]).pack
        default = pack(Event._field_defaults[name])
        for k, value in enumerate(map(pack, columns[name])):
            if value != default:
                pieces[k] += name.encode() + value
    return pieces


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
        raw, size = part[list(COVERED)].astype(_PACKED).tobytes(), _PACKED.itemsize
        pieces = _with_later([raw[k : k + size] for k in range(0, len(raw), size)], part)
        for k in np.flatnonzero(np.isin(part["kind"], WITH_DATA)).tolist():
            pieces[k] += (texts.get(int(part["seq"][k])) or "").encode()
        links = np.array(chained(pieces, before), np.int64)
        wrong = links != part["checksum"]
        if wrong.any():
            return start + int(wrong.argmax())
        before = int(links[-1])
    return None
