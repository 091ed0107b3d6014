"""Processes that keep asking and telling, and are killed.

`python -m tests.studies.storm PLACE KILLS`. What they acknowledged is compared with the log.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time

from rank1.studies.events import Kind, read_id
from rank1.studies.storage import open_storage
from tests.studies.support import SPEC, reported, suggested
from tests.studies.worker import ask


def work(place: str, pipe: int) -> None:
    """Ask and tell until killed; write what is acknowledged to the pipe."""
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
        unit = f"unit {os.getpid()} {seq}"  # every third unit is forgotten immediately
        with storage.transaction(study.id) as log:
            log.append(study.id, suggested(1, unit=unit, key=f"key of {unit}"))
        if seq % 3 == 0:
            with storage.transaction(study.id) as log:
                log.forget_unit(study.id, unit)
            os.write(pipe, f"forgot {unit}\n".encode())


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
        said += told_more(reader)
        time.sleep(rng.uniform(0, 0.05))  # to kill it anywhere in its next operation
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
    forgot = [line[7:] for line in said.decode().splitlines() if line.startswith("forgot")]
    with storage.reading() as log:
        events = log.read(study.id)
        names = [(each.unit, each.key) for each in log.page(study.id, limit=10**6)]
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
        "forgot": len(forgot),
        "forgotten and there": sum(
            unit in (each, (key or "")[7:]) for unit in forgot for each, key in names
        ),
        "faults": len(storage.check()),
    }
    storage.close()
    return result


def told_more(reader: int, word: bytes = b"told") -> bytes:
    """Return the output of the processes until one more operation of a kind is acknowledged."""
    said = b""
    while word not in said:
        readable, _, _ = select.select([reader], [], [], 300)
        assert readable, "no process says anything"
        said += drained(reader)
    return said


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
