"""rank1 study shares, record, reward, report: commands for studies that use shares."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from rank1 import checks
from rank1.cli.app import answer, note, print_json, show
from rank1.cli.options import Json, integer, number, option, real
from rank1.cli.study import (
    Metrics,
    Name,
    Out,
    Storage,
    _metrics,
    _opened,
    _pairs,
    _table,
    study_app,
)
from rank1.errors import FileError, InputError, Rank1Error, reason

Unit = Annotated[str, typer.Argument(help="The visitor, customer or session.")]
Reward = Annotated[str | None, option("The reward, if it is already known.", metavar="NUMBER")]


@study_app.command(epilog="Example: rank1 study shares home")
def shares(name: Name, storage: Storage = "rank1.db", json_: Json = False) -> None:
    """Print the current version of the shares as JSON; `rank1.assign` draws from it."""
    with _opened(name, storage) as study:
        print_json(study.shares())


@study_app.command(epilog="Example: rank1 study assign home visitor-17")
def assign(
    name: Name,
    unit: Unit,
    given: Annotated[list[str], option("The level of a given side.", metavar="SIDE=LEVEL")] = [],  # noqa: B006
    storage: Storage = "rank1.db",
    json_: Json = False,
) -> None:
    """Print a unit's levels under the current shares, without storing anything."""
    from rank1.assignment import assign as drawn

    with _opened(name, storage) as study:
        current = study.shares()
    levels = drawn(current, unit, _pairs("--given", given))
    document = {"unit": unit, "version": current["version"], "levels": levels}
    answer(json_, document, f"{' × '.join(levels.values())} (version {current['version']})")


@study_app.command(
    epilog="Example: rank1 study record home visitor-17 --version 0 --level headline=B --level "
    "image=x --reward 1"
)
def record(
    name: Name,
    unit: Annotated[str | None, typer.Argument(help="The visitor who saw the arm.")] = None,
    version: Annotated[int | None, integer("Version of the shares.")] = None,
    level: Annotated[list[str], option("A level of each side.", metavar="SIDE=LEVEL")] = [],  # noqa: B006
    reward: Reward = None,
    guardrail: Metrics = [],  # noqa: B006
    file: Annotated[
        Path | None,
        option(
            "Many at once: a CSV file with the columns unit, version, one for each side, "
            "reward and one for each guardrail; or JSONL with unit, version, levels, reward, "
            "guardrails."
        ),
    ] = None,
    storage: Storage = "rank1.db",
    json_: Json = False,
) -> None:
    """Store exposures whose levels were drawn elsewhere from a version of the shares."""
    with _opened(name, storage) as study:
        if file is not None:
            alone = {"unit": unit, "--version": version, "--level": level, "--reward": reward,
                     "--guardrail": guardrail}  # fmt: skip
            for option, value in alone.items():
                if value not in (None, []):
                    raise InputError(option, value, "in the file if --file is given")
            sides, metrics = list(study.spec.sides), list(study.spec.guardrails)
            found = study.record_many(_records(file, sides, metrics))
        else:
            if unit is None or version is None:
                raise InputError("record", None, "given a unit and --version, or --file")
            told = None if reward is None else real(reward, "--reward")
            levels = _pairs("--level", level)
            found = [study.record(unit, version, levels, told, _metrics(guardrail))]
    begin = 2 if file is not None and file.suffix == ".csv" else 1  # below its header
    refused = [(k, each) for k, each in enumerate(found, begin) if isinstance(each, Rank1Error)]
    stored = [each for each in found if not isinstance(each, Rank1Error)]
    new = sum(each.new for each in stored)
    if json_:
        problems = [{"line": k, "problem": str(error)} for k, error in refused]
        print_json({"stored": new, "known": len(stored) - new, "refused": problems})
    else:
        show(f"{new:,} stored, {len(stored) - new:,} known before, {len(refused):,} refused")
        for k, error in refused[:20]:
            note(f"line {k}: {error}")
    if refused:
        raise typer.Exit(1)


def _records(path: Path, sides: list[str], metrics: list[str]) -> list[tuple[Any, ...]]:
    """Read the records of a file, each as the arguments of `Study.record`."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            if path.suffix == ".jsonl":
                rows = [json.loads(line) for line in file if line.strip()]
                return [tuple(map(row.get, checks.RECORD)) for row in rows]
            lines = list(csv.DictReader(file))
    except (OSError, ValueError, AttributeError) as error:
        raise FileError(f"{str(path)!r} can't be read: {reason(error)}", where=str(path)) from None
    missing = [each for each in ("unit", "version", *sides) if each not in (lines or [{}])[0]]
    if missing:
        raise FileError(
            f"{str(path)!r} must have the columns unit, version, {', '.join(sides)} and reward; "
            f"missing: {', '.join(missing)}",
            where=str(path),
        )
    return [
        (
            line["unit"],
            _whole(line["version"]),
            {side: line[side] for side in sides},
            _number(line.get("reward")),
            {name: _number(line[name]) for name in metrics if (line.get(name) or "").strip()},
        )
        for line in lines
    ]


def _whole(text: str) -> Any:
    return int(text) if text.strip().isdigit() else text


def _number(text: str | None) -> Any:
    if text is None or not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        return text


@study_app.command(
    epilog="Example: rank1 study reward home visitor-17 1",
    context_settings={"ignore_unknown_options": True},
)
def reward(
    name: Name,
    unit: Unit,
    amount: Annotated[str, typer.Argument(help="Its reward.", metavar="REWARD")],
    guardrail: Metrics = [],  # noqa: B006
    storage: Storage = "rank1.db",
    json_: Json = False,
) -> None:
    """Store the reward of a recorded unit."""
    number, metrics = real(amount, "reward"), _metrics(guardrail)
    with _opened(name, storage) as study:
        told = study.reward(unit, number, metrics)
    text = f"{unit}: {' × '.join(told.levels.values())} brought {told.reward:g}"
    answer(json_, told.to_dict(), text)


@study_app.command(epilog="Example: rank1 study report home --out home.html")
def report(name: Name, out: Out, storage: Storage = "rank1.db", json_: Json = False) -> None:
    """Write a report for readers who don't know the study: one HTML file, ready to print."""
    with _opened(name, storage) as study:
        study.report(out)
    answer(json_, {"file": str(out)}, f"{out} is written")


@study_app.command(epilog="Example: rank1 study forecast home --per-day 4000")
def forecast(
    name: Name,
    per_day: Annotated[float | None, number("Rewards per day, to get the answer in days.")] = None,
    storage: Storage = "rank1.db",
    json_: Json = False,
) -> None:
    """Print how many more reports, and days, a verdict will take."""
    with _opened(name, storage) as study:
        found = study.forecast(per_day=per_day)
    answer(json_, found.to_dict(), found.statement)


@study_app.command(epilog="Example: rank1 study personalise mail channel --by segment")
def personalise(
    name: Name,
    side: Annotated[str, typer.Argument(help="The side whose level is chosen.")],
    by: Annotated[str, option("The side that decides, such as segment.")],
    storage: Storage = "rank1.db",
    json_: Json = False,
) -> None:
    """Print whether it pays to choose a side's level by another side's."""
    with _opened(name, storage) as study:
        found = study.personalise(side, by=by)
    if json_:
        print_json(found.to_dict())
        return
    show(found.statement)
    if not found.leaders:
        return
    table = _table(by, "leader", "evidence")
    for segment, leader in found.leaders.items():
        table.add_row(segment, leader, "yes" if segment in found.segments else "")
    show(table)
