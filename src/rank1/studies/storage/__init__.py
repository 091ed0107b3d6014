"""Storages for studies: a SQLite file, a PostgreSQL database, or another package's storage."""

from __future__ import annotations

import os
import re
from importlib.metadata import entry_points

from rank1.errors import InputError, InputTypeError, MissingPackageError, extra
from rank1.studies.storage.base import PATIENCE, Reader, Snapshot, Storage, StudyRow, Transaction

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
    """Return the storage at an address. Nothing is opened or created until it is used.

    Parameters
    ----------
    where
        A file (`rank1.db` or `sqlite:///rank1.db`; four slashes for an absolute path), or the URL
        of a database (`postgresql://user@host/database`). Other URL schemes are looked up among the
        entry points `rank1.storages` of installed packages; each is called with the URL and the
        patience.
    patience
        Seconds to wait for other writers, and for a server to come back.

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
        raise InputTypeError("storage", where, "a file or an address")
    text = os.fspath(where)
    scheme, _, rest = text.partition("://")
    if not _ or not re.fullmatch("[A-Za-z][A-Za-z0-9+.-]*", scheme):
        if re.search(r"(?i)\bpassword\s*=", text):  # or a file would be named after it
            expected = "an address like postgresql://user@host/database"
            raise InputError("storage", without_password(text), expected)
        return _sqlite(text, patience)
    if scheme == "sqlite" and rest.startswith("/"):
        return _sqlite(rest[1:], patience)
    if scheme in ("postgresql", "postgres"):
        return _postgres(text, patience)
    for entry in entry_points(group="rank1.storages", name=scheme):
        return entry.load()(text, patience)
    expected = "a file, sqlite:///… or postgresql://…"
    raise InputError("storage", without_password(text), expected)


def without_password(where: str) -> str:
    """Return the address of a storage without its password, for logs and messages.

    >>> without_password("postgresql://ann:secret@db.example/shop?sslmode=require&password=secret")
    'postgresql://ann:***@db.example/shop?sslmode=require&password=***'
    >>> without_password("host=db.example password=secret dbname=shop")
    'host=db.example password=***'
    """
    scheme, found, rest = where.partition("://")
    if not found:
        return re.sub(r"(?i)(\bpassword\s*=).*", r"\1***", where)
    rest = re.sub("(?i)([?&][^=&]*pass[^=&]*=)[^&]*", r"\1***", rest)
    user, at, place = rest.rpartition("@")
    name, has, _ = user.partition(":")
    return f"{scheme}://{name}{':***' if has else ''}{at}{place}"


def _sqlite(path: str, patience: float) -> Storage:
    if path in ("", ":memory:") or "\0" in path:
        raise InputError("storage", path, "a permanent file")
    from rank1.studies.storage.sqlite import SqliteStorage

    return SqliteStorage(path, patience)


def _postgres(url: str, patience: float) -> Storage:
    try:
        from rank1.studies.storage.postgres import PostgresStorage
    except ModuleNotFoundError as error:
        raise MissingPackageError(f"this storage needs {error.name}", extra("postgres")) from None
    return PostgresStorage(url, patience)
