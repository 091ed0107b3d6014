"""Play with all packages, each in its own environment, and write docs/compare.md: `make compare`.

Two packages play at a time. Results are saved in the cache directory, in compare.json, as soon as a
package has played, and the page is written from there: `--only with_river` plays one package again
and keeps the results of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import rivals
from benchmarks.compare import page
from rank1.atomic import whole_file
from rank1.paths import cache_directory

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compare.md"
N = 20_000


@dataclass(frozen=True)
class Rival:
    """A package, the module that plays with it, and how much it plays."""

    title: str
    module: str
    #: Its name on PyPI.
    package: str
    runs: int
    n: int = N
    #: Arguments for pip, to try in this order; empty if it is installed in our own environment.
    installs: tuple[tuple[str, ...], ...] = ()


RIVALS = (
    Rival("rank1", "with_rank1", "rank1", 5),
    Rival("rank1", "with_rank1_bets", "rank1", 100),
    Rival("rank1", "with_rank1_stopping", "rank1", 100),
    Rival(
        "SMPyBandits", "with_smpybandits", "SMPyBandits", 5,
        installs=(("--only-binary=:all:", "numpy==1.26.*", "scipy<1.12", "SMPyBandits"),),
    ),
    Rival("MABWiser", "with_mabwiser", "mabwiser", 5, 1_000, installs=(("mabwiser",),)),
    Rival("river", "with_river", "river", 3, installs=(("river",),)),
    # From 0.5 on, it requires versions that have no packages for newer Pythons.
    Rival("obp", "with_obp", "obp", 5, installs=(("obp",), ("--only-binary=:all:", "obp<0.5"))),
    Rival("Optuna", "with_optuna", "optuna", 5, 1_000, installs=(("optuna",),)),
    Rival("rank1 in Optuna", "with_rank1_optuna", "optuna", 5, 1_000),
    Rival("statsmodels", "with_statsmodels", "statsmodels", 100, installs=(("statsmodels",),)),
    Rival("gsdesign", "with_gsdesign", "gsdesign", 100, installs=(("gsdesign", "statsmodels"),)),
    Rival("savvi", "with_savvi", "savvi", 10, installs=(("savvi", "matplotlib"),)),
    # Without Boost's headers confseq can't be built; then we play its formula without it.
    Rival("SciPy", "with_scipy", "scipy", 20, installs=(("confseq", "scipy"), ("scipy",))),
)  # fmt: skip


def outcome_of(rival: Rival) -> page.Outcome:
    """Install a package, if necessary, and play with it."""
    error = ""
    for place, arguments in enumerate(rival.installs or ((),)):
        try:
            python = sys.executable
            if arguments:
                name = f"compare-{rival.package}-{place}"
                python = str(rivals.environment(name, arguments))
            command = [python, "-m", "benchmarks.compare.run", rival.module, rival.package]
            run = subprocess.run(
                [*command, str(rival.n), str(rival.runs)],
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                check=True,
                capture_output=True,
                text=True,
            )
            return page.read(rival.title, run.stdout, error)
        except (subprocess.SubprocessError, OSError) as failure:
            why = page.reason(getattr(failure, "stderr", None) or str(failure))
            error = f"{error}; {why}" if error else why
    return page.Outcome(rival.title, error=error)


def play(rivals: Sequence[Rival], saved: Path) -> None:
    """Play with two packages at a time, and save each result at once."""
    begin = time.monotonic()
    with ThreadPoolExecutor(2) as pool, ExitStack() as stopped:
        stopped.callback(pool.shutdown, wait=False, cancel_futures=True)
        left = {pool.submit(outcome_of, rival): rival for rival in rivals}
        for done in as_completed(left):
            outcome, rival = done.result(), left[done]
            with whole_file(saved) as temporary:
                outcomes = _read(saved) | {rival.module: asdict(outcome)}
                temporary.write_text(json.dumps(outcomes))
            note = outcome.error or "done"
            print(f"{rival.module}: {note} ({time.monotonic() - begin:.0f} s)", flush=True)


def page_of(saved: Path) -> str:
    """Return the generated part of the page, from the saved results."""
    outcomes = _read(saved)
    version = ".".join(platform.python_version_tuple()[:2])
    machine = f"a machine of {os.cpu_count()} cores, with Python {version}"
    found = [
        page.Outcome(**outcomes.get(it.module, {"title": it.title, "error": "not played yet"}))
        for it in RIVALS
    ]
    return page.tables(found, N, machine, "make compare")


def _read(saved: Path) -> dict[str, Any]:
    return dict(json.loads(saved.read_text())) if saved.exists() else {}


def main(arguments: Sequence[str] | None = None) -> None:
    modules = [rival.module for rival in RIVALS]
    parser = argparse.ArgumentParser("python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--only", choices=modules, action="append", help="play this one again")
    only = parser.parse_args(arguments).only or modules
    saved = cache_directory() / "compare.json"
    play([rival for rival in RIVALS if rival.module in only], saved)
    PAGE.write_text(page.with_tables(PAGE.read_text(), page_of(saved)))


if __name__ == "__main__":
    main()
