"""The events of a study's log: their kinds, how they are stored, and the ids users see.

A log is an append-only list of events, numbered 1, 2, 3, … without gaps (`seq`). Everything a study
knows is derived from its log. A suggestion is identified by the seq of the event that created it.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from rank1.errors import FormatError, InputError, InputTypeError, UnknownSuggestionError, shown

__all__ = [
    "COLUMNS",
    "EXPOSURES",
    "HELD_OUT",
    "REPEAT",
    "Event",
    "Events",
    "Expiry",
    "Kind",
    "as_events",
    "check_text",
    "check_texts",
    "data_text",
    "late_report",
    "new_uid",
    "nonces",
    "read_data",
    "read_id",
    "suggestion_id",
]

#: The maximum length of a name, idempotency key or unit, in characters: at most 1,024 bytes, which
#: fits into the indices of every database.
MAX_TEXT = 256

#: The maximum size of a suggestion's `data`, as ASCII JSON, in bytes.
MAX_DATA = 4096

# Crockford's base 32: no two characters look alike.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_DIGIT = {letter: value for value, letter in enumerate(_ALPHABET)}
_UID = 6
_NONCE = 4
_ID = re.compile(rf"([{_ALPHABET}]{{{_UID}}})-([1-9][0-9]{{0,17}})-([{_ALPHABET}]{{{_NONCE}}})")


class Kind(IntEnum):
    """The kinds of events. Numbers are never reused for another kind."""

    #: The study was created: `data` is its specification (JSON).
    CREATED = 1
    #: An arm was suggested: `arm`; `tag` is the policy's tag, or the version its levels were drawn
    #: from, `REPEAT` or `HELD_OUT`; `value` is its propensity, if known; `data` is the caller's own
    #: data (JSON).
    SUGGESTED = 2
    #: A reward was reported: suggestion, `value` as reported; `tag` is 1 if it came after expiry.
    REPORTED = 3
    #: The arm was never shown: suggestion.
    CANCELLED = 4
    #: The reward became overdue: suggestion; `tag` is an `Expiry`, `value` the default reward.
    EXPIRED = 5
    #: Levels were added or retired: `data` (JSON), `tag` is the revision's number.
    REVISED = 6
    #: A reward was imported: arm, `value` is the reward, `tag` how many times it occurred.
    HISTORY = 7
    #: The study was closed.
    RETIRED = 8
    #: A version of the design began: `tag` is its number, `data` its shares, leaders, fit and
    #: active levels (JSON).
    VERSION = 9
    #: An exposure drawn by a client: arm, unit, `tag` is the version it was drawn from; `value` is
    #: its reward, or NaN if that is reported later.
    RECORDED = 10
    #: A metric reported with the reward before it: arm, `tag` of that reward, `metric`, `value`.
    GUARDRAIL = 11
    #: A user's note: `data` is {"text": …} (JSON).
    NOTED = 12


#: The outcomes of a suggestion; each occurs at most once per suggestion.
OUTCOMES = (Kind.REPORTED, Kind.CANCELLED, Kind.EXPIRED)
#: Events whose `data` the fold uses.
WITH_DATA = (Kind.CREATED, Kind.REVISED, Kind.VERSION)
#: Events that show an arm to a unit; outcomes refer to them.
EXPOSURES = (Kind.SUGGESTED, Kind.RECORDED)

#: Tags of exposures that aren't evidence: of a unit that was counted before, ...
REPEAT = -2
#: ... and of a unit that is held out, and so is shown the control.
HELD_OUT = -3


def late_report(tag: int) -> tuple[int, int]:
    """Return the `tag` and `metric` of a late report, from the tag of an exposure with shares.

    The exposure is no longer in the table, so the report must carry this information.

    >>> late_report(7), late_report(HELD_OUT)
    ((1, 8), (-3, 0))
    """
    return (tag, 0) if tag <= REPEAT else (1, max(tag + 1, 0))


class Expiry(IntEnum):
    """What was done about an overdue reward."""

    DROPPED = 0
    DEFAULT = 1
    WAITING = 2


class Event(NamedTuple):
    """One event; its fields are the single definition of a log's columns.

    Tables, SQL statements, folds and exports derive from these fields. `Kind` says which of them a
    kind of event uses; the storage fills in seq, at and checksum. A field added here is also added
    to existing tables when they are next opened for writing (increase FORMAT of the storages);
    until then, and in all earlier events, it reads as its default.

    Arms are numbered on the *room* of their study: the grid with as many levels on each side as the
    study can ever have (`Spec.room`). So an arm keeps its number when levels are added. Version 1
    of the tables had a row and a column, on 4,096 × 4,096: see `FORMER_ARM`.
    """

    kind: Annotated[int, "int2"]
    arm: Annotated[int, "int8"] = 0
    tag: Annotated[int, "int8"] = 0
    suggestion: Annotated[int, "int8"] = 0
    value: Annotated[float, "float8"] = math.nan
    nonce: Annotated[int, "int4"] = 0
    key: Annotated[str | None, "text"] = None
    position: Annotated[int, "int4"] = 0
    unit: Annotated[str | None, "text"] = None
    data: Annotated[str | None, "text"] = None
    #: The number of the guardrail, from 1, in the order of `Spec.guardrails`; for a late report,
    #: its exposure's version plus one.
    metric: Annotated[int, "int4"] = 0
    seq: Annotated[int, "int8"] = 0
    at: Annotated[float, "float8"] = 0.0
    #: See `storage.checksum`; 0 in events from before checksums existed.
    checksum: Annotated[int, "int8"] = 0


#: The columns of a log, with their types: int2, int4, int8, float8 or text.
COLUMNS: dict[str, str] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Event, None, None, True).items()
}
#: Converts a row and a column of version 1 to the arm's number on the room of two sides.
FORMER_ARM = "CAST({row} AS bigint) * 4096 + {column}"


class Events(NamedTuple):
    """Many events, with an array for each column that is folded."""

    kind: NDArray[np.int16]
    arm: NDArray[np.int64]
    tag: NDArray[np.int64]
    suggestion: NDArray[np.int64]
    value: NDArray[np.float64]
    nonce: NDArray[np.int32]
    metric: NDArray[np.int32]
    seq: NDArray[np.int64]
    at: NDArray[np.float64]

    @property
    def size(self) -> int:
        """The number of events (`len` is the number of columns)."""
        return len(self.seq)


_TYPES = {"int2": "i2", "int4": "i4", "int8": "i8", "float8": "f8"}
#: A record type with the columns of `Events` and their checksum.
RECORD = np.dtype([(name, _TYPES[COLUMNS[name]]) for name in (*Events._fields, "checksum")])


def columns(records: NDArray[Any]) -> Events:
    """Convert records with the fields of `RECORD` to columns; unknown kinds are refused."""
    kinds = records["kind"]
    if len(kinds) and not 1 <= kinds.min() <= kinds.max() <= max(Kind):
        at = int(((kinds < 1) | (kinds > max(Kind))).argmax())
        raise FormatError(
            f"event {records['seq'][at]} of the log is of kind {kinds[at]}, which this version of "
            f"rank1 doesn't know (it knows 1 to {max(Kind)})",
            "a later one wrote it; upgrade rank1",
        )
    return Events(*(records[name].astype(RECORD[name]) for name in Events._fields))


def as_events(events: Sequence[Event], first: int, at: float) -> Events:
    """Convert events to columns, numbered from `first`, as the storage numbered them.

    >>> as_events([Event(Kind.SUGGESTED, arm=4097, nonce=7)], first=5, at=0.5).seq
    array([5])
    """
    size = len(events)
    # Going column by column is four times as fast as through records.
    given = dict(zip(Event._fields, zip(*events, strict=True), strict=True)) if events else {}
    given["kind"] = tuple(map(int, given.get("kind", ())))  # NumPy is slow with enums
    arrays: dict[str, Any] = {
        name: np.array(given.get(name, ()), RECORD[name]) for name in Events._fields
    }
    arrays["seq"], arrays["at"] = np.arange(first, first + size), np.full(size, at)
    return Events(**arrays)


def nonces(count: int) -> list[int]:
    """Return random numbers from 1 to 2^20 - 1, which tell apart events with the same seq.

    >>> all(1 <= nonce < 2**20 for nonce in nonces(1000))
    True
    """
    raw = np.frombuffer(os.urandom(4 * count), np.uint32)
    return (raw % (32**_NONCE - 1) + 1).tolist()


def _written(number: int, digits: int) -> str:
    return "".join(_ALPHABET[number >> 5 * k & 31] for k in reversed(range(digits)))


def new_uid() -> str:
    """Return a random uid for a study, the prefix of its ids.

    >>> len(new_uid())
    6
    """
    return _written(int.from_bytes(os.urandom(4)), _UID)


def suggestion_id(uid: str, seq: int, nonce: int) -> str:
    """Return the id of a suggestion, as users see it.

    >>> suggestion_id("k3fzqa", 17, 1000)
    'k3fzqa-17-00z8'
    """
    return f"{uid}-{seq}-{_written(nonce, _NONCE)}"


def read_id(text: str) -> tuple[str, int, int]:
    """Return the study's uid, the seq and the nonce of an id.

    >>> read_id("k3fzqa-17-00z8")
    ('k3fzqa', 17, 1000)
    >>> read_id("17")
    Traceback (most recent call last):
    ...
    rank1.UnknownSuggestionError: no suggestion has the id '17': ids look like k3fzqa-17-00z8
    """
    if not isinstance(text, str):
        raise InputTypeError("id", text, "the text that ask returned")
    match = _ID.fullmatch(text.strip().lower())
    if match is None:
        raise UnknownSuggestionError(
            f"no suggestion has the id {shown(text)}", "ids look like k3fzqa-17-00z8", id=text
        )
    nonce = 0
    for letter in match[3]:
        nonce = nonce << 5 | _DIGIT[letter]
    return match[1], int(match[2]), nonce


def check_text(name: str, text: Any) -> str:
    """Return `text` after checking that every database can store and find it.

    >>> check_text("key", "a" * 1000)
    Traceback (most recent call last):
    ...
    rank1.InputError: key must be text of 1 to 256 characters, got 1,000 characters
    """
    if not isinstance(text, str):
        raise InputTypeError(name, text, "text")
    if not 1 <= len(text) <= MAX_TEXT:
        got = f"{len(text):,} characters" if text else "an empty text"
        raise InputError(name, text, f"text of 1 to {MAX_TEXT} characters", got=got)
    if not _can_be_kept(text):
        raise InputError(name, text, "text without null characters and halves of surrogate pairs")
    return text


def _can_be_kept(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def check_texts(name: str, texts: Iterable[str | None]) -> None:
    """Do the same for many texts, some of them None, in a third of the time."""
    given = [text for text in texts if text is not None]
    if not given:
        return
    strings = all(isinstance(text, str) for text in given)
    if strings and all(given) and max(map(len, given)) <= MAX_TEXT and _can_be_kept("".join(given)):
        return
    for text in given:
        check_text(name, text)


def read_data(event: Event, damaged: Callable[[str], Exception]) -> Any:
    """Parse an event's data from `data_text`; raises what `damaged` returns if it is invalid."""
    try:
        return None if event.data is None else json.loads(event.data)
    except ValueError as error:
        raise damaged(f"the data of event {event.seq} can't be read: {error}") from None


def data_text(data: Any) -> str | None:
    """Return the caller's data for a suggestion as ASCII JSON.

    >>> data_text({"page": 7})
    '{"page": 7}'
    >>> data_text([1])
    Traceback (most recent call last):
    ...
    rank1.InputTypeError: data must be a JSON object, got [1]
    """
    if data is None:
        return None
    if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
        raise InputTypeError("data", data, "a JSON object")
    try:
        text = json.dumps(dict(data), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("data", data, "a JSON object", str(error)) from None
    if len(text) > MAX_DATA:
        expected = f"a JSON object of at most {MAX_DATA:,} bytes"
        raise InputError("data", data, expected, got=f"{len(text):,}")
    return text
