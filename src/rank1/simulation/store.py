"""Finished cells on disk: runs of a series under a key that covers everything they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import stat
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from rank1.atomic import check_writable, is_temporary, whole_file
from rank1.errors import InputError, InputTypeError
from rank1.simulation.block import Block

__all__ = ["Store"]

#: Part of every cell's digest: change it when the layout of the files changes.
LAYOUT = b"rank1 cell 4\n"
#: Seconds after which the unfinished file of a killed process is removed.
ABANDONED = 3600.0

_NAME = re.compile(r"([0-9a-f]{38,})\.(\d+)-(\d+)\.cell")


class Store:
    """A folder of cells. Processes can share it: a file is either complete or absent.

    A cell holds some runs of a series, and its name says which: runs are found again however the
    work was cut before. Nothing is written before the first `put`, so a finished store can be
    read-only.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> key = hashlib.sha256(b"a series").hexdigest()
    >>> store.put(key, range(4), Block({"regret": np.ones(4)}, seconds=2.0))
    >>> store.finished([key])[key]
    [range(0, 4)]
    >>> [(first, block.runs) for first, block in store.load(key, range(1, 9)).items()]
    [(1, 3)]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not isinstance(folder, str | os.PathLike):
            raise InputTypeError("store", folder, "the path of a folder")
        self.folder = Path(folder)
        if os.path.exists(folder) and not os.path.isdir(folder):
            got = f"{str(folder)!r}, which is a file"
            raise InputError("store", folder, "a folder", got=got)

    def check_writable(self) -> None:
        """Check, before long work, that cells can be stored."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            check_writable(self.folder / "a.cell")
        except OSError as error:
            reason = str(error.strerror or error)
            expected = "a writable folder"
            raise InputError("store", str(self.folder), expected, reason) from None

    def path(self, key: str, runs: range) -> str:
        """The path of a cell."""
        return f"{self.folder}{os.sep}{key[:2]}{os.sep}{key[2:]}.{runs.start}-{runs.stop}.cell"

    def finished(self, keys: Iterable[str]) -> dict[str, list[range]]:
        """The stored runs of each series, according to the names of the files."""
        found: dict[str, list[range]] = {key: [] for key in keys}
        for shard in {key[:2] for key in found}:
            try:
                names = os.listdir(self.folder / shard)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue
            for name in names:
                if match := _NAME.fullmatch(name):
                    cells = found.get(shard + match[1])
                    if cells is not None:
                        cells.append(range(int(match[2]), int(match[3])))
                elif is_temporary(name):
                    _remove_abandoned(self.folder / shard / name)
        return found

    def load(self, key: str, runs: range, cells: Sequence[range] | None = None) -> dict[int, Block]:
        """The stored ones among these runs, as disjoint blocks keyed by their first run.

        `cells` is what `finished` returned for this series. A damaged cell counts as missing.
        """
        blocks: dict[int, Block] = {}
        at = runs.start
        known = self.finished([key])[key] if cells is None else cells
        for cell in sorted(known, key=lambda cell: (cell.start, -cell.stop)):
            first, stop = max(cell.start, at), min(cell.stop, runs.stop)
            if first >= stop or (block := self.get(key, cell)) is None:
                continue
            if (first, stop) != (cell.start, cell.stop):
                block = block.part(first - cell.start, stop - cell.start)
            blocks[first] = block
            at = stop
        return blocks

    def get(self, key: str, runs: range) -> Block | None:
        """A finished cell; None if it is missing, damaged or not a regular file.

        A folder, a pipe, a link or an unreadable file in its place isn't ours.
        """
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            place = os.open(self.path(key, runs), flags | getattr(os, "O_BINARY", 0))
        except OSError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(place).st_mode):
                return None
            with open(place, "rb", buffering=0, closefd=False) as file:
                raw = file.read()
        except OSError:
            return None
        finally:
            os.close(place)
        digest, body = raw[:16], raw[16:]
        return _unpacked(body) if _cell_digest(key, runs, body) == digest else None

    def put(self, key: str, runs: range, block: Block) -> None:
        """Store a finished cell.

        It isn't synced to disk, which would take longer than many a cell: after a power failure,
        the digest reveals truncated files. A link in its place is replaced, not followed.
        """
        path = Path(self.path(key, runs))
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
                return  # a foreign folder or pipe: the cell isn't stored, and is played again
        body = _packed(block)
        with whole_file(path, sync=False, follow=False) as temporary:
            temporary.write_bytes(_cell_digest(key, runs, body) + body)


def _packed(block: Block) -> bytes:
    """A line that describes what follows, then the arrays."""
    arrays = {name: np.ascontiguousarray(array) for name, array in block.arrays.items()}
    told = " ".join(
        f"{name}:{array.dtype.str}:{','.join(map(str, array.shape))}"
        for name, array in arrays.items()
    )
    head = f"{block.seconds!r} {told}\n".encode()
    return head + b"".join(array.tobytes() for array in arrays.values())


def _unpacked(body: bytes) -> Block:
    end = body.index(b"\n")
    seconds, *told = body[:end].decode().split(" ")
    arrays, at = {}, end + 1
    for each in told:
        name, dtype, sizes = each.split(":")
        shape = [int(size) for size in sizes.split(",")]
        kind, count = np.dtype(dtype), math.prod(shape)
        arrays[name] = np.frombuffer(body, kind, count, at).reshape(shape)
        at += count * kind.itemsize
    return Block(arrays, float(seconds))


def _cell_digest(key: str, runs: range, body: bytes) -> bytes:
    """A digest of a cell's contents and name, so that a renamed copy isn't accepted."""
    return hashlib.sha256(LAYOUT + f"{key} {runs}".encode() + body).digest()[:16]


def _remove_abandoned(path: Path) -> None:
    """Remove the unfinished file of a killed process, but not one that is being written now."""
    with contextlib.suppress(OSError):
        if time.time() - path.lstat().st_mtime > ABANDONED:
            path.unlink()
