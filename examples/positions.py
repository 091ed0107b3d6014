"""Items and positions: which item to show where, if some positions get more attention.

    python -m examples.positions [--visitors 50000]

A visitor clicks if they look at the position and like the item. These two probabilities multiply,
so the grid of click rates has rank one. The study keeps its log in a file.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import rank1

ITEMS = {"lamp": 0.12, "chair": 0.18, "table": 0.09, "shelf": 0.25, "rug": 0.15, "clock": 0.06}
POSITIONS = {"top": 0.9, "left": 0.7, "right": 0.55, "below": 0.3, "footer": 0.1}
BATCH = 100


def play(study: rank1.Study, visitors: int, seed: int = 1) -> float:
    """Return the clicks per hundred visitors; for one in twenty, the outcome is never reported."""
    rng = np.random.default_rng(seed)
    clicks = 0
    for _ in range(visitors // BATCH):
        told = {}
        for each in study.ask(count=BATCH):
            looks = rng.random() < POSITIONS[each.levels["position"]]
            click = bool(looks and rng.random() < ITEMS[each.levels["item"]])
            clicks += click
            if rng.random() < 0.95:
                told[each.id] = float(click)
        study.tell_many(told)
    return 100 * clicks / visitors


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visitors", type=int, default=50_000)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        study = rank1.Study.create(
            "positions", sides={"item": list(ITEMS), "position": list(POSITIONS)}, goal="earn",
            seed=1, storage=Path(folder, "rank1.db"),
        )  # fmt: skip
        with study:
            rate = play(study, given.visitors)
            best = study.best()
    grid = np.outer(list(ITEMS.values()), list(POSITIONS.values()))
    print(
        f"{given.visitors:,} visitors, {rate:.1f} clicks per hundred. With an equal split it would "
        f"have been {100 * grid.mean():.1f}, with the best pair {100 * grid.max():.1f}."
    )
    assert best.leader is not None
    print(f"{' × '.join(best.leader)} leads; {best.reason}.")
    effects, names = best.effects["position"][:, 0], best.sides["position"]
    shown = ", ".join(f"{names[j]} {effects[j]:.2f}" for j in np.argsort(-effects))
    print(f"How much each position is looked at, relative to the best: {shown}")


if __name__ == "__main__":
    main()
