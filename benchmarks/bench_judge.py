"""From exposures in partitioned Parquet files to a verdict: DuckDB's GROUP BY, and the rest.

python -m benchmarks.bench_judge [EXPOSURES] [FOLDER]

The default is 10 million exposures of 8×8 arms under 20 versions; each unit has two of them. The
files (about 8 bytes per exposure) are written to FOLDER or to a temporary folder, and removed at
the end. To count each unit once, DuckDB has to bring the rows of a unit together. Beyond 100
million exposures, this is done for one part of the units at a time, and the counts are added up.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import duckdb

from rank1.design import counts_sql, first_shares, judge

SIDES = {"headline": [f"h{k}" for k in range(8)], "image": [f"i{k}" for k in range(8)]}
VERSIONS = 20
#: The number of rows in a file.
PART = 10_000_000
#: The number of exposures to deduplicate at once.
SLICE = 10**8
#: The time limit for everything after the GROUP BY, in seconds.
MOST = 1.0


def shares_document() -> dict[str, object]:
    """Make a document with versions that bet, all with equal shares."""
    document = first_shares(SIDES, salt="s")
    first = document["versions"][0]
    fit = {side: dict.fromkeys(levels, 0.2) for side, levels in SIDES.items()}
    led = {"headline": "h0", "image": "i0"}
    later = [{**first, "version": k, "leaders": led, "fit": fit} for k in range(2, VERSIONS + 1)]
    return {**document, "versions": [first, *later]}


def write(folder: Path, exposures: int) -> float:
    """Write the exposures; the best arm has a mean of .072, and lifts are 20%."""
    began = time.perf_counter()
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        for part, first in enumerate(range(0, exposures, PART)):
            last = min(first + PART, exposures)
            connection.execute(
                f"""
                COPY (
                  SELECT unit, time, version, 'h' || h AS headline, 'i' || i AS image,
                    (random() < (CASE h WHEN 0 THEN 0.24 ELSE 0.2 END)
                      * (CASE i WHEN 0 THEN 0.3 ELSE 0.25 END))::INT AS reward
                  FROM (
                    SELECT range // 2 AS unit, range AS time,
                      1 + range * {VERSIONS} // {exposures} AS version,
                      (random() * 8)::INT % 8 AS h, (random() * 8)::INT % 8 AS i
                    FROM range({first}, {last})
                  )
                ) TO '{folder}/part-{part:04}.parquet' (FORMAT parquet)
                """
            )
    return time.perf_counter() - began


def main() -> None:
    exposures = int(float(sys.argv[1])) if len(sys.argv) > 1 else PART
    parent = sys.argv[2] if len(sys.argv) > 2 else None
    folder = Path(tempfile.mkdtemp(prefix="rank1-judge-", dir=parent))
    try:
        took = write(folder, exposures)
        size = sum(each.stat().st_size for each in folder.iterdir())
        print(f"{exposures:,} exposures written in {took:.0f} s: {size / 1e9:.2f} GB")
        document = shares_document()
        judge(document, {**{side: [levels[0]] for side, levels in SIDES.items()},
                         "version": [1], "reward": [1], "count": [1]})  # imports  # fmt: skip
        table = f"read_parquet('{folder}/*.parquet')"
        parts = max(1, exposures // SLICE)
        once = [
            counts_sql(document, table=f"(FROM {table} WHERE unit % {parts} = {part})")
            for part in range(parts)
        ]
        columns = "version, headline, image, reward"
        plain = f"SELECT {columns}, COUNT(*) AS count FROM {table} GROUP BY {columns}"
        for name, queries in (("GROUP BY alone", [plain]), ("each unit once", once)):
            began = time.perf_counter()
            counts: Counter[tuple[object, ...]] = Counter()
            with duckdb.connect() as connection:
                connection.execute("SET memory_limit = '8GB'")
                connection.execute(f"SET temp_directory = '{folder}/spill'")
                connection.execute("SET max_temp_directory_size = '20GB'")
                for query in queries:
                    for *key, count in connection.execute(query).fetchall():
                        counts[tuple(key)] += count
            took = time.perf_counter() - began
            names = columns.split(", ")
            frame: dict[str, list[object]] = {
                key: list(each) for key, each in zip(names, zip(*counts, strict=True), strict=True)
            }
            frame["count"] = list(counts.values())
            began, cpu = time.perf_counter(), time.process_time()
            found = judge(document, frame)
            after, cpu = time.perf_counter() - began, time.process_time() - cpu
            best = json.dumps(found.leader)
            print(
                f"{name}: {len(counts):,} rows in {took:.1f} s; verdict on {found.reports:,} "
                f"reports ({best}, stop: {found.stop}) after {after:.2f} s, "
                f"{cpu:.2f} s of CPU time (at most {MOST})"
            )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
