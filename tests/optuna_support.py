"""A grid, and Optuna studies of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from rank1.optuna import ArmSampler, PairSampler
from rank1.optuna.trials import Trials

ROWS, COLUMNS = ("a", "b", "c"), (10, 20, None, True)
GRID: dict[str, optuna.distributions.BaseDistribution] = {
    "row": optuna.distributions.CategoricalDistribution(ROWS),
    "column": optuna.distributions.CategoricalDistribution(COLUMNS),
}
MEANS = np.outer([0.9, 0.5, 0.2], [0.3, 0.9, 0.5, 0.4])
# One policy that can't handle unknown pulls, and one that can.
POLICIES = ["rank1elim", "ucb1"]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Silence Optuna's messages about trials, in tests that import this."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def sampler_of(policy: Any = "ucb1", seed: int = 1, **more: Any) -> PairSampler:
    return PairSampler("row", "column", policy, seed=seed, **more)


def study_of(sampler: BaseSampler, storage: Any = None, name: str = "s", **more: Any) -> Any:
    more = {"direction": "maximize", **more}
    return optuna.create_study(
        storage=storage, sampler=sampler, study_name=name, load_if_exists=True, **more
    )


def place(trial: Any) -> tuple[int, int]:
    return ROWS.index(trial.params["row"]), COLUMNS.index(trial.params["column"])


def reward(trial: Any) -> float:
    """Return 0 or 1, always the same for a trial."""
    return float(np.random.default_rng(trial.number).random() < MEANS[place(trial)])


def play(study: Any, trials: int) -> None:
    for _ in range(trials):
        trial = study.ask(GRID)
        study.tell(trial, reward(trial))


def pairs(study: Any) -> list[tuple[int, int]]:
    return [place(trial) for trial in study.trials]


def read(sampler: ArmSampler, study: Any) -> Trials:
    with sampler._read(study) as trials:
        return trials


def assert_same(one: ArmSampler, two: ArmSampler, study: Any) -> None:
    assert read(one, study).state.differences(read(two, study).state) == []


def suggest(trial: Any) -> float:
    trial.suggest_categorical("row", ROWS)
    trial.suggest_categorical("column", COLUMNS)
    return reward(trial)


def storage_of(where: str, path: str) -> Any:
    return f"sqlite:///{path}" if where == "sqlite" else JournalStorage(JournalFileBackend(path))
