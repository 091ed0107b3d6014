"""Print the figures of docs/traffic.md: visitors until a study may stop.

python docs/traffic_table.py
"""

from __future__ import annotations

import numpy as np

import rank1

RUNS, MOST = 40, 10_000_000
TESTS = {
    "A/B test": [2],
    "A/B/C/D test": [4],
    "2 headlines × 3 images × 2 buttons": [2, 3, 2],
    "4 × 4 × 4": [4, 4, 4],
}


def visitors(
    sizes: list[int],
    rate: float,
    lift: float,
    min_lift: float,
    confidence: float = 0.95,
    runs: int = RUNS,
) -> tuple[float, float, int]:
    """Return the visitors after which 50% and 90% of studies have stopped, and the wrong ones."""
    factors = [np.array([1.0] + [1 / (1 + lift)] * (size - 1)) for size in sizes]
    factors[0] *= rate * (1 + lift) ** len(sizes)  # `rate` is the rate of the other levels
    found = rank1.identify(
        rank1.BetElim(min_lift=min_lift), rank1.Product([list(each) for each in factors]),
        confidence=confidence, n=MOST, runs=runs, seed=1, shuffle=True, jobs=2,
    ).searches[0]  # fmt: skip
    half, most = np.quantile(np.where(found.stopped, found.pulls, np.inf), [0.5, 0.9])
    return float(half), float(most), int(found.wrong.sum())


def two_digits(number: float) -> str:
    """Round a number to two digits, which is enough for a plan."""
    return f"{float(f'{number:.2g}'):,.0f}"


def main() -> None:
    """Print both tables."""
    wrong = 0
    print("| test | 2% buy | 5% buy | 20% buy |\n| --- | ---: | ---: | ---: |")
    for name, sizes in TESTS.items():
        cells = []
        for rate in (0.02, 0.05, 0.2):
            half, most, missed = visitors(sizes, rate, lift=0.2, min_lift=0.0)
            cells.append(f"{two_digits(half)} to {two_digits(most)}")
            wrong += missed
        print(f"| {name} | {' | '.join(cells)} |")
    print()
    print("| best is better by | `min_lift` 0 | 5% | 10% | 20% |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for lift in (0.05, 0.1, 0.2, 0.5):
        cells = []
        for min_lift in (0.0, 0.05, 0.1, 0.2):
            half, _, missed = visitors([2, 3, 2], 0.05, lift, min_lift)
            cells.append(two_digits(half))
            wrong += missed
        print(f"| {lift:.0%} | {' | '.join(cells)} |")
    print(f"\n{wrong} wrong stops in {RUNS * (3 * len(TESTS) + 16):,} tests\n")
    saved, missed = [], []
    for sizes in list(TESTS.values())[::2]:
        sure, less = (visitors(sizes, 0.05, 0.2, 0.0, level, 400) for level in (0.95, 0.9))
        saved.append(f"{1 - less[0] / sure[0]:.0%}")
        missed.append(less[2])
    print(
        f"a lower confidence, 90% in place of 95% | saves {saved[0]} of the visitors of an A/B "
        f"test and {saved[1]} of those of the 2 × 3 × 2 test"
    )
    print(f"{missed[0]} and {missed[1]} wrong stops in 400 tests each")


if __name__ == "__main__":
    main()
