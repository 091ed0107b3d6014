"""Operations on a storage in a separate process; it returns all that was acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

import rank1
from rank1.studies.events import suggestion_id
from rank1.studies.storage import Storage, StudyRow, open_storage
from tests.studies.support import SPEC, reported, suggested


def ask(storage: Storage, study: StudyRow, count: int) -> list[str]:
    """Make suggestions in their own transaction, and return their ids."""
    with storage.transaction(study.id) as log:
        log.read(study.id, after=max(0, log.last(study.id)[0] - 3))
        events = suggested(count)
        first = log.append(study.id, events)
    return [suggestion_id(study.uid, first + k, e.nonce) for k, e in enumerate(events)]


def create(storage: Storage) -> Iterator[str]:
    try:
        yield storage.create("spring", SPEC).uid
    except rank1.StudyExistsError:
        yield "exists"


def asks(storage: Storage, times: int) -> Iterator[str]:
    with storage.reading() as log:
        study = log.study("spring")
    for k in range(times):
        yield from ask(storage, study, 1 + k % 3)


def tells(storage: Storage, value: float) -> Iterator[int]:
    """Report on every suggestion, as the other processes do."""
    with storage.reading() as log:
        study = log.study("spring")
        pending = log.pending(study.id).tolist()
    for seq in pending:
        try:
            with storage.transaction(study.id) as log:
                log.append(study.id, [reported(seq, value)])
            yield seq
        except rank1.ConflictError:
            pass


def work(
    all_there: Barrier, end: Connection, job: Callable[..., Iterator[Any]], place: str, *given: Any
) -> None:
    all_there.wait()
    storage = open_storage(place)
    end.send(list(job(storage, *given)))
    storage.close()
