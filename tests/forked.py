"""Fork processes from one that has imported everything: imports are most of the startup time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType

__all__ = ["PROCESSES", "Command", "python"]

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "pytest",
        "tests.studies.worker",
        "rank1.cli",
        "rank1.server.run",
        "rank1.simulation",
        "joblib",
        "scipy.optimize",
    ]
)


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code like `python -c`, and capture its output."""
    with tempfile.NamedTemporaryFile() as file:
        process = Command(*arguments, cwd=Path.cwd(), stderr=Path(file.name), code=code)
        late = threading.Timer(300, process.kill)
        late.start()
        try:
            with process.stdout:
                said = process.stdout.read()
            end = process.wait(300)
        finally:
            late.cancel()
        errors = Path(file.name).read_text()
    return subprocess.CompletedProcess([code, *arguments], end, said, errors)


class Command:
    """The command `rank1`, or some code, with the part of `subprocess.Popen` that tests need."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path,
        stderr: Path,
        code: str | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        here, there = PROCESSES.Pipe(duplex=False)
        given = code, arguments, str(cwd), str(stderr), {**os.environ, **environment}, there
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
        with suppress(ProcessLookupError):  # it may have just ended
            os.kill(self._process.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            self.kill()
            raise subprocess.TimeoutExpired("rank1", timeout)
        return self._process.exitcode


def _run(
    code: str | None,
    arguments: tuple[str, ...],
    cwd: str,
    stderr: str,
    environment: dict[str, str],
    out: Connection,
) -> None:
    from rank1.__main__ import main

    os.dup2(out.fileno(), 1)
    out.close()
    os.dup2(os.open(stderr, os.O_WRONLY | os.O_APPEND | os.O_CREAT), 2)
    sys.stdout, sys.stderr = (os.fdopen(file, "w", encoding="utf-8") for file in (1, 2))
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["rank1", *arguments]
    if code is None:
        main()
        return
    warnings.simplefilter("ignore", DeprecationWarning)  # about forks in processes with threads
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
