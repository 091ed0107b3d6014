"""Draw one search of BetElim, side by side: shares, and evidence against each level.

python docs/bets_figure.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import rank1
from rank1.plots import new_figure, save_figure

FOLDER = Path(__file__).parent / "figures"
SIDES = {
    "headline": {"A": 0.8, "B": 0.65, "C": 0.6, "D": 0.5},
    "image": {"x": 0.75, "y": 0.65, "z": 0.5},
}
COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44")
ALPHA = 0.05


def one_search(seed: int = 5) -> tuple[Any, Any, Any]:
    """Return reports, shares and E of each level at the start of each version, until it stops."""
    factors = [list(levels.values()) for levels in SIDES.values()]
    problem, rng = rank1.Product(factors), np.random.default_rng(seed)
    policy = rank1.BetElim(confidence=1 - ALPHA)
    state = policy.start(rank1.Known(n=100_000, sides=problem.grid.sizes))
    version, rows = -1, []
    while not rows or not state.done():
        if state.at[0].version > version:
            version = int(state.at[0].version)
            rows.append((int(state.at[0].reports), state.shares.copy(), np.exp(state.log_e)))
        pull = rank1.ask(state, rng)
        rank1.tell(state, pull, float(rng.random() < problem.mean(pull.arm)))
    rows.append((int(state.at[0].reports), state.shares.copy(), np.exp(state.log_e)))
    reports, shares, evidence = zip(*rows, strict=True)
    return np.array(reports), np.array(shares), np.array(evidence)


def main() -> None:
    """Draw the figure."""
    reports, shares, evidence = one_search()
    bound = len(SIDES) / ALPHA
    figure, axes = new_figure(9.0, 5.4, nrows=2, ncols=2, sharex=True)
    begin = 0
    for (left, right), (side, levels) in zip(axes, SIDES.items(), strict=True):
        own = slice(begin, begin + len(levels))
        begin += len(levels)
        left.stackplot(reports, shares[:, own].T, colors=COLOURS, step="post", alpha=0.85)
        left.set(ylim=(0, 1), ylabel=f"Shares of each {side}")
        for name, colour, values in zip(levels, COLOURS, evidence[:, own].T, strict=False):
            gone = np.flatnonzero(values >= bound)
            last = gone[0] + 1 if len(gone) else len(values)
            right.plot(reports[:last], values[:last], color=colour, label=name)
            if len(gone):
                right.plot(reports[gone[0]], values[gone[0]], "X", color=colour, ms=9)
        right.axhline(bound, color="0.2", ls="--", lw=1)
        told = {"textcoords": "offset points", "fontsize": 9}
        right.annotate("D/α: dropped", (reports[0], bound), (0, 4), **told)
        right.set(yscale="log", ylabel=f"Evidence against each {side}")
        right.legend(frameon=False, ncols=4, loc="lower right", fontsize=9)
        for ax in (left, right):
            ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[1]:
        ax.set_xlabel("Reports")
    save_figure(figure, FOLDER / "bets.png")


if __name__ == "__main__":
    main()
