"""Seeded outcomes haven't changed."""

from __future__ import annotations

import json

import pytest

from rank1.policies import POLICIES
from tests.golden import FILE, PROBLEMS, outcomes
from tests.support import few


# Each type of problem needs compiling.
@pytest.mark.parametrize("title", few(PROBLEMS, 1))
@pytest.mark.parametrize("name", POLICIES)
def test_outcomes_are_on_record(name: str, title: str) -> None:
    record = json.loads(FILE.read_text())["policies"][name]
    now = outcomes(name, title)
    assert list(now) == [case for case in record if case.startswith(title)]
    for case, found in now.items():
        assert found["best_arms"] == record[case]["best_arms"], case
        for kind in ("expected", "realised"):
            for ours, theirs in zip(found[kind], record[case][kind], strict=True):
                assert ours == pytest.approx(theirs, rel=1e-12), f"{case}, {kind}"


def test_nothing_else_is_on_record() -> None:
    assert set(json.loads(FILE.read_text())["policies"]) == set(
        POLICIES
    )  # if it fails after an intended change: python -m tests.golden
