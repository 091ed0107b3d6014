"""Verify that a study's derived data match its log."""

from __future__ import annotations

from typing import Any

import numpy as np

from rank1.documents import Verified
from rank1.errors import DamagedError, Rank1Error, SnapshotError
from rank1.studies.events import EXPOSURES, OUTCOMES, Events, Kind
from rank1.studies.state import StudyState, layout_of
from rank1.studies.storage import Reader, Snapshot, StudyRow, open_storage
from rank1.studies.unit_of_work import StudyAccess

__all__ = ["examine", "verify"]


def verify(access: StudyAccess) -> Verified:
    """Recompute a study from its log, and compare it with all derived data."""
    problems = list(access.storage.check())
    fresh = StudyState(access.spec)
    try:
        with access.turn:
            problems += _differences(access, fresh)
    except DamagedError as error:  # `check` has already said more about it
        problems = problems or [str(error)]
    return Verified(ok=not problems, problems=problems, **fresh.counts())


def _differences(access: StudyAccess, fresh: StudyState) -> list[str]:
    """Describe the differences from the log, which is folded into a `fresh` state."""
    layout = layout_of(access.spec)

    def read(state: StudyState, log: Reader) -> tuple[Any, Any, StudyState, Snapshot | None]:
        return *access.read(log), state, log.snapshot(access.study.id, layout)

    events, texts, state, kept = access.look(read)
    fresh.fold(events, texts)
    found = [f"in this process: {text}" for text in fresh.differences(state)]
    if kept is not None:
        try:
            restored = StudyState.from_bytes(access.spec, kept.blob)
            later = Events(*(column[kept.seq :] for column in events))
            restored.fold(later, texts)
            found += [f"from the snapshot: {text}" for text in fresh.differences(restored)]
        except SnapshotError as error:
            found.append(str(error))
    return found + _recount(fresh, events)


def examine(place: str) -> dict[str, Any]:
    """Examine a storage and its studies; return all findings as plain values."""
    import platform

    import rank1

    versions = {"rank1": rank1.__version__, "Python": platform.python_version()}
    versions["NumPy"] = np.__version__
    storage = open_storage(place)
    try:
        if not place.startswith("postgres"):
            import apsw

            versions["SQLite"] = apsw.sqlite_lib_version()
        problems = list(storage.check())
        studies = []
        rows: list[StudyRow] = []
        if not problems:
            with storage.reading() as log:
                rows = log.studies()
        for row in rows:
            try:
                found = verify(StudyAccess(storage, row))
            except Rank1Error as error:
                studies.append({"name": row.name, "ok": False, "reports": 0})
                problems.append(f"{row.name}: {error}")
                continue
            studies.append({"name": row.name, **found.to_dict()})
            problems += [f"{row.name}: {text}" for text in found.problems]
    finally:
        storage.close()
    return {
        "ok": not problems, "storage": storage.where, "versions": versions, "studies": studies,
        "problems": problems,
    }  # fmt: skip


def _recount(state: StudyState, events: Events) -> list[str]:
    """Compare the counts with a recount that doesn't use the fold."""
    asked, found = events.seq[np.isin(events.kind, list(map(int, EXPOSURES)))], []
    at_once = int(np.count_nonzero((events.kind == Kind.RECORDED) & ~np.isnan(events.value)))
    outcome = {kind: events.suggestion[events.kind == kind] for kind in OUTCOMES}
    for kind, seqs in outcome.items():
        if len(np.unique(seqs)) != len(seqs):
            found.append(f"a suggestion is {kind.name.lower()} twice")
        if not np.isin(seqs, asked).all():
            found.append(f"an event of kind {kind.name.lower()} refers to no suggestion")
    told, gone = outcome[Kind.REPORTED], outcome[Kind.CANCELLED]
    if np.isin(told, gone).any():
        found.append("a suggestion is both reported and cancelled")
    late = np.setdiff1d(outcome[Kind.EXPIRED], np.concatenate([told, gone]))
    counted = {
        "suggestions": len(asked), "reports": len(told) + at_once, "expired": len(late),
        "cancelled": len(gone),
        "pending": len(asked) - len(told) - at_once - len(late) - len(gone),
    }  # fmt: skip
    if counted != state.counts():
        found.append(f"the log has {counted}, but its fold has {state.counts()}")
    return found
