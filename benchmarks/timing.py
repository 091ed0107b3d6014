"""How the benchmarks measure: CPU time, the least of several repeats."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def cpu_seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """The least CPU time of several calls, after one that isn't counted."""
    work()
    best = float("inf")
    for _ in range(repeats):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best
