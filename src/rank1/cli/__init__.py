"""The command line: one file a command."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from typing import Any

# Each adds its command.
from rank1.cli import bounds, listings, paper, plot, simulate, sweep, table  # noqa: F401
from rank1.cli.app import app
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
    status = 143
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, _terminated)
    try:
        app()
    except BrokenPipeError:  # whoever read this has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (Rank1Error, ValueError, TypeError, OSError, OverflowError, MemoryError) as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)
    except Terminated:
        print("Terminated.", file=sys.stderr)
        sys.exit(status)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)


class Terminated(KeyboardInterrupt):
    """SIGTERM: the same as Ctrl-C, so that what is finished is kept."""


def _terminated(*_: Any) -> None:
    raise Terminated
