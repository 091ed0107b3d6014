"""Is a study what its log says?"""

from __future__ import annotations

from typing import Any

import numpy as np

from rank1.documents import Verified
from rank1.errors import Rank1Error
from rank1.studies.events import OUTCOMES, Kind
from rank1.studies.state import StudyState
from rank1.studies.storage import Reader, StudyRow, open_storage
from rank1.studies.unit_of_work import StudyAccess

__all__ = ["examine", "verify"]


def verify(access: StudyAccess) -> Verified:
    """Recompute a study from its log, and compare with all that is derived from it."""
    problems = list(access.storage.check())

    def look(state: StudyState, log: Reader) -> tuple[StudyState, list[str]]:
        found = []
        fresh = access.from_log(log)
        found += [f"in this process: {text}" for text in fresh.differences(state)]
        kept = access.from_snapshot(log)
        if kept is not None:
            restored = access.from_log(log, kept)
            found += [f"from the snapshot: {text}" for text in fresh.differences(restored)]
        found += _recount(fresh, log, access.study.id)
        return fresh, found

    fresh, found = access.look(look)
    problems += found
    return Verified(ok=not problems, problems=problems, **fresh.counts())


def examine(place: str) -> dict[str, Any]:
    """All that can be found out about a storage and its studies, as plain values."""
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


def _recount(state: StudyState, log: Reader, study: int) -> list[str]:
    """The counts by another way than the fold's."""
    events = log.read(study)
    asked, found = events.seq[events.kind == Kind.SUGGESTED], []
    outcome = {kind: events.suggestion[events.kind == kind] for kind in OUTCOMES}
    for kind, seqs in outcome.items():
        if len(np.unique(seqs)) != len(seqs):
            found.append(f"a suggestion is {kind.name.lower()} twice")
        if not np.isin(seqs, asked).all():
            found.append(f"something is {kind.name.lower()} that is no suggestion")
    told, gone = outcome[Kind.REPORTED], outcome[Kind.CANCELLED]
    if np.isin(told, gone).any():
        found.append("a suggestion is both reported and cancelled")
    late = np.setdiff1d(outcome[Kind.EXPIRED], np.concatenate([told, gone]))
    counted = {
        "suggestions": len(asked), "reports": len(told), "expired": len(late),
        "cancelled": len(gone), "pending": len(asked) - len(told) - len(late) - len(gone),
    }  # fmt: skip
    if counted != state.counts():
        found.append(f"the log has {counted}, and its fold {state.counts()}")
    return found
