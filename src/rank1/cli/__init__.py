"""The command line, one file per command. A command's file is imported when it is called."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import sys
import warnings
from typing import Any, NoReturn

from rank1.cli.app import Terminated, app, end, note, with_flag
from rank1.errors import Rank1Error

__all__ = ["application", "main"]

#: The commands as listed, and the modules of those that aren't in a module of the same name.
COMMANDS = (
    "advise", "bounds", "grids", "identify", "judge", "policies", "problems", "paper", "plot",
    "serve", "simulate", "study", "sweep", "table",
)  # fmt: skip
MODULES = {
    "policies": ("listings",),
    "problems": ("listings",),
    "study": ("study", "study_best", "study_shares", "study_log"),
}


def application(command: str | None = None) -> Any:
    """The application with one command; without a command, or if it doesn't exist, with all."""
    for name in (command,) if command in COMMANDS else COMMANDS:
        for module in MODULES.get(name, (name,)):
            importlib.import_module(f"rank1.cli.{module}")
    return app


def main() -> None:
    """Run the command line; bad input gives one line and status 2, never a traceback."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed: discard the output
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):  # for a terminal that can't show Δ
            stream.reconfigure(errors="replace")
    warnings.formatwarning = lambda message, *_, **__: f"Note: {message}\n"
    Terminated.came = False
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, _terminated)
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # for --policy module:Class
    try:
        try:
            application(sys.argv[1] if len(sys.argv) > 1 else None)()
        finally:
            sys.stdout.flush()  # here, so that an error is reported
    except SystemExit as left:
        # Typer exits silently after Ctrl-C.
        stop = getattr(left.__context__, "__cause__", None)
        if not isinstance(stop, KeyboardInterrupt):
            raise
        end(".")
    except BrokenPipeError:  # the reader has closed the pipe
        _end(141)
    except (Rank1Error, ValueError, TypeError, OSError, OverflowError, MemoryError) as error:
        note(f"Error: {with_flag(error, sys.argv[1:])}")
        _end(2)


def _terminated(*_: Any) -> None:
    Terminated.came = True
    raise Terminated


def _end(code: int) -> NoReturn:
    """Exit, without trying again to write what couldn't be written."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
