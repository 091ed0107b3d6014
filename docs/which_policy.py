"""Measure the pulls that it takes to be sure of the best pair: python docs/which_policy.py.

Prints the table of the page "Which policy?", and draws its figure.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import rank1
from rank1.advice.assumed import assumed_grid
from rank1.plots import new_figure, save_figure, short_numbers
from rank1.progress import short

FOLDER = Path(__file__).parent / "figures"
SIZES = (3, 6, 12, 24)
RATES = (0.01, 0.05, 0.25)
LIFTS = (0.5, 0.2)
#: The number of pulls after which a run gives up.
MOST = 50_000_000


def median(policy: rank1.Policy, size: int, rate: float, lift: float, most: int) -> float:
    """Return the pulls after which half of the runs have stopped; infinite if fewer have."""
    problem = assumed_grid([size, size], rate, lift).problem
    found = rank1.identify(policy, problem, n=most, runs=10, seed=1, shuffle=True).searches[0]
    assert not found.wrong.any()
    return float(np.median(np.where(found.stopped, found.pulls, np.inf)))


def main() -> None:
    """Play, print the table and draw the figure."""
    figure, axes = new_figure(8.0, 3.6, ncols=2, sharey=True)
    print("| lift | rate |", " | ".join(f"{size}×{size}" for size in SIZES), "|")
    print("| --- | --- |", " | ".join("---:" for _ in SIZES), "|")
    for lift, ax in zip(LIFTS, axes, strict=True):
        for rate, marker in zip(RATES, "os^", strict=True):
            pulls = [median(rank1.BetElim(), size, rate, lift, MOST) for size in SIZES]
            told = " | ".join(short(float(f"{each:.2g}")) for each in pulls)
            print(f"| {lift:.0%} | {rate:.0%} | {told} |")
            ax.plot(SIZES, pulls, marker=marker, ms=5, color="#8844CC", label=f"rate {rate:.0%}")
        equal = [median(rank1.Uniform(), size, 0.05, lift, 3_000_000) for size in SIZES]
        told = " | ".join(
            short(float(f"{each:.2g}")) if np.isfinite(each) else "> 3M" for each in equal
        )
        print(f"| {lift:.0%} | 5%, equal split | {told} |")
        ax.plot(SIZES, equal, marker="s", ms=5, color="#7F7F7F", ls=":", label="5%, equal split")
        ax.set(xscale="log", yscale="log", xticks=SIZES, xlabel="K = L")
        ax.set_xticks([], minor=True)
        ax.set_xticklabels([str(size) for size in SIZES])
        ax.yaxis.set_major_formatter(short_numbers())
        ax.spines[["top", "right"]].set_visible(False)
        title = f"Best row and column {lift:.0%} better than the others"
        ax.set_title(title, loc="left", fontsize=10)
    axes[0].set_ylabel("Pulls until bet_elim stops (median)")
    axes[0].legend(frameon=False, fontsize=8)
    save_figure(figure, FOLDER / "which-policy-find.png")


if __name__ == "__main__":
    main()
