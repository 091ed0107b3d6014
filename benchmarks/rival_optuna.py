"""Optuna's ask and tell on a 64×64 grid, in its own environment.

`rival_optuna.py sqlite|journal FILE TRIALS` prints trials per second.
"""

from __future__ import annotations

import sys
import time

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

storage, file, trials = sys.argv[1], sys.argv[2], int(sys.argv[3])
optuna.logging.set_verbosity(optuna.logging.ERROR)
where = f"sqlite:///{file}" if storage == "sqlite" else JournalStorage(JournalFileBackend(file))
study = optuna.create_study(storage=where, sampler=optuna.samplers.RandomSampler(seed=1))
choices = CategoricalDistribution(range(64))
grid: dict[str, BaseDistribution] = {"row": choices, "column": choices}
begin = time.perf_counter()
for _ in range(trials):
    trial = study.ask(grid)
    study.tell(trial, 1.0)
print(trials / (time.perf_counter() - begin))
