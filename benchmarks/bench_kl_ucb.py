"""KL-UCB, against a plain compiled argmax."""

from __future__ import annotations

import rank1
from benchmarks.timing import literal, ns_a_step


def main() -> None:
    policy = rank1.KLUCB()
    ours = {K: ns_a_step(policy.start, K, 2_000_000) for K in (8, 16, 32)}
    for K, ns in ours.items():
        target = " (at most 1500)" if K == 32 else ""
        print(f"KL-UCB, {K * K:4} pairs:            {ns:8.0f} ns a step{target}")
    # The rival solves its equations in the same way, but more of them.
    plain = ns_a_step(literal(policy, bisect=False), 32, 5_000)
    print(
        f"plain argmax, 1024 pairs:      {plain:8.0f} ns a step; "
        f"KL-UCB is {plain / ours[32]:.0f} times as fast"
    )


if __name__ == "__main__":
    main()
