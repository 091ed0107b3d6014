"""What all commands share. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

__all__ = ["Terminated", "app", "ending", "print_json", "show", "status"]


class Terminated(KeyboardInterrupt):
    """SIGTERM: the same as Ctrl-C, so that what is finished is kept."""

    #: Whether it came: on the way through other packages it may become a KeyboardInterrupt.
    came = False


def ending() -> str:
    """What is said first after Ctrl-C or SIGTERM."""
    return "Terminated" if Terminated.came else "Interrupted"


def status() -> int:
    """The status with which a command ends then, as shells have it."""
    return 143 if Terminated.came else 130


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Find the best pair of a grid from noisy feedback: stochastic rank-1 bandits.",
)


def show(part: Any, width: int = 120) -> None:
    """Print text or a table, at most so wide where standard output isn't a terminal.

    What a narrow terminal has no room for goes into the next line: nothing is cut.
    """
    from rich.console import Console
    from rich.table import Table

    if isinstance(part, Table):
        for column in part.columns:
            column.overflow = "fold"
    console = Console(highlight=False, width=None if sys.stdout.isatty() else width)
    console.print(part, markup=False)


def print_json(document: Any) -> None:
    """One document, of which every number is finite."""
    print(json.dumps(document, allow_nan=False, ensure_ascii=False))


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from rank1 import __version__

        print(__version__)
        raise typer.Exit
