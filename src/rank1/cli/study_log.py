"""rank1 study export, import, verify, delete and the like: commands for a study's log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rank1.cli.app import answer, counted, print_json, show
from rank1.cli.options import Json, integer, option
from rank1.cli.study import Name, Out, Storage, _opened, _table, study_app
from rank1.errors import InputError

Yes = Annotated[bool, option("Don't ask for confirmation.", "--yes")]


@study_app.command(epilog="Example: rank1 study archive spring")
def archive(
    name: Name,
    storage: Storage = "rank1.db",
    undo: Annotated[bool, option("Show it in lists again.", "--undo")] = False,
    json_: Json = False,
) -> None:
    """Hide a study from lists. It still gives suggestions; `rank1 study retire` stops that."""
    with _opened(name, storage) as study:
        study.unarchive() if undo else study.archive()
    state = "listed again" if undo else "archived: `rank1 study list --all` has it"
    answer(json_, {"name": name, "archived": not undo}, f"{name} is {state}")


@study_app.command(epilog="Example: rank1 study delete spring --yes")
def delete(
    name: Name, storage: Storage = "rank1.db", yes: Yes = False, json_: Json = False
) -> None:
    """Permanently delete a study with its whole log."""
    from rank1.studies import Study

    _confirm(f"delete {name!r} with its whole log", yes)
    Study.delete(name, storage, confirm=name)
    answer(json_, {"name": name, "deleted": True}, f"{name} is deleted")


@study_app.command(epilog="Example: rank1 study forget-unit spring visitor-17 --yes")
def forget_unit(
    name: Name,
    unit: Annotated[str, typer.Argument(help="The unit whose name to remove.")],
    storage: Storage = "rank1.db",
    yes: Yes = False,
    json_: Json = False,
) -> None:
    """Remove a unit's name and its suggestions' data from the log; its counts stay."""
    _confirm(f"forget the unit {unit!r} in {name!r}", yes)
    with _opened(name, storage) as study:
        changed = study.forget_unit(unit)
    told = f"{unit!r} is removed from {changed:,} events of {name}"
    answer(json_, {"name": name, "events": changed}, told)


def _confirm(what: str, yes: bool) -> None:
    """Ask before doing something that can't be undone; without a terminal, --yes is required."""
    if not yes and not sys.stdin.isatty():
        raise InputError("--yes", False, f"given to {what}", "it can't be undone")
    if not yes:
        typer.confirm(f"{what}? It can't be undone.", abort=True)


@study_app.command(epilog="Example: rank1 study fit spring --repetitions 99")
def fit(
    name: Name,
    storage: Storage = "rank1.db",
    repetitions: Annotated[
        int, integer("Replays of the study for the p-value; at least 19.")
    ] = 199,
    json_: Json = False,
) -> None:
    """Test whether the grid is of rank one."""
    from rank1 import checks
    from rank1.studies.fitting import LEAST_B

    repetitions = checks.integer("repetitions", repetitions, LEAST_B)
    with _opened(name, storage) as study:
        found = study.fit(B=repetitions)
    if json_:
        print_json(found.to_dict())
        return
    if found.p_value is not None:
        show(
            f"deviance {found.deviance:.1f} on "
            f"{counted(found.degrees_of_freedom, 'degree')} of freedom, "
            f"p = {found.p_value:.3g}; power {found.power:.0%} for a second peak"
        )
        table = _table(*found.sides, "mean", "fitted", "residual")
        for arm, rate, fitted, residual in found.deviating:
            table.add_row(*arm, f"{rate:.4g}", f"{fitted:.4g}", f"{residual:+.2f}")
        show(table)
    show(found.advice)


@study_app.command(epilog="Example: rank1 study export spring --out log.jsonl")
def export(name: Name, out: Out, storage: Storage = "rank1.db", json_: Json = False) -> None:
    """Write a line for each suggestion, as JSONL or Parquet."""
    with _opened(name, storage) as study:
        lines = study.export(out)
    answer(json_, {"file": str(out), "suggestions": lines}, f"{lines:,} suggestions in {out}")


@study_app.command("import", epilog="Example: rank1 study import spring known.csv")
def import_(
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV, JSONL or Parquet, with a column for each side (row, column), and reward or "
            "successes and trials; optionally count."
        ),
    ],
    storage: Storage = "rank1.db",
    column: Annotated[
        list[str],
        option(
            "The name of a column, if it differs, such as reward=converted; can be repeated.",
            metavar="NAME=COLUMN",
        ),
    ] = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Import rewards from elsewhere; the same file counts only once."""
    columns = {}
    for text in column:
        meaning, equals, own = text.partition("=")
        if not (equals and meaning and own):
            raise InputError("--column", text, "written as reward=converted")
        columns[meaning] = own
    with _opened(name, storage) as study:
        found = study.import_history(file, columns=columns)
    already = "already imported: " if found.already_imported else ""
    skipped = f"; {found.skipped:,} lines without one were skipped" if found.skipped else ""
    told = f"{already}{found.rewards:,} rewards from {file}{skipped}"
    answer(json_, {"file": str(file), **found.to_dict()}, told)


@study_app.command(epilog="Example: rank1 study replay spring --policy ucb1")
def replay(
    name: Name,
    policy: Annotated[str, option("See `rank1 policies`.")],
    storage: Storage = "rank1.db",
    seed: Annotated[int, integer("Random seed.")] = 1,
    json_: Json = False,
) -> None:
    """Replay another policy on the logged rewards, using each arm's rewards in order."""
    with _opened(name, storage) as study:
        found = study.replay(policy, seed)
    end = f"then {' × '.join(found.exhausted)} had no rewards left" if found.exhausted else "all"
    told = (
        f"{found.policy}: {found.rate:.4g} a reward over {found.steps:,} of {found.rewards:,} "
        f"rewards ({end}); the log has {found.logged_rate:.4g} a reward. "
        f"It ends on {' × '.join(found.best)}."
    )
    answer(json_, found.to_dict(), told)


@study_app.command(epilog="Example: rank1 study verify spring --json")
def verify(name: Name, storage: Storage = "rank1.db", json_: Json = False) -> None:
    """Recompute the study from its log and compare; exit status 1 if something is wrong."""
    with _opened(name, storage) as study:
        found = study.verify()
    if json_:
        print_json(found.to_dict())
    else:
        words = [f"{value:,} {key}" for key, value in found.to_dict().items() if key[0] in "srpec"]
        show(f"{'ok' if found.ok else 'not ok'}: {', '.join(words)}" if found.ok else "not ok:")
        for text in found.problems:
            show(f"- {text}")
    if not found.ok:
        raise typer.Exit(1)


@study_app.command(epilog="Example: rank1 study backup --out copy.db")
def backup(
    out: Out,
    name: Annotated[
        str | None, typer.Argument(help="Fail unless the storage has this study.")
    ] = None,
    storage: Storage = "rank1.db",
    json_: Json = False,
) -> None:
    """Copy the whole storage to a new file and check the copy; others may write meanwhile."""
    from rank1.studies.storage import open_storage

    place = open_storage(storage)
    if name is not None:
        with place.reading() as log:
            log.study(name)
    place.backup(out)
    place.close()
    answer(json_, {"storage": storage, "backup": str(out)}, f"{storage} is copied to {out}")


@study_app.command(epilog="Example: rank1 study doctor --json")
def doctor(storage: Storage = "rank1.db", json_: Json = False) -> None:
    """Check a storage and all its studies; exit status 1 if something is wrong."""
    from rank1.studies.verification import examine

    found = examine(storage)
    if json_:
        print_json(found)
    else:
        for key, value in found["versions"].items():
            show(f"{key} {value}")
        for each in found["studies"]:
            reports = counted(each["reports"], "report")
            show(f"{each['name']}: {'ok' if each['ok'] else 'NOT OK'}, {reports}")
        for text in found["problems"]:
            show(f"- {text}")
        show("ok" if found["ok"] else "not ok")
    if not found["ok"]:
        raise typer.Exit(1)
