"""The log of a study: what can happen, how it is written down, and the ids people see.

A log is a list of events, numbered 1, 2, 3, … without gaps (`seq`), to which events are only ever
added. All a study knows follows from its log. A suggestion is known by the seq of the event that
handed it out.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.checks import shown
from rank1.errors import FormatError, InputError, InputTypeError, UnknownSuggestionError

__all__ = [
    "Event",
    "Events",
    "Expiry",
    "Kind",
    "as_events",
    "check_text",
    "new_uid",
    "nonces",
    "read_id",
    "suggestion_id",
]

#: The longest name, idempotency key or unit, in characters: at most 1,024 bytes, so that each
#: fits into the indices of every database.
MAX_TEXT = 256

# Crockford's base 32: nothing in it looks like something else.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_DIGIT = {letter: value for value, letter in enumerate(_ALPHABET)}
_UID = 6
_NONCE = 4
_ID = re.compile(rf"([{_ALPHABET}]{{{_UID}}})-([1-9][0-9]{{0,17}})-([{_ALPHABET}]{{{_NONCE}}})")


class Kind(IntEnum):
    """What an event says. Numbers are never used again for something else."""

    #: The study begins: `data` is its specification (JSON).
    CREATED = 1
    #: A pull was handed out: row, column, tag; `value` is its propensity, where one is known.
    SUGGESTED = 2
    #: A reward came back: suggestion, `value` as it was told; `tag` is 1 if it came after expiry.
    REPORTED = 3
    #: The pull was never shown: suggestion.
    CANCELLED = 4
    #: The reward is overdue: suggestion; `tag` says what was done (`Expiry`), `value` the default.
    EXPIRED = 5
    #: Rows or columns were added or retired: `data` (JSON), `tag` is the revision's number.
    REVISED = 6
    #: What was known from elsewhere: row, column, `value` the reward, `tag` how many times.
    HISTORY = 7
    #: The study was closed.
    RETIRED = 8


#: Events that say what became of a suggestion; each at most once for each suggestion.
OUTCOMES = (Kind.REPORTED, Kind.CANCELLED, Kind.EXPIRED)


class Expiry(IntEnum):
    """What was done about a reward that is overdue."""

    DROPPED = 0
    DEFAULT = 1
    WAITING = 2


class Event(NamedTuple):
    """One event. `Kind` says which fields mean something; the storage fills in seq and at."""

    kind: int
    row: int = 0
    column: int = 0
    tag: int = 0
    suggestion: int = 0
    value: float = math.nan
    nonce: int = 0
    key: str | None = None
    position: int = 0
    unit: str | None = None
    data: str | None = None
    seq: int = 0
    at: float = 0.0


class Events(NamedTuple):
    """Many events, a column each: what a state is folded from. Texts are left out."""

    seq: NDArray[np.int64]
    at: NDArray[np.float64]
    kind: NDArray[np.int8]
    row: NDArray[np.int32]
    column: NDArray[np.int32]
    tag: NDArray[np.int64]
    suggestion: NDArray[np.int64]
    value: NDArray[np.float64]
    nonce: NDArray[np.int32]

    @property
    def size(self) -> int:
        """How many events there are (`len` is the number of columns)."""
        return len(self.seq)


#: The columns of `Events`, as one record.
RECORD = np.dtype(
    [
        ("seq", np.int64),
        ("at", np.float64),
        ("kind", np.int8),
        ("row", np.int32),
        ("column", np.int32),
        ("tag", np.int64),
        ("suggestion", np.int64),
        ("value", np.float64),
        ("nonce", np.int32),
    ]
)


def columns(records: NDArray[Any]) -> Events:
    """Records with the fields of `RECORD`, as columns; kinds that are unknown here are refused."""
    kinds = records["kind"]
    if len(kinds) and not 1 <= kinds.min() <= kinds.max() <= max(Kind):
        at = int(((kinds < 1) | (kinds > max(Kind))).argmax())
        raise FormatError(
            f"event {records['seq'][at]} of the log is of kind {kinds[at]}, which this version of "
            f"rank1 doesn't know (it knows 1 to {max(Kind)}): a later one wrote it; upgrade rank1"
        )
    return Events(*(records[name].astype(RECORD[name]) for name in Events._fields))


def as_events(events: Sequence[Event], first: int, at: float) -> Events:
    """Events as columns, numbered from `first`, which is what the storage did with them.

    >>> as_events([Event(Kind.SUGGESTED, 2, 1, nonce=7)], first=5, at=0.5).seq
    array([5])
    """
    size = len(events)
    kinds = np.fromiter((int(event.kind) for event in events), np.int8, size)
    # Column by column: through records it would take four times as long.
    parts = list(zip(*(event[1:7] for event in events), strict=True)) or [()] * 6
    types = (RECORD[name] for name in Events._fields[3:])
    return Events(
        np.arange(first, first + size),
        np.full(size, at),
        kinds,
        *(np.array(part, kind) for part, kind in zip(parts, types, strict=True)),
    )


def nonces(count: int) -> list[int]:
    """Random numbers from 1 to 2^20 - 1, by which events are told from others of the same seq.

    >>> all(1 <= nonce < 2**20 for nonce in nonces(1000))
    True
    """
    raw = np.frombuffer(os.urandom(4 * count), np.uint32)
    return (raw % (32**_NONCE - 1) + 1).tolist()


def _written(number: int, digits: int) -> str:
    return "".join(_ALPHABET[number >> 5 * k & 31] for k in reversed(range(digits)))


def new_uid() -> str:
    """A random name for a study, which its ids begin with.

    >>> len(new_uid())
    6
    """
    return _written(int.from_bytes(os.urandom(4)), _UID)


def suggestion_id(uid: str, seq: int, nonce: int) -> str:
    """The id of a suggestion, as people see it.

    >>> suggestion_id("k3fzqa", 17, 1000)
    'k3fzqa-17-00z8'
    """
    return f"{uid}-{seq}-{_written(nonce, _NONCE)}"


def read_id(text: str) -> tuple[str, int, int]:
    """The study's uid, the seq and the nonce of an id.

    >>> read_id("k3fzqa-17-00z8")
    ('k3fzqa', 17, 1000)
    >>> read_id("17")
    Traceback (most recent call last):
    ...
    rank1.UnknownSuggestionError: no suggestion has the id '17': ids look like k3fzqa-17-00z8
    """
    if not isinstance(text, str):
        raise InputTypeError(f"id must be the text that ask gave, got {shown(text)}")
    match = _ID.fullmatch(text.strip().lower())
    if match is None:
        raise UnknownSuggestionError(
            f"no suggestion has the id {shown(text)}: ids look like k3fzqa-17-00z8"
        )
    nonce = 0
    for letter in match[3]:
        nonce = nonce << 5 | _DIGIT[letter]
    return match[1], int(match[2]), nonce


def check_text(name: str, text: Any) -> str:
    """`text`, which every database must be able to keep and to find again.

    >>> check_text("key", "a" * 1000)
    Traceback (most recent call last):
    ...
    rank1.InputError: key must have 1 to 256 characters, got 1,000
    """
    if not isinstance(text, str):
        raise InputTypeError(f"{name} must be text, got {shown(text)}")
    if not 1 <= len(text) <= MAX_TEXT:
        raise InputError(f"{name} must have 1 to {MAX_TEXT} characters, got {len(text):,}")
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InputError(
            f"{name} must be text without null characters and halves of surrogate pairs, "
            f"got {shown(text)}"
        )
    return text
