"""idTS, against sampling every line and, where all of them change, every weight in every step."""

from __future__ import annotations

import time

import rank1
from benchmarks.timing import literal, ns_a_step
from rank1.testing import play_plain


def plain_us(policy: rank1.Policy, K: int, steps: int = 300) -> float:
    """Return the CPU time of a step of the literal version, which is plain Python."""
    problem = rank1.spike(K, K, 0.7, 0.7, 0.2, 0.2)
    begin = time.process_time()
    play_plain(literal(policy)(rank1.Known(K, K, steps)), problem, steps, 1)
    return (time.process_time() - begin) / steps * 1e6


def main() -> None:
    for policy, steps, target in (
        (rank1.IdTS("incremental"), 1_000_000, 3),
        (rank1.IdTS("variational"), 20_000, 60),
    ):
        for K in (8, 32):
            ours, plain = ns_a_step(policy.start, K, steps) / 1e3, plain_us(policy, K)
            goal = f" (at most {target})" if K == 32 else ""
            print(
                f"{policy.label}, K = L = {K:2}: {ours:6.2f} µs a step over {steps:,}{goal}; "
                f"literal, in plain Python, {plain:.0f} µs, {plain / ours:.0f} times as long"
            )


if __name__ == "__main__":
    main()
