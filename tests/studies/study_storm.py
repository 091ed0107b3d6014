"""Processes that work on one study, forked from one that has compiled everything.

`python -m tests.studies.study_storm kill PLACE KILLS`: they ask and tell, and are killed.
`python -m tests.studies.study_storm same PLACE TIMES WORKERS`: all report the same.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
import sys
import time

import rank1
from rank1 import Study
from rank1.studies.events import Kind, read_id
from tests.studies.storm import drained, told_more

GRID = ["a", "b", "c", "d"], ["e", "f", "g"]


def prepared(place: str) -> None:
    """Create the study, and compile what processes need, so that a forked one needn't."""
    with Study.create("storm", *GRID, storage=place, policy="uts") as study:
        given = study.ask(count=2)
        study.tell_many([(each.id, 1.0) for each in given])
        study.verify()


def fork(work: object, *arguments: object) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work(*arguments)  # type: ignore[operator]
        finally:
            os._exit(1)
    return pid


def work(place: str, pipe: int, number: int) -> None:
    """Ask and tell until killed; what is acknowledged goes into the pipe."""
    study = Study.open("storm", place)
    rng = random.Random(number)
    pending = []
    for turn in itertools.count():
        for each in study.ask(count=2, key=f"{number} {rng.random()}"):
            os.write(pipe, f"asked {each.id}\n".encode())
            pending.append(each.id)
        name, reward = pending.pop(0), float(rng.random() < 0.5)
        study.tell(name, reward)
        os.write(pipe, f"told {name} {reward}\n".encode())
        unit = f"unit-{number}-{turn}"
        if rng.random() < 0.3:
            study.ask(unit=unit, key=f"ask {unit}", data={"name": unit})
            study.forget_unit(unit)
            os.write(pipe, f"forgot {unit}\n".encode())
        if rng.random() < 0.1:
            shelve(study, pipe, unit)


def shelve(study: Study, pipe: int, name: str) -> None:
    """Create a study beside, and archive and delete it, or leave it at that."""
    other = Study.create(name, ["a"], ["b"], storage=study.access.storage, policy="uniform")
    os.write(pipe, f"created {name}\n".encode())
    other.archive()
    os.write(pipe, f"archived {name}\n".encode())
    if int(name[-1]) % 2:
        os.write(pipe, f"deleting {name}\n".encode())
        Study.delete(name, study.access.storage, confirm=name)
        os.write(pipe, f"deleted {name}\n".encode())


def killing(place: str, kills: int, workers: int = 2) -> dict[str, object]:
    prepared(place)
    rng = random.Random(1)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    running: list[int] = []
    said = b""
    for number in range(kills + workers):
        while len(running) < workers:
            running.append(fork(work, place, writer, 1000 * number + len(running)))
        said += told_more(reader)
        time.sleep(rng.uniform(0, 0.05))  # anywhere in what comes next
        pid = running.pop(rng.randrange(len(running)))
        os.kill(pid, signal.SIGKILL)
        assert os.WIFSIGNALED(os.waitpid(pid, 0)[1]), "a process failed before it was killed"
        said += drained(reader)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    said += drained(reader)
    lines = [line.split() for line in said.decode().splitlines()]
    asked = [line[1] for line in lines if line[0] == "asked"]
    told = {line[1]: float(line[2]) for line in lines if line[0] == "told"}
    said_of: dict[str, set[str]] = {}
    for what, name, *_ in lines:
        said_of.setdefault(what, set()).add(name)
    study = Study.open("storm", place)
    with study.access.storage.reading() as log:
        events = log.read(study.access.study.id)
        page = log.page(study.access.study.id, limit=10**6)
        rows = {row.name: row for row in log.studies()}
    texts = " ".join(f"{each.unit} {each.key} {each.data}" for each in page)
    words = set(re.findall(r"unit-[0-9]+-[0-9]+", texts))
    wanted = said_of.get("created", set()) - said_of.get("deleting", set())
    stored = {
        (int(seq), int(nonce))
        for seq, nonce, kind in zip(events.seq, events.nonce, events.kind, strict=True)
        if kind == Kind.SUGGESTED
    }
    report = events.kind == Kind.REPORTED
    rewards = dict(
        zip(events.suggestion[report].tolist(), events.value[report].tolist(), strict=True)
    )
    found = study.verify()
    return {
        "asked": len(asked),
        "asked twice": len(asked) - len(set(asked)),
        "asked and lost": len({read_id(each)[1:] for each in asked} - stored),
        "told": len(told),
        "told and lost": sum(rewards.get(read_id(k)[1]) != v for k, v in told.items()),
        "told twice": int(report.sum()) - len(rewards),
        "counted wrongly": int(study.best().counts.sum() - report.sum()),
        "forgot": len(said_of.get("forgot", ())),
        "forgotten and there": len(words & said_of.get("forgot", set())),
        "created and lost": len(wanted - set(rows)),
        "archived and listed": sum(
            rows[name].archived is None for name in said_of.get("archived", set()) & set(rows)
        ),
        "deleted": len(said_of.get("deleted", ())),
        "deleted and there": len(said_of.get("deleted", set()) & set(rows)),
        "problems": found.problems,
    }


def tell(place: str, pipe: int, reward: float, ids: list[str]) -> None:
    study = Study.open("storm", place)
    for name in ids:
        try:
            study.tell(name, reward)
            os.write(pipe, f"{name} {reward} told\n".encode())
        except rank1.ConflictError:
            os.write(pipe, f"{name} {reward} conflict\n".encode())
    os._exit(0)


def same(place: str, times: int, workers: int) -> dict[str, object]:
    prepared(place)
    with Study.open("storm", place) as study:
        ids = [each.id for each in study.ask(count=times)]
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    running = {fork(tell, place, writer, float(k % 2), ids) for k in range(workers)}
    said = b""
    while running:
        said += drained(reader)
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            assert status == 0, "a process failed"
            running.remove(pid)
        time.sleep(0.01)
    said += drained(reader)
    study = Study.open("storm", place)
    with study.access.storage.reading() as log:
        events = log.read(study.access.study.id)
    report = events.kind == Kind.REPORTED
    rewards = dict(
        zip(events.suggestion[report].tolist(), events.value[report].tolist(), strict=True)
    )
    wrong = 0
    answers = [line.split() for line in said.decode().splitlines()]
    for name, reward, answer in answers:
        applied = rewards[read_id(name)[1]] == float(reward)
        wrong += answer != ("told" if applied else "conflict")
    return {
        "answers": len(answers),
        "wrong": wrong,
        "told twice": int(report.sum()) - len(rewards),
        "reports": len(rewards),
        "winners": len(set(rewards.values())),
        "problems": study.verify().problems,
    }


if __name__ == "__main__":
    job, where, *numbers = sys.argv[1:]
    print(json.dumps({"kill": killing, "same": same}[job](where, *map(int, numbers))))  # type: ignore[operator]
