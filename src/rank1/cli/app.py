"""What all commands share. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Jobs", "Json", "ProblemName", "Seed", "Set", "app", "console", "print_json"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Find the best pair of a grid from noisy feedback: stochastic rank-1 bandits.",
)

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")
]
ProblemName = Annotated[
    str, typer.Option("--problem", help="Name of the problem: see `rank1 problems`.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the problem, as name=value.")
]
Seed = Annotated[int, typer.Option(help="Same seed, same numbers.")]
Jobs = Annotated[int, typer.Option(help="Runs played side by side; -1 for one on each core.")]


def console(width: int = 120) -> Console:
    """Standard output; at most so wide where it isn't a terminal."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else width)


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
