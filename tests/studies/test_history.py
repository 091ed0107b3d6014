"""Imported rewards: which files are understood, and the errors for lines that aren't."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rank1
from rank1 import Study
from rank1.documents import Imported
from rank1.studies import history
from rank1.studies.events import Event, Kind
from rank1.studies.storage.sqlite import SqliteReader
from rank1.studies.unit_of_work import UnitOfWork
from tests.studies.support import append, python

pytestmark = pytest.mark.usefixtures("uncompiled")

SIDES = {"headline": ["A", "Ärger", "=1"], "image": ["x", "y"], "button": ["buy", "go"]}


@pytest.fixture
def create(tmp_path: Path) -> Callable[..., Study]:
    def create(name: str = "home", **options: Any) -> Study:
        given: dict[str, Any] = {"sides": SIDES, "storage": tmp_path / "rank1.db", "policy": "uts"}
        return Study.create(name, **given | options)

    return create


def counted(study: Study) -> dict[tuple[str, ...], tuple[float, float]]:
    """Return the number and the sum of rewards of each arm that has any."""
    best = study.best()
    found = {}
    for place in np.argwhere(best.counts):
        labels = (names[k] for names, k in zip(best.sides.values(), place, strict=True))
        count = float(best.counts[tuple(place)])
        found[tuple(labels)] = count, float(best.means[tuple(place)]) * count
    return found


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("sides", [SIDES, {"row": ["a", "b"], "column": ["c", "d"]}])
def test_an_export_is_imported(
    create: Callable[..., Study], tmp_path: Path, ending: str, sides: dict[str, list[str]]
) -> None:
    study, other = create(sides=sides), create("other", sides=sides)
    given = study.ask(count=30)
    study.tell_many([(each.id, k % 5 / 4) for k, each in enumerate(given[:20])])
    study.cancel(given[20].id)
    (tmp_path / "a").mkdir()
    file = tmp_path / f"a/log.{ending}"
    assert study.export(file) == 30
    assert other.import_history(file) == Imported(20, skipped=10)
    assert other.import_history(file) == Imported(20, skipped=10, already_imported=True)
    assert counted(other) == counted(study)
    assert other.verify().problems == []
    before = counted(study)
    with pytest.raises(rank1.InputError, match=r"another study: .* counts it already"):
        study.import_history(file)
    assert counted(study) == before


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("on_expiry", ["drop", "default", "wait"])
def test_what_counted_is_imported(
    create: Callable[..., Study],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    on_expiry: str,
    ending: str,
) -> None:
    """A default counts, and then the late reward doesn't."""
    now = [2e9]
    monkeypatch.setattr(SqliteReader, "clock", lambda self: now[0])
    study, other = create(reward_window=60, on_expiry=on_expiry), create("other")
    given = study.ask(count=40)
    study.tell_many([(each.id, 1.0) for each in given[:10]])
    now[0] += 60
    study.tell_many([(each.id, 1.0) for each in given[10:15]])
    file = tmp_path / f"log.{ending}"
    assert study.export(file) == 40
    other.import_history(file)
    assert counted(other) == counted(study)
    assert other.import_history(file).already_imported


@pytest.mark.filterwarnings("ignore:a study that draws by shares")
@pytest.mark.parametrize("split", [False, True])
def test_a_long_import_is_repeated(
    create: Callable[..., Study], monkeypatch: pytest.MonkeyPatch, split: bool
) -> None:
    """Earlier releases let versions begin between the parts of an import."""
    if split:
        append_part = UnitOfWork.append

        def with_versions(self: UnitOfWork, *args: Any, **options: Any) -> int:
            return append_part(self, *args, **options | {"renew": True})

        monkeypatch.setattr(UnitOfWork, "append", with_versions)
    monkeypatch.setattr(history, "PART", 100)
    study = create(goal="find", policy=None)
    study.ask()
    lines = [("A", "x", "go", k / 999) for k in range(1000)]
    assert study.import_history(lines, key="k") == Imported(1000)
    kinds = [event["kind"] for event in study.events(limit=2000)]
    apart = kinds.index("version", 2) < len(kinds) - 1 - kinds[::-1].index("history")
    assert apart == split
    assert study.import_history(lines, key="k") == Imported(1000, already_imported=True)
    for other in (lines[:-1], [*lines, lines[0]], [*lines[:-1], ("A", "y", "go", 1.0)]):
        with pytest.raises(rank1.ConflictError):
            study.import_history(other, key="k")


def test_an_export_has_versions_and_guardrails(
    create: Callable[..., Study], tmp_path: Path
) -> None:
    study = create(
        policy=None, goal="find", guardrails={"left": {"worse_by": 0.1}, "slow": {"worse_by": 0.1}},
        control={"headline": "A", "image": "x", "button": "go"},
    )  # fmt: skip
    one, two = study.ask(count=2)
    study.tell(one.id, 1.0, {"left": 1.0, "slow": 0.25})
    study.tell(two.id, 0.0, {"slow": 0.5})
    study.record("ann", 0, rank1.assign(study.shares(), "ann"), 1.0, {"left": 0.0})
    told = [
        {"left": 1.0, "slow": 0.25}, {"left": None, "slow": 0.5}, {"left": 0.0, "slow": None}
    ]  # fmt: skip
    lines, _ = study.lines()
    assert [line["guardrails"] for line in lines] == told
    assert [line["version"] for line in lines] == [0, 0, 0]
    assert study.export(tmp_path / "log.parquet") == 3
    assert pl.read_parquet(tmp_path / "log.parquet")["guardrails"].to_list() == told


def test_exposures_that_were_drawn_elsewhere_are_exported(
    create: Callable[..., Study], tmp_path: Path
) -> None:
    study = create()
    append(
        study.access.storage, study.access.study,
        Event(Kind.RECORDED, arm=1, tag=3, value=0.5, unit="ann"),
        Event(Kind.RECORDED, arm=2**24, tag=4, unit="bob"),
    )  # fmt: skip
    append(study.access.storage, study.access.study, Event(Kind.REPORTED, suggestion=3, value=1.0))
    (ann, bob), _ = study.lines()
    assert (ann["unit"], ann["state"], ann["reward"], ann["version"]) == ("ann", "reported", 0.5, 3)
    assert (bob["unit"], bob["reward"], bob["version"], bob["late"]) == ("bob", 1.0, 4, False)
    assert ann["told_at"] == ann["asked_at"]
    assert ann["levels"] == {"headline": "A", "image": "x", "button": "go"}
    assert bob["levels"] == {"headline": "Ärger", "image": "x", "button": "buy"}
    assert study.export(tmp_path / "log.parquet") == 2
    assert pl.read_parquet(tmp_path / "log.parquet")["version"].to_list() == [3, 4]
    _, one, two, told = study.events()
    assert (one["version"], one["reward"], two["reward"], told["id"]) == (3, 0.5, None, bob["id"])


ARMS = "headline,image,button,reward"
FILES = {
    "commas": f"{ARMS}\nA,x,buy,1\nA,x,buy,0.5\nÄrger,y,go,true\n".encode(),
    "mark": f"{ARMS}\nA,x,buy,1\nA,x,buy,.5\nÄrger,y,go,1\n".encode("utf-8-sig"),
    "semicolons": "headline;image;button;reward\r\nA;x;buy;1\r\nA;x;buy;0,5\r\nÄrger;y;go;1,0\r\n"
    .encode("latin-1"),
    "tabs": "reward\tbutton\timage\theadline\n1\tbuy\tx\tA\n.5\tbuy\tx\tA\n1\tgo\ty\tÄrger"
    .encode(),
    "other columns": f'a;note,{ARMS}\n"a; b",A,x,buy,1\n,A,x,buy,0.5\n\n,Ärger,y,go,1\n'
    .encode("cp1252"),
}  # fmt: skip


@pytest.mark.parametrize("file", FILES)
def test_separators_and_encodings_are_found_out(
    create: Callable[..., Study], tmp_path: Path, file: str
) -> None:
    study = create()
    (tmp_path / "known.csv").write_bytes(FILES[file])
    assert study.import_history(tmp_path / "known.csv") == Imported(3)
    assert counted(study) == {("A", "x", "buy"): (2, 1.5), ("Ärger", "y", "go"): (1, 1)}


def test_columns_of_other_names(create: Callable[..., Study], tmp_path: Path) -> None:
    study = create()
    rows = [{"h": "A", "image": "x", "button": "go", "reward": "old", "won": 1}]
    (tmp_path / "a.csv").write_text("h;image;button;reward;won\nA;x;go;old;1\n")
    (tmp_path / "a.jsonl").write_text(json.dumps(rows[0]))
    pl.DataFrame(rows).write_parquet(tmp_path / "a.parquet")
    for number, ending in enumerate(("csv", "jsonl", "parquet"), 1):
        columns = {"reward": "won", "headline": "h"}
        found = study.import_history(tmp_path / f"a.{ending}", key=ending, columns=columns)
        assert found == Imported(1)
        assert counted(study) == {("A", "x", "go"): (number, number)}
    with pytest.raises(rank1.FileError, match=r"missing: headline, there are: h, image") as caught:
        study.import_history(tmp_path / "a.csv")
    assert "successes and trials" in str(caught.value)
    with pytest.raises(rank1.InputError, match="columns must be of headline, image, button, rew"):
        study.import_history(tmp_path / "a.csv", columns={"colour": "h"})
    with pytest.raises(rank1.InputError, match="columns must be None if rows are given"):
        study.import_history([("A", "x", "go", 1.0)], columns=columns)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_counts(create: Callable[..., Study], tmp_path: Path, ending: str) -> None:
    study = create(reward_range=(1, 5))
    arm = {"headline": "A", "image": "x", "button": "go"}

    def write(name: str, rows: list[dict[str, Any]]) -> Path:
        frame = pl.DataFrame([arm | row for row in rows])
        file = tmp_path / f"{name}.{ending}"
        if ending == "csv":
            frame.write_csv(file)
        elif ending == "jsonl":
            frame.write_ndjson(file)
        else:
            frame.write_parquet(file)
        return file

    trials = write("trials", [{"successes": 3, "trials": 10}, {"successes": 0, "trials": 0}])
    assert study.import_history(trials) == Imported(10)
    assert study.import_history(trials).already_imported
    assert counted(study) == {("A", "x", "go"): (10, 3 * 5 + 7 * 1)}
    counts = write("counts", [{"reward": 2.5, "count": 4}, {"reward": 5.0, "count": 1}])
    assert study.import_history(counts) == Imported(5)
    assert counted(study)["A", "x", "go"] == pytest.approx((15, 22 + 4 * 2.5 + 5))
    for rows, message in (
        ([{"successes": 3, "trials": 2}], "successes must be a whole number from 0 to 2, got 3"),
        ([{"successes": 1, "trials": 2.5}], "trials must be a whole number .* got 2.5"),
        ([{"reward": 2.0, "count": -1}], "count must be a whole number .* got -1"),
    ):
        with pytest.raises(rank1.InputError, match=message):
            study.import_history(write("bad", rows))
    assert study.verify().problems == []


def test_a_side_may_be_called_count(create: Callable[..., Study], tmp_path: Path) -> None:
    study = create(sides={"count": ["1", "2"], "trials": ["a", "b"]})
    (tmp_path / "known.csv").write_text("count,trials,reward\n2,a,1\n2,b,0\n")
    assert study.import_history(tmp_path / "known.csv") == Imported(2)
    assert counted(study) == {("2", "a"): (1, 1), ("2", "b"): (1, 0)}


def test_lines_that_cannot_be_used_are_named(create: Callable[..., Study], tmp_path: Path) -> None:
    study = create()
    file = tmp_path / "known.csv"
    lines = [ARMS, "A,x,buy,1", "A,x,buy,oops", 'A,x,buy,"a', 'b"', "A,x,q,1"]
    lines += ["A,x,buy,2", "A,x,buy,nan", "A,x,buy,inf", "A,x,buy,-1", "A,x,buy,"]
    file.write_text("\n".join(lines))
    with pytest.raises(rank1.InputTypeError) as caught:
        study.import_history(file)
    assert str(caught.value) == (
        f"line 3 of '{file}': reward must be a number in [0, 1], got 'oops': nothing was imported; "
        "nor can these be used: line 5 (reward 'a\\nb'), line 6 (button 'q'), line 7 (reward 2.0), "
        "line 8 (reward nan), 2 more"
    )
    assert counted(study) == {}
    file.write_text("headline,image,button,reward\nA,x,buy,1\nA,x,1\n")
    with pytest.raises(rank1.FileError, match=r"line 3 of .*known\.csv' has 3 columns, but"):
        study.import_history(file)
    file.write_text("headline,image,button,reward,reward\nA,x,buy,1,0\n")
    with pytest.raises(rank1.FileError, match=r"known\.csv' has the column 'reward' twice"):
        study.import_history(file)
    for text, message in (
        ("{", "line 2 of .* can't be read"),
        ("[1]", "line 2 of .* can't be read: it isn't an object"),
        ("[" * 100_000, "line 2 of .* can't be read"),
    ):
        other = tmp_path / "known.jsonl"
        other.write_text(f"\n{text}\n")
        with pytest.raises(rank1.FileError, match=message):
            study.import_history(other)
    with pytest.raises(
        rank1.InputTypeError, match="line 1 of the history: reward must be a number"
    ):
        study.import_history([("A", "x", "buy", None)])
    file.write_text(f"{ARMS}\nA,x,buy,\n")
    with pytest.raises(rank1.InputError, match=r"lines with rewards, got 1 lines without one"):
        study.import_history(file)
    with pytest.raises(rank1.FileError, match="can't be read"):
        study.import_history(tmp_path / "missing.csv")
    with pytest.raises(rank1.InputTypeError, match="columns must be a mapping"):
        study.import_history(file, columns="reward")  # type: ignore[arg-type]
    # A rate beside its counts would be one reward of 0.3.
    file.write_text(f"{ARMS},successes,trials\nA,x,buy,0.3,3,10\n")
    with pytest.raises(rank1.InputError, match=r"line 2 .* left out where .*, got 10"):
        study.import_history(file)
    with pytest.raises(rank1.InputTypeError, match="policy must be a policy or its name"):
        study.replay(5)  # type: ignore[arg-type]


def test_a_label_that_a_sheet_would_take_for_a_formula(
    create: Callable[..., Study], tmp_path: Path
) -> None:
    study = create()
    (tmp_path / "known.csv").write_text("headline,image,button,reward\n'=1,x,buy,1\n")
    study.import_history(tmp_path / "known.csv")
    assert counted(study) == {("=1", "x", "buy"): (1, 1)}


def test_what_an_earlier_version_imported_is_known_again(create: Callable[..., Study]) -> None:
    """Its keys are the digests of lists of tuples."""
    study = create()
    lines = [("A", "x", "buy", 1.0), ("A", "x", "buy", 1.0), ("A", "y", "go", 0.25)]
    assert study.import_history(lines) == Imported(3)
    key = "history " + hashlib.blake2b(repr(lines).encode(), digest_size=16).hexdigest()
    with study.access.storage.reading() as log:
        found = log.with_key(study.access.study.id, key)
    assert [(event.value, event.tag) for event in found] == [(1, 2), (0.25, 1)]


def test_another_history_under_the_same_key(
    create: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "PART", 3)
    monkeypatch.setattr(history, "COMPARED", 4)
    study = create()
    rng = random.Random(1)
    lines = [("A", "x", "buy", rng.random()) for _ in range(10)]
    assert study.import_history(lines, key="k") == Imported(10)
    study.import_history([("A", "x", "go", 1.0)])  # the events that follow
    assert study.import_history(lines[::-1], key="k") == Imported(10, already_imported=True)
    changed = [*lines[:-1], ("A", "x", "go", lines[-1][-1])]
    for other in (lines[:9], [*lines, lines[0]], [*lines, ("A", "y", "go", 0.5)], changed):
        with pytest.raises(rank1.ConflictError, match="'k' was used for something else"):
            study.import_history(other, key="k")
    study.ask(key="asked")
    with pytest.raises(rank1.ConflictError, match="'asked' was used for something else"):
        study.import_history(lines, key="asked")
    assert counted(study)["A", "x", "buy"][0] == 10
    assert study.verify().problems == []


@pytest.mark.validate
def test_a_million_rewards_take_little_memory(tmp_path: Path) -> None:
    run = python("-m", "benchmarks.import_memory", "csv", str(tmp_path), "1000000")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["peak_mb"] < 300
