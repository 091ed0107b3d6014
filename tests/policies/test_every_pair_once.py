"""What the policies share that begin with every pair once. Their own tests do the rest."""

from __future__ import annotations

import numpy as np
import pytest

from rank1.policies.every_pair_once import best_mean


@pytest.mark.parametrize(
    ("sums", "counts", "best"),
    [
        ([[5.0, 0.9], [0.0, 0.0]], [[10, 1], [0, 0]], (0, 1)),  # not by sums
        ([[5.0, 1.0], [0.0, 5.0]], [[10, 2], [0, 10]], (0, 0)),  # the first of several
        ([[0.0, 0.0], [0.0, -3.0]], [[0, 0], [0, 2]], (1, 1)),  # only what was played
        ([[0.0, 0.0], [0.0, 0.0]], [[0, 0], [0, 0]], (0, 0)),
    ],
)
def test_the_best_pair_has_the_largest_mean(
    sums: list[list[float]], counts: list[list[int]], best: tuple[int, int]
) -> None:
    assert best_mean(np.array(sums), np.array(counts)) == best
