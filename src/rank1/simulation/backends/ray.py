"""A Ray cluster.

This calls Ray directly, not through joblib, whose backend can't return results before all tasks
have finished.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import signal
import sys
from collections.abc import Generator
from functools import partial
from typing import Any

from rank1.simulation.backends import base
from rank1.simulation.backends.base import Played, Setup, Task

__all__ = ["run_tasks"]


def run_tasks(tasks: list[Task], setup: Setup) -> Generator[Played, None, None]:
    """Play tasks on a Ray cluster; without an address, on a temporary one on this machine."""
    try:
        import ray as cluster
    except ImportError:
        raise base.missing("ray", "ray") from None
    where: dict[str, Any] = {"address": setup.address}
    if setup.address is None:
        where = {"num_cpus": setup.jobs, "include_dashboard": False}
    # Ray writes about dead workers to standard output, which is reserved for results.
    with contextlib.redirect_stdout(sys.stderr), contextlib.ExitStack() as stack:
        try:
            with base.workers_start():  # also restores the signal handlers that Ray replaces
                cluster.init(**where, log_to_driver=False, logging_level=logging.ERROR)
        except SystemExit:  # Ray's reaction to SIGTERM
            signal.raise_signal(signal.SIGTERM)
        except (OSError, ValueError, RuntimeError) as error:
            raise base.unreachable("ray", "auto or 10.0.0.1:6379", setup, error) from None
        stack.callback(cluster.shutdown)
        cores = cluster.cluster_resources().get("CPU", 0)
        setup.note(f"Ray at {setup.address or 'this machine'}: {cores:.0f} cores")
        remote = cluster.remote(num_cpus=1, max_retries=base.ATTEMPTS - 1)(base.run_task)
        waiting = iter(enumerate(tasks))
        numbers: dict[Any, int] = {}

        def submit(count: int) -> None:
            for k, task in itertools.islice(waiting, count):
                numbers[remote.remote(task, base.keys_of(task))] = k

        submit(base.WINDOW)
        while numbers:
            (done,), _ = cluster.wait(list(numbers))
            k = numbers.pop(done)
            submit(1)
            yield k, base.fetched(partial(cluster.get, done), tasks[k])
