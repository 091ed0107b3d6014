"""UCB1, against a plain compiled argmax and against SMPyBandits."""

from __future__ import annotations

import rank1
from benchmarks import rival_smpybandits
from benchmarks.timing import literal, ns_a_step


def main() -> None:
    policy = rank1.UCB1()
    ours = {K: ns_a_step(policy.start, K, 2_000_000, repeats=5) for K in (8, 16, 32, 64)}
    for K, ns in ours.items():
        target = " (at most 150)" if K == 64 else ""
        print(f"UCB1, {K * K:4} pairs:              {ns:8.1f} ns a step{target}")
    plain = ns_a_step(literal(policy), 64, 20_000)
    print(
        f"plain argmax, 4096 pairs:      {plain:8.0f} ns a step; "
        f"UCB1 is {plain / ours[64]:.0f} times as fast (at least 100)"
    )
    seconds = rival_smpybandits.seconds_a_step(64)
    if seconds is not None:
        rival = seconds * 1e9
        print(
            f"SMPyBandits' UCB, 4096 arms:   {rival:8.0f} ns a step; "
            f"UCB1 is {rival / ours[64]:.0f} times as fast (at least 300)"
        )


if __name__ == "__main__":
    main()
