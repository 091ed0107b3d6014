"""CPU seconds until the first answer: commands, the client and the service, against Optuna's.

Each command runs in its own process, and the minimum of five counts. Byte code is compiled first.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from rank1 import Study

#: The folder with the commands of rank1 and Optuna.
SCRIPTS = Path(sys.executable).parent

#: The first ask in a service's process, with nothing compiled and an empty cache.
FIRST_ASK = """
import sys, time
import rank1
from rank1.compiled import in_background
in_background()
study = rank1.Study.create("first", ["a", "b"], ["x", "y"], horizon=1000, storage=sys.argv[1])
begin = time.thread_time()
study.ask()
print(time.thread_time() - begin)
"""


def cpu_seconds(command: list[str], ids: list[str] | None = None, cold: bool = False) -> float:
    """Return a process's minimum CPU time, user and system; each process gets one of `ids`."""
    best = float("inf")
    with tempfile.TemporaryDirectory() as kept:
        for _ in range(6):  # the first run makes the byte code and fills the cache
            with tempfile.TemporaryDirectory() as empty:
                environment = os.environ | {"RANK1_CACHE_DIR": empty if cold else kept}
                more = [] if ids is None else [ids.pop(), "1"]
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run([*command, *more], env=environment, check=True, capture_output=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            best = min(best, spent)
    return best


def first_ask(folder: Path) -> float:
    """Return the CPU seconds of the asking thread, the minimum of five with empty caches."""
    times = []
    for k in range(5):
        cache = folder / f"cache {k}"
        done = subprocess.run(
            [sys.executable, "-c", FIRST_ASK, str(folder / f"{k}.db")],
            env=os.environ | {"RANK1_CACHE_DIR": str(cache)},
            check=True,
            capture_output=True,
            text=True,
        )
        times.append(float(done.stdout))
    return min(times)


def main() -> None:
    python, ours, optuna = sys.executable, str(SCRIPTS / "rank1"), str(SCRIPTS / "optuna")
    client = [python, "-c", "import rank1; rank1.Client"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        where = ["--storage", str(folder / "studies.db")]
        study = Study.create("spring", ["a", "b", "c"], ["x", "y"], horizon=1000, storage=where[1])
        ids = [suggestion.id for suggestion in study.ask(count=12)]
        study.close()
        ask, tell = ([ours, "study", verb, *where, "spring"] for verb in ("ask", "tell"))
        space = {"x": {"name": "FloatDistribution", "attributes": {"low": 0.0, "high": 1.0}}}
        trials = ["--storage", f"sqlite:///{folder / 'optuna.db'}", "--study-name", "spring"]
        subprocess.run([optuna, "create-study", *trials], check=True, capture_output=True)
        rival = cpu_seconds([optuna, "ask", *trials, "--search-space", json.dumps(space)])
        lines: list[tuple[str, float, float | None]] = [
            ("import numpy", cpu_seconds([python, "-c", "import numpy"]), None),
            ("optuna --version", cpu_seconds([optuna, "--version"]), None),
            ("optuna ask", rival, None),
            ("import rank1; rank1.Client", cpu_seconds(client), 0.15),
            ("rank1 study ask, empty cache", cpu_seconds(ask, cold=True), 0.6),
            ("rank1 study ask, full cache", cpu_seconds(ask), 0.6),
            ("rank1 study tell, empty cache", cpu_seconds(tell, ids, cold=True), 0.6),
            ("rank1 study tell, full cache", cpu_seconds(tell, ids), 0.6),
            ("the service's first ask, empty cache", first_ask(folder), 0.1),
        ]
    print(f"{'':<40}{'CPU s':>8}{'at most':>9}{'optuna ask is':>16}")
    for what, seconds, target in lines:
        print(f"{what:<40}{seconds:>8.3f}{target or '':>9}{rival / seconds:>10.1f} times")


if __name__ == "__main__":
    main()
