"""Idempotency keys: a retry of a request has the same key."""

from __future__ import annotations

from rank1.errors import ConflictError, shown
from rank1.studies.events import Event, Kind, check_text
from rank1.studies.unit_of_work import UnitOfWork

__all__ = ["key_used", "under_key"]


def under_key(work: UnitOfWork, key: str | None, kind: Kind) -> list[Event]:
    """Return the events stored under a key; raises ConflictError if they are of another kind."""
    if key is None:
        return []
    check_text("key", key)
    given = work.log.with_key(work.study.id, key)
    if any(each.kind != kind for each in given):
        raise key_used(key)
    return given


def key_used(key: str | None) -> ConflictError:
    """Return the error for a key that another request has already used."""
    return ConflictError(
        f"key {shown(key)} was used for something else", "use a new key for a different request",
        key=key,
    )  # fmt: skip
