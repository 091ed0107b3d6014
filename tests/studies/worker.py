"""What a process of its own does to a storage: `python -m tests.studies.worker JOB PLACE …`.

Each line of its output is something that was acknowledged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import rank1
from rank1.studies.log import suggestion_id
from rank1.studies.storage import Storage, StudyRow, open_storage
from tests.studies.support import SPEC, reported, suggested


def say(*words: object) -> None:
    # One write, whole: a killed process must not leave half a line.
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def ask(storage: Storage, study: StudyRow, count: int) -> list[str]:
    """Suggestions by a transaction of their own, as ids."""
    with storage.transaction(study.id) as log:
        log.read(study.id, after=max(0, log.last(study.id)[0] - 3))
        events = suggested(count)
        first = log.append(study.id, events)
    return [suggestion_id(study.uid, first + k, e.nonce) for k, e in enumerate(events)]


def create(storage: Storage) -> None:
    try:
        say("created", storage.create("spring", SPEC).uid)
    except rank1.StudyExistsError:
        say("exists")


def asks(storage: Storage, times: str) -> None:
    with storage.reading() as log:
        study = log.study("spring")
    for k in range(int(times)):
        for each in ask(storage, study, 1 + k % 3):
            say(each)


def tells(storage: Storage, value: str) -> None:
    """Report on every suggestion, as others do, too."""
    with storage.reading() as log:
        study = log.study("spring")
        pending = log.pending(study.id).tolist()
    for seq in pending:
        try:
            with storage.transaction(study.id) as log:
                log.append(study.id, [reported(seq, float(value))])
            say(seq)
        except rank1.ConflictError:
            pass


JOBS: dict[str, Callable[..., None]] = {"create": create, "asks": asks, "tells": tells}

if __name__ == "__main__":
    job, place, *arguments = sys.argv[1:]
    with_storage = open_storage(place)
    JOBS[job](with_storage, *arguments)
    with_storage.close()
