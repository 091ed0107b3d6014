"""OSUB, against a scan of all means and K + L − 1 solved indices in every step."""

from __future__ import annotations

import rank1
from benchmarks.timing import compare, literal


def main() -> None:
    policy = rank1.OSUB()
    for K in (8, 16, 32):  # the rival solves its equations in the same way, but more of them
        compare(policy, literal(policy, bisect=False), K, 50_000)


if __name__ == "__main__":
    main()
