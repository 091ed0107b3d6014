"""Options shared by several commands."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rank1.errors import InputError

if TYPE_CHECKING:
    from rank1.problems import Problem


def whole(text: str) -> int:
    """Parse an integer, which may be written as 2e6.

    >>> whole("2e6"), whole("2_000"), whole("-1")
    (2000000, 2000, -1)
    """
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError):
        if (value := float(text)).is_integer():
            return int(value)
    raise typer.BadParameter(f"must be a whole number, such as 20 or 2e6, got {text!r}")


def real(text: str, name: str | None = None) -> float:
    """Parse a number; `name` says in an error which one, if typer doesn't know.

    >>> real("0.98")
    0.98
    """
    try:
        return float(text)
    except ValueError:
        where = name and f"'{name}'"
        problem = f"must be a number, such as 0.98, got {text!r}"
        raise typer.BadParameter(problem, param_hint=where) from None


def range_of(text: str) -> tuple[float, float]:
    """Parse --reward-range.

    >>> range_of("0,200")
    (0.0, 200.0)
    """
    ends = [real(part, "--reward-range") for part in text.split(",")]
    if len(ends) != 2:
        expected = "the smallest and the largest reward, such as 0,1"
        raise InputError("--reward-range", text, expected)
    return ends[0], ends[1]


def problem_of(name: str, settings: list[str] | None) -> Problem:
    """The problem given by --problem and --set."""
    from rank1.problems import PROBLEMS
    from rank1.settings import build, parse_settings

    return build("problem", PROBLEMS, name, parse_settings(settings or [], "--set"))


def number_or_settings(text: str, what: str) -> Any:
    """Parse a number, a JSON list, or name=value,name=value as a dict.

    >>> number_or_settings("1e3", "--delay"), number_or_settings("[1, 0.5]", "--drift")
    (1000.0, [1, 0.5])
    >>> number_or_settings("success=0,failure=2e3", "--delay")
    {'success': 0, 'failure': 2000}
    """
    from rank1.settings import parse_settings

    if "=" in text:
        found = parse_settings(text.split(","), what)
        return {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in found.items()
        }
    if text.lstrip().startswith("["):
        return parse_settings([f"list={text}"], what)["list"]
    return real(text, what)


def option(help: str, *names: str, **more: Any) -> Any:
    """An option; it is named after its parameter if no names are given."""
    return typer.Option(*names, help=help, **more)


def integer(help: str) -> Any:
    """An option with an integer."""
    return option(help, parser=whole, metavar="NUMBER")


def number(help: str) -> Any:
    """An option with a number."""
    return option(help, parser=real, metavar="NUMBER")


Json = Annotated[
    bool, option("Print one JSON document on standard output, nothing else.", "--json")
]
ProblemName = Annotated[
    str, option("Name of the problem: see `rank1 problems`.", "--problem", metavar="NAME")
]
Set = Annotated[
    list[str] | None,
    option(
        "A setting of the problem; write lists as JSON. Can be repeated.",
        "--set",
        metavar="NAME=VALUE",
    ),
]
Policies = Annotated[
    list[str],
    option(
        "Name of a policy, or module:Class, with settings after a colon: see `rank1 "
        "policies`. Can be repeated.",
        "--policy",
        metavar="POLICY",
    ),
]
Seed = Annotated[int, integer("Random seed: the same seed gives the same numbers.")]
Delay = Annotated[
    str,
    option(
        "Mean delay of rewards in steps; or exact delays by outcome, such as "
        "success=0,failure=2000."
    ),
]
Missing = Annotated[float, number("Share of rewards that never arrive.")]
Batch = Annotated[int, integer("Rewards arrive together every BATCH steps.")]
Drift = Annotated[
    str | None,
    option(
        "Let all means rise and fall, as in amplitude=0.9,period=3000; or a JSON list of "
        "multipliers by step."
    ),
]
Jobs = Annotated[int, integer("Number of parallel runs; -1 for one per core.")]
Checkpoints = Annotated[int, integer("Number of points on each curve.")]
Backend = Annotated[
    str,
    option("Where to play: threads, processes (or local), dask or ray.", "--backend", "--engine"),
]
Address = Annotated[
    str | None, option("Address of a Dask or Ray cluster; default: start one on this machine.")
]
Shuffle = Annotated[
    bool, option("Relabel the levels at random in each run, to break ties fairly.", "--shuffle")
]
Store = Annotated[
    str | None, option("Folder for finished runs: the same command reads them instead of playing.")
]
