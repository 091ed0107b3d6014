"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rank1.errors import FileError

__all__ = ["check_writable", "is_temporary", "whole_file"]

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}")


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that was being written.

    >>> is_temporary(".runs.parquet.0123456789ab"), is_temporary("runs.parquet")
    (True, False)
    """
    return _TEMPORARY.fullmatch(name) is not None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Find out before long work that its result can't be written; nothing is left behind."""
    _temporary(path, Path(os.path.realpath(path))).unlink()


def _temporary(path: str | os.PathLike[str], place: Path) -> Path:
    """A new empty file beside `place`, to which `path` leads."""
    if os.path.exists(place) and not os.path.isfile(place) and not os.path.islink(place):
        raise FileError(f"can't write {os.fspath(path)!r}: it isn't a file; name one")
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(6)}")
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise FileError(
            f"can't write {os.fspath(path)!r}: {error.strerror or error}; "
            "name a file in a folder that exists and may be written to"
        ) from None
    return temporary


@contextmanager
def whole_file(
    path: str | os.PathLike[str], *, sync: bool = True, follow: bool = True
) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends without an error.

    A file that stood there before hands on its permissions.

    Parameters
    ----------
    path
        Where the file should be.
    sync
        Without it, the file may be cut short if the power fails within the next seconds.
    follow
        Whether a link is followed to the file it leads to, or replaced.

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
    except OSError as error:
        raise FileError(f"can't write {os.fspath(path)!r}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
