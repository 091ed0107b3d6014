"""The events of a study's log: what can happen, how it is kept, and the ids people see.

A log is a list of events, numbered 1, 2, 3, … without gaps (`seq`), to which events are only ever
added. All a study knows follows from its log. A suggestion is known by the seq of the event that
handed it out.
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

from rank1.errors import (
    FormatError,
    InputError,
    InputTypeError,
    UnknownSuggestionError,
    shown,
)

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

#: The longest name, idempotency key or unit, in characters: at most 1,024 bytes, so that each
#: fits into the indices of every database.
MAX_TEXT = 256

#: The longest `data` of a suggestion, as JSON in ASCII, in bytes.
MAX_DATA = 4096

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
    #: A pull was handed out: arm; `tag` is the policy's, or the version that its levels were drawn
    #: under, `REPEAT` or `HELD_OUT`; `value` is its propensity, where one is known; `data` is what
    #: the caller wants to know again (JSON).
    SUGGESTED = 2
    #: A reward came back: suggestion, `value` as it was told; `tag` is 1 if it came after expiry.
    REPORTED = 3
    #: The pull was never shown: suggestion.
    CANCELLED = 4
    #: The reward is overdue: suggestion; `tag` says what was done (`Expiry`), `value` the default.
    EXPIRED = 5
    #: Levels were added or retired: `data` (JSON), `tag` is the revision's number.
    REVISED = 6
    #: What was known from elsewhere: arm, `value` the reward, `tag` how many times.
    HISTORY = 7
    #: The study was closed.
    RETIRED = 8
    #: A version of the design begins: `tag` is its number, `data` its shares, leaders, fit and
    #: which levels live (JSON).
    VERSION = 9
    #: An exposure that was drawn elsewhere: arm, unit, `tag` is the version it was drawn under;
    #: `value` is its reward, NaN if that comes later, as a report.
    RECORDED = 10
    #: A second metric that came with the reward before it: arm, `tag` as there, `metric`, `value`.
    GUARDRAIL = 11
    #: Somebody's remark: `data` is {"text": …} (JSON).
    NOTED = 12


#: Events that say what became of a suggestion; each at most once for each suggestion.
OUTCOMES = (Kind.REPORTED, Kind.CANCELLED, Kind.EXPIRED)
#: Events whose `data` is folded.
WITH_DATA = (Kind.CREATED, Kind.REVISED, Kind.VERSION)
#: Events that show an arm to somebody: what outcomes speak of.
EXPOSURES = (Kind.SUGGESTED, Kind.RECORDED)

#: Tags of exposures that are no evidence: a unit that was counted before, ...
REPEAT = -2
#: ... and one that is held out, so that it is shown the control.
HELD_OUT = -3


def late_report(tag: int) -> tuple[int, int]:
    """The `tag` and `metric` of a late report, from the tag of an exposure drawn by shares.

    What isn't in the table any more is known by its report alone.

    >>> late_report(7), late_report(HELD_OUT)
    ((1, 8), (-3, 0))
    """
    return (tag, 0) if tag <= REPEAT else (1, max(tag + 1, 0))


class Expiry(IntEnum):
    """What was done about a reward that is overdue."""

    DROPPED = 0
    DEFAULT = 1
    WAITING = 2


class Event(NamedTuple):
    """One event, and the one definition of the columns that a log has.

    Tables, statements, what is folded and what is exported derive from these fields. `Kind` says
    which of them mean something; the storage fills in seq, at and checksum. A field that is added
    here is added to the tables of earlier versions when they are next opened for writing (raise
    FORMAT of the storages); until then, and in all events before, it reads as its default.

    An arm has its number on the *room* of its study: the grid with as many levels on each side as
    the study can ever have (`Spec.room`). So the number stays when levels are added. Version 1 of
    the tables had a row and a column, on 4,096 × 4,096: see `FORMER_ARM`.
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
    #: The guardrail of an event, from 1 on, in the order of `Spec.guardrails`; of a late report,
    #: one more than its exposure's version.
    metric: Annotated[int, "int4"] = 0
    seq: Annotated[int, "int8"] = 0
    at: Annotated[float, "float8"] = 0.0
    #: See `storage.checksum`; 0 in events from before there were any.
    checksum: Annotated[int, "int8"] = 0


#: The columns of a log, with their types: int2, int4, int8, float8 or text.
COLUMNS: dict[str, str] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Event, None, None, True).items()
}
#: What a row and a column of version 1 come to: the arm's number on the room of two sides.
FORMER_ARM = "CAST({row} AS bigint) * 4096 + {column}"


class Events(NamedTuple):
    """Many events, an array for each column that is folded."""

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
        """How many events there are (`len` is the number of columns)."""
        return len(self.seq)


_TYPES = {"int2": "i2", "int4": "i4", "int8": "i8", "float8": "f8"}
#: The columns of `Events` and their checksum, as one record.
RECORD = np.dtype([(name, _TYPES[COLUMNS[name]]) for name in (*Events._fields, "checksum")])


def columns(records: NDArray[Any]) -> Events:
    """Records with the fields of `RECORD`, as columns; kinds that are unknown here are refused."""
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
    """Events as columns, numbered from `first`, which is what the storage did with them.

    >>> as_events([Event(Kind.SUGGESTED, arm=4097, nonce=7)], first=5, at=0.5).seq
    array([5])
    """
    size = len(events)
    # Column by column: through records it would take four times as long.
    given = dict(zip(Event._fields, zip(*events, strict=True), strict=True)) if events else {}
    given["kind"] = tuple(map(int, given.get("kind", ())))  # enums take NumPy long
    arrays: dict[str, Any] = {
        name: np.array(given.get(name, ()), RECORD[name]) for name in Events._fields
    }
    arrays["seq"], arrays["at"] = np.arange(first, first + size), np.full(size, at)
    return Events(**arrays)


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
        raise InputTypeError("id", text, "the text that ask gave")
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
    """`text`, which every database must be able to keep and to find again.

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
    """The same for many, of which some may be None: a third of the time."""
    given = [text for text in texts if text is not None]
    if not given:
        return
    strings = all(isinstance(text, str) for text in given)
    if strings and all(given) and max(map(len, given)) <= MAX_TEXT and _can_be_kept("".join(given)):
        return
    for text in given:
        check_text(name, text)


def read_data(event: Event, damaged: Callable[[str], Exception]) -> Any:
    """What `data_text` wrote of an event's data; else what `damaged` makes of a sentence."""
    try:
        return None if event.data is None else json.loads(event.data)
    except ValueError as error:
        raise damaged(f"the data of event {event.seq} can't be read: {error}") from None


def data_text(data: Any) -> str | None:
    """What a caller wants to know again of a suggestion, as JSON in ASCII.

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
