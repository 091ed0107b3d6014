"""rank1 judge: a test in a warehouse, from the first version to the verdict, and its errors."""

from __future__ import annotations

import json
import re
import shutil
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rank1 import FileError, cli
from rank1.cli import judge as judge_command
from rank1.design import DIALECTS, counts_sql, first_shares, judge

COUNTS = """version,headline,image,reward,count
1,A,x,1,30
1,A,x,0,170
1,B,x,1,45
1,B,x,0,155
1,B,y,1,60
1,B,y,0,140
1,A,y,1,1
"""
SIDES = {"headline": ["A", "B"], "image": ["x", "y"]}
Command = Callable[..., str]


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """Run a command and return its output; with status=2, its standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, status: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["rank1", "judge", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        printed = capsys.readouterr()
        assert end.value.code == status, printed.err
        return printed.err if status else printed.out

    return run


@pytest.fixture
def started(command: Command) -> Command:
    command("start", "shares.json", "--side", "headline=A,B", "--side", "image=x,y",
            "--control", "headline=A,image=x")  # fmt: skip
    Path("counts.csv").write_text(COUNTS)
    return command


def test_there_and_back(started: Command) -> None:
    told = json.loads(started("update", "shares.json", "counts.csv", "--json"))
    assert (told["version"], told["stop"], told["new"]) == (2, False, True)
    assert told["leader"] == {"headline": "B", "image": "y"}
    assert told["sides"]["headline"]["A"]["lift"] == [0.0, 0.0]
    written = Path("shares.json").read_bytes()
    document = json.loads(written)
    assert [each["version"] for each in document["versions"]] == [1, 2]
    assert judge(document, pl.read_csv("counts.csv")).to_dict() == told | {"new": False}
    # The same counts as a table, as Parquet, and from a query change nothing.
    pl.read_csv("counts.csv").write_parquet("counts.parquet")
    Path("counts.sql").write_text("SELECT * FROM 'counts.parquet'")
    for counts in ("counts.csv", "counts.parquet", "counts.sql", "FROM 'counts.parquet' SELECT *"):
        assert "version 2 unchanged" in started("update", "shares.json", counts)
        assert Path("shares.json").read_bytes() == written


def test_the_page_says_what_the_terminal_says(started: Command) -> None:
    printed = started("update", "shares.json", "counts.csv", "--report", "page.html")
    page = Path("page.html").read_text()
    for part in ("B × y leads", "over A × x, the control", "other arms may still be better"):
        assert part in " ".join(printed.split())
        assert part in page
    assert "rank1 judge update shares.json counts.csv" in page
    # The exception comes right after the assumption that it is about.
    assert re.search(r"One order: .*?</li>\s*<li>Without assuming one order: ", page)


@pytest.mark.parametrize("name", ["no.csv", "no.parquet", "no.sql"])
def test_a_missing_file_is_named_once(started: Command, name: str) -> None:
    said = started("update", "shares.json", name, status=2)
    assert f"'{name}' can't be read: No such file or directory\n" in said


def test_help_names_only_options_there_are(started: Command) -> None:
    assert "--rows" not in started("start", "--help")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("y,1,60", "y,1,-60", "counts.csv: row 5: count must be a whole number of at least 0"),
        ("y,1,60", "y,1,6.5", "counts.csv: row 5: count must be a whole number"),
        ("y,1,60", "y,1,59", "headline B, image y, reward 1: count must be at least 60"),
        ("1,A,y,1,1\n", "1,A,y", "row 7: reward must be a number in [0, 1], got None"),
        ("1,A,y,1,1\n", "", "headline A, image y, reward 1: count must be at least 1"),
        ("1,A,y,1,1", "9,A,y,1,1", "row 7: version must be a version that exists (1 to 2)"),
        ("1,A,y,1,1", "1,A,q,1,1", "row 7: image must be one of x, y, got 'q'"),
        ("1,A,y,1,1", "1,A,y,1,1,1", "'counts.csv' can't be read"),
        ("reward,count", "reward,n", "missing: unit"),
    ],
)
def test_what_is_refused_leaves_all_as_it_was(
    started: Command, before: str, after: str, said: str
) -> None:
    started("update", "shares.json", "counts.csv")
    written = Path("shares.json").read_bytes()
    assert before in COUNTS
    Path("counts.csv").write_text(COUNTS.replace(before, after))
    refused = started("update", "shares.json", "counts.csv", "--report", "page.html", status=2)
    assert refused.startswith("Error: ")
    assert said in refused
    assert len(refused.splitlines()) == 1
    assert Path("shares.json").read_bytes() == written
    assert sorted(each.name for each in Path().iterdir()) == ["counts.csv", "shares.json"]


def test_files_that_are_cut_short(started: Command) -> None:
    started("update", "shares.json", "counts.csv")
    pl.read_csv("counts.csv").write_parquet("counts.parquet")
    whole = Path("counts.parquet").read_bytes()
    Path("counts.parquet").write_bytes(whole[: len(whole) // 2])
    assert "can't be read" in started("update", "shares.json", "counts.parquet", status=2)
    text = Path("shares.json").read_text()
    Path("shares.json").write_text(text[:300])
    assert "was cut short" in started("update", "shares.json", "counts.csv", status=2)
    Path("shares.json").write_text(text.replace('"A": 0.5', '"A": 0.6', 1))
    said = "shares.json: version 1: shares of headline must be numbers that add up to 1, got 1.1"
    assert said in started("update", "shares.json", "counts.csv", status=2)


def test_of_two_starts_at_once_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, ends = threading.Barrier(2, timeout=60), []

    def wait_for_both(*given: Any, **named: Any) -> Any:
        both.wait()
        return first_shares(*given, **named)

    def start(levels: str) -> None:
        try:
            judge_command.start(tmp_path / "new.json", [f"headline={levels}"], json_=True)
        except FileError as error:
            ends.append(str(error))

    monkeypatch.setattr("rank1.design.first_shares", wait_for_both)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(start, ("A,B", "C,D")))
    assert len(ends) == 1
    assert "exists" in ends[0]


def test_of_two_updates_at_once_one_is_refused(
    started: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has judged the counts before either of them writes."""
    both = threading.Barrier(2, timeout=60)

    def wait_for_both(*given: Any) -> Any:
        found = judge(*given)
        both.wait()
        return found

    def update(_: int) -> str | None:
        try:
            judge_command.update(Path("shares.json"), "counts.csv", json_=True)
        except FileError as error:
            return str(error)
        return None

    monkeypatch.setattr("rank1.design.judge", wait_for_both)
    with ThreadPoolExecutor(2) as threads:
        ends = list(threads.map(update, range(2)))
    assert sorted(end is None for end in ends) == [False, True]
    assert any("was changed by another process" in str(end) for end in ends)
    document = json.loads(Path("shares.json").read_bytes())
    assert [each["version"] for each in document["versions"]] == [1, 2]


def test_what_else_is_refused(started: Command) -> None:
    exists = started("start", "shares.json", "--side", "a=b,c", status=2)
    assert "'shares.json' exists" in exists
    assert "--side must be given" in started("start", "other.json", status=2)
    assert "create it with: rank1 judge start" in started(
        "update", "no.json", "counts.csv", status=2
    )
    assert "counts must be a .csv" in started("update", "shares.json", "counts", status=2)
    assert "the query failed" in started("update", "shares.json", "SELECT 1 FROM", status=2)
    assert "--dialect must be one of" in started("sql", "shares.json", "--dialect", "x", status=2)
    assert not Path("other.json").exists()


EXPOSURES = [
    # unit, time, version, headline, image, reward
    ("u1", 1, 1, "A", "x", 1.0), ("u1", 2, 1, "B", "y", 0.0), ("u2", 3, 1, "B", "y", 0.0),
    ("u3", 4, 1, "B", "y", None), ("u3", 5, 1, "B", "x", 1.0), ("u4", 6, 1, "B", "y", 0.0),
    ("u5", 9, 1, "A", "x", 1.0),
]  # fmt: skip
COLUMNS = ("unit", "time", "version", "headline", "image", "reward")
COUNTED = [(1, "A", "x", 1.0, 1), (1, "B", "y", 0.0, 2)]


def test_the_query_in_duckdb(started: Command) -> None:
    frame = pl.DataFrame(EXPOSURES, list(COLUMNS), orient="row")
    frame.write_parquet("exposures.parquet")
    told = "--table", "'exposures.parquet'", "--where", "time < 9"
    Path("counts.sql").write_text(started("sql", "shares.json", *told))
    found = json.loads(started("update", "shares.json", "counts.sql", "--json"))
    assert found["reports"] == 3
    # The rule is the same as for a table of single exposures.
    alone = judge(first_shares(SIDES), frame.filter(pl.col("time") < 9))
    assert alone.shares["counts"] == json.loads(Path("shares.json").read_text())["counts"]


@pytest.mark.validate
@pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java, which Spark needs")
def test_the_query_in_spark() -> None:
    pyspark: Any = pytest.importorskip("pyspark.sql", reason="pyspark isn't installed")
    spark = pyspark.SparkSession.builder.master("local[1]").getOrCreate()
    try:
        frame = spark.createDataFrame(EXPOSURES, list(COLUMNS))
        frame.createOrReplaceTempView("exposures")
        query = counts_sql(first_shares(SIDES), "spark", where="`time` < 9")
        assert [tuple(row) for row in spark.sql(query).collect()] == COUNTED
    finally:
        spark.stop()


def test_names_are_quoted_as_each_engine_has_it() -> None:
    shares = first_shares({'the "order"': ["a"]})
    texts = {dialect: counts_sql(shares, dialect, unit="user_id") for dialect in DIALECTS}
    head, order = '"version", "the ""order""", "reward"', '"time", "version"'
    assert texts["duckdb"] == texts["postgres"]
    assert texts["duckdb"].startswith(f'SELECT {head}, COUNT(*) AS "count"\nFROM (')
    assert f'PARTITION BY "user_id" ORDER BY {order}' in texts["postgres"]
    assert texts["spark"] == texts["bigquery"]
    assert texts["bigquery"] == (
        'SELECT `version`, `the "order"`, `reward`, COUNT(*) AS `count`\n'
        "FROM (\n"
        "  SELECT *, ROW_NUMBER() OVER (\n"
        '    PARTITION BY `user_id` ORDER BY `time`, `version`, `the "order"`, `reward`\n'
        "  ) AS rank1_visit\n"
        "  FROM exposures\n"
        ") AS shown\n"
        "WHERE rank1_visit = 1 AND `reward` IS NOT NULL\n"
        'GROUP BY `version`, `the "order"`, `reward`\n'
        'ORDER BY `version`, `the "order"`, `reward`'
    )
    assert texts["snowflake"] == (
        'SELECT version AS "version", "the ""order""", reward AS "reward", COUNT(*) AS "count"\n'
        "FROM (\n"
        "  SELECT *, ROW_NUMBER() OVER (\n"
        '    PARTITION BY user_id ORDER BY time, version, "the ""order""", reward\n'
        "  ) AS rank1_visit\n"
        "  FROM exposures\n"
        ") AS shown\n"
        "WHERE rank1_visit = 1 AND reward IS NOT NULL\n"
        'GROUP BY version, "the ""order""", reward\n'
        'ORDER BY version, "the ""order""", reward'
    )


def test_lifts_say_what_they_are_above(command: Command) -> None:
    command("start", "shares.json", "--side", "image=x,y", "--reward-range", "100,200")
    rows = [
        f"{v},{level},{reward},300" for v in (1, 2) for level, reward in (("x", 140), ("y", 150))
    ]
    for end in (2, 4):
        Path("counts.csv").write_text("\n".join(["version,image,reward,count", *rows[:end], ""]))
        printed = command("update", "shares.json", "counts.csv", "--report", "page.html")
    assert "lift over the leader in reward above 100" in " ".join(printed.split())
    assert ") in reward above 100 over x" in printed
    assert "in reward above 100" in Path("page.html").read_text()
