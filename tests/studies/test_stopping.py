"""Wrong stops of live studies, looked at after every event."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rank1.stopping.rule import _weakest, leader_of, rule_of
from rank1.studies.events import Event, Expiry, Kind, as_events
from tests.studies.test_any_order import _state

pytestmark = pytest.mark.usefixtures("uncompiled")

WINDOW = 10.0


def first_stop(means: Any, confidence: float, steps: int, seed: int) -> tuple[int, ...] | None:
    """The leader of the first stop; a success is known at once, a failure by the window's end."""
    state = _state(
        "uts", rows=["a", "b"], columns=["c", "d"], reward_window=WINDOW, on_expiry="default"
    )
    rng, rule = np.random.default_rng(seed), rule_of((2, 2), confidence, 0.0, True)
    seq = 1
    state.fold(as_events([Event(Kind.CREATED)], 1, 0.0), lambda seq: None)

    def add(event: Event, at: float) -> None:
        nonlocal seq
        seq += 1
        state.fold(as_events([event], seq, at), lambda seq: None)

    for t in range(steps):
        now = float(t)
        for late in state.overdue(now):
            add(Event(Kind.EXPIRED, tag=int(Expiry.DEFAULT), suggestion=late, value=0.0), now)
        add(Event(Kind.SUGGESTED, *(pull := state.choose(rng, 1)[0])), now)
        if rng.random() < means[divmod(pull.arm, 4096)]:
            add(Event(Kind.REPORTED, arm=pull.arm, suggestion=seq, value=1.0), now)
        counts, sums = state.evidence(now)
        won, lost = sums.ravel(), (counts - sums).ravel()
        leader = leader_of(won, lost)
        others = rule.grid.neighbours(leader)
        least, _ = _weakest(won, lost, leader, others, rule.kind, rule.null, 0.0)
        if least >= rule.threshold:
            return rule.grid.levels(leader)
    return None


@pytest.mark.parametrize(
    ("runs", "steps"), [(20, 60), pytest.param(2000, 200, marks=pytest.mark.validate)]
)
@pytest.mark.parametrize(
    "means",
    [np.full((2, 2), 0.3), np.outer([0.5, 0.48], [0.9, 0.88]), np.outer([0.2, 0.19], [0.3, 0.1])],
    ids=["null", "near tie", "small"],
)
def test_wrong_stops_are_within_the_level(means: Any, runs: int, steps: int) -> None:
    """At confidence 0.5 half the studies might stop wrongly; three standard errors are allowed."""
    best = {(0, 0)} if means[0, 0] > means[1, 1] else set()
    stops = [first_stop(means, 0.5, steps, seed) for seed in range(runs)]
    wrong = sum(stop is not None and stop not in best for stop in stops)
    assert wrong <= 0.5 * runs + 3 * np.sqrt(runs / 4)
