"""TopTwo, against a scan of all means and all K + L − 2 challengers in every step."""

from __future__ import annotations

import rank1
from benchmarks.timing import compare, literal


def main() -> None:
    policy = rank1.TopTwo()
    compare(policy, literal(policy), 8, 100_000)
    compare(policy, literal(policy), 32, 50_000)
    compare(policy, literal(policy), 64, 20_000, " (at most 300)")


if __name__ == "__main__":
    main()
