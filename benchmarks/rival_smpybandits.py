"""SMPyBandits' UCB on the arms of a K×K spike.

SMPyBandits needs NumPy 1.26 and SciPy below 1.12, which don't go with ours: it gets an environment
of its own in the cache directory, made when it is first asked for. There this file runs as a
script, and prints the CPU seconds of a step.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

PACKAGES = ("numpy==1.26.*", "scipy<1.12", "SMPyBandits==0.9.7")
STEPS = 1000


def environment() -> Path:
    """The Python of the environment, which is made if need be."""
    from rank1.compiled import cache_directory

    folder = cache_directory() / f"smpybandits-{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    complete = folder / "complete"
    if not complete.exists():
        print("SMPyBandits: making an environment for it (once, a minute or two)", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        install = ("-m", "pip", "install", "--quiet", "--only-binary=:all:", *PACKAGES)
        for command in ([sys.executable, "-m", "venv", str(folder)], [str(python), *install]):
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
        complete.touch()
    return python


def seconds_a_step(K: int) -> float | None:
    """CPU seconds of a step on K² arms; None, and a line that says so, if it can't be had."""
    try:
        run = subprocess.run(
            [str(environment()), __file__, str(K)],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    except (subprocess.SubprocessError, OSError) as error:
        lines = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        print(f"SMPyBandits: skipped, it can't be installed or run here ({lines[-1]})")
        return None
    return float(run.stdout)


def measure(K: int) -> float:
    """In SMPyBandits' environment: every arm once, then the best of three times so many steps."""
    with contextlib.redirect_stdout(io.StringIO()):  # it prints warnings while it is imported
        from SMPyBandits.Arms import Bernoulli  # type: ignore[import-not-found]
        from SMPyBandits.Policies import UCB  # type: ignore[import-not-found]

    factors = [0.9] + [0.7] * (K - 1)
    arms = [Bernoulli(u * v) for u in factors for v in factors]
    policy = UCB(len(arms))
    policy.startGame()

    def play(steps: int) -> float:
        begin = time.process_time()
        for _ in range(steps):
            arm = policy.choice()
            policy.getReward(arm, arms[arm].draw())
        return (time.process_time() - begin) / steps

    play(len(arms))
    return min(play(STEPS) for _ in range(3))


if __name__ == "__main__":
    print(measure(int(sys.argv[1])))
