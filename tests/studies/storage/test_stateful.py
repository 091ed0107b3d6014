"""Anything in any order, against a plain list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import rank1
from rank1.studies.events import OUTCOMES, WITH_DATA, Event, Events, Kind
from rank1.studies.storage import Snapshot, StudyRow, open_storage
from rank1.studies.storage.checksum import chained, packed

KEYS = st.sampled_from([None, "a", "ask ann", "joann", "ä"])
UNITS = st.sampled_from([None, "ann", "Zoë"])
NUMBERS = st.integers(0, 10**6)


class Machine(RuleBasedStateMachine):
    new_place: Callable[[], str]

    @initialize()
    def begin(self) -> None:
        self.place = self.new_place()
        self.storage = open_storage(self.place)
        self.logs: dict[str, list[Event]] = {}
        self.rows: dict[str, StudyRow] = {}
        self.snapshots: dict[str, dict[int, Snapshot]] = {}
        self.numbers: set[int] = set()

    def teardown(self) -> None:
        self.storage.close()

    @rule(name=st.sampled_from(["s1", "s2", "s3"]))
    def create(self, name: str) -> None:
        if name in self.logs:
            with pytest.raises(rank1.StudyExistsError):
                self.storage.create(name, "{}")
        else:
            row = self.storage.create(name, '{"x": 1}')
            assert row.id not in self.numbers
            self.numbers.add(row.id)
            self.rows[name] = row
            with self.storage.reading() as reader:
                (created,) = self.logs[name] = reader.page(row.id)
            assert (created.kind, created.data, created.seq) == (1, '{"x": 1}', 1)
            self.snapshots[name] = {}

    def pick(self, number: int) -> str:
        return sorted(self.logs)[number % len(self.logs)]

    def add(self, name: str, events: list[Event], fail: bool) -> None:
        """To the storage and to the list; refused by both, or by none."""
        log, study = self.logs[name], self.rows[name].id
        marks = [mark for event in [*log, *events] for mark in unique(event)]
        clash = len(set(marks)) < len(marks)
        try:
            with self.storage.transaction(study) as tx:
                first = tx.append(study, events)
                at = tx.now(study)
                if fail:
                    raise KeyError
        except rank1.ConflictError:
            assert clash
        except KeyError:  # maybe before the events were sent, and a clash could be seen
            assert fail
        else:
            assert not clash
            assert not fail
            assert first == len(log) + 1
            assert at >= log[-1].at
            log += [e._replace(seq=first + k, at=at) for k, e in enumerate(events)]

    @precondition(lambda self: self.logs)
    @rule(which=NUMBERS, count=st.integers(0, 4), key=KEYS, unit=UNITS, fail=st.booleans())
    def suggest(
        self, which: int, count: int, key: str | None, unit: str | None, fail: bool
    ) -> None:
        events = [
            Event(
                Kind.SUGGESTED, arm=4097 * k, tag=which, value=0.5, nonce=k + 1, key=key,
                position=k if key else 0, unit=unit,
            )
            for k in range(count)
        ]  # fmt: skip
        self.add(self.pick(which), events, fail)

    @precondition(lambda self: any(e.kind == 2 for log in self.logs.values() for e in log))
    @rule(which=NUMBERS, of=NUMBERS, kind=st.sampled_from(OUTCOMES), value=st.floats(0, 1))
    def outcome(self, which: int, of: int, kind: Kind, value: float) -> None:
        asked = {n: [e for e in log if e.kind == 2] for n, log in self.logs.items()}
        names = sorted(name for name, events in asked.items() if events)
        name = names[which % len(names)]
        event = asked[name][of % len(asked[name])]
        self.add(name, [Event(kind, suggestion=event.seq, value=value, nonce=1)], fail=False)

    @precondition(lambda self: self.logs)
    @rule(which=NUMBERS, blob=st.binary(max_size=20))
    def snapshot(self, which: int, blob: bytes) -> None:
        name = self.pick(which)
        snapshot = Snapshot(len(self.logs[name]), "l", blob)
        self.storage.put_snapshot(self.rows[name].id, snapshot)
        self.snapshots[name][snapshot.seq] = snapshot

    @precondition(lambda self: self.logs)
    @rule(which=NUMBERS, unit=st.sampled_from(["ann", "Zoë"]), fail=st.booleans())
    def forget(self, which: int, unit: str, fail: bool) -> None:
        name = self.pick(which)
        log, study = self.logs[name], self.rows[name].id
        own = {event.seq for event in log if event.unit == unit}
        words = {"ann": ("ask ann",)}.get(unit, ())
        changed = [
            event._replace(
                unit=None if event.seq in own else event.unit,
                data=None if event.seq in own else event.data,
                key=event.key
                if event.key is None
                or not (
                    event.key in words
                    or (unit in event.key and own & {event.seq, event.suggestion})
                )
                else None,
            )
            for event in log
        ]
        try:
            with self.storage.transaction(study) as tx:
                found = tx.forget_unit(study, unit)
                if fail:
                    raise KeyError
        except KeyError:
            return
        assert found == sum(repr(one) != repr(two) for one, two in zip(log, changed, strict=True))
        self.logs[name] = changed

    @precondition(lambda self: self.logs)
    @rule(which=NUMBERS, archived=st.booleans())
    def archive(self, which: int, archived: bool) -> None:
        name = self.pick(which)
        with self.storage.transaction(self.rows[name].id) as tx:
            tx.archive(self.rows[name].id, archived)
            now = tx.now(self.rows[name].id)
        self.rows[name] = self.rows[name]._replace(archived=now if archived else None)

    @precondition(lambda self: len(self.logs) > 1)
    @rule(which=NUMBERS)
    def delete(self, which: int) -> None:
        name = self.pick(which)
        gone = self.rows.pop(name).id
        with self.storage.transaction(gone) as tx:
            tx.delete(gone)
        del self.logs[name], self.snapshots[name]
        with pytest.raises(rank1.UnknownStudyError), self.storage.transaction(gone) as tx:
            tx.append(gone, [Event(Kind.SUGGESTED)])

    @rule()
    def reopen(self) -> None:
        self.storage.close()
        self.storage = open_storage(self.place)

    @precondition(lambda self: self.logs)
    @rule(which=NUMBERS, after=st.integers(0, 30), limit=st.integers(1, 5), back=st.booleans())
    def page(self, which: int, after: int, limit: int, back: bool) -> None:
        name = self.pick(which)
        log = self.logs[name]
        with self.storage.reading() as reader:
            got = reader.page(self.rows[name].id, after, limit, newest=back)
        expected = [e for e in log if (e.seq < after if back else e.seq > after)]
        assert same(got, (expected[::-1] if back else expected)[:limit])

    @invariant()
    def agree(self) -> None:
        if not getattr(self, "logs", None):
            return
        with self.storage.reading() as reader:
            assert [study.name for study in reader.studies()] == sorted(self.logs)
            for name, log in self.logs.items():
                study = reader.study(name)
                assert study == self.rows[name]._replace(last_seq=len(log), last_at=log[-1].at)
                half = len(log) // 2
                assert reader.read(study.id).seq.tolist() == [e.seq for e in log]
                tail = reader.read(study.id, after=half)
                assert tail.kind.tolist() == [e.kind for e in log[half:]]
                assert tail.at.tolist() == [e.at for e in log[half:]]
                with_outcome = {e.suggestion for e in log}
                pending = [e.seq for e in log if e.kind == 2 and e.seq not in with_outcome]
                assert reader.pending(study.id).tolist() == pending
                for key in ("a", "ask ann", "joann", "ä"):
                    expected = sorted((e for e in log if e.key == key), key=lambda e: e.position)
                    assert same(reader.with_key(study.id, key), expected)
                for unit in ("ann", "Zoë"):
                    of_unit = [e for e in log if e.unit == unit]
                    latest = reader.of_unit(study.id, unit)
                    assert same([latest] if latest else [], of_unit[-1:])
                asked = [e.seq for e in log if e.kind == 2]
                outcomes = [e for e in log if e.suggestion]
                assert same(reader.outcomes(study.id, asked), outcomes)
                checked(reader.page(study.id, limit=1000))
                last = max(self.snapshots[name], default=None)
                expected_one = None if last is None else self.snapshots[name][last]
                assert reader.snapshot(study.id, "l") == expected_one


def checked(events: list[Event]) -> None:
    """Each event's checksum covers the one before."""
    before = 0
    for event in events:
        (piece,) = packed({name: [getattr(event, name)] for name in Events._fields})
        (before,) = chained([piece + str(event.data).encode() * (event.kind in WITH_DATA)], before)
        assert event.checksum == before


def unique(event: Event) -> list[Any]:
    """What no two events of a study may share."""
    key = [(event.key, event.position)] if event.key is not None else []
    return key + ([(event.suggestion, event.kind)] if event.suggestion else [])


def same(got: list[Event], expected: list[Event]) -> bool:
    return repr([e._replace(checksum=0) for e in got]) == repr(
        [e._replace(kind=int(e.kind), checksum=0) for e in expected]
    )


def test_a_storage_is_a_list(new_place: Callable[[], str]) -> None:
    machine: Any = type("Machine", (Machine,), {"new_place": staticmethod(new_place)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=12,
            stateful_step_count=25,
            suppress_health_check=list(HealthCheck),
        ),
    )
