"""What the policies share that begin with every arm once. Their own tests do the rest."""

from __future__ import annotations

import numpy as np
import pytest

import rank1


@pytest.mark.parametrize(
    ("sums", "counts", "best"),
    [
        ([5.0, 0.9, 0.0, 0.0], [10, 1, 0, 0], 1),  # not by sums
        ([5.0, 1.0, 0.0, 5.0], [10, 2, 0, 10], 0),  # the first of several
        ([0.0, 0.0, 0.0, -3.0], [0, 0, 0, 2], 3),  # only what was played
        ([0.0, 0.0, 0.0, 0.0], [0, 0, 0, 0], 0),
    ],
)
def test_the_best_arm_has_the_largest_mean(sums: list[float], counts: list[int], best: int) -> None:
    state = rank1.UCB1().start(rank1.Known(sides=(4,), n=10))
    state.sums[:], state.counts[:] = np.array(sums), np.array(counts)
    assert state.best() == best
