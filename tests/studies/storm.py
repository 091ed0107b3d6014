"""Processes that ask and tell without end, and are killed.

`python -m tests.studies.storm PLACE KILLS`. What they acknowledged is compared with the log.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time

from rank1.studies.events import Kind, read_id
from rank1.studies.storage import open_storage
from tests.studies.support import SPEC, reported
from tests.studies.worker import ask


def work(place: str, pipe: int) -> None:
    """Ask and tell until killed; what is acknowledged goes into the pipe."""
    storage = open_storage(place)
    with storage.reading() as log:
        study = log.study("storm")
        pending = log.pending(study.id).tolist()
    while True:
        for text in ask(storage, study, 2):
            os.write(pipe, f"asked {text}\n".encode())
            pending.append(read_id(text)[1])
        seq = pending.pop(0)
        with storage.transaction(study.id) as log:
            fresh = not log.outcomes(study.id, [seq])
            if fresh:
                log.append(study.id, [reported(seq, 0.5)])
        if fresh:
            os.write(pipe, f"told {seq}\n".encode())


def main(place: str, kills: int, workers: int = 2) -> dict[str, int]:
    rng = random.Random(1)
    storage = open_storage(place)
    study = storage.create("storm", SPEC)
    storage.close()
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    running: list[int] = []
    said = b""
    for _ in range(kills + workers):
        while len(running) < workers:
            pid = os.fork()
            if pid == 0:
                try:
                    work(place, writer)
                finally:
                    os._exit(1)
            running.append(pid)
        time.sleep(rng.uniform(0.01, 0.12))
        pid = running.pop(rng.randrange(len(running)))
        os.kill(pid, signal.SIGKILL)
        assert os.WIFSIGNALED(os.waitpid(pid, 0)[1]), "a process failed before it was killed"
        said += drained(reader)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    said += drained(reader)
    asked = [line.split()[1] for line in said.decode().splitlines() if line.startswith("asked")]
    told = [int(line.split()[1]) for line in said.decode().splitlines() if line.startswith("told")]
    with storage.reading() as log:
        events = log.read(study.id)
    stored = {
        (seq, nonce)
        for seq, nonce, kind in zip(events.seq, events.nonce, events.kind, strict=True)
        if kind == Kind.SUGGESTED
    }
    reports = events.suggestion[events.kind == Kind.REPORTED].tolist()
    result = {
        "events": events.size,
        "asked": len(asked),
        "asked twice": len(asked) - len(set(asked)),
        "asked and lost": len({read_id(each)[1:] for each in asked} - stored),
        "told": len(told),
        "told and lost": len(set(told) - set(reports)),
        "told twice": len(reports) - len(set(reports)) + len(told) - len(set(told)),
        "faults": len(storage.check()),
    }
    storage.close()
    return result


def drained(reader: int) -> bytes:
    parts = []
    try:
        while part := os.read(reader, 1 << 16):
            parts.append(part)
    except BlockingIOError:
        pass
    return b"".join(parts)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
