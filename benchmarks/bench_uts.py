"""UTS, against a scan of all means and K + L − 1 Beta samples in every step."""

from __future__ import annotations

import rank1
from benchmarks.timing import compare, literal


def main() -> None:
    policy = rank1.UTS()
    compare(policy, literal(policy), 8, 200_000)
    compare(policy, literal(policy), 16, 200_000)
    compare(policy, literal(policy), 32, 200_000, " (at most 2500, aim 500)")


if __name__ == "__main__":
    main()
