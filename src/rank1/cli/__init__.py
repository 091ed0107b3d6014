"""The command line: one file a command."""

from __future__ import annotations

import io
import sys

# Each adds its command.
from rank1.cli import bounds, listings, paper, plot, simulate, sweep, table  # noqa: F401
from rank1.cli.app import app
from rank1.errors import Rank1Error

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; bad input gives one line and status 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that can't show Δ shows something
            stream.reconfigure(errors="replace")
    try:
        app()
    except (Rank1Error, ValueError, TypeError, OSError, OverflowError, MemoryError) as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
