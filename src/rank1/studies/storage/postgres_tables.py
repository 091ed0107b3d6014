"""The tables of a PostgreSQL storage: made, found, refused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

import psycopg
from psycopg import errors

from rank1.errors import ConflictError, FormatError, StorageError

__all__ = ["Connection", "connect", "translated"]

Connection = psycopg.Connection[tuple[Any, ...]]

#: The version of the tables: to be raised, with a line in MIGRATIONS, when they change.
FORMAT = 1
#: From which version, the statements that lead to the next.
MIGRATIONS: dict[int, str] = {}
#: The number of the lock under which tables are made: "rnk1".
ADVISORY_LOCK = 0x726E6B31

SCHEMA = """
    CREATE TABLE rank1_format (version int4 NOT NULL);
    CREATE TABLE rank1_studies (
        id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL UNIQUE,
        uid text NOT NULL UNIQUE,
        created float8 NOT NULL,
        retired float8
    );
    CREATE TABLE rank1_events (
        study int4 NOT NULL REFERENCES rank1_studies,
        seq int8 NOT NULL,
        at float8 NOT NULL,
        kind int2 NOT NULL,
        "row" int4 NOT NULL,
        "column" int4 NOT NULL,
        tag int8 NOT NULL,
        suggestion int8 NOT NULL,
        value float8 NOT NULL,
        nonce int4 NOT NULL,
        key text,
        position int4 NOT NULL,
        unit text,
        data text,
        PRIMARY KEY (study, seq)
    );
    CREATE UNIQUE INDEX rank1_outcomes ON rank1_events (study, suggestion, kind)
        WHERE suggestion > 0;
    CREATE UNIQUE INDEX rank1_keys ON rank1_events (study, key, position) WHERE key IS NOT NULL;
    CREATE INDEX rank1_units ON rank1_events (study, unit, seq) WHERE unit IS NOT NULL;
    CREATE TABLE rank1_snapshots (
        study int4 NOT NULL REFERENCES rank1_studies,
        seq int8 NOT NULL,
        layout text NOT NULL,
        blob bytea NOT NULL,
        digest bytea NOT NULL,
        PRIMARY KEY (study, seq)
    );
"""
#: A host that is gone is noticed within seconds, not after the hours that are TCP's default.
TCP = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "rank1",
}
# A client that stops in the middle doesn't hold its locks for ever, and who waits for them waits
# a little longer. Commits are forced onto the disk whatever the server's default is.
SETTINGS = """
    SELECT set_config('idle_in_transaction_session_timeout', %(patience)s, false),
        set_config('lock_timeout', %(longer)s, false),
        set_config('synchronous_commit', replace(
            current_setting('synchronous_commit'), 'off', 'on'), false)"""


# Not to_regclass, which may remember that there was no table before others were waited for.
THERE = """
    SELECT 1 FROM pg_catalog.pg_tables
    WHERE tablename = 'rank1_format' AND schemaname = ANY (current_schemas(false))"""


@contextlib.contextmanager
def translated(where: str, patience: float) -> Iterator[None]:
    """What PostgreSQL complains of, as errors of ours that say what to do."""
    try:
        yield
    except errors.UniqueViolation as error:
        raise ConflictError(f"the log has such an event already ({_told(error)})") from error
    except errors.LockNotAvailable as error:
        raise StorageError(
            f"somebody has held the study in {where} for {patience:g} s: another process writes "
            "without end, or was stopped in the middle; nothing was stored; end it, or try again"
        ) from error
    except errors.DiskFull as error:
        raise StorageError(
            f"no room to write {where}: the disk of the server is full; nothing was stored; free "
            "some room and go on"
        ) from error
    except (errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege) as error:
        raise StorageError(
            f"{where} may not be written, or not by this user ({_told(error)}): nothing was stored"
        ) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise lost(where, error) from error
    except psycopg.Error as error:
        raise StorageError(
            f"can't read or write {where} ({type(error).__name__}: {_told(error)}); nothing was "
            "stored"
        ) from error


def lost(where: str, error: BaseException) -> StorageError:
    """The connection was lost before anything was committed."""
    told = StorageError(
        f"no connection to {where}, or it was lost ({_told(error)}); nothing was stored; try again "
        "when the server is there"
    )
    told.again = True
    return told


def _told(error: BaseException) -> str:
    return " ".join(str(error).split())


def connect(
    parts: Mapping[str, Any], where: str, patience: float, *, make: bool = False
) -> Connection:
    """A connection to a database that has our tables, or is given them."""
    connection = cast(Connection, psycopg.connect(autocommit=True, **{**TCP, **parts}))
    try:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StorageError(
                f"{where} has the encoding {encoding}, in which not every name can be written: "
                "take a database with the encoding UTF8"
            )
        milliseconds = int(1000 * patience)
        times = {
            "patience": str(milliseconds),
            "longer": str(milliseconds + min(5000, milliseconds)),
        }
        connection.execute(SETTINGS, times)
        _bring_to_format(connection, where, make)
    except BaseException:
        connection.close()
        raise
    return connection


def _bring_to_format(connection: Connection, where: str, make: bool) -> None:
    """Tables of this version, whole or not at all; another process may be first."""
    found = _format(connection)
    if found is None and not make:
        raise StorageError(
            f"{where} has no tables of rank1: create a study to make them, or name the right one"
        )
    if found is not None and found > FORMAT:
        raise FormatError(
            f"{where} has format {found}, and this version of rank1 knows up to {FORMAT}: a later "
            "version wrote it; upgrade rank1"
        )
    if found == FORMAT:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_LOCK])
        found = _format(connection)
        if found is None:
            connection.execute(SCHEMA)
            connection.execute("INSERT INTO rank1_format VALUES (%s)", [FORMAT])
            return
        for version in range(found, FORMAT):
            if version not in MIGRATIONS:
                raise FormatError(f"{where} has format {version}, which no version of rank1 has")
            connection.execute(MIGRATIONS[version].encode())
        connection.execute("UPDATE rank1_format SET version = %s", [FORMAT])


def _format(connection: Connection) -> int | None:
    """The version of the tables, if there are any."""
    if connection.execute(THERE).fetchone() is None:
        return None
    rows = connection.execute("SELECT version FROM rank1_format").fetchall()
    return rows[0][0] if rows else None
