"""Standardised Thompson sampling, compared with UTS and with its literal version."""

from __future__ import annotations

import rank1
from benchmarks.bench_id_ts import plain_us
from benchmarks.timing import ns_a_step


def main() -> None:
    for K in (8, 32):
        ours = ns_a_step(rank1.FactorTS().start, K, 200_000) / 1e3
        uts = ns_a_step(rank1.UTS().start, K, 200_000) / 1e3
        print(
            f"factor_ts, K = L = {K:2}: {ours:5.2f} µs a step; uts {uts:.2f} µs; literal, in plain "
            f"Python, {plain_us(rank1.FactorTS(), K):.0f} µs"
        )


if __name__ == "__main__":
    main()
