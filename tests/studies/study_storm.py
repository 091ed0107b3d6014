"""Processes that work on one study, forked from one that has compiled everything.

`python -m tests.studies.study_storm kill PLACE KILLS`: they ask and tell, and are killed.
`python -m tests.studies.study_storm same PLACE TIMES WORKERS`: all send the same reports.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import re
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

import rank1
from rank1 import Study
from rank1.documents import Recorded
from rank1.studies.events import Event, Kind, read_id, suggestion_id
from tests.studies.storm import drained, told_more

GRID = ["a", "b", "c", "d"], ["e", "f", "g"]
SIDES = {"headline": ["A", "B"], "image": ["x", "y", "z"]}
#: The operations; processes write a line before and after each, with its name and its object.
DONE = ("asked", "told", "recorded", "rewarded", "forgot", "created", "archived", "deleted")


#: The operations that a kill waits for, in turn.
OFTEN = DONE[:5]


def prepared(place: str) -> None:
    """Create the studies, and compile what processes need, so that forked ones needn't."""
    with Study.create("storm", *GRID, storage=place, policy="uts") as study:
        given = study.ask(count=2, key="first")
        study.tell_many([(each.id, 1.0) for each in given])
        study.verify()
    with Study.create(
        "drawn", sides=SIDES, goal="find", storage=place, seed=1,
        control={"headline": "A", "image": "x"}, guardrails={"left": {"worse_by": 0.1}},
    ) as drawn:  # fmt: skip
        drawn.shares()


def fork(work: object, *arguments: object) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work(*arguments)  # type: ignore[operator]
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return pid


class Worker:
    """Run all operations until it is killed; write what it tries and what it did to the pipe."""

    def __init__(self, place: str, pipe: int, number: int) -> None:
        self.study, self.pipe, self.number = Study.open("storm", place), pipe, number
        self.drawn = Study.open("drawn", place)
        self.rng, self.shares = random.Random(number), self.drawn.shares()

    def say(self, *words: object) -> None:
        os.write(self.pipe, f"{' '.join(map(str, words))}\n".encode())

    def run(self) -> None:
        pending: list[str] = []
        open_units: list[str] = []
        for turn in itertools.count():
            name = f"unit-{self.number}-{turn}"
            pending += self.ask(name)
            self.tell(pending.pop(0))
            open_units += self.record(name)
            self.reward(open_units.pop(0))
            if self.rng.random() < 0.3:
                self.forget(name)
            if self.rng.random() < 0.1:
                self.shelve(name)

    def ask(self, name: str) -> list[str]:
        self.say("try", "asked", name)
        given = self.study.ask(count=2, key=name)
        self.say("did", "asked", name, *(each.id for each in given))
        return [each.id for each in given]

    def tell(self, id: str) -> None:
        reward = float(self.rng.random() < 0.5)
        self.say("try", "told", id, reward)
        self.study.tell(id, reward)
        self.say("did", "told", id, reward)

    def record(self, name: str) -> list[str]:
        """Record twenty units in one transaction; the last ones are rewarded later."""
        if self.rng.random() < 0.1:
            self.shares = self.drawn.shares()
        records: list[tuple[Any, ...]] = []
        for k in range(20):
            unit, later = f"{name}-{k}", k >= 18
            told = [] if later else [float(self.rng.random() < 0.5), {"left": float(k % 2)}]
            levels = rank1.assign(self.shares, unit)
            records.append((unit, self.shares["version"], levels, *told))
        self.say("try", "recorded", name)
        answers = self.drawn.record_many(records)
        assert all(isinstance(each, Recorded) and each.new for each in answers)
        rewards = ",".join(str(int(told[0])) for _, _, _, *told in records if told)
        arms = ",".join("".join(levels.values()) for _, _, levels, *_ in records)
        self.say("did", "recorded", name, self.shares["version"], arms, rewards)
        return [unit for unit, *_ in records[18:]]

    def reward(self, unit: str) -> None:
        reward = float(self.rng.random() < 0.5)
        self.say("try", "rewarded", unit, reward)
        self.drawn.reward(unit, reward, {"left": 1.0})
        self.say("did", "rewarded", unit, reward)

    def forget(self, name: str) -> None:
        """Forget a unit that was asked for, and one that was recorded."""
        unit = f"{name}-ann"
        self.study.ask(unit=unit, key=f"ask {unit}", data={"name": unit})
        for study, each in ((self.study, unit), (self.drawn, f"{name}-0")):
            self.say("try", "forgot", each)
            assert study.forget_unit(each) >= 1
            self.say("did", "forgot", each)

    def shelve(self, name: str) -> None:
        """Create another study and archive it; delete every second one."""
        storage = self.study.access.storage
        self.say("try", "created", name)
        other = Study.create(name, ["a"], ["b"], storage=storage, policy="uniform")
        self.say("did", "created", name)
        self.say("try", "archived", name)
        other.archive()
        self.say("did", "archived", name)
        if int(name[-1]) % 2:
            self.say("try", "deleted", name)
            Study.delete(name, storage, confirm=name)
            self.say("did", "deleted", name)


def work(place: str, pipe: int, number: int) -> None:
    Worker(place, pipe, number).run()


def killing(place: str, kills: int, workers: int = 2) -> dict[str, Any]:
    """Return what was tried, acknowledged and stored, by operation, and what is wrong with it."""
    prepared(place)
    rng = random.Random(1)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    running: list[int] = []
    said = b""
    for number in range(kills):
        while len(running) < workers:
            running.append(fork(work, place, writer, 1000 * number + len(running)))
        said += told_more(reader, f"did {OFTEN[number % len(OFTEN)]} ".encode())
        time.sleep(rng.uniform(0, 0.05))  # to kill it anywhere in its next operation
        pid = running.pop(rng.randrange(len(running)))
        os.kill(pid, signal.SIGKILL)
        assert os.WIFSIGNALED(os.waitpid(pid, 0)[1]), "a process failed before it was killed"
        said += drained(reader)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    said += drained(reader)
    tried: dict[str, dict[str, list[str]]] = {what: {} for what in DONE}
    did: dict[str, dict[str, list[str]]] = {what: {} for what in DONE}
    for line in said.decode().splitlines():
        when, what, name, *rest = line.split()
        (tried if when == "try" else did)[what][name] = rest
    study, drawn = Study.open("storm", place), Study.open("drawn", place)
    with study.access.storage.reading() as log:
        page = log.page(study.access.study.id, limit=10**7)
        drawn_page = log.page(drawn.access.study.id, limit=10**7)
        rows = {row.name: row for row in log.studies()}
    stored: dict[str, dict[str, list[str]]] = {what: {} for what in DONE}
    wrong = checked(study.uid, page, stored) + checked_records(drawn, drawn_page, did, stored)
    names = " ".join(f"{each.unit} {each.key} {each.data}" for each in (*page, *drawn_page))
    words = set(re.findall(r"unit-[0-9]+-[0-9]+-(?:ann|0)\b", names))
    stored["forgot"] = {name: [] for name in tried["forgot"] if name not in words}
    stored["created"] = {name: [] for name in tried["created"] if name in rows}
    stored["created"] |= {name: [] for name in tried["deleted"]}
    gone: dict[str, list[str]] = {name: [] for name in tried["deleted"] if name not in rows}
    stored["deleted"] = gone
    stored["archived"] = {k: [] for k, row in rows.items() if row.archived is not None} | gone
    for what in DONE:
        lost = [name for name, rest in did[what].items() if differs(stored[what].get(name), rest)]
        wrong += [f"{what} and lost: {name}" for name in lost]
        wrong += [f"{what} by nobody: {name}" for name in stored[what].keys() - tried[what].keys()]
    for each, log_of in ((study, page), (drawn, drawn_page)):
        wrong += each.verify().problems
        rewards = sum(
            event.kind == Kind.REPORTED
            or (event.kind == Kind.RECORDED and not math.isnan(event.value))
            for event in log_of
        )
        counted = each.look(lambda state, log: state.evidence(1e99)[0].sum())
        if not rewards == counted == each.counts()["reports"]:
            wrong.append(f"{rewards} rewards of {each.name} count {counted} times")
    versions = [event.tag for event in drawn_page if event.kind == Kind.VERSION]
    if versions != list(range(len(versions))):
        wrong.append(f"versions are {versions}")
    return {
        "wrong": wrong,
        "versions": len(versions),
        "events": len(page) + len(drawn_page),
        **{what: [len(each[what]) for each in (tried, did, stored)] for what in DONE},
    }


def differs(stored: list[str] | None, did: list[str]) -> bool:
    return stored is None or (bool(stored) and stored != did)


def checked(uid: str, page: Sequence[Event], stored: dict[str, dict[str, list[str]]]) -> list[str]:
    """Collect the stored asks and tells; return what is duplicate or incomplete."""
    wrong, ids = [], {}
    for event in page:
        if event.kind == Kind.SUGGESTED:
            ids[event.seq] = suggestion_id(uid, event.seq, event.nonce)
            if event.key and re.fullmatch("unit-[0-9]+-[0-9]+", event.key):
                stored["asked"].setdefault(event.key, []).append(ids[event.seq])
        elif event.kind == Kind.REPORTED:
            if ids[event.suggestion] in stored["told"]:
                wrong.append(f"told twice: {ids[event.suggestion]}")
            stored["told"][ids[event.suggestion]] = [str(event.value)]
    first = [event for event in page if event.key == "first"]
    for event in first:
        del stored["told"][ids[event.seq]]
    wrong += [f"{len(i)} of 2 asked: {key}" for key, i in stored["asked"].items() if len(i) != 2]
    return wrong


def checked_records(
    drawn: Study,
    page: Sequence[Event],
    did: dict[str, dict[str, list[str]]],
    stored: dict[str, dict[str, list[str]]],
) -> list[str]:
    """Do the same for records, rewards of units, and the guardrails after each."""
    wrong: list[str] = []
    of_unit: dict[str, Event] = {}
    rewards: dict[int, float] = {}
    state = drawn.look(lambda state, log: state)
    for event, after in zip(page, [*page[1:], None], strict=True):
        told = event.kind == Kind.REPORTED or not math.isnan(event.value)
        if event.kind in (Kind.RECORDED, Kind.REPORTED) and told:
            if after is None or after.kind != Kind.GUARDRAIL:
                wrong.append(f"no guardrail behind {event.seq}")
        elif event.kind == Kind.GUARDRAIL:
            continue
        if event.kind == Kind.RECORDED:
            if event.unit in of_unit:
                wrong.append(f"recorded twice: {event.unit}")
            if event.unit is not None:
                of_unit[event.unit] = event
        elif event.kind == Kind.REPORTED:
            if event.suggestion in rewards:
                wrong.append(f"rewarded twice: {event.suggestion}")
            rewards[event.suggestion] = event.value
    batches = {unit.rpartition("-")[0] for unit in of_unit}
    for name in batches:
        units = [of_unit.get(f"{name}-{k}") for k in range(20)]
        if None in units[1:]:  # the first may have been forgotten
            wrong.append(f"recorded in part: {name}")
            continue
        arms = ["".join(state.named(each.arm).values()) if each else "" for each in units]
        values = [str(int(each.value)) if each else "" for each in units[:18]]
        version, arms_did, values_did = did["recorded"].get(name, ["", "", ""])
        if version:  # acknowledged, so everything must be as sent
            for k, (arm, at) in enumerate(zip(arms_did.split(","), arms, strict=True)):
                if at and (at, units[k].tag) != (arm, int(version)):  # type: ignore[union-attr]
                    wrong.append(f"recorded otherwise: {name}-{k}")
            for k, (value, at) in enumerate(zip(values_did.split(","), values, strict=True)):
                if at and at != value:
                    wrong.append(f"rewarded otherwise: {name}-{k}")
        stored["recorded"][name] = []
    for unit, event in of_unit.items():
        if event.seq in rewards:
            stored["rewarded"][unit] = [str(rewards[event.seq])]
    return wrong


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
