"""Finished cells on disk: runs of a series under a key that says all they depend on."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.atomic import check_writable, whole_file
from rank1.errors import InputError

__all__ = ["Block", "Store", "gaps"]

#: Part of every key: raised when the engine gives other numbers or the file changes its layout.
VERSION = 4

_NAME = re.compile(r"([0-9a-f]{38})\.(\d+)-(\d+)\.cell")


class Block(NamedTuple):
    """Some runs of one policy on one problem."""

    #: Expected and realised regret: (runs, checkpoints, 2).
    curves: NDArray[np.float64]
    #: (runs, 2)
    best_pairs: NDArray[np.int64]
    seconds: float


def gaps(runs: range, blocks: Mapping[int, Block]) -> list[range]:
    """The runs that aren't in any of the blocks, which are given by their first run.

    >>> two = Block(np.zeros((2, 1, 2)), np.zeros((2, 2), np.int64), 0.0)
    >>> gaps(range(10), {0: two, 5: two})
    [range(2, 5), range(7, 10)]
    """
    missing, at = [], runs.start
    for first, block in sorted(blocks.items()):
        if first > at:
            missing.append(range(at, first))
        at = first + len(block.curves)
    return [*missing, range(at, runs.stop)] if at < runs.stop else missing


class Store:
    """A folder of cells. Several processes may use it at once: a file is there whole or not at all.

    A series is everything that runs of one policy on one problem have in common; its key is made
    of that. A cell holds some runs of a series, and its name says which: however the work was cut
    before, what was played is found again.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> key = store.key("spike", "rank1elim", 1000)
    >>> store.put(key, range(4), Block(np.ones((4, 3, 2)), np.zeros((4, 2), np.int64), 2.0))
    >>> store.finished([key])[key]
    [range(0, 4)]
    >>> [(first, len(block.curves)) for first, block in store.load(key, range(1, 9)).items()]
    [(1, 3)]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            check_writable(self.folder / "a.cell")
        except OSError as error:
            raise InputError(
                f"the store must be a folder that may be written to, got {str(folder)!r}: "
                f"{error.strerror or error}"
            ) from None

    @staticmethod
    def key(*parts: Any) -> str:
        """A name made of all that the runs of a series have in common."""
        return hashlib.sha256(repr((VERSION, *parts)).encode()).hexdigest()[:40]

    def path(self, key: str, runs: range) -> str:
        """Where a cell lies."""
        return f"{self.folder}{os.sep}{key[:2]}{os.sep}{key[2:]}.{runs.start}-{runs.stop}.cell"

    def finished(self, keys: Iterable[str]) -> dict[str, list[range]]:
        """The runs of each series that are kept, as the names of the files say."""
        found: dict[str, list[range]] = {key: [] for key in keys}
        for shard in {key[:2] for key in found}:
            try:
                names = os.listdir(self.folder / shard)
            except FileNotFoundError:
                continue
            for name in names:
                if match := _NAME.fullmatch(name):
                    cells = found.get(shard + match[1])
                    if cells is not None:
                        cells.append(range(int(match[2]), int(match[3])))
        return found

    def load(self, key: str, runs: range, cells: Sequence[range] | None = None) -> dict[int, Block]:
        """Those of the runs that are kept, by the first run of each block; none is there twice.

        `cells` is what `finished` says of this series. A damaged cell counts as not there.
        """
        blocks: dict[int, Block] = {}
        at = runs.start
        known = self.finished([key])[key] if cells is None else cells
        for cell in sorted(known, key=lambda cell: (cell.start, -cell.stop)):
            first, stop = max(cell.start, at), min(cell.stop, runs.stop)
            if first >= stop or (block := self.get(key, cell)) is None:
                continue
            if (first, stop) != (cell.start, cell.stop):
                part = slice(first - cell.start, stop - cell.start)
                share = block.seconds * (stop - first) / len(cell)
                block = Block(block.curves[part], block.best_pairs[part], share)
            blocks[first] = block
            at = stop
        return blocks

    def get(self, key: str, runs: range) -> Block | None:
        """A cell that is finished; None where it isn't, or where its file is damaged."""
        try:
            with open(self.path(key, runs), "rb", buffering=0) as file:
                raw = file.read()
        except FileNotFoundError:
            return None
        digest, body = raw[:16], raw[16:]
        if self._digest(key, runs, body) != digest:
            return None
        count, marks = np.frombuffer(body, np.int64, 2)
        if count != len(runs):
            return None
        seconds = np.frombuffer(body, np.float64, 1, offset=16)[0]
        pairs = np.frombuffer(body, np.int64, 2 * count, offset=24).reshape(count, 2)
        curves = np.frombuffer(body, np.float64, offset=24 + 16 * count).reshape(count, marks, 2)
        return Block(curves, pairs, float(seconds))

    def put(self, key: str, runs: range, block: Block) -> None:
        """Keep a finished cell.

        It isn't forced onto the disk, which would take longer than many a cell: if the power fails,
        the digest tells what was cut short.
        """
        path = Path(self.path(key, runs))
        path.parent.mkdir(exist_ok=True)
        body = b"".join(
            [
                np.array(block.curves.shape[:2], np.int64).tobytes(),
                np.array([block.seconds]).tobytes(),
                np.ascontiguousarray(block.best_pairs, np.int64).tobytes(),
                np.ascontiguousarray(block.curves, np.float64).tobytes(),
            ]
        )
        with whole_file(path, sync=False) as temporary:
            temporary.write_bytes(self._digest(key, runs, body) + body)

    @staticmethod
    def _digest(key: str, runs: range, body: bytes) -> bytes:
        """Of what a cell holds, and of whose it is: a copy under another name isn't taken."""
        return hashlib.sha256(f"{key} {runs}".encode() + body).digest()[:16]
