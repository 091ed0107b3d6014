"""Find impossible contents in the tables of a storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rank1.studies.events import EXPOSURES, OUTCOMES, Kind
from rank1.studies.storage.base import Snapshot, seal_of

__all__ = ["integrity_problems"]

#: The events that are already numbered.
_LOG = "(SELECT * FROM rank1_events WHERE seq > 0)"

_FAULTS = {
    "the log has gaps": f"""
        SELECT s.name, max(e.seq) FROM rank1_studies AS s
        LEFT JOIN {_LOG} AS e ON e.study = s.id GROUP BY s.id, s.name
        HAVING count(e.seq) = 0 OR min(e.seq) <> 1 OR max(e.seq) <> count(e.seq)""",
    "an event is of a kind that this version doesn't know": f"""
        SELECT s.name, e.seq FROM {_LOG} AS e JOIN rank1_studies AS s ON s.id = e.study
        WHERE e.kind NOT BETWEEN 1 AND {max(Kind):d}""",
    "the log doesn't begin with the study's creation, or has it twice": f"""
        SELECT s.name, e.seq FROM {_LOG} AS e JOIN rank1_studies AS s ON s.id = e.study
        WHERE (e.seq = 1) <> (e.kind = {Kind.CREATED:d})""",
    "an event has no number": f"""
        SELECT s.name, e.seq FROM rank1_events AS e JOIN rank1_studies AS s ON s.id = e.study
        WHERE e.seq < 1 AND (e.seq = 0 OR e.kind NOT IN ({Kind.RECORDED:d}, {Kind.REPORTED:d}))""",
    "an event belongs to no study": f"""
        SELECT e.study, e.seq FROM {_LOG} AS e
        WHERE NOT EXISTS (SELECT 1 FROM rank1_studies AS s WHERE s.id = e.study)""",
    "an outcome has no earlier suggestion": f"""
        SELECT s.name, e.seq FROM {_LOG} AS e JOIN rank1_studies AS s ON s.id = e.study
        WHERE (e.suggestion > 0) <> (e.kind IN ({", ".join(str(int(k)) for k in OUTCOMES)}))
        OR e.suggestion > 0 AND NOT EXISTS (
            SELECT 1 FROM rank1_events AS asked WHERE asked.study = e.study
            AND asked.seq = e.suggestion AND asked.seq < e.seq
            AND asked.kind IN ({", ".join(str(int(k)) for k in EXPOSURES)}))""",
    "a suggestion was both reported and cancelled": f"""
        SELECT s.name, e.seq FROM {_LOG} AS e JOIN rank1_studies AS s ON s.id = e.study
        WHERE e.kind = {Kind.CANCELLED:d} AND EXISTS (
            SELECT 1 FROM rank1_events AS other WHERE other.study = e.study
            AND other.suggestion = e.suggestion AND other.suggestion > 0
            AND other.kind = {Kind.REPORTED:d})""",
    "an event is older than the one before": f"""
        SELECT s.name, e.seq FROM {_LOG} AS e JOIN rank1_studies AS s ON s.id = e.study
        JOIN {_LOG} AS before ON before.study = e.study AND before.seq = e.seq - 1
        WHERE before.at > e.at""",
}


def integrity_problems(query: Callable[[str], list[tuple[Any, ...]]]) -> list[str]:
    """Return the impossible contents of the tables, a sentence each."""
    found = []
    for fault, sql in _FAULTS.items():
        rows = query(f"{sql} ORDER BY 1, 2 LIMIT 4")
        found += [f"study {name!r}: {fault} (event {seq})" for name, seq in rows[:3]]
        found += [f"… and more: {fault}"] * (len(rows) > 3)
    snapshots = "SELECT study, seq, layout, blob, digest FROM rank1_snapshots"
    for study, seq, layout, blob, seal in query(snapshots):
        if seal_of(study, Snapshot(seq, layout, bytes(blob))) != bytes(seal):
            found.append(
                f"the snapshot of study number {study} at event {seq} is damaged; it is derived "
                "from the log, and won't be used"
            )
    return found
