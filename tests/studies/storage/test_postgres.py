"""PostgreSQL: connections that are cut, a server that is killed, tables that are made."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

import rank1
from rank1.studies.events import Event, Kind
from rank1.studies.storage import StudyRow, postgres_tables, sql_reader
from rank1.studies.storage.postgres import PostgresReader, PostgresStorage
from rank1.studies.storage.tables import FORMAT, WRITTEN, migration, select_events
from tests.studies import old_logs
from tests.studies.conftest import new_schema, while_killed
from tests.studies.proxy import Proxy, cut_at_commit, through
from tests.studies.support import SPEC, append, reported, suggested


@pytest.fixture
def url(server: Any) -> str:
    return new_schema(server)


@pytest.fixture
def storage(url: str) -> Iterator[PostgresStorage]:
    with PostgresStorage(url) as storage:
        yield storage


def last(url: str, name: str = "spring") -> int:
    with PostgresStorage(url) as storage, storage.reading() as log:
        return log.study(name).last_seq


@pytest.mark.parametrize("what", ["before", "client"])
def test_a_commit_that_never_arrived(url: str, proxy: Proxy, what: str) -> None:
    with PostgresStorage(through(proxy, url)) as storage:
        study = storage.create("spring", SPEC)
        append(storage, study, *suggested(3))
        cut_at_commit(proxy, what)

        def lose() -> None:
            with storage.transaction(study.id) as log:
                log.append(study.id, suggested(2))
                # A server that still believes in its client ends the transaction soon.
                log.rows("SET LOCAL idle_in_transaction_session_timeout = 100")

        with pytest.raises(rank1.StorageError, match=r"was lost .* nothing was stored") as caught:
            lose()
        assert caught.value.again
        assert last(url) == 4
        assert append(storage, study, *suggested(2)) == 5  # goes on by itself
        assert storage.check() == []


def test_a_commit_whose_answer_was_lost(url: str, proxy: Proxy) -> None:
    with PostgresStorage(through(proxy, url)) as storage:
        study = storage.create("spring", SPEC)
        append(storage, study, *suggested(3))
        cut_at_commit(proxy, "after")
        assert append(storage, study, *suggested(2)) == 5
        assert last(url) == 6
        cut_at_commit(proxy, "after")
        assert append(storage, study, reported(5)) == 7
        assert append(storage, study, *suggested(2)) == 8
        assert storage.check() == []


def test_others_went_on_before_a_lost_commit_is_looked_for(
    url: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another event with the same number isn't taken for one's own."""
    with PostgresStorage(through(proxy, url)) as storage, PostgresStorage(url) as other:
        study = storage.create("spring", SPEC)
        real = PostgresStorage._is_there
        for what, events in (("before", [*suggested(2)]), ("after", [*suggested(3)])):

            def later(self: PostgresStorage, added: Any) -> bool:
                append(other, study, *suggested(2))
                return real(self, added)

            monkeypatch.setattr(PostgresStorage, "_is_there", later)
            cut_at_commit(proxy, what)
            if what == "before":
                with pytest.raises(rank1.StorageError, match="nothing was stored"):
                    append(storage, study, *events)
                assert last(url) == 3
            else:
                assert append(storage, study, *events) == 4
                assert last(url) == 8
        assert storage.check() == []


@pytest.mark.parametrize("what", ["before", "after"])
def test_a_study_whose_creation_was_cut(url: str, proxy: Proxy, what: str) -> None:
    with PostgresStorage(through(proxy, url)) as storage:
        storage.prepare()
        cut_at_commit(proxy, what)
        if what == "before":
            with pytest.raises(rank1.StorageError, match="nothing was stored"):
                storage.create("spring", SPEC)
        study = storage.create("spring" if what == "after" else "summer", SPEC)
        with storage.reading() as log:
            assert log.studies() == [study]


@pytest.mark.parametrize("what", ["before", "after"])
def test_what_is_forgotten_or_deleted_while_the_commit_is_cut(
    url: str, proxy: Proxy, what: str
) -> None:
    """Whether it was stored isn't known; it isn't acknowledged, and may be done once more."""
    with PostgresStorage(through(proxy, url)) as storage:
        study = storage.create("spring", SPEC)
        append(storage, study, *suggested(3, unit="ann"))

        def change(name: str, *given: Any) -> Any:
            storage.close()  # a new connection
            cut_at_commit(proxy, what)
            with (
                pytest.raises(rank1.StorageError, match="lost during a commit") as caught,
                storage.transaction(study.id) as tx,
            ):
                getattr(tx, name)(study.id, *given)
            assert caught.value.again
            with storage.transaction(study.id) as tx:
                return getattr(tx, name)(study.id, *given)

        assert change("forget_unit", "ann") == (3 if what == "before" else 0)
        change("archive")
        with storage.reading() as log:
            assert log.of_unit(study.id, "ann") is None
            assert log.study("spring").archived
        if what == "after":
            with pytest.raises(rank1.UnknownStudyError):
                change("delete")
        else:
            change("delete")
        with storage.reading() as log:
            assert log.studies() == []
        assert storage.check() == []


def test_a_server_that_does_not_come_back(url: str, proxy: Proxy) -> None:
    storage = PostgresStorage(through(proxy, url))
    study = storage.create("spring", SPEC)
    storage.patience = 0.5  # with new connections; the server is patient with the old one
    proxy.cut = lambda data: "after" if b"COMMIT" in data else "before" if b"user" in data else None
    with pytest.raises(rank1.StorageError, match="whether the last events were stored isn't known"):
        append(storage, study, *suggested(2))
    with pytest.raises(rank1.StorageError, match="no connection to postgresql://") as caught:
        append(storage, study, *suggested(2))
    assert caught.value.again
    storage.close()
    assert last(url) == 3


def test_connections_that_died_in_the_meantime_are_replaced(url: str, server: Any) -> None:
    with PostgresStorage(url) as storage:
        study = storage.create("spring", SPEC)
        with storage.reading(), storage.reading():  # two connections
            pass
        with psycopg.connect(server.get_uri(), autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'rank1'"
            )
        assert append(storage, study, *suggested()) == 2


def test_a_connection_that_dies_within_a_transaction(url: str, server: Any) -> None:
    with PostgresStorage(url) as storage:
        study = storage.create("spring", SPEC)

        def die() -> None:
            with storage.transaction(study.id) as log:
                log.append(study.id, suggested())
                ((pid,),) = log.rows("SELECT pg_backend_pid()")
                with psycopg.connect(server.get_uri()) as other:
                    # and wait until it has ended, in milliseconds
                    other.execute("SELECT pg_terminate_backend(%s, 300000)", [pid])
                log.append(study.id, suggested())

        with pytest.raises(rank1.StorageError, match="nothing was stored") as caught:
            die()
        assert caught.value.again
        assert append(storage, study, *suggested()) == 2


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.validate)])
def test_the_server_is_killed_and_restarted(url: str, server: Any, kills: int) -> None:
    """Threads write without end while the server is killed; each acknowledged event is there."""
    storage = PostgresStorage(url)
    study = storage.create("spring", SPEC)
    acknowledged: list[tuple[int, int]] = []

    def write() -> None:
        events = suggested(3)
        first = append(storage, study, *events)
        acknowledged.extend((first + k, e.nonce) for k, e in enumerate(events))

    while_killed(server, [write] * 3, acknowledged, kills)
    with storage.reading() as log:
        events = log.read(study.id)
    stored = set(zip(events.seq.tolist(), events.nonce.tolist(), strict=True))
    assert len(set(acknowledged)) == len(acknowledged)
    assert set(acknowledged) <= stored
    # Nobody was told that something was lost which is there.
    assert events.size == 1 + len(acknowledged)
    assert storage.check() == []
    storage.close()


def test_somebody_holds_a_study(url: str) -> None:
    with (
        PostgresStorage(url) as storage,
        PostgresStorage(url) as other,
        PostgresStorage(url, patience=0.3) as impatient,
    ):
        a, b = storage.create("a", SPEC), storage.create("b", SPEC)
        with other.transaction(a.id):
            with pytest.raises(rank1.StorageError, match=r"held the study .* for 0\.3 s"):
                append(impatient, a, *suggested())
            append(storage, b, *suggested())  # others don't wait
            with storage.reading() as log:
                assert log.last(a.id)[0] == 1
        assert append(storage, a, *suggested()) == 2


def test_who_stops_in_the_middle_does_not_hold_a_study_for_ever(url: str) -> None:
    with PostgresStorage(url, patience=0.5) as storage, PostgresStorage(url) as other:
        study = other.create("spring", SPEC)

        def stop() -> None:
            with storage.transaction(study.id) as log:
                log.append(study.id, suggested())
                assert append(other, study, *suggested()) == 2
                log.append(study.id, suggested())

        with pytest.raises(rank1.StorageError, match="nothing was stored"):
            stop()
        assert append(other, study, *suggested()) == 3


def test_many_make_the_tables_at_once(url: str) -> None:
    storages = [PostgresStorage(url) for _ in range(8)]
    created: list[StudyRow] = []
    others: list[BaseException] = []
    gate = threading.Barrier(8)

    def create(storage: PostgresStorage) -> None:
        gate.wait()
        try:
            created.append(storage.create("spring", SPEC))
        except BaseException as error:
            others.append(error)

    threads = [threading.Thread(target=create, args=[storage]) for storage in storages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(created) == 1
    assert [type(error) for error in others] == [rank1.StudyExistsError] * 7
    for storage in storages:
        assert storage.check() == []
        storage.close()


def test_newer_formats_are_refused(storage: PostgresStorage, url: str) -> None:
    storage.prepare()
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("UPDATE rank1_format SET version = 77")
    with PostgresStorage(url) as late:
        for use in (late.prepare, late.reading().__enter__, late.transaction().__enter__):
            with pytest.raises(rank1.FormatError, match=rf"has format 77.*up to {FORMAT}.*upgrade"):
                use()
        assert "has format 77" in late.check()[0]


def test_older_formats_are_migrated_whole_or_not_at_all(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(old_logs.kept("log-0.1.sql"))
    steps = [*migration(postgres_tables.DIALECT, frozenset({"row"})), "CREATE TABLE wrong ("]
    monkeypatch.setattr(postgres_tables, "migration", lambda *_: steps)
    storage = PostgresStorage(url)
    with pytest.raises(rank1.StorageError, match=r"exists|syntax error"), storage.reading():
        pass
    with psycopg.connect(url, autocommit=True) as other:
        assert other.execute("SELECT version FROM rank1_format").fetchall() == [(1,)]
        assert other.execute('SELECT max("row") FROM rank1_events').fetchall() == [(3,)]
    monkeypatch.undo()
    with storage.reading() as log:
        assert log.rows("SELECT version FROM rank1_format") == [(FORMAT,)]
        study = log.study("uts")
        before = log.page(study.id, limit=1000)
    append(storage, study, Event(Kind.SUGGESTED, arm=2**40 + 5))
    with storage.reading() as log:
        *others, last = log.page(study.id, limit=1000)
        assert log.read(study.id).arm.tolist() == [event.arm for event in (*before, last)]
    assert (last.arm, list(map(repr, others))) == (2**40 + 5, list(map(repr, before)))
    assert storage.check() == []
    storage.close()


def test_older_tables_that_may_not_be_changed_are_read(url: str, server: Any) -> None:
    """By a user who may only read."""
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(old_logs.kept("log-0.1.sql"))
    options = f"{url}%20-cdefault_transaction_read_only%3Don"
    with PostgresStorage(options) as storage, storage.reading() as log:
        study = log.study("uts")
        events = log.page(study.id, limit=1000)
        assert log.read(study.id).arm.tolist() == [event.arm for event in events]
        assert log.rows("SELECT version FROM rank1_format") == [(1,)]


def test_addresses_that_lead_nowhere(tmp_path: Path) -> None:
    url = f"postgresql://ann:secret@/shop?host={tmp_path}"
    with PostgresStorage(url, patience=1000) as storage:
        begin = time.monotonic()
        for use in (storage.prepare, lambda: storage.create("spring", SPEC)):
            with pytest.raises(
                rank1.StorageError, match="no connection to postgresql://"
            ) as caught:
                use()
            assert "secret" not in str(caught.value)
            assert "ann@" in str(caught.value)
        assert time.monotonic() - begin < 500  # who never reached it isn't kept waiting
    with pytest.raises(rank1.InputError, match="storage must be an address like postgresql://"):
        PostgresStorage("postgresql://[host/")


def test_a_database_that_can_not_write_every_name(server: Any) -> None:
    with psycopg.connect(server.get_uri(), autocommit=True) as other:
        other.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    url = server.get_uri().replace("@/postgres", "@/latin")
    with pytest.raises(rank1.StorageError, match=r"has the encoding LATIN1.*UTF8"):
        PostgresStorage(url).create("spring", SPEC)


def test_a_database_that_may_only_be_read(url: str) -> None:
    with PostgresStorage(url) as storage:
        study = storage.create("spring", SPEC)
    frozen = url.replace("options=", "options=-cdefault_transaction_read_only%3Don%20")
    with PostgresStorage(frozen) as storage:
        with pytest.raises(rank1.StorageError, match="isn't writable"):
            append(storage, study, *suggested())
        with storage.reading() as log:
            assert log.study("spring").last_seq == 1


def test_commits_are_forced_onto_the_disk(url: str) -> None:
    lax = url.replace("options=", "options=-csynchronous_commit%3Doff%20")
    strict = url.replace("options=", "options=-csynchronous_commit%3Dremote_apply%20")
    for address, expected in ((lax, "on"), (strict, "remote_apply")):
        with PostgresStorage(address) as storage:
            storage.prepare()
            with storage.reading() as log:
                assert log.rows("SHOW synchronous_commit") == [(expected,)]


def test_a_full_disk_is_told() -> None:
    def fail() -> None:
        with postgres_tables.translated("postgresql://host/base", 30):
            raise errors.DiskFull("could not extend file")

    with pytest.raises(rank1.StorageError, match="no disk space to write postgresql://host/base"):
        fail()


def test_lookups_go_through_indices(storage: PostgresStorage) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, *suggested(2000, unit="u"))
    append(storage, study, *[reported(seq) for seq in range(2, 1900)])
    events = select_events(frozenset(WRITTEN))
    queries: list[tuple[str, list[Any]]] = [
        (f"{events} AND seq > ? ORDER BY seq LIMIT 3", [1, 2]),
        (f"{events} AND seq < ? ORDER BY seq DESC LIMIT 3", [1, 3000]),
        (f"{events} AND seq = ANY(?::int8[])", [1, [3, 4]]),
        (f"{events} AND suggestion > 0 AND suggestion = ANY(?::int8[])", [1, [3, 4]]),
        (f"{events} AND key = ? ORDER BY position", [1, "k"]),
        (f"{events} AND unit = ? ORDER BY seq DESC LIMIT 1", [1, "u"]),
        (sql_reader.LAST, [1]),
    ]
    with storage.reading() as log:
        log.rows("SET LOCAL enable_seqscan = off")
        for query, parameters in queries:
            plan = "\n".join(line for (line,) in log.rows(f"EXPLAIN {query}", *parameters))
            assert "Index" in plan, plan
            assert "Seq Scan" not in plan, plan


def test_a_backup_is_left_to_the_database(storage: PostgresStorage, tmp_path: Path) -> None:
    with pytest.raises(rank1.StorageError, match="pg_dump"):
        storage.backup(tmp_path / "copy")
    assert os.listdir(tmp_path) == []


def test_a_server_that_does_not_force_is_told_of(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:

    storage.create("spring", SPEC)
    real = PostgresReader.rows

    def off(self: PostgresReader, query: str, *parameters: Any) -> Any:
        return [("fsync", "off")] if "pg_settings" in query else real(self, query, *parameters)

    assert storage.check() == []
    monkeypatch.setattr(PostgresReader, "rows", off)
    assert storage.check() == [
        "the server runs with fsync = off: what was acknowledged can be lost with the power"
    ]


def test_kinds_are_numbers_to_the_database(storage: PostgresStorage) -> None:
    study = storage.create("spring", SPEC)
    append(storage, study, Event(Kind.SUGGESTED), Event(int(Kind.HISTORY)), Event(99))
    with pytest.raises(rank1.FormatError, match="kind 99"), storage.reading() as log:
        log.read(study.id)


def test_prepared_statements_survive_a_rollback(storage: PostgresStorage) -> None:
    study = storage.create("spring", SPEC)
    for _ in range(8):  # by then psycopg has prepared statements, too
        append(storage, study, *suggested(1))
        with storage.reading() as log:
            log.study("spring")
    with pytest.raises(KeyError), storage.transaction(study.id):
        raise KeyError
    assert append(storage, study, *suggested(1)) == 10


def test_texts_of_all_kinds(storage: PostgresStorage) -> None:
    study = storage.create("spring", SPEC)
    texts = [
        None,
        "it's",
        "\\",
        "a\\'b",
        "{NULL,x}",
        '"',
        "NULL",
        "Zoë 👩‍👩‍👧",
        "; --",
        "$1 %s",
    ]
    append(storage, study, *(Event(Kind.SUGGESTED, unit=text) for text in texts))
    with storage.reading() as log:
        assert [event.unit for event in log.page(study.id, after=1)] == texts


def test_what_others_wrote_comes_with_the_lock(url: str) -> None:
    with PostgresStorage(url) as one, PostgresStorage(url) as other:
        study = one.create("spring", SPEC)
        known = 1
        for count in (1, 3, 0, 2, 300, 1):
            append(other, study, *suggested(count))
            with one.transaction(study.id) as log:
                found = log.read(study.id, after=known)
                assert found.seq.tolist() == list(range(known + 1, known + 1 + count))
                first = log.append(study.id, suggested(2))
                assert log.read(study.id, after=known).size == count + 2
                assert log.read(study.id).size == first + 1
            assert one.contended == (known > 1 and count > 0)
            known = first + 1


def test_others_on_any_study_of_a_transaction_are_noticed(url: str) -> None:
    with PostgresStorage(url) as one, PostgresStorage(url) as other:
        first, second = one.create("spring", SPEC), one.create("autumn", SPEC)
        for study in (first, second):
            with one.transaction(first.id, second.id):
                pass
            append(other, study, *suggested(1))
            with one.transaction(first.id, second.id):
                pass
            assert one.contended
        with one.transaction(first.id, second.id):
            pass
        assert not one.contended


@pytest.mark.parametrize("closed", [True, False])
def test_half_an_answer_is_a_lost_connection(closed: bool) -> None:
    """A log isn't damaged because the connection broke while it was read."""

    class Broken:
        present: frozenset[str] = frozenset()

        def __init__(self) -> None:
            self.closed = closed

        def execute(self, *_: Any, **__: Any) -> Any:
            raise ValueError("half a row")

    class Silent(PostgresReader):
        def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
            return []

    connection: Any = Broken()
    with pytest.raises(psycopg.OperationalError if closed else ValueError, match="half a row"):
        PostgresReader(connection).rows("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="the answer was lost"):
        Silent(connection).records(1, 1, 10)
