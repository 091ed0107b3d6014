from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import rank1
from rank1 import datasets

TABLES = [
    datasets.hillstrom(),
    datasets.hillstrom("recency"),
    datasets.facebook_ads(),
    *datasets.upworthy(),
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_table_is_a_whole_grid(table: datasets.Table) -> None:
    assert table.trials.shape == (len(table.rows), len(table.columns))
    assert len(set(table.rows)) == len(table.rows)
    assert (table.trials > 0).all()
    assert ((table.successes >= 0) & (table.failures >= 0)).all()
    assert not table.trials.flags.writeable
    assert table.source
    assert table.licence


def test_sizes() -> None:
    history, recency, facebook = TABLES[:3]
    assert history.trials.sum() == recency.trials.sum() == 64_000
    assert history.successes.sum() == recency.successes.sum()
    assert facebook.trials.shape == (17, 8)
    assert round(facebook.trials.sum() / 1e6) == 149
    assert {table.trials.shape for table in TABLES[3:]} <= {
        (2, 2), (2, 3), (3, 2), (3, 3), (2, 4), (4, 2)
    }  # fmt: skip


def test_faulty_tests_are_marked() -> None:
    marked = [table for table in TABLES[3:] if "faulty" in table.note]
    assert len(marked) == 12
    assert len(datasets.upworthy(sound=True)) == 46 - 12
    assert not any("faulty" in table.note for table in datasets.upworthy(sound=True))


@pytest.mark.uncompiled
def test_a_problem_to_play() -> None:
    table = TABLES[0]
    problem = datasets.grid_problem(table)
    assert problem.means == pytest.approx(table.rates)
    assert problem.labels == [list(table.rows), list(table.columns)]
    result = rank1.simulate(rank1.Uniform(), problem, n=1000, runs=1, seed=1)
    assert result.outcomes
    gone = dataclasses.replace(table, trials=np.zeros_like(table.trials))
    with pytest.raises(rank1.InputError, match="table must be one with a trial of every pair"):
        datasets.grid_problem(gone)


def test_refusals() -> None:
    with pytest.raises(rank1.InputError, match="by must be one of history, recency, got 'month'"):
        datasets.hillstrom("month")
    with pytest.raises(rank1.InputTypeError, match=r"table must be a Table, .*, got 3"):
        datasets.grid_problem(3)  # type: ignore[arg-type]
