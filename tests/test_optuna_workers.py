"""Workers of one study, in parallel or in sequence: each knows what the others do."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from rank1.optuna.trials import KEY, Trials
from rank1.studies.events import Kind
from tests.optuna_support import (
    COLUMNS,
    GRID,
    POLICIES,
    ROWS,
    assert_same,
    pairs,
    play,
    read,
    reward,
    sampler_of,
    storage_of,
    study_of,
)
from tests.optuna_support import quiet as quiet

#: As in tests/test_optuna.py.
pytestmark = pytest.mark.uncompiled


@pytest.mark.parametrize("policy", POLICIES)
def test_a_restart_changes_nothing(policy: str) -> None:
    through, again = study_of(sampler_of(policy)), study_of(sampler_of(policy))
    for study in (through, again):
        waiting: list[Any] = []
        for step in range(80):
            if study is again:
                study.sampler = sampler_of(policy)
            waiting.append(study.ask(GRID))
            if step % 3:  # the newest or the oldest, so that rewards are late and out of order
                trial = waiting.pop(-(step % 2))
                failed = [None, TrialState.FAIL, TrialState.PRUNED][min(step % 9, 2)]
                study.tell(trial, None if failed else reward(trial), state=failed)
    assert pairs(through) == pairs(again)
    assert_same(through.sampler, again.sampler, again)
    assert_same(through.sampler, sampler_of(policy), through)


def test_a_sampler_for_several_studies() -> None:
    sampler, storage = sampler_of(), InMemoryStorage()
    one, two = study_of(sampler, storage, "one"), study_of(sampler, storage, "two")
    for _ in range(10):
        play(one, 2)
        play(two, 1)
    assert read(sampler, one).state.book.counts.sum() == 20
    alone = study_of(sampler_of())
    play(alone, 10)
    assert pairs(two) == pairs(alone)


@pytest.mark.parametrize("policy", POLICIES)
def test_workers_know_the_same_whatever_they_have_seen_when(policy: str) -> None:
    """Each worker looks at the study only sometimes, so that pulls overlap."""
    storage = InMemoryStorage()
    workers = [study_of(sampler_of(policy), storage) for _ in range(3)]
    play(workers[0], 1)
    rng, waiting = np.random.default_rng(1), []
    crossed = 0
    for _ in range(150):
        worker = workers[rng.integers(3)]
        if rng.random() < 0.5:
            trials = worker.sampler._trials_of(worker)
            if not trials.grid or rng.random() < 0.5:
                trials = read(worker.sampler, worker)
            trial = worker.ask()
            choice = trials.choose(trial.number, seed=1)
            storage.set_trial_system_attr(trial._trial_id, KEY, asdict(choice))
            for name, at in zip(GRID, choice.levels, strict=True):
                storage.set_trial_param(trial._trial_id, name, at, GRID[name])
            waiting.append(trial.number)
            crossed += choice.after < len(worker.trials) - 2
        elif waiting:
            number = waiting.pop(rng.integers(len(waiting)))
            failed = TrialState.FAIL if rng.random() < 0.1 else None
            value = None if failed else reward(worker.trials[number])
            worker.tell(number, value, state=failed)
    assert crossed > 10
    fresh = sampler_of(policy)
    for worker in workers:
        assert_same(worker.sampler, fresh, worker)
    memory = read(fresh, workers[0]).state
    told = [trial for trial in workers[0].trials if trial.state == TrialState.COMPLETE]
    if policy == "ucb1":  # every reward counts
        assert memory.book.counts.sum() == len(told)
    else:  # of two trials for one place in a round, only one counts
        assert memory.book.counts.sum() < len(told)
        state: Any = memory.state
        stage = state.at[0].stage
        assert state.C_row[stage].sum() + state.C_column[stage].sum() > 0


def test_no_round_has_a_reward_too_many() -> None:
    """If two workers choose at once, rank1elim, whose sums stand for means, counts only one."""
    storage = InMemoryStorage()
    one, two = (study_of(sampler_of("rank1elim", seed), storage) for seed in (1, 2))
    play(one, 1)
    for worker in (one, two):
        read(worker.sampler, worker)
    choices = []
    for worker in (one, two):
        trial = worker.ask()
        choice = worker.sampler._trials.choose(trial.number, seed=1)
        storage.set_trial_system_attr(trial._trial_id, KEY, asdict(choice))
        for name, at in zip(GRID, choice.levels, strict=True):
            storage.set_trial_param(trial._trial_id, name, at, GRID[name])
        choices.append(choice)
        worker.tell(trial.number, 1.0)
    assert choices[0].tag == choices[1].tag
    state: Any = read(two.sampler, two).state.state
    assert state.C_row[0].tolist() == [1, 0, 0]
    assert state.awaited[0] == 0


@pytest.mark.parametrize("aware", [True, False])
def test_bets_need_to_know_of_rewards_but_not_of_pulls(aware: bool) -> None:
    """If two choose at once, both count; a choice made without the last reward doesn't."""
    storage = InMemoryStorage()
    one, two = (study_of(sampler_of("bet_elim", seed), storage) for seed in (1, 2))
    play(one, 5)
    for worker in (one, two):
        read(worker.sampler, worker)
    if not aware:
        play(one, 1)
        read(one.sampler, one)
    trials = []
    for worker in (one, two):
        trial = worker.ask()
        choice = worker.sampler._trials.choose(trial.number, seed=1)
        assert choice.ended == (5 if aware or worker is two else 6)
        storage.set_trial_system_attr(trial._trial_id, KEY, asdict(choice))
        for name, at in zip(GRID, choice.levels, strict=True):
            storage.set_trial_param(trial._trial_id, name, at, GRID[name])
        trials.append(trial)
    for worker, trial in zip((one, two), trials, strict=True):
        worker.tell(trial.number, 1.0)
    state: Any = read(two.sampler, two).state.state
    assert state.at[0].reports == 6  # the policy didn't choose the first trial
    assert len(two.trials) == (7 if aware else 8)


def test_pickles_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = sampler_of()
    study = study_of(sampler)
    play(study, 5)
    copy = pickle.loads(pickle.dumps(sampler))
    assert_same(sampler, copy, study)
    study.sampler = copy
    trials_of = copy._trials_of

    def alone(study: Any) -> Trials:
        assert copy._lock.locked()  # because it may set what all threads read
        return trials_of(study)

    monkeypatch.setattr(copy, "_trials_of", alone)

    def objective(trial: Any) -> float:
        trial.suggest_categorical("row", ROWS)
        trial.suggest_categorical("column", COLUMNS)
        return reward(trial)

    study.optimize(objective, n_trials=40, n_jobs=3)
    assert read(copy, study).state.book.counts.sum() == 45
    assert_same(copy, sampler, study)


def test_a_file_is_enough(tmp_path: Path) -> None:
    kept, alone = [], study_of(sampler_of())
    for _ in range(3):
        storage = storage_of("journal", str(tmp_path / "log"))
        study = study_of(sampler_of(), storage)
        play(study, 8)
        kept = pairs(study)
    play(alone, 24)
    assert kept == pairs(alone)


# Clocks


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return a function that moves this process to another time zone."""

    def move(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


# In POSIX notation: hours west of Greenwich.
ZONES = ["UTC0", "EST5", "JST-9", "NPT-5:45"]


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="no time zones of a process")
@pytest.mark.parametrize("where", ["memory", "journal"])
@pytest.mark.parametrize("written", ZONES)
def test_all_time_zones_read_the_same(
    where: str, written: str, zone: Callable[[str], None], tmp_path: Path
) -> None:
    """Events are read in order, although storages have local times without a zone."""
    memory = InMemoryStorage()

    def worker() -> Any:
        journal = where == "journal" and storage_of("journal", str(tmp_path / "log"))
        return study_of(sampler_of("rank1elim"), journal or memory)

    zone(written)
    study = worker()
    play(study, 2)  # no policy chose the first trial: only its end is known
    for _ in range(10):  # rewards arrive after later suggestions
        trials = [study.ask(GRID) for _ in range(3)]
        for trial in reversed(trials):
            study.tell(trial, reward(trial))
    happened = [
        (number, kind)
        for first in range(2, 32, 3)
        for kind, numbers in (
            (Kind.SUGGESTED, range(first, first + 3)),
            (Kind.REPORTED, range(first + 2, first - 1, -1)),
        )
        for number in numbers
    ]
    for name in ZONES:
        zone(name)
        other = worker()
        found = read(other.sampler, other)
        assert found.state.differences(read(study.sampler, study).state) == []
        assert [(it.number, it.kind) for it in found.entries[3:]] == happened


# Two processes


WORKER = """
import sys
sys.path.insert(0, {root!r})
from tests import optuna_support as t
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = t.study_of(t.sampler_of({policy!r}), t.storage_of({where!r}, {path!r}))
study.optimize(t.suggest, n_trials=150)
"""


@pytest.mark.validate
@pytest.mark.parametrize("where", ["sqlite", "journal"])
@pytest.mark.parametrize("policy", ["rank1elim", "ucb1", "top_two", "bet_elim"])
def test_processes_on_one_study(where: str, policy: str, tmp_path: Path) -> None:
    path = str(tmp_path / "study")
    sampler = sampler_of(policy)
    study = study_of(sampler, storage_of(where, path))
    play(study, 1)
    code = WORKER.format(
        root=str(Path(__file__).parent.parent), policy=policy, where=where, path=path
    )
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    play(study, 50)
    assert [process.wait(300) for process in running] == [0, 0]
    trials = study.trials
    assert len(trials) == 351
    counts = read(sampler, study).state.book.counts.sum()
    strict = policy in ("rank1elim", "bet_elim")
    assert 100 < counts <= 351 if strict else counts == 351
    assert_same(sampler, sampler_of(policy), study)
    assert sampler.best(study)["row"] == "a"
