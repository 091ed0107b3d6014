"""Logs of earlier versions come to what they came to then, whatever policies do now."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rank1.studies.asking import counts_of
from rank1.studies.best import best_of
from rank1.studies.log import RECORD, Event, Kind, columns
from rank1.studies.memory import Memory
from rank1.studies.spec import read_spec
from tests.studies.kept import kept

KEPT = list(kept())


def folded(events: list[Event]) -> Memory:
    memory = Memory(read_spec(events[0].data))
    rows = [(e.seq, e.at, *e[:7]) for e in events]
    texts = {event.seq: event.data for event in events}
    memory.fold(columns(np.array(rows, RECORD)), texts.__getitem__)
    return memory


@pytest.mark.parametrize(("case", "events"), [k[1:] for k in KEPT], ids=[k[0] for k in KEPT])
def test_a_kept_log_is_folded(case: dict[str, Any], events: list[Event]) -> None:
    assert {event.kind for event in events} >= set(Kind) - {Kind.RETIRED}
    memory = folded(events)
    assert counts_of(memory) == case["totals"]
    best = best_of(memory, memory.spec, events[-1].at)
    np.testing.assert_allclose(best.counts, case["counts"], rtol=1e-12)
    means = np.array(case["means"], float)
    np.testing.assert_allclose(best.means, means, rtol=1e-12)
    memory.choose(np.random.default_rng(1), 100)


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
            event = event._replace(tag=tag, row=int(rng.integers(3)), column=int(rng.integers(2)))
        changed.append(event)
    memory = folded(changed)
    assert counts_of(memory) == case["totals"]
    total = np.sum(case["counts"]) if memory.spec.forgetting is None else None
    counts, _ = memory.evidence(events[-1].at)
    assert total is None or counts.sum() == total
    memory.choose(rng, 100)
