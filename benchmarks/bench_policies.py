"""Policies against their literal versions, which compute every index or sample in every step.

python -m benchmarks.bench_policies        # all of them
python -m benchmarks.bench_policies uts
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.timing import compare, literal
from rank1.policies import POLICIES

#: For each K the number of steps to play with the literal version, and our target.
GRIDS: dict[str, dict[int, tuple[int, str]]] = {
    "imed_ub": {8: (100_000, ""), 16: (50_000, ""), 32: (50_000, " (at most 200)")},
    "osub": {8: (50_000, ""), 16: (50_000, ""), 32: (50_000, "")},
    "thompson": {8: (200_000, ""), 32: (20_000, " (at most 15000)")},
    "top_two": {8: (100_000, ""), 32: (50_000, ""), 64: (20_000, " (at most 300)")},
    "uts": {8: (200_000, ""), 16: (200_000, ""), 32: (200_000, " (at most 2500, aim 500)")},
}
#: OSUB's rival solves its equations in the same way, but more of them.
OPTIONS: dict[str, dict[str, Any]] = {"osub": {"bisect": False}}


def main() -> None:
    for name in sys.argv[1:] or GRIDS:
        policy = POLICIES[name]()
        for K, (steps, target) in GRIDS[name].items():
            compare(policy, literal(policy, **OPTIONS.get(name, {})), K, steps, target)


if __name__ == "__main__":
    main()
