"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rank1.errors import FileError

__all__ = ["check_writable", "whole_file"]


def check_writable(path: str | os.PathLike[str]) -> None:
    """Find out before long work that its result can't be written; nothing is left behind."""
    _temporary(path).unlink()


def _temporary(path: str | os.PathLike[str]) -> Path:
    """A new empty file beside that to which `path` leads."""
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
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
def whole_file(path: str | os.PathLike[str], *, sync: bool = True) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends without an error.

    A link is followed, and a file that stood there before hands on its permissions. Without `sync`
    it may be cut short if the power fails within the next seconds.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with whole_file(folder / "a.txt") as temporary:
    ...     size = temporary.write_text("all of it")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    temporary, place = _temporary(path), Path(os.path.realpath(path))
    try:
        yield temporary
        if sync:
            with temporary.open("rb+") as written:
                os.fsync(written.fileno())
        if place.exists():
            temporary.chmod(place.stat().st_mode & 0o777)
        temporary.replace(place)
    except OSError as error:
        raise FileError(f"can't write {os.fspath(path)!r}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
