"""Measure the memory that an import of distinct rewards takes, in its own process.

python -m benchmarks.import_memory csv|jsonl|parquet FOLDER COUNT
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path

NAMES = [f"line {k}" for k in range(64)]


def write(file: Path, count: int) -> None:
    rng = random.Random(1)
    rows = ((rng.choice(NAMES), rng.choice(NAMES), rng.random()) for _ in range(count))
    if file.suffix == ".parquet":
        import polars as pl

        frame = pl.DataFrame(list(rows), schema=["row", "column", "reward"], orient="row")
        frame.write_parquet(file)
        return
    with file.open("w") as lines:
        if file.suffix == ".csv":
            lines.write("row,column,reward\n")
            lines.writelines(f"{a},{b},{c!r}\n" for a, b, c in rows)
        else:
            for a, b, c in rows:
                lines.write(json.dumps({"row": a, "column": b, "reward": c}) + "\n")


def main(ending: str, folder: str, count: int) -> None:
    file = Path(folder, f"known.{ending}")
    child = os.fork()
    if child == 0:  # in a child process, so that the memory for writing the file doesn't count
        write(file, count)
        os._exit(0)
    os.waitpid(child, 0)

    from rank1 import Study

    study = Study.create("import", NAMES, NAMES, storage=Path(folder, "rank1.db"), policy="uts")
    begin = time.process_time()
    found = study.import_history(file)
    seconds = time.process_time() - begin
    # Not ru_maxrss: a child process inherits its parent's peak there.
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    study.close()
    assert found.rewards == count
    print(json.dumps({"rewards": count, "peak_mb": round(peak), "cpu_s": round(seconds, 1)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
