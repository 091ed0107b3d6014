"""A column that a later version adds to the log leaves existing logs valid, and is checked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import rank1
from rank1 import Study

CHECK = """
import sys
import rank1
from rank1.studies.events import Event, Kind
from rank1.studies.storage import open_storage

storage = open_storage(sys.argv[1])
study = rank1.Study.open("spring", storage)
assert study.counts()["reports"] == 1
assert study.verify().ok
study.tell(study.ask().id, 1.0)
with storage.reading() as log:
    row = log.study("spring")
with storage.transaction(row.id) as tx:
    tx.append(row.id, [Event(Kind.NOTED, data='{"text": "x"}', weight=w) for w in (0, 3)])
assert storage.check() == []
last = row.last_seq + 2
with storage.transaction(row.id) as tx:
    tx.rows("UPDATE rank1_events SET weight = 4 WHERE seq = ?", last)
(found,) = storage.check()
assert f"event {last} " in found
with storage.transaction(row.id) as tx:
    tx.rows("UPDATE rank1_events SET weight = 0 WHERE seq = ?", last)
assert storage.check() != []
"""


def put(file: Path, *changes: tuple[str, str]) -> None:
    text = file.read_text()
    for pattern, new in changes:
        text, count = re.subn(pattern, new, text, count=1)
        assert count, pattern
    file.write_text(text)


def test_a_log_from_before_a_column(place: str, tmp_path: Path) -> None:
    with Study.create("spring", sides={"h": ["A", "B"]}, storage=place, seed=1) as study:
        study.tell(study.ask().id, 1.0)
    later = tmp_path / "later/rank1"
    source = Path(rank1.__file__).parent
    shutil.copytree(source, later, ignore=shutil.ignore_patterns("__pycache__"))
    put(
        later / "studies/events.py",
        ("(    metric: Annotated.*\n)", r'\1    weight: Annotated[int, "int4"] = 0' + "\n"),
        ("(    metric: NDArray.*\n)", r"\1    weight: NDArray[np.int32]" + "\n"),
    )
    put(later / "studies/storage/tables.py", (r"FORMAT = \d+", "FORMAT = 99"))
    environment = {**os.environ, "PYTHONPATH": str(later.parent), "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(
        [sys.executable, "-c", CHECK, place],
        env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
