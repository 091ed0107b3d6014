"""rank1 judge: judge a test from counts in a data warehouse."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rank1.cli.app import answer, app, counted, group, print_json, show
from rank1.cli.options import Json, number, option, range_of
from rank1.cli.study import Control, _pairs, _sides, _table
from rank1.documents import above
from rank1.errors import FileError, InputError, MissingPackageError, Rank1Error, extra, reason

if TYPE_CHECKING:
    from rank1.design import Judgement

judge_app = group(
    "Judge a test whose counts come from a warehouse, a file or a query.",
    "Example: rank1 judge start shares.json --side headline=A,B --side image=x,y,z",
)
app.add_typer(judge_app, name="judge")

Shares = Annotated[Path, typer.Argument(help="The file that clients read.", metavar="SHARES")]


@judge_app.command(
    epilog="Example: rank1 judge start shares.json --side headline=A,B --side image=x,y,z "
    "--control headline=A,image=x"
)
def start(
    shares: Shares,
    side: Annotated[
        list[str],
        option(
            "A side and its levels, such as image=x,y,z or image=@FILE; once for each side.",
            metavar="SIDE=LEVELS",
        ),
    ] = [],  # noqa: B006
    given: Annotated[
        list[str],
        option("A side whose level comes with the visitor; can be repeated.", metavar="SIDE"),
    ] = [],  # noqa: B006
    control: Control = [],  # noqa: B006
    confidence: Annotated[float, number("Confidence of the verdict.")] = 0.95,
    min_lift: Annotated[
        float, number("Smallest lift that matters, in reward above the lowest.")
    ] = 0.0,
    floor: Annotated[float, number("Smallest share of every level, refuted or not.")] = 0.0,
    reward_range: Annotated[
        str, option("The smallest and the largest reward.", metavar="LOW,HIGH")
    ] = "0,1",
    json_: Json = False,
) -> None:
    """Write the first version of the shares."""
    from rank1.atomic import alone, whole_file
    from rank1.design import first_shares
    from rank1.design.share_document import SharesDocument

    if not side:
        expected = "given once for each side, such as headline=A,B"
        raise InputError("--side", None, expected, got="none")
    found = first_shares(
        _sides("--side", side), given=given, confidence=confidence, min_lift=min_lift,
        floor=floor, control=_pairs("--control", control) if control else None,
        reward_range=range_of(reward_range),
    )  # fmt: skip
    with alone(shares):
        if shares.exists():
            raise FileError(f"{str(shares)!r} exists", "name another file, or remove it first")
        with whole_file(shares) as temporary:
            temporary.write_text(SharesDocument.of(found).to_text(), encoding="utf-8")
    chosen = found["versions"][0]["sides"]
    answer(json_, found, f"{shares}: version 1, equal shares of {', '.join(chosen)}")


@judge_app.command(epilog="Example: rank1 judge update shares.json counts.csv --report page.html")
def update(
    shares: Shares,
    counts: Annotated[
        str,
        typer.Argument(
            help="All counts so far: a .csv or .parquet file, a DuckDB query, or a .sql file with "
            "one. Columns: version, one for each side, reward, and count; or unit (and time) for "
            "single exposures.",
            metavar="COUNTS",
        ),
    ],
    database: Annotated[
        Path | None, option("The DuckDB database for a query; default: none.")
    ] = None,
    report: Annotated[Path | None, option("Also write the verdict as an HTML page.")] = None,
    json_: Json = False,
) -> None:
    """Print the verdict and lifts, and append the next version to the file that clients read.

    Repeating an update with the same counts changes nothing. Counts that have shrunk or don't fit
    are refused, and nothing is written.
    """
    from rank1.atomic import alone, check_writable, whole_file
    from rank1.design import judge

    before = _read(shares)
    document = _document(shares, before)
    table = _table_of(counts, database)
    if report is not None:
        check_writable(report)
    try:
        found = judge(document, table)
    except Rank1Error as error:
        raise error.within(counts if len(counts) < 80 else "the query") from None
    if found.new:
        with alone(shares):
            if _read(shares) != before:
                problem = f"{str(shares)!r} was changed by another process in the meantime"
                raise FileError(problem, "nothing was written; try again")
            with whole_file(shares) as temporary:
                temporary.write_text(found.text, encoding="utf-8")
    if report is not None:
        with whole_file(report) as temporary:
            temporary.write_text(_page(shares, counts, found), encoding="utf-8")
    if json_:
        print_json(found.to_dict())
    else:
        _print(shares, found)


@judge_app.command(
    epilog="Example: rank1 judge sql shares.json --dialect duckdb --table "
    "\"read_parquet('exposures/*.parquet')\""
)
def sql(
    shares: Shares,
    dialect: Annotated[str, option("duckdb, postgres, spark, bigquery or snowflake.")] = "duckdb",
    table: Annotated[
        str, option("The table of exposures, or anything else that can follow FROM.")
    ] = "exposures",
    unit: Annotated[str, option("The column with the unit.")] = "unit",
    time: Annotated[str, option("The column with the time of exposure.")] = "time",
    where: Annotated[
        str | None, option("An SQL condition: count only exposures whose reward is final.")
    ] = None,
    json_: Json = False,
) -> None:
    """Print the query that turns a table of exposures into counts; each unit counts once."""
    from rank1.design import counts_sql

    text = counts_sql(
        _document(shares, _read(shares)), dialect, table=table, unit=unit, time=time, where=where
    )
    if json_:
        print_json({"dialect": dialect, "sql": text})
    else:
        print(text)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        problem = f"{str(path)!r} can't be read: {reason(error)}"
        raise FileError(problem, "create it with: rank1 judge start", where=str(path)) from None


def _document(path: Path, content: bytes) -> Any:
    """Parse the shares document, which must be complete."""
    from rank1.design.share_document import SharesDocument

    try:
        document = json.loads(content)
    except ValueError as error:
        problem = f"{str(path)!r} isn't JSON, or was cut short: {error}"
        raise FileError(problem, "restore a complete copy", where=str(path)) from None
    try:
        SharesDocument.of(document)
    except Rank1Error as error:
        raise error.within(str(path)) from None
    return document


def _table_of(counts: str, database: Path | None) -> Any:
    """Read the counts from a file or a query."""
    import polars as pl

    path = Path(counts)
    try:
        if database is None and path.suffix.lower() == ".csv":
            return pl.read_csv(path, infer_schema=False)
        if database is None and path.suffix.lower() == ".parquet":
            return pl.read_parquet(counts)
        query = path.read_text(encoding="utf-8") if path.suffix.lower() == ".sql" else counts
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise FileError(f"{counts!r} can't be read: {reason(error)}", where=counts) from None
    if len(query.split()) < 2:
        expected = "a .csv, .parquet or .sql file, or a query that begins with SELECT"
        raise InputError("counts", counts, expected)
    return _queried(query, database)


def _queried(query: str, database: Path | None) -> Any:
    """Run a query and return its result; DuckDB opens the database read-only."""
    try:
        import duckdb
    except ImportError:
        raise MissingPackageError("a query needs DuckDB", extra("warehouse")) from None
    try:
        with duckdb.connect(str(database or ":memory:"), read_only=bool(database)) as connection:
            result = connection.execute(query)
            names = [column[0] for column in result.description or ()]
            columns = zip(*result.fetchall(), strict=True)
    except duckdb.Error as error:
        raise FileError(f"the query failed: {str(error).splitlines()[0]}") from None
    found = list(columns) or [()] * len(names)
    return {name: list(column) for name, column in zip(names, found, strict=True)}


def _name(levels: dict[str, str]) -> str:
    return " × ".join(levels.values())


def _lift_words(found: Judgement) -> str:
    """Describe the leader's lift in a sentence."""
    lift = found.lift
    if found.leader is None or lift is None:
        return ""
    over = f"over {_name(lift['over'])}, the {'control' if lift['is_control'] else 'runner-up'}"
    if lift["high"] is None and lift["low"] <= -1:
        over = f" {over}" if lift["is_control"] else ""  # the runner-up may have no results
        return f"{_name(found.leader)} leads{over}; it isn't known yet by how much."
    ends = f"at least {lift['low']:+.1%}"
    if lift["high"] is not None:
        ends = f"{lift['low']:+.1%} to {lift['high']:+.1%}"
    ends = f"({ends}){above(lift['above'])}"
    return f"{_name(found.leader)} leads by {lift['estimate']:+.1%} {ends} {over}."


def _print(shares: Path, found: Judgement) -> None:
    from rank1.studies.report import lift_text

    show(f"Assuming one order: {found.reason}.")
    show(f"On any grid: {found.any_grid['reason']}.")
    for warning in found.warnings:
        show(f"Note: {warning}")
    if found.lift is not None:
        show(_lift_words(found))
    over = f"lift over the {found.over}{above(found.shares['reward_range'][0])}"
    table = _table("side", "level", "reports", "mean", "share", over, "")
    for side, levels in found.sides.items():
        for label, each in levels.items():
            table.add_row(
                side, label, f"{each['reports']:,}",
                "–" if each["mean"] is None else f"{each['mean']:.4g}",
                "–" if each["share"] is None else f"{each['share']:.1%}",
                lift_text(each), "" if each["living"] else "refuted",
            )  # fmt: skip
    show(table)
    what = "appended to" if found.new else "unchanged, because the counts are the same:"
    show(f"{counted(found.reports, 'report')}; version {found.version} {what} {shares}")


def _page(shares: Path, counts: str, found: Judgement) -> str:
    """Render the verdict as a page."""
    from rank1.studies.report import lift_text, render

    sides = {
        side: [
            {
                "label": label,
                "living": each["living"],
                "reports": f"{each['reports']:,}",
                "rate": "–" if each["mean"] is None else f"{each['mean']:.4g}",
                "share": "–" if each["share"] is None else f"{each['share']:.0%}",
                "lift": lift_text(each),
                "state": "in the running" if each["living"] else "refuted",
            }
            for label, each in levels.items()
        ]
        for side, levels in found.sides.items()
    }
    statement = found.reason[0].upper() + found.reason[1:]
    assumes = ["How long a reward takes doesn't depend on the level that was shown."]
    if len(found.shares["sides"]) > 1:
        assumes.insert(0, "One order: a level that is best on its side is best whatever the other "
                       "sides show.")  # fmt: skip
        assumes.insert(1, f"Without assuming one order: {found.any_grid['reason']}.")
    best = {
        "stop": found.stop, "statement": f"{statement}.", "next_step": _lift_words(found),
        "doubt": None, "assumes": assumes, "warnings": found.warnings,
    }  # fmt: skip
    return render(
        name=shares.name, best=best, sides=sides, period=f"version {found.version}",
        shown=found.reports, reports=found.reports, days=[], rates=[], highest="", traffic="",
        earned="", over=f"the {found.over}{above(found.shares['reward_range'][0])}",
        confidence=f"{found.confidence:.0%}",
        check="The file holds every version; the same counts give the same page:",
        command=f"rank1 judge update {shlex.quote(str(shares))} {shlex.quote(counts)}",
    )  # fmt: skip
