"""Studies in a PostgreSQL database, which processes on many hosts can use concurrently."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import random
import re
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Escaping, TransactionStatus

from rank1.errors import DamagedError, InputError, StorageError, UnknownStudyError
from rank1.studies.events import COLUMNS, RECORD, Event
from rank1.studies.storage import without_password
from rank1.studies.storage.array_parameters import literals
from rank1.studies.storage.base import PATIENCE
from rank1.studies.storage.connections import Connections
from rank1.studies.storage.postgres_tables import (
    ADVISORY_LOCK,
    Connection,
    connect,
    lost,
    translated,
)
from rank1.studies.storage.sql import SqlStorage, SqlTransaction
from rank1.studies.storage.sql_reader import PORTION, SqlReader
from rank1.studies.storage.tables import WRITTEN, select_columns
from rank1.studies.storage.unnumbered import ADD, TAKE, WAITING, columns_of, numbered

__all__ = ["PostgresStorage"]

T = TypeVar("T")

TYPES = ["int4", *COLUMNS.values()]
COPY = f"COPY rank1_events ({', '.join(WRITTEN)}) FROM STDIN (FORMAT BINARY)"
#: The maximum number of rows to insert with a statement; more rows use COPY.
FEW = 100
INSERT = f"""
    INSERT INTO rank1_events ({", ".join(WRITTEN)})
    SELECT * FROM unnest({", ".join(f"${k}" for k in range(1, len(TYPES) + 1))})"""
# All columns of `Events` concatenated into one long value, far faster than a row for each event.
READ = "SELECT string_agg({sent}, '') FROM ({some} AND seq >= ? ORDER BY seq LIMIT ?) AS e".format(
    sent=" || ".join(f"{COLUMNS[name]}send({name})" for name in RECORD.names or ()), some="{some}"
)
SENT = RECORD.newbyteorder(">")
# A separate statement after the lock's, so that it sees what was committed while it waited.
LOCK = "SELECT id FROM rank1_studies WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE"
#: The most events to read with the message that locks a study.
MANY = 256
#: By study: the seq, time and checksum of its last event, the current time, whether there are
#: events without a number, and the last events, if they were asked for.
Ends = dict[int, tuple[int, float, int, float, bool, NDArray[Any] | None]]

CLOCK = "extract(epoch FROM clock_timestamp())::float8"
ENDS = f"""
    SELECT id, seq, at, checksum, {CLOCK}, {WAITING.format(study="id")}
    FROM rank1_studies CROSS JOIN LATERAL (
        SELECT seq, at, checksum FROM rank1_events WHERE study = id ORDER BY seq DESC LIMIT 1) AS e
    WHERE id = ANY ($1)"""
OWN = "SELECT at, kind, nonce FROM rank1_events WHERE study = ? AND seq = ?"
# An uncommitted study has no row yet that others could see and wait for.
CREATION = f"BEGIN; SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"
SNAPSHOT_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


_NO_NEWS = np.empty(0, SENT)


class PostgresReader(SqlReader):
    """Reads through one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.present = connection, connection.present

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        try:
            cursor = self.connection.execute(_own_marks(sql), parameters, binary=True)
            return cursor.fetchall() if cursor.description else []
        except (ValueError, TypeError) as error:
            if self.connection.closed:  # half an answer is no sign of a damaged log
                raise psycopg.OperationalError(f"the answer was lost ({error!r})") from error
            raise

    def among(self, values: Sequence[int] | Sequence[str]) -> tuple[str, Any]:
        of = "text" if isinstance(values[0], str) else "int8"
        return f"= ANY(?::{of}[])", list(values)

    def clock(self) -> float:
        ((now,),) = self.rows(f"SELECT {CLOCK}")
        return now

    def damage(self) -> list[str]:
        settings = self.rows(
            "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes')"
        )
        return [
            f"the server runs with {name} = off: what was acknowledged can be lost with the power"
            for name, setting in settings
            if setting == "off"
        ]

    def records(self, study: int, first: int, count: int) -> NDArray[Any]:
        raw, sql = [], READ.format(some=select_columns(self.present))
        first, got, some = max(first, 1), 0, 0
        while count > 0 and got == some:
            some = min(count, PORTION)
            rows = self.rows(sql, study, first, some)
            if not rows:  # an aggregate always returns a row
                raise psycopg.OperationalError("the answer was lost")
            raw.append(rows[0][0] or b"")
            got = len(raw[-1]) // SENT.itemsize
            first, count = first + got, count - got
        return np.frombuffer(b"".join(raw), SENT)

    def damaged(self, what: str) -> Exception:
        return DamagedError(f"the log is damaged: {what}", "restore a backup of the database")


class PostgresTransaction(PostgresReader, SqlTransaction):
    """Reads and writes through one connection, which holds the studies' locks."""

    new_study = "INSERT INTO rank1_studies (name, uid, created) VALUES (?, ?, ?) RETURNING id"

    def __init__(self, connection: Connection, ends: Ends) -> None:
        PostgresReader.__init__(self, connection)
        SqlTransaction.__init__(self, list(ends))
        #: Rows of events not yet sent to the database.
        self._unwritten: list[tuple[Any, ...]] = []
        #: By study: the last events when it was locked.
        self._news: dict[int, NDArray[Any]] = {}
        for study, (seq, at, checksum, now, waiting, news) in ends.items():
            self._lasts[study], self._times[study] = (seq, at, checksum), max(at, now)
            if news is not None and len(news) and news["seq"][-1] == seq:
                self._news[study] = news
            if waiting:
                self.append(study, numbered(self.rows(TAKE, study)), as_dated=True)

    def insert(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._unwritten += rows
        self._news.clear()

    def records(self, study: int, first: int, count: int) -> NDArray[Any]:
        news = self._news.get(study, _NO_NEWS)
        if len(news) and news["seq"][0] <= first:
            return news[news["seq"] >= first][:count]
        return super().records(study, first, count)

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        if self._unwritten:
            self._write()
        return super().rows(sql, *parameters)

    def _write(self, then: str = "") -> str | None:
        """Write the events, then run another statement; returns the status of the last one."""
        rows, self._unwritten = self._unwritten, []
        if len(rows) <= FEW:
            name = self.connection.prepared(INSERT, *(f"{of}[]" for of in TYPES))
            escape = Escaping(self.connection.pgconn).escape_literal
            values = literals(escape, TYPES, zip(*rows, strict=True))
            both = b"EXECUTE %b (%b); %b" % (name.encode(), values, then.encode())
            cursor = self.connection.execute(both, prepare=False)
            return [cursor.statusmessage for _ in _results(cursor)][-1]
        with self.connection.cursor() as cursor:
            with cursor.copy(COPY) as copy:
                copy.set_types(TYPES)
                for row in rows:
                    copy.write_row(row)
            return cursor.execute(then).statusmessage if then else None

    def ended(self, study: int, seq: int) -> int:
        """Return the seq of the last event, which was `seq` at the beginning."""
        return self._lasts.get(study, (seq,))[0]

    def commit(self) -> str | None:
        """Write all appended events at once, and commit; others wait for the lock meanwhile."""
        if self._unwritten:
            return self._write("COMMIT")
        return self.connection.execute("COMMIT").statusmessage


class PostgresStorage(SqlStorage):
    """Studies in a database; writers to the same study take turns, others run in parallel.

    If the connection is lost during a commit, the storage checks afterwards whether the events were
    stored. If it is lost before that, the error says that nothing was stored.

    Parameters
    ----------
    url
        The database: `postgresql://user@host/database`. Creating the first study creates the
        tables.
    patience
        Seconds to wait for other writers, and for a server that was reachable to come back.
    """

    def __init__(self, url: str, patience: float = PATIENCE) -> None:
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError:  # whose message may quote the password
            expected = "an address like postgresql://user@host/database"
            raise InputError("storage", without_password(url), expected) from None
        if "/" in url.partition("://")[2].partition("?")[0].rpartition("@")[0]:
            # The database would be asked for a host that is a part of the password.
            expected = "an address with %2F for each / in the password"
            raise InputError("storage", without_password(url), expected)
        self.where = _without_password(parts)
        self.patience = patience
        self._connect = functools.partial(connect, parts, self.where, patience)
        self._connections = Connections(self._connect, psycopg.Connection.close, alone=False)
        self._was_there = False
        #: By study: the seq of the last event of the last transaction here, and whether others had
        #: added events before it.
        self._seen: dict[int, tuple[int, bool]] = {}
        self.contended = False
        weakref.finalize(self, self._connections.close)

    def prepare(self) -> None:
        if not self._was_there:
            with translated(self.where, self.patience):
                self._connect(make=True).close()
            self._was_there = True

    @contextlib.contextmanager
    def reading(self) -> Iterator[PostgresReader]:
        with self._transaction(SNAPSHOT_READ) as log:
            yield PostgresReader(log.connection)

    def add(self, added: Sequence[tuple[int, Event]]) -> set[int]:
        # If the connection is lost, all are sent again; duplicates aren't added: see `unnumbered`.
        with translated(self.where, self.patience):
            return {place for (place,) in self._alone(ADD, columns_of(added))}

    def settle(self, study: int) -> None:
        with translated(self.where, self.patience):
            ((waiting,),) = self._alone(f"SELECT {WAITING.format(study='%s')}", [study])
        if waiting:
            with contextlib.suppress(StorageError), self.transaction(study):
                pass

    def _alone(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that is its own transaction and is safe to retry."""
        connection, found = self._begin(lambda one: one.execute(statement, parameters).fetchall())
        self._connections.give(connection)
        return found

    @contextlib.contextmanager
    def transaction(self, *studies: int) -> Iterator[PostgresTransaction]:
        with self._transaction("BEGIN", studies) as log:
            yield log
            log.check_whole()

    def creation(self) -> AbstractContextManager[PostgresTransaction]:
        return self._transaction(CREATION)

    def backup(self, path: str | os.PathLike[str]) -> None:
        raise StorageError(
            f"can't copy {self.where} to {os.fspath(path)!r}",
            "a PostgreSQL database is backed up by the server's own tools (pg_dump), while it is "
            "in use",
            where=self.where,
        )

    def close(self) -> None:
        self._connections.close()

    @contextlib.contextmanager
    def _transaction(
        self, begin: str, studies: Sequence[int] = ()
    ) -> Iterator[PostgresTransaction]:
        """Run a transaction that ends with the block, on a connection that is kept for reuse."""
        with translated(self.where, self.patience):
            seen = {study: self._seen[study] for study in studies if study in self._seen}
            after = {study: seq for study, (seq, others) in seen.items() if others}
            connection, ends = self._begin(lambda one: _locked(one, begin, studies, after))
            pid = os.getpid()
            try:
                log = PostgresTransaction(connection, ends)
                yield log
                self._connections.check_not_forked(pid, connection)
                self._commit(connection, log)
                others = {study for study, (seq, _) in seen.items() if seq != ends[study][0]}
                for study, (seq, *_) in ends.items():
                    self._seen[study] = log.ended(study, seq), study in others
                if ends:
                    self.contended = bool(others)
            except BaseException:
                self._connections.check_not_forked(pid, connection)
                self._undo(connection)
                raise
            self._undo(connection)

    def _undo(self, connection: Connection) -> None:
        """Roll back, and keep the connection for the next transaction if it is still usable."""
        with contextlib.suppress(psycopg.Error):
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.roll_back()
            self._connections.give(connection)
            return
        self._connections.drop(connection)

    def _begin(self, first: Callable[[Connection], T]) -> tuple[Connection, T]:
        """Return a connection, and the result of `first` on it.

        `first` is safe to retry, so a lost connection is simply replaced.
        """
        deadline = time.monotonic() + self.patience
        for attempt in itertools.count():
            connection = None
            try:
                connection = self._connections.take()
                found = first(connection)
                self._was_there = True
                return connection, found
            except psycopg.OperationalError as error:
                gone = connection is None or connection.closed
                if connection is not None:
                    self._connections.drop(connection)
                # If the server was never reached, the address is wrong or the server isn't up yet.
                if not gone or not self._was_there:
                    raise
                if time.monotonic() > deadline:
                    raise lost(self.where, error, waited=True) from error
                self._connections.close()  # idle connections are dead, too
                time.sleep(0.01 * 2 ** min(attempt, 6) * random.uniform(0.5, 1.5))
            except BaseException:
                if connection is not None:
                    self._connections.drop(connection)
                raise
        raise AssertionError

    def _commit(self, connection: Connection, log: PostgresTransaction) -> None:
        """Commit; if the connection is lost meanwhile, find out whether the commit succeeded."""
        try:
            status = log.commit()
        except psycopg.OperationalError as error:
            if not connection.closed:
                raise
            if log.changed:
                problem = f"the connection to {self.where} was lost during a commit ({error})"
                raise StorageError(
                    problem, "retry", where=self.where, again=True, waited=False
                ) from error
            if not self._is_there(log.added):
                raise lost(self.where, error) from error
        else:
            if status != "COMMIT":
                connection.roll_back()
                problem = f"{self.where} didn't commit ({status}); nothing was stored"
                raise StorageError(problem, where=self.where)

    def _is_there(self, added: tuple[int, Event] | None) -> bool:
        """Return whether the transaction whose last event was this one was committed.

        The transaction held the study's lock to its end, so a check under the same lock is
        conclusive: the event with that number is its own, another's, or missing.
        """
        if added is None:
            return True
        study, event = added
        try:
            begin = ("BEGIN", [study]) if event.seq > 1 else (CREATION, [])
            connection, _ = self._begin(lambda one: _locked(one, *begin))
        except (StorageError, psycopg.Error) as error:
            raise StorageError(
                f"the connection to {self.where} was lost during a commit and hasn't come back "
                f"({error}): whether the last events were stored isn't known",
                "retry with the same key or ids: nothing is stored twice",
                where=self.where,
            ) from error
        try:
            found = PostgresReader(connection).rows(OWN, study, event.seq)
            return found == [(event.at, event.kind, event.nonce)]
        finally:
            self._undo(connection)


def _locked(
    connection: Connection, begin: str, studies: Sequence[int], after: Mapping[int, int] = {}
) -> Ends:
    """Begin a transaction and lock studies; return where their logs end, and the time.

    Of the studies in `after`, the events from that seq on are read with the same message, as others
    have probably added some.
    """
    if not studies:
        connection.execute(begin)
        return {}
    # Send one message, for one round trip. After a pipeline, whose last message is a flush, the
    # server would wait for a stopped client without a timeout, and all others would wait for its
    # lock. The statements are prepared: planning them would take longer than running them.
    numbers = ", ".join(str(int(study)) for study in studies)
    lock, ends = (connection.prepared(each, "int4[]") for each in (LOCK, ENDS))
    statements = [begin, *(f"EXECUTE {name} ('{{{numbers}}}')" for name in (lock, ends))]
    if after:
        read = connection.prepared(_news(connection.present), "int4", "int8", "int8")
        statements += [f"EXECUTE {read} ({study}, {seq}, {MANY})" for study, seq in after.items()]
    cursor = connection.execute("; ".join(statements).encode(), prepare=False)
    results = [cursor.fetchall() for _ in _results(cursor) if cursor.description]
    news = dict(
        zip(after, (np.frombuffer(raw or b"", SENT) for ((raw,),) in results[2:]), strict=True)
    )
    found = {study: (*end, news.get(study)) for study, *end in results[1]}
    for study in studies:
        if study not in found:
            raise UnknownStudyError(f"there is no study with the number {study}")
    return found


def _results(cursor: psycopg.Cursor[Any]) -> Iterator[None]:
    """Go through the results of several statements."""
    yield
    while cursor.nextset():
        yield


@functools.cache
def _news(present: frozenset[str]) -> str:
    """Return the statement that reads a study's events as one value, with numbered parameters."""
    count = itertools.count(1)
    return re.sub(r"\?", lambda _: f"${next(count)}", READ.format(some=select_columns(present)))


@functools.cache
def _own_marks(sql: str) -> str:
    """Convert a statement to psycopg's parameter placeholders."""
    return sql.replace("?", "%s")


def _without_password(parts: dict[str, Any]) -> str:
    """Return an address that is safe to show.

    >>> _without_password(conninfo_to_dict("postgresql://ann:secret@db.example:5433/shop"))
    'postgresql://ann@db.example:5433/shop'
    """
    user = f"{parts['user']}@" if "user" in parts else ""
    port = f":{parts['port']}" if "port" in parts else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"
