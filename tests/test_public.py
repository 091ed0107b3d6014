"""The public names of `import rank1`. mypy checks their types, along with the other tests."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import assert_type

import numpy as np
import pytest

import rank1
from rank1.policies import POLICIES
from rank1.policies.base import Policy, Pull, State
from rank1.policies.ucb1 import UCB1, UCB1State
from rank1.problems import PROBLEMS
from rank1.problems.bernoulli import Bernoulli
from rank1.simulation.identification import Identification, Searches
from rank1.simulation.result import Result


def test_names_are_there_with_their_types() -> None:
    """mypy reports an error for a name that rank1 doesn't have."""
    policy, problem = rank1.UCB1(), rank1.spike(2, 2, 0.1, 0.1, 0.5, 0.5)
    assert_type(policy, UCB1)
    assert_type(problem, Bernoulli)
    state = policy.start(rank1.Known(2, 2, 10))
    assert_type(state, UCB1State)
    assert_type(rank1.ask(state, np.random.default_rng(1)), Pull)
    assert_type(rank1.restore(rank1.snapshot(policy, state)), tuple[Policy, State])
    assert_type(rank1.simulate(policy, problem, 10, 1), Result)
    assert issubclass(rank1.SnapshotError, rank1.Rank1Error)
    assert rank1.theory.lower_bound(problem) > 0
    assert rank1.literal.LITERAL
    assert rank1.testing.POLICY_CHECKS
    found = rank1.identify(rank1.TopTwo(), problem, runs=1)
    assert_type(found, Identification)
    assert rank1.stopping.verdict([[1, 2]], [[2, 1]]).leader == (0, 1)


def test_all_policies_and_problems_are_exported() -> None:
    for cls in POLICIES.values():
        assert getattr(rank1, cls.__name__) is cls
    for maker in PROBLEMS.values():
        assert getattr(rank1, maker.__name__) is maker
    for name, problem in PROBLEMS.items():
        assert name == problem.__name__ or name.replace("_", "") == problem.__name__.lower()
    assert list(POLICIES)[:3] == ["rank1elim", "rank1elim_kl", "ucb1"]
    assert list(PROBLEMS)[:3] == ["spike", "bernoulli", "product"]


def test_every_public_room_can_be_found() -> None:
    rooms = {"datasets", "fit", "grids", "literal", "policies", "problems", "simulation"}
    rooms |= {"stopping", "studies", "sweeps", "testing", "theory"}
    assert rooms <= set(dir(rank1))
    assert rooms <= set(rank1.__all__)  # type: ignore[attr-defined]
    told = (rank1.__doc__ or "").partition("Contents")[2]
    for room in rooms - {"simulation", "studies", "sweeps"}:  # the names of these are rank1's own
        assert f"rank1.{room}:" in told
    assert rank1.fit.fit([[1, 2]], [[2, 1]]).means.shape == (1, 2)
    (table,) = rank1.grids.tables("hillstrom_history")
    assert table.name == rank1.datasets.hillstrom().name


def test_what_the_documentation_imports_can_be_found() -> None:
    root = Path(__file__).parent.parent
    for page in [root / "README.md", *(root / "docs").rglob("*.md")]:
        for names in re.findall(r"from rank1 import (.*)", page.read_text()):
            assert set(names.split(", ")) <= set(dir(rank1)), page


def test_names_that_say_nothing_by_themselves_stay_in_their_modules() -> None:
    assert not {"plan", "summary", "winners", "mean_and_error"} & set(dir(rank1))
    assert rank1.Searches is Searches


def test_names_can_be_found() -> None:
    names = dir(rank1)
    made = {cls.__name__ for cls in POLICIES.values()} | {m.__name__ for m in PROBLEMS.values()}
    general = "Known Policy Pull State Truth ask tell simulate identify load snapshot restore"
    assert made | set(general.split()) | {
        "warm_up",
        "theory",
        "literal",
        "testing",
        "stopping",
    } <= set(names)
    assert not {"annotations", "Any", "Callable", "base", "TYPE_CHECKING"} & set(names)
    for name in rank1.__all__:  # type: ignore[attr-defined]
        assert getattr(rank1, name) is not None
    with pytest.raises(AttributeError, match="module 'rank1' has no attribute 'UCB2'"):
        rank1.UCB2  # type: ignore[attr-defined]  # noqa: B018


def test_help_tells_what_there_is() -> None:
    command = [sys.executable, "-c", "help('rank1')"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert ">>> result = rank1.simulate(policies, problem" in text
    for thing in (rank1.Rank1Elim, rank1.spike, rank1.ask, rank1.Result):
        assert (thing.__doc__ or "").splitlines()[0] in text


def test_the_table_of_names_is_right() -> None:
    for name, module in rank1.HOMES.items():
        home = importlib.import_module(f"rank1.{module}")
        assert getattr(rank1, name) is getattr(home, name)
    for module in {*rank1.HOMES.values()} - {"assignment", "grid"}:
        exported = getattr(importlib.import_module(f"rank1.{module}"), "__all__", [])
        assert {*exported} <= {*rank1.HOMES}, module
    assert {*dir(rank1)} == {"__version__", *rank1.__all__}  # type: ignore[attr-defined]


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("statement", "light"),
    [
        ("import rank1, rank1.errors, rank1.checks", "numpy numba scipy polars matplotlib"),
        ("import rank1; rank1.Client", "numba scipy polars matplotlib"),
        ("import rank1.policies, rank1.problems, rank1.studies", "numba scipy polars matplotlib"),
        ("import rank1.simulation, rank1.stopping, rank1.fit", "numba scipy matplotlib"),
    ],
)
def test_import_is_light(statement: str, light: str) -> None:
    """Compiled code, plots and tables are loaded on first use."""
    code = f"{statement}\nimport sys; print({set(light.split())} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "set()\n"
