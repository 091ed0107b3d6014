"""Storages of earlier versions give the same answers as they did then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from rank1 import Study
from rank1.studies.storage import Storage, open_storage
from tests.studies import old_logs
from tests.studies.conftest import new_schema

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # about divisions by zero

SAID = json.loads(old_logs.kept("log-0.1.json"))


@pytest.fixture(params=["sqlite", "postgres"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Storage, dict[str, Any]]]:
    """Yield a storage as version 0.1 left it, and what that version reported."""
    if request.param == "sqlite":
        place = str(tmp_path / "rank1.db")
        Path(place).write_bytes(old_logs.kept("log-0.1.db"))
    else:
        place = new_schema(request.getfixturevalue("server"))
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute(old_logs.kept("log-0.1.sql"))
    storage = open_storage(place)
    with old_logs.clock(lambda: old_logs.NOW):
        yield storage, SAID[request.param]
    storage.close()


def same(now: Any, then: Any) -> None:
    np.testing.assert_allclose(
        np.array(now, float).ravel(), np.array(then, float).ravel(), rtol=1e-9
    )


def test_they_say_what_they_said(old: tuple[Storage, dict[str, Any]], tmp_path: Path) -> None:
    storage, said = old
    now = old_logs.facts(storage, tmp_path)
    assert list(now) == sorted(said)
    for name, then in said.items():
        found = now[name]
        for fact in ("rows", "columns", "revision", "totals", "verify"):
            assert found[fact] == then[fact], (name, fact)
        for line, before in zip(found["export"], then["export"], strict=True):
            assert before.items() <= line.items()
        for fact in ("leader", "counts", "stop", "any_grid_stop", "totals", "pending"):
            assert found["best"][fact] == then["best"][fact], (name, fact)
        for fact in ("means", "mean_lower", "upper", "mark"):
            same(found["best"][fact], then["best"][fact])
        for table, values in then["tables"].items():
            same(found["tables"][table], values)


def test_a_policy_has_learned_what_it_had(old: tuple[Storage, dict[str, Any]]) -> None:
    storage, said = old
    for name, then in said.items():
        study = Study.open(name, storage)
        study.counts()
        state = old_logs.state_of(study)
        for array, values in then["state"].items():
            if array in old_logs.SAME_MEANING:
                assert array in state, (name, array)
                same(state[array], values)


def test_they_go_on(old: tuple[Storage, dict[str, Any]]) -> None:
    storage, said = old
    for name, then in said.items():
        if name == "retired":
            continue
        study = Study.open(name, storage)
        again = study.ask(count=5, key="turn 9")
        assert [each.id for each in again] == [each["id"] for each in then["export"][-8:-3]]
        for line in then["export"]:
            if line["state"] == "reported":
                assert study.tell(line["id"], line["reward"]).late == line["late"]
        assert study.counts() == then["totals"]
        new = study.ask()
        study.tell(new.id, study.spec.reward_range[1])
        assert study.counts()["reports"] == then["totals"]["reports"] + 1
        assert study.verify().ok
