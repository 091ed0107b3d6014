"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["whole_file"]


@contextmanager
def whole_file(path: str | os.PathLike[str], *, sync: bool = True) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends without an error.

    Without `sync` it may be cut short if the power fails within the next seconds.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with whole_file(folder / "a.txt") as temporary:
    ...     size = temporary.write_text("all of it")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise OSError(
            f"can't write {os.fspath(path)!r}: {error.strerror or error}; "
            "name a file in a folder that exists and may be written to"
        ) from None
    temporary = Path(name)
    try:
        yield temporary
        if sync:
            with temporary.open("rb+") as written:
                os.fsync(written.fileno())
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except OSError as error:
        raise OSError(f"can't write {os.fspath(path)!r}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
