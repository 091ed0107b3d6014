"""A demo study with simulated visitors on a real grid."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from rank1 import datasets
from rank1.datasets import Table
from rank1.errors import StorageError, StudyExistsError
from rank1.server.registry import StudyRegistry

__all__ = ["NAME", "DemoTraffic", "demo_settings"]

NAME = "demo: e-mails of a shop"
#: Visitors that arrive together, and seconds between arrivals.
VISITORS, PAUSE = 20, 0.25
#: The usual delay of a reward in seconds, and the share of visitors who never send one.
DELAY, LOST = 1.0, 0.05


@contextlib.contextmanager
def demo_settings(given: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Table]]:
    """Settings with a temporary storage, unless a storage was given, and the demo's grid."""
    table = datasets.hillstrom("history")
    with tempfile.TemporaryDirectory(prefix="rank1-demo-") as folder:
        place = {"storage": f"{folder}/demo.db", "tokens": f"{folder}/tokens.json"}
        yield place | {name: value for name, value in given.items() if value is not None}, table


class DemoTraffic:
    """A thread of simulated visitors, who ask, wait, and tell rewards at the grid's rates."""

    def __init__(self, registry: StudyRegistry, table: Table) -> None:
        with contextlib.suppress(StudyExistsError):
            registry.create(
                NAME, rows=table.rows, columns=table.columns, goal="find", reward_window=60.0
            )
        self._study, self._table = registry.separate(NAME), table
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rank1-demo", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        rng = np.random.default_rng()
        table = self._table
        pairs: Iterator[tuple[str, ...]] = itertools.product(table.rows, table.columns)
        rates = dict(zip(pairs, table.rates.flat, strict=True))
        waiting: deque[tuple[float, str, float]] = deque()
        while not self._end.wait(PAUSE):
            with contextlib.suppress(StorageError):
                for each in self._study.ask(count=VISITORS):
                    if rng.random() >= LOST:
                        due = time.monotonic() + DELAY
                        won = rng.random() < rates[tuple(each.levels.values())]
                        waiting.append((due, each.id, float(won)))
                due_now = []
                while waiting and waiting[0][0] <= time.monotonic():
                    due_now.append(waiting.popleft()[1:])
                if due_now:
                    self._study.tell_many(due_now)

    def close(self) -> None:
        """Stop the visitors."""
        self._end.set()
        self._thread.join()
