"""Shared by all commands. Heavy modules are imported by the commands that need them."""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from typer.core import TyperGroup

from rank1.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

T = TypeVar("T")


class Terminated(KeyboardInterrupt):
    """SIGTERM, treated like Ctrl-C, so that finished work is kept."""

    #: Whether it was raised: other packages may turn it into a KeyboardInterrupt on its way.
    came = False


def note(text: str) -> None:
    """Print a note on standard error."""
    print(text, file=sys.stderr)


def end(more: str) -> NoReturn:
    """Exit after Ctrl-C or SIGTERM: say so, and more, and use the status that shells use."""
    note(f"{'Terminated' if Terminated.came else 'Interrupted'}{more}")
    sys.exit(143 if Terminated.came else 130)


class Commands(TyperGroup):
    """A group whose help shows whole descriptions, and whose usage errors are one line."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """Parse the options before the command."""
        try:
            return super().make_context(*arguments, **named)
        except Exception as error:
            raise _one_line(error) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            raise _one_line(error)  # noqa: B904

    def list_commands(self, ctx: Any) -> list[str]:
        """List the commands for live tests first."""
        first = ("serve", "study", "judge", "advise")
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: first.index(name) if name in first else len(first))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands, each with the full first sentence of its help."""
        names = self.list_commands(ctx)
        commands = [(name, self.get_command(ctx, name)) for name in names]
        rows = [(name, each.get_short_help_str(1000)) for name, each in commands if each]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _one_line(error: Exception) -> Exception:
    """Remove a usage error's context, so that it doesn't print the usage."""
    if hasattr(error, "format_message") and type(error).__name__ != "NoArgsIsHelpError":
        error.ctx = None  # type: ignore[attr-defined]
    return error


def group(help: str | None, epilog: str, **more: Any) -> typer.Typer:
    """A group of commands; without one of them it prints its help, unless `more` says otherwise."""
    told: dict[str, Any] = {"no_args_is_help": True} | more | ({"help": help} if help else {})
    told |= {"rich_markup_mode": None, "pretty_exceptions_enable": False}
    return typer.Typer(cls=Commands, epilog=epilog, **told)


app = group(
    "Run multivariate tests that say when to stop, and simulate rank-1 bandits.",
    "Example: rank1 serve --demo shows a live test in your browser. Each command's --help has an "
    "example.",
    add_completion=False,
)


def counted(number: int, what: str) -> str:
    """A number with its noun.

    >>> counted(1, "report"), counted(2000, "report")
    ('1 report', '2,000 reports')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def show(part: Any, width: int = 120) -> None:
    """Print text or a table, at most `width` wide if standard output isn't a terminal.

    Nothing is cut, and no number is broken: a table that is too wide for its terminal becomes a
    list with one cell per line.
    """
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, width=None if sys.stdout.isatty() else width)
    if isinstance(part, Table) and not (_fits(part, console, True) or _fits(part, console, False)):
        part = _as_list(part)
    console.print(part, markup=False)


def _fits(table: Table, console: Console, whole: bool) -> bool:
    """Set the columns' widths so that lines break only between words, if possible.

    Columns of figures, which are right-aligned, keep each cell on one line if `whole`; otherwise
    12 ± 3 may become two lines, but not (1, 2).
    """
    from rich.cells import cell_len

    most = []
    for column in table.columns:
        cells = [str(cell) for cell in column.cells]
        words = str(column.header).split()
        if column.justify != "right":
            words += [word for cell in cells for word in cell.split()]
        else:
            words += cells if whole else [w for cell in cells for w in re.split("(?<!,) ", cell)]
        column.width = max(map(cell_len, words), default=1)
        most.append(max(map(cell_len, (str(column.header), *cells))))
    unlimited = console.options.update(width=100_000)
    spare = console.width - console.measure(table, options=unlimited).maximum
    for _ in range(spare):  # one by one to the column that lacks most
        widths = [column.width or 1 for column in table.columns]
        k = max(range(len(most)), key=lambda k: most[k] / widths[k])
        if widths[k] >= most[k]:
            break
        table.columns[k].width = widths[k] + 1
    return spare >= 0


def _as_list(table: Table) -> str:
    """The table's rows one after the other, with one line per cell."""
    names = [str(column.header) for column in table.columns]
    lines = [str(table.title)] if table.title else []
    for row in zip(*(column.cells for column in table.columns), strict=True):
        cells = [
            f"{name}: {cell}" if name else str(cell) for name, cell in zip(names, row, strict=True)
        ]
        lines += ["", *cells]
    return "\n".join([*lines, str(table.caption or ""), ""])


def with_flag(error: Exception, arguments: list[str]) -> str:
    """The error's message, with the argument's name as on the command line: --runs for runs.

    >>> from rank1.cli import grids, paper
    >>> error = InputError("block_seed", -1, "a whole number of at least 0")
    >>> with_flag(error, ["paper", "figure3"])
    '--block-seed must be a whole number of at least 0, got -1'
    >>> with_flag(InputError("grid", "upwrothy", "one of upworthy"), ["grids", "upwrothy"])
    "grid must be one of upworthy, got 'upwrothy'"
    >>> error = InputError("tolerance", 1, '0 for goal="find"', "min_lift says which lifts matter")
    >>> with_flag(error, ["study", "create"])
    '--tolerance must be 0 for --goal find, got 1: --min-lift says which lifts matter'
    """
    if not isinstance(error, InputError | InputTypeError) or error.context:
        return str(error)
    command: Any = typer.main.get_command(app)
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    options = {each for parameter in command.params for each in parameter.opts}
    name, _, part = error.argument.partition(".")
    flag = "--" + name.replace("_", "-")
    error = copy.copy(error)
    for known in (flag, flag.removesuffix("s")):  # --side is given once for each of the sides
        if known in options:
            error.argument = f"{known} {part}".rstrip()
            break

    def flagged(found: re.Match[str]) -> str:
        flag = "--" + found[1].replace("_", "-")
        return f"{flag} {found[2] or ''}".rstrip() if flag in options else found[0]

    # Other options that it mentions, such as min_lift or goal="find"; a bare word may be no option.
    pattern = r"\b([a-z]+(?:_[a-z]+)+|[a-z]+(?==['\"]))(?:=['\"](\w+)['\"])?"
    for field in ("expected", "hint"):
        vars(error)[field] = re.sub(pattern, flagged, getattr(error, field) or "")
    return str(error)


def finished(play: Callable[[], T]) -> tuple[T, bool]:
    """The result of `play`, complete or up to an interruption; and whether it was interrupted."""
    from rank1.simulation import Interrupted

    try:
        return play(), False
    except Interrupted as stop:
        if stop.result is None:
            end(" before any run was completed.")
        return stop.result, True


def print_json(document: Any) -> None:
    """Print one JSON document; every number in it must be finite."""
    print(json.dumps(document, allow_nan=False, ensure_ascii=False))


def answer(json_: bool, document: Any, text: str) -> None:
    """Print the result, as JSON or as a sentence."""
    print_json(document) if json_ else show(text)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from rank1 import __version__

        print(__version__)
        raise typer.Exit
