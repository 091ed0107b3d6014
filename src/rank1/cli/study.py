"""rank1 study: live studies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from rank1.cli.app import answer, app, group, print_json, show
from rank1.cli.options import Json, integer, number, option, range_of, real
from rank1.errors import FileError, InputError, reason

study_app = group(
    "Run a live test: ask for an arm, show it, report its reward.",
    "Example: rank1 study create spring --rows 18-24,25-34 --columns email,push",
)
app.add_typer(study_app, name="study")

Name = Annotated[str, typer.Argument(help="Name of the study.")]
Storage = Annotated[
    str, option("A file, or the address of a PostgreSQL database (postgresql://…).")
]
Rows = Annotated[
    list[str], option("Names separated by commas, or @FILE with one per line; can be repeated.")
]
Sides = Annotated[
    list[str],
    option(
        "A side and its levels, such as image=x,y,z or image=@FILE; once for each side, "
        "instead of --rows and --columns.",
        metavar="SIDE=LEVELS",
    ),
]
Control = Annotated[
    list[str],
    option("What you show today: a level of each side that isn't given.", metavar="SIDE=LEVEL,…"),
]
Levels = Annotated[
    list[str],
    option("Levels of a side, such as image=x,y; can be repeated.", metavar="SIDE=LEVELS"),
]
Out = Annotated[Path, option("The file to write.")]
Metrics = Annotated[
    list[str], option("A second metric that came with the reward.", metavar="METRIC=NUMBER")
]
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
            problem = f"{option} {text} can't be read: {reason(error)}"
            raise FileError(problem, where=text[1:]) from None
    return labels


def _sides(option: str, texts: list[str]) -> dict[str, list[str]]:
    """Parse the levels of each side from texts like image=x,y,z."""
    sides: dict[str, list[str]] = {}
    for text in texts:
        side, equals, labels = text.partition("=")
        if not equals or not side.strip():
            raise InputError(option, text, "written as side=level,level")
        if side.strip() in sides:
            raise InputError(option, text, "given once for each side", got=f"{side.strip()} twice")
        sides[side.strip()] = _labels(option, [labels])
    return sides


def _pairs(
    option: str, texts: list[str], form: tuple[str, str] = ("side", "level")
) -> dict[str, str]:
    """Parse one level of each side from texts like image=x or image=x,button=go."""
    what, value = form
    found: dict[str, str] = {}
    for text in [part for each in texts for part in each.split(",")]:
        side, equals, level = text.partition("=")
        if not equals or not side.strip() or side.strip() in found:
            raise InputError(option, text, f"written as {what}={value}, once for each {what}")
        found[side.strip()] = level.strip()
    return found


def _metrics(texts: list[str]) -> dict[str, float] | None:
    """Parse numbers by metric from texts like unsubscribed=0.02."""
    found = _pairs("--guardrail", texts, ("metric", "number"))
    return {name: real(text, f"--guardrail {name}") for name, text in found.items()} or None


def _size(sides: dict[str, Any]) -> str:
    """Describe the size of a grid, as in: headline (2) × image (3)."""
    return " × ".join(f"{side} ({len(labels)})" for side, labels in sides.items())


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
        str, option("earn: show what pays. find: find the best arm, and say when to stop.")
    ] = "earn",
    policy: Annotated[
        str | None, option("A policy other than the goal's default: see `rank1 policies`.")
    ] = None,
    horizon: Annotated[int | None, integer("Planned number of suggestions.")] = None,
    reward_window: Annotated[
        float | None, number("Seconds after which a reward is overdue.")
    ] = None,
    on_expiry: Annotated[
        str, option("What to do about an overdue reward: drop, default or wait.")
    ] = "drop",
    default_reward: Annotated[
        float | None, number("The reward to count with --on-expiry default.")
    ] = None,
    reward_range: Annotated[
        str, option("The smallest and the largest reward.", metavar="LOW,HIGH")
    ] = "0,1",
    confidence: Annotated[float, number("Confidence of the verdict.")] = 0.95,
    tolerance: Annotated[float, number("How far below the best the arm found may be.")] = 0.0,
    forgetting: Annotated[float | None, number("Half-life of what is learned, in reports.")] = None,
    given: Annotated[
        list[str],
        option("find: a side whose level comes with the visitor; can be repeated.", metavar="SIDE"),
    ] = [],  # noqa: B006
    new_levels: Annotated[
        str | None, option("find: what to do about new levels of given sides: refuse or add.")
    ] = None,
    control: Control = [],  # noqa: B006
    floor: Annotated[
        float | None, number("find: smallest share of each level in the running.")
    ] = None,
    holdout: Annotated[
        float | None, number("find: share of units that always see the control.")
    ] = None,
    min_lift: Annotated[
        float | None, number("find: the smallest lift that matters, in reward above the lowest.")
    ] = None,
    guardrail: Annotated[
        list[str],
        option(
            "find: a second metric, and by how much a level may be worse than the control.",
            metavar="METRIC=AMOUNT",
        ),
    ] = [],  # noqa: B006
    repeat: Annotated[
        str, option("Visits of a unit that count as evidence: once or each.")
    ] = "once",
    seed: Annotated[int | None, integer("Random seed of the choices.")] = None,
    json_: Json = False,
) -> None:
    """Create a study."""
    from rank1.studies import Study

    if side and (rows or columns):
        raise InputError("--side", side, "left out if --rows or --columns are given")
    limits = _metrics(guardrail) or {}
    study = Study.create(
        name, _labels("--rows", rows) if rows else None,
        _labels("--columns", columns) if columns else None, goal, policy, storage,
        horizon, reward_window, on_expiry, default_reward, confidence, tolerance, seed,
        reward_range=range_of(reward_range),
        forgetting=forgetting, sides=_sides("--side", side) if side else None,
        given=given or None, new_levels=new_levels, floor=floor, holdout=holdout,
        min_lift=min_lift, control=_pairs("--control", control) if control else None,
        guardrails={metric: {"worse_by": limit} for metric, limit in limits.items()} or None,
        repeat=repeat,
    )  # fmt: skip
    told = f"{name!r}: {_size(study.spec.sides)}, policy {study.policy.label}, in {storage}"
    answer(json_, {"name": name, "storage": storage, **study.spec.to_dict()}, told)
    study.close()


@study_app.command("list", epilog="Example: rank1 study list --json")
def list_(
    storage: Storage = "rank1.db",
    all_: Annotated[bool, option("Include archived studies.", "--all")] = False,
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
    count: Annotated[int, integer("Number of suggestions.")] = 1,
    key: Annotated[
        str | None, option("Idempotency key: a retry with it gives the same suggestions.")
    ] = None,
    unit: Annotated[
        str | None, option("The visitor it is for: the same unit keeps its arm.")
    ] = None,
    data: Annotated[str | None, option("A JSON object to store with the suggestions.")] = None,
    given: Annotated[list[str], option("The level of a given side.", metavar="SIDE=LEVEL")] = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Print the next arms to show, each with its id."""
    with _opened(name, storage) as study:
        levels = _pairs("--given", given) if given else None
        asked = study.ask(count=count, key=key, unit=unit, data=_object(data), given=levels)
    if json_:
        print_json({"suggestions": [each.to_dict() for each in asked]})
        return
    # Plain text: a rich table would take longer than the ask itself.
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
        typer.Argument(help="An id and its reward; can be repeated.", metavar="ID REWARD"),
    ],
    storage: Storage = "rank1.db",
    guardrail: Metrics = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Report rewards; either all of them are stored or none."""
    for each in reports:
        if each.startswith("--"):
            raise InputError("tell", each, "given ids and rewards", "there is no such option")
    if len(reports) % 2:
        raise InputError("tell", reports, "given pairs of an id and its reward")
    metrics = _metrics(guardrail)
    pairs = [
        (reports[k], real(reports[k + 1], "reward"), metrics) for k in range(0, len(reports), 2)
    ]
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
    """Cancel a suggestion that was never shown."""
    with _opened(name, storage) as study:
        study.cancel(id)
    answer(json_, {"id": id, "state": "cancelled"}, f"{id} is cancelled")


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
    two = dict(zip(("rows", "columns"), sides.values(), strict=True)) if len(sides) == 2 else {}
    document = {"revision": number, "sides": sides, **two}
    answer(json_, document, f"revision {number}: {_size(sides)}")


@study_app.command(epilog="Example: rank1 study retire spring")
def retire(name: Name, storage: Storage = "rank1.db", json_: Json = False) -> None:
    """Close a study: it gives no more suggestions, but still accepts reports."""
    with _opened(name, storage) as study:
        study.retire()
    told = f"{name} is closed: it gives no more suggestions"
    answer(json_, {"name": name, "retired": True}, told)


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
