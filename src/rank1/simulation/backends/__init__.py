"""Where tasks are played: in threads, in processes, on a Dask or a Ray cluster. One file each.

A backend is a generator function: it takes the tasks and gives back what came of them, in the order
in which they finish. Scheduling, and trying again after a worker has died, is the business of
joblib, Dask and Ray.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator
from typing import Any

from rank1 import checks
from rank1.simulation.backends.base import Failure, Playable, Played, RunCell, Setup, Task

__all__ = ["BACKENDS", "Failure", "Playable", "Played", "RunCell", "Setup", "Task", "backend"]

#: Every backend by its name, with the module that has it. "local" is another name for processes.
BACKENDS = {
    "threads": "threads",
    "processes": "processes",
    "local": "processes",
    "dask": "dask",
    "ray": "ray",
}


def backend(name: str) -> Callable[[list[Task], Setup], Generator[Played, None, None]]:
    """The backend of this name.

    >>> backend("cloud")
    Traceback (most recent call last):
    ...
    rank1.InputError: backend must be one of threads, processes, local, dask, ray, got 'cloud'
    """
    module: Any = importlib.import_module(
        f"{__name__}.{BACKENDS[checks.one_of('backend', name, BACKENDS)]}"
    )
    return module.run_tasks
