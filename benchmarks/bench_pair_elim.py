"""PairElim, beside its literal version."""

from __future__ import annotations

import time

import rank1
from benchmarks.timing import literal, ns_a_step
from rank1.testing import play_plain


def main() -> None:
    policy, steps = rank1.PairElim(), 20_000
    for K in (8, 32):
        problem = rank1.spike(K, K, 0.7, 0.7, 0.2, 0.2)
        ours = ns_a_step(policy.start, K, 2_000_000)
        begin = time.process_time()
        play_plain(literal(policy)(rank1.Known(K, K, steps)), problem, steps, 1)
        plain = (time.process_time() - begin) / steps * 1e9
        print(
            f"pair_elim, K = L = {K:2}: {ours:6.0f} ns a step over 2,000,000 steps; literal, in "
            f"plain Python, {plain:.0f} ns, {plain / ours:.0f} times as long"
        )


if __name__ == "__main__":
    main()
