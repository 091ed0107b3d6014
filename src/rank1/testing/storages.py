"""Test your own storage: everything that a storage of studies must do, as plain functions.

A storage implements `rank1.studies.storage.Storage`, and is found by the scheme of its address
through an entry point of the group `rank1.storages`. To get one pytest result per check:

    from rank1.testing.storages import STORAGE_CHECKS

    @pytest.mark.parametrize("check", STORAGE_CHECKS)
    def test_contract(check, tmp_path):
        with MyStorage(tmp_path / "studies") as storage:
            check(storage)
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from rank1.errors import (
    ConflictError,
    InputError,
    InputTypeError,
    Rank1Error,
    StorageError,
    StudyExistsError,
    UnknownStudyError,
)
from rank1.studies.events import Event, Expiry, Kind, nonces
from rank1.studies.storage import Snapshot, Storage, StudyRow
from rank1.testing.expect import expect, run_checks

__all__ = ["STORAGE_CHECKS", "check_storage"]

SPEC = '{"sides": {"row": ["a", "b"], "column": ["c", "d"]}}'

#: Events with extreme and unusual values, and what happens to some of them.
EVERYTHING = [
    Event(Kind.SUGGESTED, 2**50 - 1, 2**63 - 1, value=0.125, nonce=5, key="k", unit="Zoë"),
    Event(Kind.SUGGESTED, 2, -(2**63), nonce=2**20 - 1, key="k", position=1, unit="u"),
    Event(Kind.HISTORY, 1, 40, value=-1e300, nonce=1),
    Event(Kind.REVISED, tag=2, data='{"added": "\\u0000"}', nonce=2),
    Event(Kind.SUGGESTED, value=math.inf, nonce=3, data='{"page": 7}'),
    Event(Kind.SUGGESTED, nonce=4),
]
BECAME = [
    Event(Kind.REPORTED, suggestion=2, value=5e-324, nonce=6),
    Event(Kind.CANCELLED, suggestion=3, nonce=7),
    Event(Kind.EXPIRED, tag=int(Expiry.DEFAULT), suggestion=6, value=0.0, nonce=8),
    Event(Kind.REPORTED, tag=1, suggestion=6, value=0.1 + 0.2, nonce=9),
]


def suggested(count: int = 1, **fields: Any) -> list[Event]:
    """Suggestions of a study with two rows and two columns."""
    return [
        Event(Kind.SUGGESTED, arm=k % 2 * 4096 + k // 2 % 2, tag=k, nonce=nonce, **fields)
        for k, nonce in enumerate(nonces(count))
    ]


def reported(suggestion: int, value: float = 1.0) -> Event:
    """The report of a suggestion."""
    return Event(Kind.REPORTED, suggestion=suggestion, value=value)


def append(storage: Storage, study: StudyRow, *events: Event) -> int:
    """Add events in a transaction. Returns the seq of the first."""
    with storage.transaction(study.id) as log:
        return log.append(study.id, events)


def same(event: Event, expected: Event) -> bool:
    """Whether events are equal, with NaN equal to NaN."""
    return repr(event) == repr(expected._replace(kind=int(expected.kind)))


@contextlib.contextmanager
def _refused(kind: type[Rank1Error], what: str) -> Iterator[None]:
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{what} must be refused with {kind.__name__}")


def _equal(found: Any, expected: Any, what: str) -> None:
    expect(found == expected, f"{what} must be {expected!r}, got {found!r}")


def check_a_new_study(storage: Storage) -> None:
    """The log of a new study begins with its specification."""
    before = time.time()
    study = storage.create("spring", SPEC)
    with storage.reading() as log:
        _equal(log.study("spring"), study, "the study by its name")
        _equal(log.studies(), [study], "the list of studies")
        (event,) = log.page(study.id)
    _equal((study.name, study.retired, study.last_seq), ("spring", None, 1), "the study")
    _equal((event.kind, event.seq, event.data), (Kind.CREATED, 1, SPEC), "the first event")
    _equal(event.at, study.last_at, "the time of the last event")
    expect(before - 5 < study.created <= event.at < time.time() + 5, "the clock is wrong")
    _equal(storage.check(), [], "what is wrong with a new storage")


def check_names(storage: Storage) -> None:
    """Any text of 1 to 256 characters is a valid name, once; others are rejected."""
    names = [
        "b",
        "a",
        "Zoë",
        "日本",
        "'; DROP TABLE rank1_events; --",
        "𝔘" * 256,
        "%s ? {}",
        "../..",
    ]
    studies = [storage.create(name, "{}") for name in names]
    with storage.reading() as log:
        _equal([study.name for study in log.studies()], sorted(names), "the names in order")
        for name, study in zip(names, studies, strict=True):
            _equal(log.study(name), study, f"the study {name!r}")
    expect(len({study.uid for study in studies}) == len(names), "uids must differ")
    expect(len({study.id for study in studies}) == len(names), "ids must differ")
    for name in ("", "x" * 257, "a\0b", "\ud800"):
        with _refused(InputError, f"the name {name[:9]!r}"):
            storage.create(name, "{}")
    with _refused(InputTypeError, "the name 3"):
        storage.create(3, "{}")  # type: ignore[arg-type]
    with _refused(StudyExistsError, "a name that is taken"):
        storage.create("a", SPEC)
    with storage.reading() as log:
        _equal(log.page(log.study("a").id)[0].data, "{}", "the specification of the first")


def check_what_is_unknown(storage: Storage) -> None:
    """A lookup that finds nothing returns nothing; an unknown study is an UnknownStudyError."""
    study = storage.create("spring", SPEC)
    with storage.reading() as log:
        with _refused(UnknownStudyError, "the study 'sprung'"):
            log.study("sprung")
        _equal(log.events(study.id, [2]), [], "an event that isn't there")
        _equal(log.outcomes(study.id, [1, 2]), [], "what became of no suggestion")
        _equal(log.with_key(study.id, "k"), [], "the events of an unknown key")
        _equal(log.of_unit(study.id, "u"), None, "the event of an unknown unit")
        _equal(log.snapshot(study.id, "a"), None, "a snapshot of an unknown layout")
        _equal(log.pending(study.id).tolist(), [], "the pending suggestions of a new study")
        _equal(log.read(study.id, after=1).size, 0, "the number of events after the last")
    with (
        _refused(UnknownStudyError, "a transaction on an unknown study"),
        storage.transaction(study.id + 1) as tx,
    ):
        tx.append(study.id + 1, suggested())
    with (
        _refused(InputError, "an append to a study that the transaction doesn't name"),
        storage.transaction() as tx,
    ):
        tx.append(study.id, suggested())


def check_nothing_is_there_before(storage: Storage) -> None:
    """Before the first study there is nothing to read; `prepare` can be called twice."""
    with _refused(StorageError, "reading what isn't there"), storage.reading():
        pass
    with _refused(StorageError, "a transaction on what isn't there"), storage.transaction():
        pass
    storage.prepare()
    storage.prepare()
    with storage.reading() as log:
        _equal(log.studies(), [], "the studies of a new storage")


def check_events_come_back(storage: Storage) -> None:
    """Every field of an event is read back unchanged, as events and as columns."""
    study = storage.create("spring", SPEC)
    with storage.transaction(study.id) as log:
        _equal(log.append(study.id, EVERYTHING), 2, "the seq of the first event")
        _equal(log.append(study.id, BECAME), 8, "the seq after six events")
        _equal(log.append(study.id, []), 12, "the seq of what is to come")
        at = log.now(study.id)
        within = log.read(study.id)
    with storage.reading() as reader:
        page = reader.page(study.id, after=1)
        events = reader.read(study.id)
        _equal(reader.last(study.id), (11, at), "the end of the log")
    for k, (event, expected) in enumerate(zip(page, EVERYTHING + BECAME, strict=True), 2):
        whole = expected._replace(seq=k, at=at, checksum=event.checksum)
        expect(same(event, whole), f"{whole} came back as {event}")
    for read in (events, within):
        _equal(read.seq.tolist(), list(range(1, 12)), "the numbers of the events")
        for k, event in enumerate(page, 1):
            for name, column in read._asdict().items():
                found, told = column[k].item(), getattr(event, name)
                expect(repr(found) == repr(told), f"{name} of {event} is {found!r} as a column")
    _equal(storage.check(), [], "what is wrong")


def check_nonces(storage: Storage) -> None:
    """An event without a nonce gets one, from 1 to 2²⁰ - 1."""
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(1), *[Event(Kind.SUGGESTED)] * 50)
    with storage.reading() as log:
        found = log.read(study.id, after=2).nonce.tolist()
    expect(all(1 <= nonce < 2**20 for nonce in found), f"nonces must be given, got {found}")
    expect(len(set(found)) > 40, f"nonces must be random, got {found}")


def check_reading_in_parts(storage: Storage) -> None:
    """`read` and `page` continue after any event, up to a limit."""
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(5))
    append(storage, study, reported(2), reported(4))
    forward: list[tuple[dict[str, Any], list[int]]] = [
        ({}, list(range(1, 9))), ({"after": 6}, [7, 8]), ({"after": 8}, []),
        ({"limit": 3}, [1, 2, 3]), ({"after": 3, "limit": 3}, [4, 5, 6]),
    ]  # fmt: skip
    pages: list[tuple[dict[str, Any], list[int]]] = [
        ({"newest": True, "limit": 3}, [8, 7, 6]),
        ({"newest": True, "after": 6, "limit": 3}, [5, 4, 3]),
        ({"kinds": [Kind.REPORTED, Kind.CREATED]}, [1, 7, 8]),
        ({"kinds": [Kind.REPORTED], "newest": True, "limit": 1}, [8]),
    ]
    with storage.reading() as log:
        for options, expected in forward:
            _equal(log.read(study.id, **options).seq.tolist(), expected, f"read({options})")
        for options, expected in forward + pages:
            found = [event.seq for event in log.page(study.id, **options)]
            _equal(found, expected, f"page({options})")
    with _refused(StorageError, "a log that is shorter than it was"), storage.reading() as log:
        log.read(study.id, after=99)


def check_lookups(storage: Storage) -> None:
    """Events are found by number, key, unit and suggestion, within their own study only."""
    study, other = storage.create("spring", SPEC), storage.create("autumn", SPEC)
    keyed = [e._replace(key="k", position=i) for i, e in enumerate(suggested(3, unit="u"))]
    with storage.transaction(study.id, other.id) as log:
        log.append(study.id, keyed + suggested(2, unit="u") + suggested(1, unit="w"))
        log.append(other.id, suggested(1, unit="u", key="k"))
        log.append(study.id, [reported(3), reported(2), Event(Kind.CANCELLED, suggestion=5)])
        log.append(study.id, [Event(Kind.EXPIRED, suggestion=3)])
    with storage.reading() as reader:
        found = [(e.seq, e.position) for e in reader.with_key(study.id, "k")]
        _equal(found, [(2, 0), (3, 1), (4, 2)], "the events of a key, by position")
        _equal([e.seq for e in reader.with_key(other.id, "k")], [2], "those of another study")
        unit = reader.of_unit(study.id, "u")
        expect(unit is not None and unit.seq == 6, f"the last event of u is 6, got {unit}")
        units = reader.of_units(study.id, ["u", "w", "x"]).items()
        _equal({unit: e.seq for unit, e in units}, {"u": 6, "w": 7}, "the last of some units")
        _equal(reader.of_units(study.id, []), {}, "the last events of no units")
        _equal([e.seq for e in reader.events(study.id, [7, 2, 2, 99])], [2, 7], "some events")
        found = [(e.seq, int(e.kind)) for e in reader.outcomes(study.id, [5, 3, 4])]
        _equal(found, [(8, 3), (10, 4), (11, 5)], "what became of some suggestions")
        _equal(reader.outcomes(other.id, [2, 3]), [], "what became of those of another study")
        _equal(reader.pending(study.id).tolist(), [4, 6, 7], "the pending suggestions")


def check_many_lookups(storage: Storage) -> None:
    """Twelve thousand events can be looked up at once."""
    study, seqs = storage.create("spring", SPEC), list(range(2, 12_002))
    append(storage, study, *[e._replace(unit=f"u{e.tag}") for e in suggested(len(seqs))])
    append(storage, study, *map(reported, seqs))
    with storage.reading() as log:
        expect([e.seq for e in log.events(study.id, seqs)] == seqs, "events must be all there")
        found = [e.suggestion for e in log.outcomes(study.id, seqs)]
        expect(found == seqs, "outcomes must be all there")
        units = [f"u{k}" for k in range(len(seqs))]
        found = [event.seq for event in log.of_units(study.id, units).values()]
        expect(sorted(found) == seqs, "the events of units must be all there")
        _equal(log.pending(study.id).size, 0, "how many are pending")


def check_an_exception_undoes_all(storage: Storage) -> None:
    """After an exception in a transaction, nothing from it is stored."""
    study = storage.create("spring", SPEC)
    with contextlib.suppress(KeyError), storage.transaction(study.id) as log:
        log.append(study.id, suggested(3))
        _equal(log.last(study.id)[0], 4, "the last event, within the transaction")
        raise KeyError
    with storage.reading() as reader:
        _equal(reader.last(study.id)[0], 1, "the last event, after an exception")
    _equal(append(storage, study, *suggested()), 2, "the seq of the next event")


def check_nothing_happens_twice(storage: Storage) -> None:
    """A duplicate outcome, or a duplicate event of a key and position, is a ConflictError."""
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(1, key="k"), *suggested(2))
    append(storage, study, reported(2), Event(Kind.CANCELLED, suggestion=4))
    for events in (
        [reported(2, 0.5)],
        [reported(3), reported(3)],
        [Event(Kind.CANCELLED, suggestion=4)],
        [reported(3), *suggested(1, key="k")],
    ):
        with _refused(ConflictError, f"{events}"):
            append(storage, study, *events)
        with (
            # Half may be written; or all is written now.
            _refused(Rank1Error, "a commit after an append that failed"),
            storage.transaction(study.id) as tx,
            contextlib.suppress(Exception),
        ):
            tx.append(study.id, events)
        with storage.reading() as log:
            _equal(log.last(study.id)[0], 6, f"the last event, after {events}")
    append(storage, storage.create("autumn", SPEC), *suggested(1, key="k"))  # is of its study


def check_what_can_not_be(storage: Storage) -> None:
    """Events that can't be stored or have no meaning are rejected."""
    study = storage.create("spring", SPEC)
    for event in (
        Event(Kind.SUGGESTED, key=""), Event(Kind.SUGGESTED, key="k" * 257),
        Event(Kind.SUGGESTED, unit="a\0"), Event(Kind.REVISED, data="é"),
        Event(Kind.REVISED, data="\0"), Event(Kind.REPORTED), Event(Kind.REPORTED, suggestion=9),
        Event(Kind.SUGGESTED, suggestion=1),
    ):  # fmt: skip
        with _refused(InputError, f"{event}"):
            append(storage, study, event)
    append(storage, study, *suggested(1, key="𝔎" * 256, unit="𝔘" * 256))
    with storage.reading() as log:
        _equal(log.with_key(study.id, "𝔎" * 256)[0].unit, "𝔘" * 256, "the longest unit")
        _equal(log.last(study.id)[0], 2, "the last event")


def check_the_clock(storage: Storage) -> None:
    """The clock is read once per transaction."""
    study = storage.create("spring", SPEC)
    with storage.transaction(study.id) as log:
        now = log.now(study.id)
        time.sleep(0.01)
        log.append(study.id, suggested())
        _equal(log.now(study.id), now, "the time within a transaction")
    with storage.reading() as reader:
        _equal(reader.last(study.id), (2, now), "the end of the log")
        expect(reader.now(study.id) > now, "time must pass between transactions")


def check_retiring(storage: Storage) -> None:
    """A study can be retired once, and still accepts reports."""
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested())
    with storage.transaction(study.id) as tx:
        tx.retire(study.id)
        at = tx.now(study.id)
    with _refused(ConflictError, "retiring twice"), storage.transaction(study.id) as tx:
        tx.retire(study.id)
    append(storage, study, reported(2))
    with storage.reading() as log:
        _equal(log.study("spring").retired, at, "the time at which it was retired")
        _equal(log.read(study.id).kind.tolist(), [1, 2, 8, 3], "the kinds of its events")


def check_forgetting_a_unit(storage: Storage) -> None:
    """Forgetting a unit removes its name, its data and keys that contain it, and nothing else."""
    study, other = storage.create("spring", SPEC), storage.create("autumn", SPEC)
    ann = suggested(1, unit="ann", data="{}", key="ask ann")
    ann += [Event(Kind.RECORDED, arm=1, tag=1, value=0.5, unit="ann", key="batch")]
    joe = suggested(1, unit="joanna", data="{}", key="joanna_1")
    joe += suggested(1, unit="jo", key="jo/ann")
    append(storage, study, *ann, *joe)
    append(storage, study, reported(2)._replace(key="annie"), reported(4)._replace(key="annie2"))
    append(storage, other, *ann)
    with storage.reading() as log:
        before, folded = log.page(study.id), log.read(study.id)
    with _refused(InputError, "a unit without a name"), storage.transaction(study.id) as tx:
        tx.forget_unit(study.id, "")
    for count in (4, 0):
        with storage.transaction(study.id) as tx:
            _equal(tx.forget_unit(study.id, "ann"), count, "how many events had the unit")
    with storage.reading() as log:
        after = log.page(study.id)
        _equal([e.unit for e in after[1:5]], [None, None, "joanna", "jo"], "the units")
        keys = [e.key for e in after[1:]]
        _equal(keys, [None, "batch", "joanna_1", None, None, "annie2"], "the keys")
        _equal([e.data for e in after[1:5]], [None, None, "{}", None], "the data")
        for e, then in zip(after, before, strict=True):
            same_else = e._replace(unit=None, key=None, data=None)
            expect(
                same(same_else, then._replace(unit=None, key=None, data=None)),
                f"nothing else must change: {then} became {e}",
            )
        expect(repr(log.read(study.id)) == repr(folded), "what is folded must stay")
        _equal(log.of_unit(study.id, "ann"), None, "the event of a unit that was forgotten")
        _equal(len(log.with_key(other.id, "ask ann")), 1, "the events of another study")
    append(storage, study, *suggested(1, unit="ann", key="ask ann"))
    _equal(storage.check(), [], "what is wrong")


def check_archiving(storage: Storage) -> None:
    """An archived study is marked, and otherwise unchanged."""
    study = storage.create("spring", SPEC)
    _equal(study.archived, None, "the time at which a new study was archived")
    with storage.transaction(study.id) as tx:
        tx.archive(study.id)
        at = tx.now(study.id)
    with storage.reading() as log:
        _equal(log.studies(), [study._replace(archived=at)], "the list of studies")
    append(storage, study, *suggested())
    with storage.transaction(study.id) as tx:
        tx.archive(study.id, archived=False)
    with storage.reading() as log:
        _equal(log.study("spring").archived, None, "the time, after it was listed again")


def check_deleting(storage: Storage) -> None:
    """A deleted study is gone; its name can be reused, its number can't."""
    kept, study = storage.create("autumn", SPEC), storage.create("spring", SPEC)
    append(storage, study, *suggested(3))
    storage.put_snapshot(study.id, Snapshot(4, "one", b"state"))
    with storage.transaction(study.id) as tx:
        tx.delete(study.id)
    with storage.reading() as log:
        _equal(log.studies(), [kept], "the studies that are left")
        with _refused(UnknownStudyError, "a study that was deleted"):
            log.study("spring")
    with _refused(UnknownStudyError, "a transaction on it"), storage.transaction(study.id) as tx:
        tx.append(study.id, suggested())
    again = storage.create("spring", SPEC)
    expect(again.id != study.id, f"the number {study.id} must not be given again")
    expect(again.uid != study.uid, "the uid must be another")
    with storage.reading() as log:
        _equal(log.read(again.id).size, 1, "the events of a new study of its name")
        _equal(log.snapshot(again.id, "one"), None, "the snapshot of a new study of its name")
    _equal(storage.check(), [], "what is wrong")


def check_snapshots(storage: Storage) -> None:
    """The newest snapshot of a layout that isn't ahead of the log is found."""
    study, other = storage.create("spring", SPEC), storage.create("autumn", SPEC)
    append(storage, study, *suggested(9))
    blob = bytes(range(256)) * 1000
    for seq in (2, 4, 6):
        storage.put_snapshot(study.id, Snapshot(seq, "one", blob + bytes([seq])))
    with storage.reading() as log:
        expect(log.snapshot(study.id, "one") == (6, "one", blob + b"\6"), "the newest isn't found")
        _equal(log.snapshot(study.id, "two"), None, "a snapshot of another layout")
        _equal(log.snapshot(other.id, "one"), None, "a snapshot of another study")
    storage.put_snapshot(study.id, Snapshot(6, "two", b"new"))
    storage.put_snapshot(study.id, Snapshot(11, "one", b"ahead of the log"))
    with storage.reading() as log:
        _equal(log.snapshot(study.id, "two"), (6, "two", b"new"), "one that was replaced")
        _equal(log.snapshot(study.id, "one"), None, "one that is ahead of the log")


def check_readers_see_one_moment(storage: Storage) -> None:
    """A reader doesn't see events that others add meanwhile."""
    study = storage.create("spring", SPEC)
    with storage.reading() as log:
        log.last(study.id)
        append(storage, study, *suggested(3))
        _equal(log.read(study.id).size, 1, "the number of events, as of the beginning")
    with storage.reading() as log:
        _equal(log.read(study.id).size, 4, "the number of events afterwards")


def check_threads(storage: Storage) -> None:
    """Many threads add to one study, and every acknowledged event is there exactly once."""
    study = storage.create("spring", SPEC)
    acknowledged: list[int] = []
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                with storage.transaction(study.id) as tx:
                    first = tx.append(study.id, suggested(3, unit=f"u{number}"))
                acknowledged.extend(range(first, first + 3))
                with storage.reading() as log:
                    expect(log.last(study.id)[0] >= first, "what was acknowledged must be there")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=[k]) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _equal(failed, [], "what failed")
    _equal(sorted(acknowledged), list(range(2, 122)), "what was acknowledged")
    _equal(storage.check(), [], "what is wrong")


def check_two_studies(storage: Storage) -> None:
    """One transaction can add to two studies."""
    a, b = storage.create("a", SPEC), storage.create("b", SPEC)
    with storage.transaction(b.id, a.id) as log:
        _equal(log.append(a.id, suggested(2)), 2, "the first seq of one")
        _equal(log.append(b.id, suggested(3)), 2, "the first seq of the other")
    with storage.reading() as reader:
        _equal((reader.last(a.id)[0], reader.last(b.id)[0]), (3, 4), "the ends of the logs")


def check_closing(storage: Storage) -> None:
    """A closed storage opens again when it is used."""
    study = storage.create("spring", SPEC)
    for _ in range(2):
        storage.close()
        append(storage, study, *suggested())
    storage.close()
    storage.close()
    with storage.reading() as log:
        _equal(log.last(study.id)[0], 3, "the last event")


#: Each check takes an empty storage.
STORAGE_CHECKS: list[Callable[[Storage], None]] = [
    value for name, value in list(vars().items()) if name.startswith("check_")
]


def check_storage(make: Callable[[], Storage]) -> None:
    """Run all checks, each on a new storage from `make`; an AssertionError says what is wrong.

    >>> import tempfile
    >>> from rank1.studies.storage import open_storage
    >>> check_storage(lambda: open_storage(tempfile.mkdtemp() + "/rank1.db"))
    """
    for check in STORAGE_CHECKS:
        storage = make()
        try:
            run_checks(type(storage).__name__, [check], storage)
        finally:
            storage.close()
