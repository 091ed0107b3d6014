"""Create, open and check the file of a SQLite storage.

While a database has open connections, nothing else in the same process may open its file: when that
is closed, the operating system releases the database's locks. So only SQLite reads the file here.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

from rank1.errors import ConflictError, DamagedError, StorageError
from rank1.studies.storage.connections import inherited
from rank1.studies.storage.tables import FORMAT, Dialect, check_format, migration, schema

__all__ = ["connect", "create", "place", "translated"]

#: Marks a SQLite file as ours: "rnk1".
APPLICATION = 0x726E6B31
#: Up to 3.51.2, two concurrent writers can lose a commit when the WAL is reset.
OLDEST_SQLITE = (3, 51, 3)

_TYPES = {"int2": "INTEGER", "int4": "INTEGER", "int8": "INTEGER", "float8": "REAL",
          "text": "TEXT", "bytes": "BLOB"}  # fmt: skip
DIALECT = Dialect(_TYPES, "INTEGER", "INTEGER PRIMARY KEY", " STRICT", has_nan=False)

RESTORE = (
    "nothing was changed; if you have a backup (from `rank1 study backup`), stop everything that "
    "uses the file, move it and its -wal and -shm files away, and put the backup in its place"
)


@contextlib.contextmanager
def translated(where: str, patience: float = 0.0) -> Iterator[None]:
    """Translate SQLite's errors to errors of ours that name the file and what to do."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        problem = f"{where!r} is damaged, or isn't a database ({error})"
        raise DamagedError(problem, RESTORE, where=where) from error
    except (apsw.BusyError, apsw.LockedError, apsw.ProtocolError) as error:
        raise held(where, patience) from error
    except apsw.FullError as error:
        raise StorageError(
            f"no disk space to write {where!r}",
            "the disk or the quota is full; nothing was stored; free some space and retry",
            where=where,
        ) from error
    except (apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise _not_writable(where) from error
    except apsw.CantOpenError as error:
        raise StorageError(
            f"can't open {where!r} or the -wal and -shm files beside it ({error})",
            "they must be files that may be read and written, in a folder that may be written to; "
            + RESTORE,
            where=where,
        ) from error
    except apsw.IOError as error:
        raise StorageError(
            f"the disk failed under {where!r} ({error})",
            "it may be full, faulty or unmounted; nothing was acknowledged; fix it and retry",
            where=where,
        ) from error
    except apsw.ConstraintError as error:
        raise ConflictError(f"the log already has such an event ({error})", where=where) from error
    except apsw.Error as error:
        raise StorageError(
            f"can't read or write {where!r} ({type(error).__name__}: {error}); nothing was stored",
            where=where,
        ) from error


def held(where: str, patience: float) -> StorageError:
    return StorageError(
        f"another process or thread has held {where!r} for {patience:g} s",
        "it may hang, or be suspended; nothing was stored; stop it, or retry later",
        where=where,
    )


def _not_writable(where: str) -> StorageError:
    return StorageError(
        f"{where!r} isn't writable",
        "the file or its folder is read-only, or belongs to another user; nothing was stored; "
        "change its permissions, or go on with a copy (`rank1 study backup` makes one)",
        where=where,
    )


class Connection(apsw.Connection):
    """A connection that knows its file, and the columns of its table of events."""

    file: tuple[int, int]
    present: frozenset[str]


def regular_file(path: Path, where: str) -> os.stat_result:
    """Return the file's status; raises if it can't be a database."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise StorageError(
            f"there is no file {where!r}",
            "create a study to make it, or name the right one",
            where=where,
        ) from None
    except OSError as error:
        problem = f"can't open {where!r} ({error.strerror or error})"
        raise StorageError(problem, RESTORE, where=where) from None
    if not stat.S_ISREG(found.st_mode):
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "no regular file"
        raise DamagedError(f"{where!r} is {what}", f"name a file; {RESTORE}", where=where)
    if found.st_size < 4096:
        problem = f"{where!r} has {found.st_size} bytes, too few for a file of rank1"
        raise DamagedError(problem, RESTORE, where=where)
    return found


def is_cut_short(connection: Connection) -> bool:
    """Return whether the file lacks pages of the database that aren't in the WAL either."""
    connection.execute("BEGIN")  # so that no process moves pages from the WAL into the file
    try:
        size, pages = connection.pragma("page_size"), connection.pragma("page_count")
        there = os.stat(connection.filename).st_size // size
        if there >= pages:
            return False
        missing = {*range(there + 1, pages + 1)} - {2**30 // size + 1}  # SQLite never uses this
        return not missing <= _pages_in_wal(connection.filename_wal, size)
    finally:
        connection.execute("ROLLBACK")


def _pages_in_wal(path: str, size: int) -> set[int]:
    """Return the numbers of the pages in a WAL, which, unlike the database, is safe to open."""
    try:
        wal = Path(path).read_bytes()
    except FileNotFoundError:
        wal = b""
    # A header of 32 bytes, then frames, each with a header of 24 bytes: the page's number at 0, and
    # at 8 a salt. A frame whose salt differs from the file header's is left over from before.
    return {
        int.from_bytes(wal[at : at + 4], "big")
        for at in range(32, len(wal) - size - 23, size + 24)
        if wal[at + 8 : at + 16] == wal[16:24]
    }


def close(connection: Connection) -> None:
    """Close a connection, but leave a truncated file as it is.

    SQLite would move the WAL into it. The file would then have its old length, with pages of zeros,
    and pass for intact, and the missing part could no longer be restored.
    """
    with contextlib.suppress(OSError, apsw.Error):
        kept = os.path.getsize(connection.filename_wal) > 0 and is_cut_short(connection)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, kept)
    connection.close(True)


def check_writable(connection: Connection, file: os.stat_result, where: str) -> None:
    """Refuse a read-only file, even for root: it was made read-only on purpose."""
    if connection.readonly("main") or not file.st_mode & 0o222:
        raise _not_writable(where)


def waiter(patience: float) -> Callable[[int], bool]:
    """Return SQLite's busy handler: it waits for increasing times, up to `patience` in total."""
    begin = 0.0

    def wait(times: int) -> bool:
        nonlocal begin
        now = time.monotonic()
        if times == 0:
            begin = now
        left = begin + patience - now
        if left <= 0:
            return False
        # From 0.2 to 10 milliseconds, with jitter so that processes don't wait in step.
        time.sleep(min(left, 0.0002 * 2 ** min(times, 6) * random.uniform(0.5, 1.5)))
        return True

    return wait


def connect(path: Path, where: str, patience: float) -> Connection:
    """Connect to an existing file of ours, and bring it to this version's format."""
    if tuple(map(int, apsw.sqlite_lib_version().split("."))) < OLDEST_SQLITE:
        raise StorageError(
            f"SQLite {apsw.sqlite_lib_version()} can lose commits when two processes write at once",
            "upgrade it with: pip install --upgrade apsw",
        )
    if inherited():
        raise StorageError(
            f"this process was forked while its parent used a SQLite file, so {where!r} can't be "
            "used safely",
            "fork when no transaction is in progress, or use the spawn start method",
            where=where,
        )
    file = regular_file(path, where)
    wal = os.path.exists(f"{path}-wal")
    with translated(where, patience):
        connection = Connection(os.fspath(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.file = file.st_dev, file.st_ino
            connection.set_busy_handler(waiter(patience))
            for pragma, value in (
                ("synchronous", "FULL"),
                ("fullfsync", True),  # required on macOS to flush the disk's own cache
                ("checkpoint_fullfsync", True),
                ("foreign_keys", True),
                ("cell_size_check", True),
                ("trusted_schema", False),
                ("cache_size", -8000),
                # Keep the WAL small and reuse it: while it grows, a commit takes longer.
                ("wal_autocheckpoint", 250),
            ):
                connection.pragma(pragma, value)
            if connection.pragma("application_id") != APPLICATION:
                raise StorageError(
                    f"{where!r} is a SQLite database of another program",
                    "name another file",
                    where=where,
                )
            if not wal and os.stat(path).st_size % connection.pragma("page_size"):
                raise apsw.CorruptError("the file ends within a page")
            if is_cut_short(connection):
                raise apsw.CorruptError("it was cut short")
            _bring_to_format(connection, file, where)
            if connection.pragma("journal_mode") != "wal":
                connection.pragma("journal_mode", "wal")
        except BaseException:
            close(connection)
            raise
    return connection


def _columns(connection: Connection) -> frozenset[str]:
    found = connection.execute("SELECT name FROM pragma_table_info('rank1_events')").fetchall()
    return frozenset(str(name) for (name,) in found)


def _bring_to_format(connection: Connection, file: os.stat_result, where: str) -> None:
    """Migrate from an older format atomically; another process may do so first.

    A read-only file stays as it is, and can still be read.
    """
    may_write = not connection.readonly("main") and file.st_mode & 0o222
    if check_format(connection.pragma("user_version"), where) and may_write:
        connection.execute("BEGIN IMMEDIATE")
        with rollback(connection):
            if check_format(connection.pragma("user_version"), where):
                for statement in migration(DIALECT, _columns(connection)):
                    connection.execute(statement)
                connection.pragma("user_version", FORMAT)
            connection.execute("COMMIT")
    connection.present = _columns(connection)


@contextlib.contextmanager
def rollback(connection: apsw.Connection) -> Iterator[None]:
    """Roll back the transaction after an exception."""
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # some errors end it
            connection.execute("ROLLBACK")
        raise


def create(path: Path, where: str) -> None:
    """Create the file atomically, unless another process does so first."""
    if os.path.exists(f"{path}-wal") and not os.path.exists(path):
        raise StorageError(
            f"there is a {where + '-wal'!r}, but no {where!r} to which it belongs",
            f"restore that file or, if it is lost, delete the -wal; {RESTORE}",
            where=where,
        )
    with translated(where), beside(path, where) as temporary:
        connection = apsw.Connection(os.fspath(temporary))
        try:
            connection.pragma("application_id", APPLICATION)
            connection.pragma("journal_mode", "wal")
            connection.execute(f"BEGIN; {schema(DIALECT)} PRAGMA user_version = {FORMAT}; COMMIT")
        finally:
            connection.close(True)
        with contextlib.suppress(FileExistsError):  # another process was first: use its file
            place(temporary, path)


@contextlib.contextmanager
def beside(path: Path, where: str) -> Iterator[Path]:
    """Provide a name for a temporary file beside `path`, and remove the file at the end."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        temporary.touch(exist_ok=False)
        yield temporary
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"can't write {where!r} ({error.strerror or error})",
            "name a file in a folder that exists and may be written to",
            where=where,
        ) from None
    finally:
        for tail in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                os.unlink(f"{temporary}{tail}")


def place(temporary: Path, path: Path) -> None:
    """Rename a finished file to a name not yet in use; this survives a power failure."""
    _sync(temporary, os.O_RDWR)
    os.link(temporary, path)
    if os.name == "posix":
        _sync(path.parent, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    opened = os.open(path, flags)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
