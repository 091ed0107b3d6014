"""Processes that are forked from one in which everything is imported: that is most of a start."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

__all__ = ["PROCESSES", "Command"]

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.studies.worker", "rank1.cli", "rank1.server.run"])


class Command:
    """The command `rank1`, with as much of `subprocess.Popen` as tests of it need."""

    def __init__(self, *arguments: str, cwd: Path, stderr: Path) -> None:
        here, there = PROCESSES.Pipe(duplex=False)
        given = arguments, str(cwd), str(stderr), dict(os.environ), there
        self._process = PROCESSES.Process(target=_run, args=given, daemon=True)
        self._process.start()
        there.close()
        self.stdout = os.fdopen(os.dup(here.fileno()), encoding="utf-8")
        here.close()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("rank1", timeout)
        return self._process.exitcode


def _run(
    arguments: tuple[str, ...], cwd: str, stderr: str, environment: dict[str, str], out: Connection
) -> Any:
    from rank1.__main__ import main

    os.dup2(out.fileno(), 1)
    os.dup2(os.open(stderr, os.O_WRONLY | os.O_APPEND | os.O_CREAT), 2)
    sys.stdout, sys.stderr = (os.fdopen(file, "w", encoding="utf-8") for file in (1, 2))
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["rank1", *arguments]
    main()
