"""Time the functions of rank1.design that a page waits for.

python -m benchmarks.bench_design
"""

from __future__ import annotations

from functools import partial

import numpy as np
from tests.design.playing import play

from benchmarks.timing import cpu_seconds
from rank1 import design
from rank1.design import Design


def spike(levels: int, best: float, other: float) -> list[float]:
    return [best] + [other] * (levels - 1)


def main() -> None:
    for size, most in ((8, 20), (64, 30)):
        plan = Design([size, size])
        means = np.multiply.outer(spike(size, 0.07, 0.06), spike(size, 0.7, 0.65))
        found = play(plan, means, 20_000, 1, until_stop=False)
        arguments = plan, found.versions, found.counts, found.wealth
        took = cpu_seconds(partial(design.lifts, *arguments)) * 1000
        print(
            f"lifts, {size}×{size}, {len(found.versions)} versions, 20,000 reports: "
            f"{took:.0f} ms (at most {most})"
        )


if __name__ == "__main__":
    main()
