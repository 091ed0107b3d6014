"""IMED-UB, against a scan of all means and K + L − 1 indices in every step."""

from __future__ import annotations

import rank1
from benchmarks.timing import compare, literal


def main() -> None:
    policy = rank1.IMEDUB()
    compare(policy, literal(policy), 8, 100_000)
    compare(policy, literal(policy), 16, 50_000)
    compare(policy, literal(policy), 32, 50_000, " (at most 200)")


if __name__ == "__main__":
    main()
