"""All of Figure 2 at the paper's size: 3 problems × 4 policies × 20 runs × 2M steps."""

from __future__ import annotations

import os
import time

import rank1
from rank1.paper.figure2 import PAPER, SIZES


def main() -> None:
    problems = [rank1.spike(K, K, 0.7, 0.7, 0.2, 0.2) for K in SIZES]
    for problem in problems:  # compiles anything that isn't cached
        rank1.simulate(PAPER, problem, 1000, 1)
    begin, cpu = time.perf_counter(), time.process_time()
    for problem in problems:
        rank1.simulate(PAPER, problem, 2_000_000, 20, seed=1, jobs=2)
    print(
        f"Figure 2, 240 runs of 2M steps: {time.perf_counter() - begin:6.0f} s with two jobs "
        f"(at most 240 on 2 idle cores), {time.process_time() - cpu:.0f} s of CPU; "
        f"load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
