"""Create, find and check the tables of a PostgreSQL storage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
from psycopg import errors

from rank1.errors import ConflictError, StorageError
from rank1.studies.storage.array_parameters import register
from rank1.studies.storage.tables import FORMAT, Dialect, check_format, migration, schema
from rank1.studies.storage.unnumbered import MADE

__all__ = ["Connection", "connect", "translated"]


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that knows the columns of its table of events."""

    present: frozenset[str]
    #: The names of prepared statements.
    names: dict[str, str]

    def prepared(self, statement: str, *types: str) -> str:
        """Return the name of a prepared statement, whose parameters are of these types."""
        names = self.names
        if statement not in names:
            name = f"rank1_{len(names)}"
            prepare = f"PREPARE {name} ({', '.join(types)}) AS {statement}"
            self.execute(prepare.encode(), prepare=False)
            names[statement] = name
        return names[statement]

    def roll_back(self) -> None:
        """Roll back. psycopg then deallocates all prepared statements, or none."""
        self.names.clear()
        self.execute("ROLLBACK; DEALLOCATE ALL", prepare=False)


#: The advisory lock for creating tables: "rnk1".
ADVISORY_LOCK = 0x726E6B31

_TYPES = {name: name for name in ("int2", "int4", "int8", "float8", "text")} | {"bytes": "bytea"}
DIALECT = Dialect(_TYPES, "int4", "int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "", has_nan=True)
COLUMNS = """
    SELECT attname FROM pg_catalog.pg_attribute
    WHERE attrelid = 'rank1_events'::regclass AND attnum > 0 AND NOT attisdropped"""
#: Detect a lost host within seconds, not after hours, which is TCP's default.
TCP = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "rank1",
}
ENCODING = {"client_encoding": "utf8"}
# A client that stops midway must not hold its locks forever, and the lock timeout is a little
# longer than that. Commits are flushed to disk, whatever the server's default is.
SETTINGS = """
    SELECT set_config('idle_in_transaction_session_timeout', %(patience)s, false),
        set_config('lock_timeout', %(longer)s, false),
        set_config('synchronous_commit', replace(
            current_setting('synchronous_commit'), 'off', 'on'), false)"""


# Don't use to_regclass: after waiting for others, it may still say that there is no table.
THERE = """
    SELECT 1 FROM pg_catalog.pg_tables
    WHERE tablename = 'rank1_format' AND schemaname = ANY (current_schemas(false))"""


@contextlib.contextmanager
def translated(where: str, patience: float) -> Iterator[None]:
    """Translate PostgreSQL's errors to errors of ours that say what to do."""
    try:
        yield
    except errors.UniqueViolation as error:
        problem = f"the log has such an event already ({_told(error)})"
        raise ConflictError(problem, where=where, again=True) from error
    except errors.LockNotAvailable as error:
        raise StorageError(
            f"another process or thread has held the study in {where} for {patience:g} s",
            "it may hang, or be suspended; nothing was stored; stop it, or retry",
            where=where,
        ) from error
    except errors.DiskFull as error:
        raise StorageError(
            f"no disk space to write {where}",
            "the server's disk is full; nothing was stored; free some space and retry",
            where=where,
        ) from error
    except (errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege) as error:
        raise StorageError(
            f"{where} isn't writable, or not by this user ({_told(error)}); nothing was stored",
            where=where,
        ) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise lost(where, error) from error
    except psycopg.Error as error:
        raise StorageError(
            f"can't read or write {where} ({type(error).__name__}: {_told(error)}); nothing was "
            "stored",
            where=where,
        ) from error


def lost(where: str, error: BaseException, waited: bool = False) -> StorageError:
    """Return the error for a connection that was lost before anything was committed."""
    return StorageError(
        f"no connection to {where}, or it was lost ({_told(error)}); nothing was stored",
        "retry when the server is available",
        where=where, again=True, waited=waited,
    )  # fmt: skip


def _told(error: BaseException) -> str:
    return " ".join(str(error).split())


def connect(
    parts: Mapping[str, Any], where: str, patience: float, *, make: bool = False
) -> Connection:
    """Connect to a database that has our tables; with `make`, create them if they are missing."""
    connection = Connection.connect(autocommit=True, **{**TCP, **parts, **ENCODING})
    register(connection.adapters)
    connection.names = {}
    try:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StorageError(
                f"{where} has the encoding {encoding}, in which not every name can be written",
                "use a database with the encoding UTF8",
                where=where,
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
    """Bring the tables to this version atomically; another process may do so first."""
    found = _format(connection)
    if found is None and not make:
        raise StorageError(
            f"{where} has no tables of rank1",
            "create a study to make them, or name the right one",
            where=where,
        )
    if found is None or check_format(found, where):
        # A user with read-only access reads the tables as they are.
        with contextlib.suppress(errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction):
            _migrate(connection, where)
    connection.present = frozenset(name for (name,) in connection.execute(COLUMNS))


def _migrate(connection: Connection, where: str) -> None:
    """Create the tables or bring them to this version, atomically."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_LOCK])
        found = _format(connection)
        if found is None:
            made = "CREATE TABLE rank1_format (version int4 NOT NULL);" + schema(DIALECT) + MADE
            connection.execute(made.encode())
            connection.execute("INSERT INTO rank1_format VALUES (%s)", [FORMAT])
        elif check_format(found, where):
            present = frozenset(name for (name,) in connection.execute(COLUMNS))
            for statement in (*migration(DIALECT, present), MADE):
                connection.execute(statement.encode())
            connection.execute("UPDATE rank1_format SET version = %s", [FORMAT])


def _format(connection: Connection) -> int | None:
    """Return the version of the tables, or None if there are none."""
    if connection.execute(THERE).fetchone() is None:
        return None
    rows = connection.execute("SELECT version FROM rank1_format").fetchall()
    return rows[0][0] if rows else None
