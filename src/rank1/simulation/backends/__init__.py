"""Where tasks are played: in threads, in processes, on a Dask or a Ray cluster. One file each.

A backend is a generator function: it takes tasks and yields their results in the order in which
they finish. Joblib, Dask and Ray do the scheduling, and retry when a worker dies.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator
from typing import Any

from rank1 import checks
from rank1.simulation.backends.base import Failure, Playable, Played, RunCell, Setup, Task

__all__ = ["BACKENDS", "Failure", "Playable", "Played", "RunCell", "Setup", "Task", "backend"]

#: Every backend by its name, with its module. "local" is another name for processes.
BACKENDS = {
    "threads": "threads",
    "processes": "processes",
    "local": "processes",
    "dask": "dask",
    "ray": "ray",
}


def backend(name: str) -> Callable[[list[Task], Setup], Generator[Played, None, None]]:
    """The backend with this name.

    >>> backend("cloud")
    Traceback (most recent call last):
    ...
    rank1.InputError: backend must be one of threads, processes, local, dask, ray, got 'cloud'
    """
    module: Any = importlib.import_module(
        f"{__name__}.{BACKENDS[checks.one_of('backend', name, BACKENDS)]}"
    )
    return module.run_tasks
