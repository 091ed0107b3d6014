"""Where studies are kept: a SQLite file, or a PostgreSQL database."""

from __future__ import annotations

import os
import re

from rank1.checks import shown
from rank1.errors import InputError, InputTypeError, StorageError
from rank1.studies.storage.base import (
    PATIENCE,
    Reader,
    Snapshot,
    Storage,
    StudyRow,
    Transaction,
)

__all__ = [
    "PATIENCE",
    "Reader",
    "Snapshot",
    "Storage",
    "StudyRow",
    "Transaction",
    "open_storage",
]


def open_storage(where: str | os.PathLike[str], patience: float = PATIENCE) -> Storage:
    """The storage at a place. Nothing is opened or made before it is used.

    Parameters
    ----------
    where
        A file (`rank1.db`, or `sqlite:///rank1.db`; with four slashes from the root of the file
        system), or the address of a database (`postgresql://user@host/database`).
    patience
        Seconds to wait for others that write, and for a server to come back.

    Examples
    --------
    >>> open_storage("sqlite:///shop/rank1.db").where
    'shop/rank1.db'
    >>> open_storage("mysql://db.example/shop")
    Traceback (most recent call last):
    ...
    rank1.InputError: storage must be a file, sqlite:///… or postgresql://…, got 'mysql://db.example/shop'
    """
    if not isinstance(where, str | os.PathLike):
        raise InputTypeError(f"storage must be a file or an address, got {shown(where)}")
    text = os.fspath(where)
    scheme, _, rest = text.partition("://")
    if not _ or not re.fullmatch("[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return _sqlite(text, patience)
    if scheme == "sqlite" and rest.startswith("/"):
        return _sqlite(rest[1:], patience)
    if scheme in ("postgresql", "postgres"):
        return _postgres(text, patience)
    raise InputError(f"storage must be a file, sqlite:///… or postgresql://…, got {shown(text)}")


def _sqlite(path: str, patience: float) -> Storage:
    if path in ("", ":memory:") or "\0" in path:
        raise InputError(f"storage must be a file that lasts, got {path!r}")
    try:
        from rank1.studies.storage.sqlite import SqliteStorage
    except ModuleNotFoundError as error:
        raise _missing(error, "studies") from None
    return SqliteStorage(path, patience)


def _postgres(url: str, patience: float) -> Storage:
    try:
        from rank1.studies.storage.postgres import PostgresStorage
    except ModuleNotFoundError as error:
        raise _missing(error, "postgres") from None
    return PostgresStorage(url, patience)


def _missing(error: ModuleNotFoundError, extra: str) -> StorageError:
    return StorageError(f"this storage needs {error.name}: pip install 'rank1[{extra}]'")
