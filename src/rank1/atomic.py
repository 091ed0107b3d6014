"""Files that are either complete or absent."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rank1.errors import FileError, Rank1Error

__all__ = ["alone", "check_writable", "is_temporary", "whole_file"]

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}")


def is_temporary(name: str) -> bool:
    """Whether this is the name of an unfinished file.

    >>> is_temporary(".runs.parquet.0123456789ab"), is_temporary("runs.parquet")
    (True, False)
    """
    return _TEMPORARY.fullmatch(name) is not None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Check, before long work, that its result can be written; leaves nothing behind."""
    _temporary(path, Path(os.path.realpath(path))).unlink()


def _temporary(path: str | os.PathLike[str], place: Path) -> Path:
    """A new empty file beside `place`, the target of `path`."""
    if os.path.exists(place) and not os.path.isfile(place) and not os.path.islink(place):
        raise FileError(
            f"can't write {os.fspath(path)!r}: it isn't a regular file; choose another name"
        )
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(6)}")
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise FileError(
            f"can't write {os.fspath(path)!r}: {error.strerror or error}; "
            "give the name of a file in an existing, writable folder"
        ) from None
    return temporary


@contextmanager
def alone(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let one process at a time run such a block for the files of a folder.

    Runs it anyway where folders can't be locked (Windows, some network file systems), or if another
    program keeps this one locked for five seconds.
    """
    folder = None
    with suppress(ImportError, OSError):
        import fcntl

        folder = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY)
        for _ in range(500):
            with suppress(BlockingIOError):
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.01)
    try:
        yield
    finally:
        if folder is not None:
            os.close(folder)  # which also ends the lock


@contextmanager
def whole_file(
    path: str | os.PathLike[str], *, sync: bool = True, follow: bool = True
) -> Iterator[Path]:
    """A temporary file beside `path` that replaces it when the block ends without an error.

    It gets the permissions of the file that it replaces.

    Parameters
    ----------
    path
        Where the file should be.
    sync
        If false, the file may be truncated if the power fails within the next seconds.
    follow
        Whether to follow a link to its target, rather than replace it.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with whole_file(folder / "a.txt") as temporary:
    ...     size = temporary.write_text("all of it")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    place = Path(os.path.realpath(path)) if follow else Path(path)
    temporary = _temporary(path, place)
    try:
        yield temporary
        if sync:
            with temporary.open("rb+") as written:
                os.fsync(written.fileno())
        if place.is_file() and not place.is_symlink():
            temporary.chmod(place.stat().st_mode & 0o777)
        temporary.replace(place)
    except Rank1Error:
        raise  # of what was to be written, such as a storage or a service
    except OSError as error:
        raise FileError(f"can't write {os.fspath(path)!r}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
