"""rank1 study: live studies."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rank1.cli.app import Commands, app, print_json, show
from rank1.cli.options import Json, Real, Whole
from rank1.errors import FileError, InputError

study_app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Play a live grid: ask for an arm, show it, tell its reward; on a durable log.",
    epilog="Example: rank1 study create spring --rows 18-24,25-34 --columns email,push",
)
app.add_typer(study_app, name="study")

Name = Annotated[str, typer.Argument(help="Name of the study.")]
Storage = Annotated[
    str, typer.Option(help="A file, or the address of a PostgreSQL database (postgresql://…).")
]
Rows = Annotated[
    list[str],
    typer.Option(help="Names with commas between them, or @FILE with one a line; may be repeated."),
]
Sides = Annotated[
    list[str],
    typer.Option(
        help="A side and its levels, as image=x,y,z or image=@FILE; once for each side, instead "
        "of --rows and --columns.",
        metavar="SIDE=LEVELS",
    ),
]
Levels = Annotated[
    list[str],
    typer.Option(help="Levels of a side, as image=x,y; may be repeated.", metavar="SIDE=LEVELS"),
]
Out = Annotated[Path, typer.Option(help="The file to write.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
Id = Annotated[str, typer.Argument(help="Id of a suggestion.")]


def _opened(name: str, storage: str) -> Any:
    from rank1.studies import Study

    return Study.open(name, storage)


def _labels(option: str, texts: list[str]) -> list[str]:
    labels: list[str] = []
    for text in texts:
        if not text.startswith("@"):
            labels += [label.strip() for label in text.split(",")]
            continue
        try:
            labels += Path(text[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"{option} {text} can't be read: {error}", where=text[1:]) from None
    return labels


def _sides(option: str, texts: list[str]) -> dict[str, list[str]]:
    """The levels of each side, from texts like image=x,y,z."""
    sides: dict[str, list[str]] = {}
    for text in texts:
        side, equals, labels = text.partition("=")
        if not equals or not side.strip():
            raise InputError(option, text, "written as side=level,level")
        if side.strip() in sides:
            raise InputError(option, text, "given once for each side", got=f"{side.strip()} twice")
        sides[side.strip()] = _labels(option, [labels])
    return sides


def _pairs(option: str, texts: list[str]) -> dict[str, str]:
    """A level of each side, from texts like image=x, or image=x,button=go."""
    found: dict[str, str] = {}
    for text in [part for each in texts for part in each.split(",")]:
        side, equals, level = text.partition("=")
        if not equals or not side.strip() or side.strip() in found:
            raise InputError(option, text, "written as side=level, once for each side")
        found[side.strip()] = level.strip()
    return found


def _guardrails(texts: list[str]) -> dict[str, dict[str, float]]:
    from rank1.cli.options import real

    return {
        metric: {"worse_by": real(amount)}
        for metric, amount in _pairs("--guardrail", texts).items()
    }


def _size(sides: dict[str, Any]) -> str:
    """How large a grid is, in words."""
    words = [f"{len(labels)} {side}{'s' * (len(labels) != 1)}" for side, labels in sides.items()]
    return " × ".join(words)


@study_app.command(
    epilog="Example: rank1 study create spring --rows 18-24,25-34 --columns email,push --goal earn"
)
def create(
    name: Name,
    rows: Rows = [],  # noqa: B006
    columns: Rows = [],  # noqa: B006
    side: Sides = [],  # noqa: B006
    storage: Storage = "rank1.db",
    goal: Annotated[
        str, typer.Option(help="earn: play what pays. find: find the best arm soon.")
    ] = "earn",
    policy: Annotated[
        str | None, typer.Option(help="Another policy than the goal's: see `rank1 policies`.")
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Suggestions planned.", **Whole)] = None,
    reward_window: Annotated[
        float | None, typer.Option(help="Seconds after which a reward is overdue.", **Real)
    ] = None,
    on_expiry: Annotated[
        str, typer.Option(help="What becomes of an overdue reward: drop, default or wait.")
    ] = "drop",
    default_reward: Annotated[
        float | None, typer.Option(help="What is taken for it with default.", **Real)
    ] = None,
    reward_range: Annotated[
        str, typer.Option(help="The lowest and the largest reward.", metavar="LOW,HIGH")
    ] = "0,1",
    confidence: Annotated[float, typer.Option(help="Of the stopping rule.")] = 0.95,
    tolerance: Annotated[
        float, typer.Option(help="How far below the best the arm found may be.")
    ] = 0.0,
    forgetting: Annotated[
        float | None, typer.Option(help="Half-life of what is learned, in reports.", **Real)
    ] = None,
    given: Annotated[
        list[str],
        typer.Option(help="find: a side whose level comes with the visitor; may be repeated."),
    ] = [],  # noqa: B006
    new_levels: Annotated[
        str | None, typer.Option(help="find: unknown levels of given sides: refuse or add.")
    ] = None,
    control: Annotated[
        list[str],
        typer.Option(help="What you show today: a level of each side.", metavar="SIDE=LEVEL,…"),
    ] = [],  # noqa: B006
    floor: Annotated[
        float | None, typer.Option(help="find: least share of each living level.", **Real)
    ] = None,
    holdout: Annotated[
        float | None, typer.Option(help="find: part of units that keep the control.", **Real)
    ] = None,
    min_lift: Annotated[
        float | None, typer.Option(help="find: the smallest lift worth having.", **Real)
    ] = None,
    guardrail: Annotated[
        list[str],
        typer.Option(
            help="find: a second metric, and by how much a level may be worse than the control.",
            metavar="METRIC=AMOUNT",
        ),
    ] = [],  # noqa: B006
    repeat: Annotated[
        str, typer.Option(help="Visits of a unit that count as evidence: once or each.")
    ] = "once",
    seed: Annotated[int | None, typer.Option(help="Of the suggestions.", **Whole)] = None,
    json_: Json = False,
) -> None:
    """Create a study."""
    from rank1.cli.options import real
    from rank1.studies import Study

    if not (rows and columns) and not side:
        raise InputError("--side", None, "given, or --rows and --columns", got="neither")
    study = Study.create(
        name, _labels("--rows", rows) if rows else None,
        _labels("--columns", columns) if columns else None, goal, policy, storage,
        horizon, reward_window, on_expiry, default_reward, confidence, tolerance, seed,
        reward_range=tuple(real(text) for text in reward_range.split(",")),  # type: ignore[arg-type]
        forgetting=forgetting, sides=_sides("--side", side) if side else None,
        given=given or None, new_levels=new_levels, floor=floor, holdout=holdout,
        min_lift=min_lift, control=_pairs("--control", control) if control else None,
        guardrails=_guardrails(guardrail) if guardrail else None, repeat=repeat,
    )  # fmt: skip
    if json_:
        print_json({"name": name, "storage": storage, **study.spec.to_dict()})
    else:
        show(f"{name!r}: {_size(study.spec.sides)}, policy {study.policy.label}, in {storage}")
    study.close()


@study_app.command("list", epilog="Example: rank1 study list --json")
def list_(
    storage: Storage = "rank1.db",
    all_: Annotated[bool, typer.Option("--all", help="Also those that are archived.")] = False,
    json_: Json = False,
) -> None:
    """List the studies of a storage."""
    from rank1.studies.storage import open_storage

    with open_storage(storage).reading() as log:
        rows = log.studies()
    found = [
        {"name": row.name, "created": row.created, "retired": row.retired,
         "archived": row.archived, "events": row.last_seq}
        for row in rows
        if all_ or row.archived is None
    ]  # fmt: skip
    if json_:
        print_json({"studies": found})
        return
    times = ("created", "retired", *(["archived"] if all_ else []))
    table = _table("study", "events", *times)
    for each in found:
        table.add_row(
            str(each["name"]), f"{each['events']:,}", *(_time(each[time]) for time in times)
        )
    show(table)


@study_app.command(epilog="Example: rank1 study ask spring --count 3")
def ask(
    name: Name,
    storage: Storage = "rank1.db",
    count: Annotated[int, typer.Option(help="How many suggestions.", **Whole)] = 1,
    key: Annotated[
        str | None, typer.Option(help="Of this request: the same key gives the same suggestions.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Whom it is for: the same unit keeps its arm.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="A JSON object that is kept with the suggestions.")
    ] = None,
    given: Annotated[
        list[str], typer.Option(help="The level of a given side.", metavar="SIDE=LEVEL")
    ] = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Print the next arms to show, each with its id."""
    with _opened(name, storage) as study:
        levels = _pairs("--given", given) if given else None
        asked = study.ask(count=count, key=key, unit=unit, data=_object(data), given=levels)
    if json_:
        print_json({"suggestions": [each.to_dict() for each in asked]})
        return
    # As plain text: a table of rich's would take longer than the ask.
    lines = [("id", *asked[0].levels), *((each.id, *each.levels.values()) for each in asked)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(map(str.ljust, line, widths)).rstrip())


def _object(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise InputError("data", text, "a JSON object", str(error)) from None


# A reward may be negative, which looks like an option.
@study_app.command(
    epilog="Example: rank1 study tell spring k3fzqa-2-00z8 1",
    context_settings={"ignore_unknown_options": True},
)
def tell(
    name: Name,
    reports: Annotated[
        list[str],
        typer.Argument(help="An id and its reward, and more of them.", metavar="ID REWARD"),
    ],
    storage: Storage = "rank1.db",
    guardrail: Annotated[
        list[str],
        typer.Option(help="A second metric of each report.", metavar="METRIC=NUMBER"),
    ] = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Report rewards: all of them are stored, or none."""
    from rank1.cli.options import real

    for each in reports:
        if each.startswith("--"):
            raise InputError("tell", each, "given ids and rewards", "there is no such option")
    if len(reports) % 2:
        raise InputError("tell", reports, "given an id and its reward, and more of such pairs")
    metrics = {each: real(text) for each, text in _pairs("--guardrail", guardrail).items()}
    pairs = [(reports[k], real(reports[k + 1]), metrics or None) for k in range(0, len(reports), 2)]
    with _opened(name, storage) as study:
        told = study.tell_many(pairs)
    if json_:
        print_json({"reports": [each.to_dict() for each in told]})
        return
    for each in told:
        late = ", after it had expired" if each.late else ""
        show(f"{each.id}: {' × '.join(each.levels.values())} brought {each.reward:g}{late}")


@study_app.command(epilog="Example: rank1 study cancel spring k3fzqa-2-00z8")
def cancel(name: Name, id: Id, storage: Storage = "rank1.db", json_: Json = False) -> None:
    """Note that a suggestion was never shown."""
    with _opened(name, storage) as study:
        study.cancel(id)
    if json_:
        print_json({"id": id, "state": "cancelled"})
    else:
        show(f"{id} is cancelled")


@study_app.command(epilog="Example: rank1 study revise spring --add-rows 35+ --retire-columns push")
def revise(
    name: Name,
    storage: Storage = "rank1.db",
    add: Levels = [],  # noqa: B006
    retire: Levels = [],  # noqa: B006
    add_rows: Rows = [],  # noqa: B006
    retire_rows: Rows = [],  # noqa: B006
    add_columns: Rows = [],  # noqa: B006
    retire_columns: Rows = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Add and retire levels."""
    with _opened(name, storage) as study:
        number = study.revise(
            _sides("--add", add),
            _sides("--retire", retire),
            add_rows=_labels("--add-rows", add_rows),
            retire_rows=_labels("--retire-rows", retire_rows),
            add_columns=_labels("--add-columns", add_columns),
            retire_columns=_labels("--retire-columns", retire_columns),
        )
        sides = study.sides
    if json_:
        pair = (
            dict(zip(("rows", "columns"), sides.values(), strict=True)) if len(sides) == 2 else {}
        )
        print_json({"revision": number, "sides": sides, **pair})
    else:
        show(f"revision {number}: {_size(sides)}")


@study_app.command(epilog="Example: rank1 study retire spring")
def retire(name: Name, storage: Storage = "rank1.db", json_: Json = False) -> None:
    """Close a study: it gives no suggestions any more, and still takes reports."""
    with _opened(name, storage) as study:
        study.retire()
    if json_:
        print_json({"name": name, "retired": True})
    else:
        show(f"{name} gives no suggestions any more")


@study_app.command(epilog="Example: rank1 study archive spring")
def archive(
    name: Name,
    storage: Storage = "rank1.db",
    undo: Annotated[bool, typer.Option("--undo", help="Show it in lists again.")] = False,
    json_: Json = False,
) -> None:
    """Hide a study from lists; it stays as it is, and can be read."""
    with _opened(name, storage) as study:
        if undo:
            study.unarchive()
        else:
            study.archive()
    if json_:
        print_json({"name": name, "archived": not undo})
    else:
        show(f"{name} is {'listed again' if undo else 'archived: `rank1 study list --all` has it'}")


@study_app.command(epilog="Example: rank1 study delete spring --yes")
def delete(
    name: Name, storage: Storage = "rank1.db", yes: Yes = False, json_: Json = False
) -> None:
    """Delete a study with its whole log, for good."""
    from rank1.studies import Study

    _confirm(f"delete {name!r} with its whole log", yes)
    Study.delete(name, storage, confirm=name)
    if json_:
        print_json({"name": name, "deleted": True})
    else:
        show(f"{name} is deleted")


@study_app.command(epilog="Example: rank1 study forget-unit spring visitor-17 --yes")
def forget_unit(
    name: Name,
    unit: Annotated[str, typer.Argument(help="Whose name to remove.")],
    storage: Storage = "rank1.db",
    yes: Yes = False,
    json_: Json = False,
) -> None:
    """Remove a unit's name from the log, and the data of its suggestions; its counts stay."""
    _confirm(f"forget the unit {unit!r} in {name!r}", yes)
    with _opened(name, storage) as study:
        changed = study.forget_unit(unit)
    if json_:
        print_json({"name": name, "events": changed})
    else:
        show(f"{changed:,} events of {name} had it, and have it no more")


def _confirm(what: str, yes: bool) -> None:
    """Ask whether to do what can't be undone; where nobody can answer, --yes is needed."""
    if not yes and not sys.stdin.isatty():
        raise InputError("--yes", False, f"given to {what}", "it can't be undone")
    if not yes:
        typer.confirm(f"{what}? It can't be undone.", abort=True)


@study_app.command(epilog="Example: rank1 study fit spring --repetitions 99")
def fit(
    name: Name,
    storage: Storage = "rank1.db",
    repetitions: Annotated[
        int, typer.Option(help="Replays of the study for the p-value; at least 19.", **Whole)
    ] = 199,
    json_: Json = False,
) -> None:
    """Is the grid of rank one?"""
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
            f"deviance {found.deviance:.1f} on {found.degrees_of_freedom} degrees of freedom, "
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
    if json_:
        print_json({"file": str(out), "suggestions": lines})
    else:
        show(f"{lines:,} suggestions in {out}")


@study_app.command("import", epilog="Example: rank1 study import spring known.csv")
def import_(
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV, JSONL or Parquet: a column for each side (row, column), and reward, or "
            "successes and trials; and count, if there is one."
        ),
    ],
    storage: Storage = "rank1.db",
    column: Annotated[
        list[str],
        typer.Option(
            help="Which column is which, where they have other names, as reward=converted; may be "
            "repeated.",
            metavar="NAME=COLUMN",
        ),
    ] = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Add rewards that are known from elsewhere; the same file counts once."""
    columns = {}
    for text in column:
        meaning, equals, own = text.partition("=")
        if not (equals and meaning and own):
            raise InputError("--column", text, "written as reward=converted")
        columns[meaning] = own
    with _opened(name, storage) as study:
        found = study.import_history(file, columns=columns)
    if json_:
        print_json({"file": str(file), **found.to_dict()})
        return
    already = "already imported: " if found.already_imported else ""
    skipped = f"; {found.skipped:,} lines without one were skipped" if found.skipped else ""
    show(f"{already}{found.rewards:,} rewards from {file}{skipped}")


@study_app.command(epilog="Example: rank1 study replay spring --policy ucb1")
def replay(
    name: Name,
    policy: Annotated[str, typer.Option(help="See `rank1 policies`.")],
    storage: Storage = "rank1.db",
    seed: Annotated[int, typer.Option(help="Same seed, same numbers.", **Whole)] = 1,
    json_: Json = False,
) -> None:
    """Play another policy on the rewards of the log, each arm's in their order."""
    with _opened(name, storage) as study:
        found = study.replay(policy, seed)
    if json_:
        print_json(found.to_dict())
        return
    end = f"then {' × '.join(found.exhausted)} had none left" if found.exhausted else "all of them"
    show(
        f"{found.policy}: {found.rate:.4g} a reward over {found.steps:,} of {found.rewards:,} "
        f"rewards ({end}); the log has {found.logged_rate:.4g} a reward. "
        f"It ends on {' × '.join(found.best)}."
    )


@study_app.command(epilog="Example: rank1 study verify spring --json")
def verify(name: Name, storage: Storage = "rank1.db", json_: Json = False) -> None:
    """Recompute the study from its log, and compare; status 1 if something is wrong."""
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
    name: Annotated[str | None, typer.Argument(help="A study that must be there.")] = None,
    storage: Storage = "rank1.db",
    json_: Json = False,
) -> None:
    """Copy the whole storage to a new file, while others write; the copy is checked."""
    from rank1.studies.storage import open_storage

    place = open_storage(storage)
    if name is not None:
        with place.reading() as log:
            log.study(name)
    place.backup(out)
    place.close()
    if json_:
        print_json({"storage": storage, "backup": str(out)})
    else:
        show(f"{storage} is copied to {out}")


@study_app.command(epilog="Example: rank1 study doctor --json")
def doctor(storage: Storage = "rank1.db", json_: Json = False) -> None:
    """Look at a storage and all its studies; status 1 if something is wrong."""
    from rank1.studies.verification import examine

    found = examine(storage)
    if json_:
        print_json(found)
    else:
        for key, value in found["versions"].items():
            show(f"{key} {value}")
        for each in found["studies"]:
            show(f"{each['name']}: {'ok' if each['ok'] else 'NOT OK'}, {each['reports']:,} reports")
        for text in found["problems"]:
            show(f"- {text}")
        show("all is well" if found["ok"] else "something is wrong")
    if not found["ok"]:
        raise typer.Exit(1)


def _table(*names: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for name in names:
        table.add_column(name, justify="right" if name in _FIGURES else "left", overflow="fold")
    return table


_FIGURES = ("events", "mean", "fitted", "residual", "interval", "reports", "effect")


def _time(seconds: Any) -> str:
    import datetime

    if seconds is None:
        return ""
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")
