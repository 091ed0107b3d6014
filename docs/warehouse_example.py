"""Follow docs/warehouse.md with simulated visitors: python docs/warehouse_example.py."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

import rank1

PAGE = Path(__file__).parent / "warehouse.md"
RATES = {"A": 0.08, "B": 0.1, "x": 1.0, "y": 0.92, "z": 1.2}
#: The number of visitors before each update.
DAYS = (2_000, 18_000, 20_000)
TABLE = (
    "CREATE TABLE exposures (unit VARCHAR, time INT, version INT, "
    "headline VARCHAR, image VARCHAR, reward DOUBLE)"
)


def command(words: str) -> str:
    """Run the page's command that begins with these words, and return what it prints."""
    (line,) = re.findall(rf"^rank1 ({words}.*)$", PAGE.read_text(), re.M)
    line, _, out = line.partition(" > ")
    arguments = [sys.executable, "-m", "rank1", *shlex.split(line)]
    text = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    if out:
        Path(out).write_text(text)
    return text


def main() -> None:
    """Start, count and update in an empty folder; print the output of the last update."""
    os.chdir(tempfile.mkdtemp())
    command("judge start")
    file = Path("shares.json")  # a fixed salt, so that visitors get the same levels each time
    file.write_text(re.sub(r'"salt": "\w+"', '"salt": "3f9c"', file.read_text()))
    command("judge sql")
    rng, visitors = np.random.default_rng(1), 0
    for day in DAYS:
        shares, rows = json.loads(Path("shares.json").read_text())["versions"][-1], []
        for visitor in range(visitors, visitors + day):
            levels = rank1.assign(shares, f"visitor-{visitor}")
            buys = rng.random() < RATES[levels["headline"]] * RATES[levels["image"]]
            row = {"unit": f"visitor-{visitor}", "time": visitor, "version": shares["version"]}
            rows.append({**row, **levels, "reward": float(buys)})
        pl.DataFrame(rows).write_csv("rows.csv")
        with duckdb.connect("site.duckdb") as database:
            if visitors == 0:
                database.execute(TABLE)
            database.execute("INSERT INTO exposures SELECT * FROM read_csv('rows.csv')")
        visitors += day
        said = command("judge update")
    print(said)


if __name__ == "__main__":
    main()
