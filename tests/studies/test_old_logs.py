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
from rank1.studies.events import Kind
from rank1.studies.storage import Storage, open_storage
from rank1.studies.storage.sqlite import SqliteStorage
from rank1.studies.storage.tables import FORMAT
from tests.studies import old_logs
from tests.studies.conftest import new_schema

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # about divisions by zero

VERSIONS = ("0.1", "0.2")


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "postgres"])
def old(
    request: pytest.FixtureRequest, version: str, tmp_path: Path
) -> Iterator[tuple[Storage, dict[str, Any]]]:
    """Yield a storage as an earlier version left it, and what that version reported."""
    if request.param == "sqlite":
        place = str(tmp_path / "rank1.db")
        Path(place).write_bytes(old_logs.kept(f"log-{version}.db"))
    else:
        place = new_schema(request.getfixturevalue("server"))
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute(old_logs.kept(f"log-{version}.sql"))
    storage = open_storage(place)
    with old_logs.clock(lambda: old_logs.NOW):
        yield storage, json.loads(old_logs.kept(f"log-{version}.json"))[request.param]
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
        assert found["sides"] == then.get("sides", _pair(then)), name
        for fact in ("revision", "totals", "verify"):
            assert found[fact] == then[fact], (name, fact)
        for line, before in zip(found["export"], then["export"], strict=True):
            differ = [each for each, was in before.items() if line[each] != was]
            assert differ in ([], ["version"])  # asks used to be exported without it
            assert before.get("version") in (None, line.get("version"))
        for fact in ("leader", "counts", "stop", "any_grid_stop", "totals", "pending"):
            assert found["best"][fact] == then["best"][fact], (name, fact)
        assert found["best"]["version"] == then["best"].get("version"), name
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
        if study.spec.design:
            _repeat_records(study, then["export"])
        else:
            before = then["export"][-8:-3]
            again = study.ask(count=5, key="turn 9", data=before[0].get("data"))
            assert [each.id for each in again] == [each["id"] for each in before]
        for line in then["export"]:
            if line["state"] == "reported" and not str(line["unit"]).startswith(("unit", "wait")):
                assert study.tell(line["id"], line["reward"]).late == line["late"]
        assert study.counts() == then["totals"]
        new = study.ask(given=dict.fromkeys(study.spec.given, "old") or None)
        study.tell(new.id, study.spec.reward_range[1])
        assert study.counts()["reports"] == then["totals"]["reports"] + 1
        assert study.verify().ok


def test_later_ones_have_every_kind_of_event(tmp_path: Path) -> None:
    """A new kind needs new files: raise the version, and run `old_logs`."""
    path = tmp_path / "rank1.db"
    path.write_bytes(old_logs.kept(f"log-{VERSIONS[-1]}.db"))
    with SqliteStorage(path) as storage, storage.reading() as log:
        pages = [log.page(row.id, limit=10_000) for row in log.studies()]
    assert {event.kind for page in pages for event in page} == set(Kind)
    assert all(event.checksum for page in pages for event in page)
    assert FORMAT == 4


def _pair(then: dict[str, Any]) -> dict[str, list[str]]:
    return {"row": then.get("rows", []), "column": then.get("columns", [])}


def _repeat_records(study: Study, lines: list[dict[str, Any]]) -> None:
    records = [each for each in lines if each["version"] is not None and "unit" in each["unit"]]
    assert len(records) > 50
    given = [(each["unit"], each["version"], each["levels"]) for each in records]
    for answer in study.record_many(given):
        assert not isinstance(answer, Exception), answer
        assert not answer.new
