"""Compute rows of arms without a division."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import rank1
from rank1.problems import bernoulli
from rank1.rows import row_magic, row_of

SIZES = st.integers(1, 2**24)


@given(SIZES, SIZES, st.data())
def test_it_is_the_quotient(rows: int, columns: int, data: st.DataObject) -> None:
    magic = row_magic(rows, columns)
    last = rows * columns - 1
    row = data.draw(st.integers(0, rows - 1))
    for arm in (0, last, row * columns, max(row * columns - 1, 0), min(row * columns + 1, last)):
        found = row_of(np.int64(arm), magic, columns)  # type: ignore[arg-type]
        assert found == arm // columns


def test_grids_of_every_day_need_no_division() -> None:
    for rows, columns in ((1, 1), (3, 7), (8, 8), (4096, 4096), (2, 2**18), (2**20, 100)):
        assert row_magic(rows, columns) > 0


def test_a_table_has_the_numbers_of_the_factors() -> None:
    """They agree to the last bit, so runs don't depend on whether there is a table."""
    u, v = np.random.default_rng(1).random((2, 9))
    with_table: Any = rank1.Bernoulli(u, v[:7]).law
    assert len(with_table.table) == 63
    without = with_table._replace(table=np.empty((0, 2)))
    for arm in range(63):
        assert with_table.gap(arm) == without.gap(arm)
        draws = [law.draw(arm, np.random.default_rng(arm)) for law in (with_table, without)]
        assert draws[0] == draws[1]
    joint = [bernoulli.joint_of(without, arm // 7, arm % 7) for arm in range(63)]
    assert with_table.table[:, 1].tolist() == joint
    large: Any = rank1.spike(129, 128, 0.5, 0.5, 0.1, 0.1).law
    assert len(large.table) == 0
