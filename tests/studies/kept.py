"""Logs that every later version must be able to fold: `python -m tests.studies.kept` adds a file.

The files are never written anew: a version that can't fold an old log has lost somebody's study.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rank1 import Study
from rank1.policies import POLICIES
from rank1.studies.log import Event
from rank1.studies.storage.sqlite import SqliteReader

FOLDER = Path(__file__).with_name("data")


def played(policy: str, on_expiry: str, forgetting: float | None) -> dict[str, Any]:
    """A study with events of every kind: its log, and what it comes to."""
    time = [1e9]
    real, SqliteReader.clock = SqliteReader.clock, lambda _: time[0]  # type: ignore
    rng = np.random.default_rng(1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            study = Study.create(
                "kept", ["a", "b", "ç"], ["d", "e"], policy=policy, seed=1,
                storage=f"{folder}/rank1.db", reward_window=100, on_expiry=on_expiry,
                reward_range=(0, 2), forgetting=forgetting,
            )  # fmt: skip
            study.import_history([("a", "d", 2.0), ("a", "d", 0.0), ("b", "e", 1.0)])
            for turn in range(12):
                given = study.ask(count=6)
                time[0] += 30.0
                for each in given[:4]:
                    study.tell(each.id, float(rng.integers(0, 3)))
                study.cancel(given[4].id)
                if turn == 5:
                    study.revise(retire_rows=["b"], add_columns=["f"])
                if turn == 8:
                    study.revise(add_rows=["b"])
            study.tell(given[5].id, 2.0)
            study.ask(unit="visitor")
            with study._desk.storage.reading() as log:
                events = log.page(study._desk.study.id, limit=10_000)
            best, totals = study.best(), study.totals()
            study.close()
    finally:
        SqliteReader.clock = real  # type: ignore
    fields = [
        [*event[:5], None if np.isnan(event.value) else event.value, *event[6:]] for event in events
    ]
    return {
        "policy": policy,
        "events": fields,
        "totals": totals,
        "counts": best.counts.tolist(),
        "means": best.to_dict()["means"],
    }


def main(version: str) -> None:
    """Write the file of this version, with the policies there are."""
    cases = []
    for k, name in enumerate(POLICIES):
        if name not in ("oracle", "glm_ucb"):
            on_expiry = ("drop", "default", "wait")[k % 3]
            forgetting = 20.0 if POLICIES[name].counts and k % 2 else None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cases.append(played(name, on_expiry, forgetting))
    path = FOLDER / f"log-{version}.jsonl.gz"
    with gzip.GzipFile(path, "xb", mtime=0) as file:
        for case in cases:
            file.write((json.dumps(case) + "\n").encode())


def kept() -> Iterator[tuple[str, dict[str, Any], list[Event]]]:
    """Title, facts and events of each log that is kept."""
    for path in sorted(FOLDER.glob("log-*.jsonl.gz")):
        with gzip.open(path, "rt") as file:
            for line in file:
                case = json.loads(line)
                title = f"{path.name.split('.jsonl')[0]} {case['policy']}"
                yield title, case, [_event(row) for row in case["events"]]


def _event(row: list[Any]) -> Event:
    value = np.nan if row[5] is None else row[5]
    return Event._make([*row[:5], value, *row[6:]])


if __name__ == "__main__":
    main(sys.argv[1])
