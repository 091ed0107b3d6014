"""What studies and services answer with, as plain values: this module imports the standard library.

A study makes these documents, the service sends them as JSON, and the client reads them: both ends
have the same classes, and the client needs neither NumPy nor anything that is compiled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rank1.errors import BackendError

__all__ = ["Replayed", "Report", "Suggestion", "Verified", "read_document", "to_document"]

T = TypeVar("T")


@dataclass(frozen=True)
class Suggestion:
    """An arm to be shown, under an id by which its reward is reported."""

    id: str
    #: The level of each side.
    levels: dict[str, str] = field(hash=False)
    #: By the storage's clock, in seconds since 1970.
    asked_at: float
    #: When its reward is overdue; None if never.
    expires_at: float | None = None
    unit: str | None = None
    key: str | None = None
    #: What the caller stored with it.
    data: dict[str, Any] | None = field(default=None, hash=False)
    #: Of a study with two sides.
    row: str | None = None
    column: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain values; row and column only where there are two sides."""
        return _without_pair(self)


@dataclass(frozen=True)
class Report:
    """A report that is stored."""

    id: str
    levels: dict[str, str] = field(hash=False)
    reward: float
    told_at: float
    #: Whether it came after its suggestion had expired.
    late: bool
    #: Of a study with two sides.
    row: str | None = None
    column: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain values; row and column only where there are two sides."""
        return _without_pair(self)


@dataclass(frozen=True)
class Replayed:
    """How another policy would have fared on a log's rewards; what `Study.replay` returns."""

    policy: str
    #: Pulls until an arm was asked for that had no reward left, and their average reward.
    steps: int
    rate: float
    #: Rewards in the log, and their average.
    rewards: int
    logged_rate: float
    #: Labels, in the order of the sides.
    best: tuple[str, ...]
    #: The arm that had no reward left; None if the policy went through as many as there are.
    exhausted: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return to_document(self)


@dataclass(frozen=True)
class Verified:
    """What `Study.verify` found."""

    ok: bool
    suggestions: int
    reports: int
    pending: int
    expired: int
    cancelled: int
    #: What is wrong, a sentence each.
    problems: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As plain values; the problems only if there are any."""
        fields = dict(vars(self))
        if not self.problems:
            fields.pop("problems")
        return fields


def _without_pair(document: Suggestion | Report) -> dict[str, Any]:
    fields = dict(vars(document))
    if document.row is None:
        del fields["row"], fields["column"]
    return fields


def to_document(value: Any) -> Any:
    """A document's value as JSON has it: lists for tuples and arrays, None for NaN and infinity.

    >>> to_document({"best": ("a", "x"), "rate": float("nan")})
    {'best': ['a', 'x'], 'rate': None}
    """
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: to_document(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_document(each) for each in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def read_document(kind: type[T], fields: Mapping[str, Any]) -> T:
    """A document from JSON: names that aren't known here are ignored, missing ones have defaults.

    >>> read_document(Report, {"id": "k3", "levels": {"image": "x"}, "reward": 1.0, "told_at": 0.0,
    ...                        "late": False, "colour": "of a later version"}).reward
    1.0
    """
    known: Any = dataclasses.fields(kind)  # type: ignore[arg-type]
    given = {each.name: fields[each.name] for each in known if each.name in fields}
    try:
        return kind(**given)
    except TypeError as error:
        raise BackendError(
            f"the service's answer is no {kind.__name__.lower()}: {error}",
            "compare the versions of rank1 here and there",
        ) from None
