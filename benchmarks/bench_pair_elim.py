"""PairElim: many rounds at once, the compiled loop, and the literal version."""

from __future__ import annotations

import rank1
from benchmarks.bench_id_ts import plain_us
from benchmarks.timing import cpu_seconds, ns_a_step

N = 2_000_000


def main() -> None:
    policy, runs = rank1.PairElim(), 20
    for K in (8, 32):
        problem = rank1.spike(K, K, 0.7, 0.7, 0.2, 0.2)
        ours = ns_a_step(policy.start, K, N)
        plain = 1e3 * plain_us(policy, K, 20_000)
        print(
            f"pair_elim, K = L = {K:2}: {ours:6.0f} ns a step over {N:,} steps; literal, in "
            f"plain Python, {plain:.0f} ns, {plain / ours:.0f} times as long"
        )
        for n in (N, 10**9):
            whole = cpu_seconds(
                lambda problem=problem, n=n: rank1.simulate(  # type: ignore[misc]
                    policy, problem, n, runs, seed=1, checkpoints=1
                )
            )
            print(
                f"  many rounds at once: {whole / runs * 1e3:.2f} ms for {n:,} steps, "
                f"{ours * n / 1e9 / (whole / runs):.0f} times as fast as pull by pull"
            )


if __name__ == "__main__":
    main()
