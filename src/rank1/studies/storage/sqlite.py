"""Studies in a SQLite file, which many processes on one machine can use concurrently."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from rank1.errors import StorageError
from rank1.studies.events import RECORD, WITH_DATA
from rank1.studies.storage import sqlite_file
from rank1.studies.storage.base import PATIENCE
from rank1.studies.storage.connections import Connections
from rank1.studies.storage.sql import SqlStorage, SqlTransaction
from rank1.studies.storage.sql_reader import SqlReader
from rank1.studies.storage.sqlite_file import Connection, translated
from rank1.studies.storage.tables import insert_events, select_columns

__all__ = ["SqliteStorage"]


#: By default, SQLite would reuse the largest number after a deletion.
NEW_STUDY = """
    INSERT INTO rank1_studies (id, name, uid, created)
    SELECT 1 + coalesce(max(id), 0), ?, ?, ?
    FROM (SELECT id FROM rank1_studies UNION ALL SELECT study FROM rank1_deleted) RETURNING id"""


# Only for suggestions, because checksums cover all other data.
NO_JSON = f"""
    SELECT seq, name FROM rank1_events JOIN rank1_studies ON id = study
    WHERE data IS NOT NULL AND kind NOT IN ({", ".join(str(int(kind)) for kind in WITH_DATA)})
    AND NOT json_valid(data) LIMIT 3"""


class SqliteReader(SqlReader):
    """Reads through one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self.present = connection, connection.present

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except UnicodeDecodeError as error:  # text with invalid bytes
            raise self.damaged(str(error)) from None

    def among(self, values: Sequence[int] | Sequence[str]) -> tuple[str, Any]:
        return "IN (SELECT value FROM json_each(?))", json.dumps(list(values))

    def clock(self) -> float:
        return time.time()

    def damage(self) -> list[str]:
        found = [text for (text,) in self.rows("PRAGMA integrity_check(10)") if text != "ok"]
        lost = self.rows("PRAGMA foreign_key_check")
        found += [f"a row of {table} refers to nothing" for table, *_ in lost[:3]]
        for seq, name in self.rows(NO_JSON):
            found.append(f"the data of event {seq} of study {name!r} can't be read")
        return found

    def check_structure(self) -> None:
        ((found,), *_) = self.rows("PRAGMA integrity_check(rank1_events)")
        if found != "ok":
            raise self.damaged(found)

    def records(self, study: int, first: int, count: int) -> NDArray[Any]:
        sql = f"{select_columns(self.present)} AND seq >= ? ORDER BY seq LIMIT ?"
        return np.fromiter(self._connection.execute(sql, (study, first, count)), RECORD)

    def damaged(self, what: str) -> Exception:
        return apsw.CorruptError(what)


class SqliteTransaction(SqliteReader, SqlTransaction):
    """Reads and writes through one connection, which has locked the file."""

    new_study = NEW_STUDY

    def __init__(self, connection: Connection, studies: Sequence[int]) -> None:
        SqliteReader.__init__(self, connection)
        SqlTransaction.__init__(self, studies)

    def insert(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._connection.executemany(insert_events(self.present), rows)

    def forget_unit(self, study: int, unit: str) -> int:
        with self._overwriting():
            return super().forget_unit(study, unit)

    def delete(self, study: int) -> None:
        with self._overwriting():
            super().delete(study)

    @contextlib.contextmanager
    def _overwriting(self) -> Iterator[None]:
        """Overwrite removed data in the file, too; this takes longer."""
        self._connection.pragma("secure_delete", True)
        try:
            yield
        finally:
            self._connection.pragma("secure_delete", False)


class SqliteStorage(SqlStorage):
    """Studies in a file, with its -wal and -shm files beside it while it is in use.

    Acknowledged events have been flushed to disk. Writers take turns; a writer that has waited for
    `patience` seconds raises StorageError. Readers never wait. All processes must run on one
    machine, and none of them may also open the file with another library, such as `sqlite3`: when
    that library closes the file, the operating system releases this one's locks.

    Parameters
    ----------
    path
        The file. Creating the first study creates it.
    patience
        Seconds to wait for other writers.

    Examples
    --------
    >>> import tempfile
    >>> from rank1.studies.events import Event, Kind
    >>> storage = SqliteStorage(Path(tempfile.mkdtemp(), "rank1.db"))
    >>> study = storage.create("spring", '{"rows": ["a", "b"], "columns": ["c"]}')
    >>> with storage.transaction(study.id) as log:
    ...     seq = log.append(study.id, [Event(Kind.SUGGESTED, arm=1)])
    >>> with storage.reading() as log:
    ...     print(seq, log.read(study.id).kind, log.pending(study.id))
    2 [1 2] [2]
    >>> storage.close()
    """

    def __init__(self, path: str | os.PathLike[str], patience: float = PATIENCE) -> None:
        self.where = os.fspath(path)
        self.path = Path(os.path.realpath(path))
        self.patience = patience
        self._was_there, self._size = False, 0
        connect = functools.partial(sqlite_file.connect, self.path, self.where, patience)
        self._connections = Connections(connect, sqlite_file.close, alone=True)
        weakref.finalize(self, self._connections.close)

    def prepare(self) -> None:
        if os.path.exists(self.path):
            self._connections.give(self._connections.take())  # a new one checks that it is ours
        elif self._was_there:  # the file was moved or deleted
            raise StorageError(f"{self.where!r} has disappeared", "put it back", where=self.where)
        else:
            sqlite_file.create(self.path, self.where)
        self._was_there = True

    @contextlib.contextmanager
    def reading(self) -> Iterator[SqliteReader]:
        with self._connection("BEGIN") as connection:
            yield SqliteReader(connection)

    @contextlib.contextmanager
    def transaction(self, *studies: int) -> Iterator[SqliteTransaction]:
        lock = self._connections.writing
        if not lock.acquire(timeout=self.patience):  # threads of this process queue here
            raise sqlite_file.held(self.where, self.patience)
        try:
            with self._connection("BEGIN IMMEDIATE") as connection:
                log = SqliteTransaction(connection, studies)
                yield log
                log.check_whole()
            if log.changed:
                self._empty_wal()
        finally:
            lock.release()

    def _empty_wal(self) -> None:
        """Move the WAL's content into the file, because the WAL may still have removed data."""
        connection = self._connections.take()
        connection.set_busy_handler(sqlite_file.waiter(min(self.patience, 1.0)))
        with contextlib.suppress(apsw.Error):  # it is overwritten later in any case
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.set_busy_handler(sqlite_file.waiter(self.patience))
        self._connections.give(connection)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy everything to a new file, while others may write, and check the copy.

        Examples
        --------
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> storage = SqliteStorage(folder / "rank1.db")
        >>> study = storage.create("spring", "{}")
        >>> storage.backup(folder / "copy.db")
        >>> with SqliteStorage(folder / "copy.db").reading() as log:
        ...     [study.name for study in log.studies()]
        ['spring']
        """
        where, place = os.fspath(path), Path(os.path.realpath(path))
        if os.path.lexists(place):
            raise StorageError(
                f"{where!r} already exists", "name a new file for the backup", where=where
            )
        with sqlite_file.beside(place, where) as temporary:
            with self._connection("BEGIN") as source:
                copy = apsw.Connection(os.fspath(temporary))
                try:
                    with copy.backup("main", source, "main") as pages:
                        pages.step()  # all pages at once, for a consistent copy
                except (apsw.FullError, apsw.IOError) as error:
                    problem = f"no disk space to write the copy {where!r} ({error})"
                    raise StorageError(problem, where=where) from error
                finally:
                    copy.close(True)
            copied = SqliteStorage(temporary)
            found = copied.check()
            copied.close()
            if found:
                problem = f"a copy of {self.where!r} isn't complete: {'; '.join(found)}"
                raise StorageError(problem, where=self.where)
            try:
                sqlite_file.place(temporary, place)
            except FileExistsError:
                problem = f"{where!r} was made by another process just now"
                raise StorageError(problem, where=where) from None

    def close(self) -> None:
        self._connections.close()

    @contextlib.contextmanager
    def _connection(self, begin: str) -> Iterator[Connection]:
        """Provide a connection for one transaction, which ends with the block."""
        with translated(self.where, self.patience):
            connection = self._connections.take()
            pid = os.getpid()
            try:
                file = sqlite_file.regular_file(self.path, self.where)
                if connection.file != (file.st_dev, file.st_ino):
                    self._connections.close()
                    raise StorageError(
                        f"{self.where!r} was replaced by another file after it was opened",
                        where=self.where,
                    )
                size = file.st_size
                if size < self._size and sqlite_file.is_cut_short(connection):
                    raise apsw.CorruptError("it was cut short since it was opened")
                self._size = size
                if begin != "BEGIN":
                    sqlite_file.check_writable(connection, file, self.where)
                connection.execute(begin)
                yield connection
                self._connections.check_not_forked(pid, connection)
                connection.execute("COMMIT")
            except BaseException as error:
                self._connections.check_not_forked(pid, connection)
                self._undo(connection, error)
                raise
            self._connections.give(connection)

    def _undo(self, connection: Connection, error: BaseException) -> None:
        """Roll back, and keep the connection for the next transaction if it is still usable."""
        if not isinstance(error, apsw.Error | StorageError) or isinstance(
            error, apsw.ConstraintError
        ):
            with contextlib.suppress(apsw.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._connections.give(connection)
                return
        self._connections.drop(connection)
