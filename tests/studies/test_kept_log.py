"""Logs of earlier versions give the same results as then, even if policies have changed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rank1.studies.best import best_of
from rank1.studies.events import RECORD, Event, Kind, columns
from rank1.studies.spec import read_spec
from rank1.studies.state import StudyState

#: The fields of an event in a line.
FIELDS = (
    "kind", "row", "column", "tag", "suggestion", "value", "nonce", "key", "position", "unit",
    "data", "seq", "at",
)  # fmt: skip


def kept() -> Iterator[tuple[str, dict[str, Any], list[Event]]]:
    """Yield title, facts and events of logs of all policies at that time, with two sides."""
    with gzip.open(Path(__file__).with_name("data") / "log-1.jsonl.gz", "rt") as file:
        for line in file:
            case = json.loads(line)
            yield case["policy"], case, [_event(row) for row in case["events"]]


def _event(row: list[Any]) -> Event:
    fields = dict(zip(FIELDS, row, strict=True))
    fields["arm"] = 4096 * fields.pop("row") + fields.pop("column")
    fields["value"] = np.nan if fields["value"] is None else fields["value"]
    return Event(**fields)


KEPT = list(kept())


def folded(events: list[Event]) -> StudyState:
    state = StudyState(read_spec(events[0].data))
    rows = [tuple(getattr(event, name) for name in RECORD.names or ()) for event in events]
    texts = {event.seq: event.data for event in events}
    state.fold(columns(np.array(rows, RECORD)), texts)
    return state


@pytest.mark.parametrize(("case", "events"), [k[1:] for k in KEPT], ids=[k[0] for k in KEPT])
def test_a_kept_log_is_folded(case: dict[str, Any], events: list[Event]) -> None:
    assert {event.kind for event in events} >= set(range(Kind.CREATED, Kind.RETIRED))
    state = folded(events)
    assert state.counts() == case["totals"]
    best = best_of(state, state.spec, events[-1].at)
    np.testing.assert_allclose(best.counts, case["counts"], rtol=1e-12)
    means = np.array(case["means"], float)
    np.testing.assert_allclose(best.means, means, rtol=1e-12)
    state.choose(np.random.default_rng(1), 100)


@pytest.mark.parametrize(("case", "events"), [k[1:] for k in KEPT], ids=[k[0] for k in KEPT])
def test_it_is_folded_also_if_the_policy_would_choose_otherwise(
    case: dict[str, Any], events: list[Event]
) -> None:
    """As if the code had changed: other pairs, other tags."""
    rng = np.random.default_rng(1)
    changed = []
    for event in events:
        if event.kind == Kind.SUGGESTED:
            tag = int(rng.integers(0, 2**62)) >> int(rng.integers(0, 62))
            event = event._replace(tag=tag, arm=4096 * int(rng.integers(3)) + int(rng.integers(2)))
        changed.append(event)
    state = folded(changed)
    assert state.counts() == case["totals"]
    total = np.sum(case["counts"]) if state.spec.forgetting is None else None
    counts, _ = state.evidence(events[-1].at)
    assert total is None or counts.sum() == total
    state.choose(rng, 100)
