"""Play with all packages, each in its own environment, and write docs/compare.md: `make compare`.

The output of the runs is kept in the cache directory as compare.json.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import rivals
from benchmarks.compare import page
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
    Rival("rank1", "with_rank1_bets", "rank1", 20),
    Rival("rank1", "with_rank1_stopping", "rank1", 10),
    Rival(
        "SMPyBandits", "with_smpybandits", "SMPyBandits", 5,
        installs=(("--only-binary=:all:", "numpy==1.26.*", "scipy<1.12", "SMPyBandits"),),
    ),
    Rival("MABWiser", "with_mabwiser", "mabwiser", 2, installs=(("mabwiser",),)),
    Rival("river", "with_river", "river", 3, installs=(("river",),)),
    # From 0.5 on, it requires versions that have no packages for newer Pythons.
    Rival("obp", "with_obp", "obp", 5, installs=(("obp",), ("--only-binary=:all:", "obp<0.5"))),
    Rival("Optuna", "with_optuna", "optuna", 5, 1_000, installs=(("optuna",),)),
    Rival("rank1 in Optuna", "with_rank1_optuna", "optuna", 5, 1_000),
    Rival("statsmodels", "with_statsmodels", "statsmodels", 100, installs=(("statsmodels",),)),
    Rival("gsdesign", "with_gsdesign", "gsdesign", 100, installs=(("gsdesign", "statsmodels"),)),
    Rival("savvi", "with_savvi", "savvi", 5, installs=(("savvi", "matplotlib"),)),
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


def main() -> None:
    outcomes = []
    for rival in RIVALS:
        begin = time.monotonic()
        outcomes.append(outcome_of(rival))
        note = outcomes[-1].error or "done"
        print(f"{rival.title}: {note} ({time.monotonic() - begin:.0f} s)", flush=True)
    version = ".".join(platform.python_version_tuple()[:2])
    machine = f"a machine of {os.cpu_count()} cores, with Python {version}"
    part = page.tables(outcomes, N, machine, "make compare")
    (cache_directory() / "compare.json").write_text(json.dumps([asdict(it) for it in outcomes]))
    PAGE.write_text(page.with_tables(PAGE.read_text(), part))


if __name__ == "__main__":
    main()
