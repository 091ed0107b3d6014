"""Thompson sampling on 1024 pairs, against a Beta sample of every pair in every step."""

from __future__ import annotations

import rank1
from benchmarks.timing import compare, literal


def main() -> None:
    policy = rank1.ThompsonSampling()
    compare(policy, literal(policy), 8, 200_000)
    compare(policy, literal(policy), 32, 20_000, " (at most 15000)")


if __name__ == "__main__":
    main()
