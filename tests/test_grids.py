"""rank1 grids: its statements about real grids agree with their counts."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rank1
from rank1 import datasets, fit, grids
from rank1.errors import InputError
from tests.test_cli import Output


def test_every_grid_has_a_name() -> None:
    assert [len(grids.tables(name)) for name in grids.TABLES] == [1, 1, 1, 46]
    with pytest.raises(InputError, match=r"grid must be one of hillstrom_history, .* got 'mars'"):
        grids.tables("mars")


def test_the_fit_is_that_of_the_counts() -> None:
    table = datasets.hillstrom("recency")
    told = grids.about_fit(table, replays=39, seed=2)
    found = fit.fit(table.successes, table.failures)
    assert told["deviance"] == found.deviance
    assert told["bootstrap_p"] == fit.p_value(found, fit.fixed_design(table.trials), 39, 2)
    factors = [each["factor"] for each in told["column_effects"]]
    np.testing.assert_allclose(factors, found.v / found.v.max())
    row, column = np.unravel_index(int(np.abs(found.residuals).argmax()), found.residuals.shape)
    assert told["deviating"][0]["pair"] == [table.rows[row], table.columns[column]]
    assert told["best_pair"] == [table.rows[table.rates.argmax() // 3], "Mens E-Mail"]
    json.dumps(told, allow_nan=False)


def test_local_maxima() -> None:
    means = np.array([[0.1, 0.5, 0.2], [0.4, 0.3, 0.1]])
    problem = rank1.Categorical([0.0, 1.0], np.stack([1 - means, means], axis=-1))
    assert grids.local_maxima(problem) == [(0, 1), (1, 0)]


@pytest.mark.validate
def test_a_policy_that_looks_at_one_line_only_can_be_trapped() -> None:
    """Two pairs are best in their row and column; from the worse one, UTS sees nothing better."""
    means = np.full((8, 8), 0.1)
    means[0, 0], means[7, 7] = 0.5, 0.6
    problem = rank1.Categorical([0.0, 1.0], np.stack([1 - means, means], axis=-1))
    told = grids.about_play(
        problem, [rank1.UTS(), rank1.ThompsonSampling()], [rank1.Uniform()], 50_000, 100_000, 40, 1
    )
    trapped, free = told["regret"]
    # Each peak attracts UTS in about half of the runs; 8 is four standard errors below 20.
    assert trapped["found"] <= 32
    assert free["found"] == 40
    assert trapped["expected_regret"]["mean"] > 2 * free["expected_regret"]["mean"]
    assert [each["rank_one"] for each in told["stopping"]] == [True, False]


@pytest.mark.usefixtures("uncompiled")
def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    few = ("--runs", "1", "--n", "200", "--pulls", "200", "--replays", "9")
    ran = Output(capsys, "grids", "hillstrom_history", *few, "--json")
    assert ran.status == 0
    (told,) = json.loads(ran.out)["grids"]
    assert (told["K"], told["L"], told["degrees_of_freedom"]) == (7, 3, 12)
    assert {each["policy"] for each in told["play"]["regret"]} >= {"uts", "uniform"}
    assert told["play"]["n"] == 200
    shown = Output(capsys, "grids", "hillstrom_history", *few)
    assert "16.5 on 12" in shown.out
    assert "Mens E-Mail 1.00" in shown.out
    wrong = Output(capsys, "grids", "mars")
    assert wrong.status == 2
    assert "got 'mars'" in wrong.err
