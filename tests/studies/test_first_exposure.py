"""A unit counts once, by its first exposure, however it returns and wherever its rewards go."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1 import Study
from rank1.documents import Recorded
from tests.studies.test_drawn import CONTROL, create, design

__all__ = ["create"]

pytestmark = pytest.mark.usefixtures("uncompiled")

Create = Callable[..., Study]
AX = {"headline": "A", "image": "x"}


@pytest.mark.parametrize("goal", ["earn", "find"])
def test_a_pending_unit_keeps_its_suggestion_whatever_the_key(create: Create, goal: str) -> None:
    study = create(goal=goal)
    first = study.ask(unit="u", key="k1")
    again = study.ask(unit="u", key="k2")
    assert (again.id, again.levels) == (first.id, first.levels)
    study.tell(again.id, 1.0)
    assert study.best().counts.sum() == 1


def test_a_reward_goes_to_the_record_though_the_unit_has_asked_since(create: Create) -> None:
    study = create()
    study.record("v", 0, AX)
    visit = study.ask(unit="v")
    assert study.record("v", 0, AX).new is False  # a retry gets the same answer
    assert study.reward("v", 1.0).levels == AX
    assert (study.best().counts.sum(), study.counts()["pending"]) == (1, 1)
    assert study.reward("v", 0.0).id == visit.id  # for the visit, which isn't evidence
    assert (study.best().counts.sum(), study.counts()["pending"]) == (1, 0)
    with pytest.raises(rank1.ConflictError):
        study.reward("v", 1.0)


def test_a_version_may_come_from_a_frame(create: Create) -> None:
    study = create()
    versions: list[Any] = [np.int64(0), 0.0]
    assert [study.record(f"a{each!r}", each, AX).version for each in versions] == [0, 0]
    wrong: Any = {"headline": ["A"], "image": "x"}
    refused, stored = study.record_many([("c", 0, wrong), ("d", 0, AX)])
    assert "levels.headline" in str(refused)
    assert isinstance(stored, Recorded)


def test_a_refused_record_adds_no_level(create: Create) -> None:
    sides = {"segment": ["p"], "channel": ["a", "b"]}
    study = create(sides, given=["segment"], new_levels="add")
    bad = [
        ("a", 0, {"segment": "junk", "channel": "zz"}),
        ("b", 0, {"segment": "", "channel": "a"}),
        ("c", 9, {"segment": "more", "channel": "a"}),
    ]
    *refused, stored = study.record_many([*bad, ("d", 0, {"segment": "q", "channel": "a"})])
    assert all(isinstance(each, rank1.Rank1Error) for each in refused)
    assert isinstance(stored, Recorded)
    assert stored.levels == {"segment": "q", "channel": "a"}
    assert study.sides["segment"] == ["p", "q"]


def test_a_contradicting_record_or_ask_adds_no_level(create: Create) -> None:
    sides = {"segment": ["p"], "channel": ["a", "b"]}
    study = create(sides, given=["segment"], new_levels="add")
    first = study.record("a", 0, {"segment": "p", "channel": "a"})
    other, new, contradicting, again, wrong = study.record_many(
        [
            ("a", 0, {"segment": "junk", "channel": "a"}),
            ("b", 0, {"segment": "q", "channel": "a"}),
            ("b", 0, {"segment": "more junk", "channel": "a"}),
            ("a", 0, {"segment": "p", "channel": "a"}),
            (["c"], 0, {"segment": "junk", "channel": "a"}),
        ]
    )
    assert all(isinstance(each, rank1.Rank1Error) for each in (other, contradicting, wrong))
    assert isinstance(new, Recorded)
    assert again == dataclasses.replace(first, new=False)
    assert study.sides["segment"] == ["p", "q"]
    pending = study.ask(unit="d", given={"segment": "p"})
    with pytest.raises(rank1.ConflictError, match="has a pending suggestion"):
        study.ask(unit="d", given={"segment": "junk"})
    with pytest.raises(rank1.InputError, match="unit"):
        study.ask(unit="", given={"segment": "junk"})
    assert study.sides["segment"] == ["p", "q"]
    assert study.ask(unit="d", given={"segment": "p"}) == pending


def test_what_is_no_evidence_stays_none_after_export_and_import(
    create: Create, tmp_path: Path
) -> None:
    study = create(control=CONTROL, holdout=0.5)
    shares = study.shares()
    for k in range(20):
        unit = f"u{k}"
        study.record(unit, 0, rank1.assign(shares, unit), float(k % 3 == 0))
    again = study.ask(unit="u1")
    study.tell(again.id, 1.0)
    evidence = study.best().counts.sum()
    assert 0 < evidence < 20
    assert study.replay("thompson").rewards == evidence
    for name in ("a.jsonl", "a.parquet"):
        study.export(tmp_path / name)
        copy = create(control=CONTROL)
        with pytest.warns(UserWarning, match="history"):
            copy.import_history(tmp_path / name)
        assert np.array_equal(copy.best().counts, study.best().counts)
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert {line["version"] for line in lines} == {0, None}
    assert design(study).number == 0


def test_a_key_belongs_to_its_segment(create: Create) -> None:
    study = create({"segment": ["p", "q"], "channel": ["a", "b"]}, given=["segment"])
    first = study.ask(key="k", given={"segment": "p"})
    assert study.ask(key="k", given={"segment": "p"}) == first
    with pytest.raises(rank1.ConflictError, match="'k'"):
        study.ask(key="k", given={"segment": "q"})


def test_what_is_no_report_is_named(create: Create) -> None:
    study = create()
    for wrong in ([("x",)], [5], "ab"):
        with pytest.raises(TypeError, match=r"reports\[0\] must be id, reward, guardrails"):
            study.tell_many(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"limit must be .*got -1"):
        study.events(limit=-1)
    with pytest.raises(TypeError, match=r"after must be .*got 'x'"):
        study.events(after="x")  # type: ignore[arg-type]
