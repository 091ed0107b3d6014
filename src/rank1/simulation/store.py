"""Finished cells on disk: blocks of runs under a key that says all they depend on."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.files import whole_file

__all__ = ["Block", "Store"]

#: Part of every key: raised when the engine gives other numbers or the file changes its layout.
VERSION = 1


class Block(NamedTuple):
    """Some runs of one policy on one problem."""

    #: Expected and realised regret: (runs, checkpoints, 2).
    curves: NDArray[np.float64]
    #: (runs, 2)
    best_pairs: NDArray[np.int64]
    seconds: float


class Store:
    """A folder of cells. Several processes may use it at once: a file is there whole or not at all.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> key = store.key("spike", "rank1elim", 1000, range(2))
    >>> store.get(key) is None
    True
    >>> store.put(key, Block(np.ones((2, 3, 2)), np.zeros((2, 2), np.int64), 0.5))
    >>> store.get(key).seconds
    0.5
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"the store must be a folder that may be written to, got {str(folder)!r}: "
                f"{error.strerror}"
            ) from None

    @staticmethod
    def key(*parts: Any) -> str:
        """A name made of all that a cell depends on."""
        return hashlib.sha256(repr((VERSION, *parts)).encode()).hexdigest()[:40]

    def path(self, key: str) -> Path:
        """Where a cell lies."""
        return self.folder / key[:2] / f"{key[2:]}.cell"

    def get(self, key: str) -> Block | None:
        """A cell that is finished; None where it isn't, or where its file is damaged."""
        try:
            raw = self.path(key).read_bytes()
        except FileNotFoundError:
            return None
        digest, body = raw[:16], raw[16:]
        if hashlib.sha256(body).digest()[:16] != digest:
            return None
        runs, marks = np.frombuffer(body, np.int64, 2)
        seconds = np.frombuffer(body, np.float64, 1, offset=16)[0]
        pairs = np.frombuffer(body, np.int64, 2 * runs, offset=24).reshape(runs, 2)
        curves = np.frombuffer(body, np.float64, offset=24 + 16 * runs).reshape(runs, marks, 2)
        return Block(curves, pairs, float(seconds))

    def put(self, key: str, block: Block) -> None:
        """Keep a finished cell."""
        path = self.path(key)
        path.parent.mkdir(exist_ok=True)
        body = b"".join(
            [
                np.array(block.curves.shape[:2], np.int64).tobytes(),
                np.array([block.seconds]).tobytes(),
                np.ascontiguousarray(block.best_pairs, np.int64).tobytes(),
                np.ascontiguousarray(block.curves, np.float64).tobytes(),
            ]
        )
        with whole_file(path) as temporary:
            temporary.write_bytes(hashlib.sha256(body).digest()[:16] + body)
