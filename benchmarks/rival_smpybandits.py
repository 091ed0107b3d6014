"""SMPyBandits' UCB on the arms of a K×K spike.

SMPyBandits needs NumPy 1.26 and SciPy below 1.12, which conflict with our versions. So it gets its
own environment in the cache directory, made on first use. This file runs there as a script, and
prints the CPU seconds of a step.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import time

PACKAGES = ("--only-binary=:all:", "numpy==1.26.*", "scipy<1.12", "SMPyBandits==0.9.7")
STEPS = 1000


def seconds_a_step(K: int) -> float | None:
    """Return the CPU seconds of a step on K² arms; if it can't run, print why and return None."""
    from benchmarks import rivals

    try:
        python = rivals.environment("SMPyBandits", PACKAGES)
        run = subprocess.run(
            [str(python), __file__, str(K)],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    except (subprocess.SubprocessError, OSError) as error:
        print(rivals.why_skipped("SMPyBandits", error))
        return None
    return float(run.stdout)


def measure(K: int) -> float:
    """Play every arm once, then return the fastest of three timings; runs in its environment."""
    with contextlib.redirect_stdout(io.StringIO()):  # importing it prints warnings
        from SMPyBandits.Arms import Bernoulli
        from SMPyBandits.Policies import UCB

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
