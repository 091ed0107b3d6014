"""The command line: one file a command."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from typing import Any, NoReturn

# Each adds its command.
from rank1.cli import (  # noqa: F401
    advise,
    bounds,
    grids,
    identify,
    listings,
    paper,
    plot,
    serve,
    simulate,
    study,
    study_best,
    sweep,
    table,
)
from rank1.cli.app import Terminated, app, ending, status, with_flag
from rank1.errors import Rank1Error

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; bad input gives one line and status 2, never a traceback."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed: what is printed goes nowhere
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):  # a terminal that can't show Δ shows something
            stream.reconfigure(errors="replace")
    Terminated.came = False
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, _terminated)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where what goes wrong has a word
    except SystemExit as end:
        # Typer ends without a word after Ctrl-C.
        stop = getattr(end.__context__, "__cause__", None)
        if not isinstance(stop, KeyboardInterrupt):
            raise
        print(f"{ending()}.", file=sys.stderr)
        _end(status())
    except BrokenPipeError:  # whoever read this has seen enough
        _end(141)
    except (Rank1Error, ValueError, TypeError, OSError, OverflowError, MemoryError) as error:
        print(f"Error: {with_flag(str(error), sys.argv[1:])}", file=sys.stderr)
        _end(2)


def _terminated(*_: Any) -> None:
    Terminated.came = True
    raise Terminated


def _end(code: int) -> NoReturn:
    """Leave, without another try to write what couldn't be written."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
