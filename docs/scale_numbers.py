"""Measure the numbers on assignment and records in docs/scale.md: python docs/scale_numbers.py."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import numpy as np

import rank1

SIDES = {"headline": ["A", "B"], "image": ["x", "y", "z"], "button": ["buy", "go"]}
BATCHES, SIZE = 50, 1000


def main() -> None:
    """Print the CPU time per visitor, and the bytes on disk per record."""
    folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(1)
    study = rank1.Study.create(
        "home", sides=SIDES, goal="find", storage=str(folder / "shop.db"), seed=1
    )
    assigning = recording = 0.0
    for batch in range(BATCHES):
        shares, units = study.shares(), [f"visitor-{batch}-{k}" for k in range(SIZE)]
        begin = time.process_time()
        levels = [rank1.assign(shares, unit) for unit in units]
        assigning += time.process_time() - begin
        rewards = (rng.random(SIZE) < 0.1).astype(float).tolist()
        version = [shares["version"]] * SIZE
        begin = time.process_time()
        study.record_many(list(zip(units, version, levels, rewards, strict=True)))
        recording += time.process_time() - begin
    study.close()
    visitors, size = BATCHES * SIZE, sum(each.stat().st_size for each in folder.iterdir())
    print(f"assign: {1e6 * assigning / visitors:.0f} µs a visitor")
    print(f"record: {1e6 * recording / visitors:.0f} µs a visitor, {size / visitors:.0f} bytes")
    print(f"shares: {len(json.dumps(shares))} bytes")


if __name__ == "__main__":
    main()
