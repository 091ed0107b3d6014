"""Optuna's ask and tell on a 64×64 grid, in an environment of its own.

`rival_optuna.py sqlite|journal FILE TRIALS` prints trials a second.
"""

from __future__ import annotations

import sys
import time

import optuna  # type: ignore[import-not-found]

storage, file, trials = sys.argv[1], sys.argv[2], int(sys.argv[3])
optuna.logging.set_verbosity(optuna.logging.ERROR)
if storage == "sqlite":
    where = f"sqlite:///{file}"
else:
    from optuna.storages import JournalStorage  # type: ignore[import-not-found]
    from optuna.storages.journal import (  # type: ignore[import-not-found]
        JournalFileBackend,
    )

    where = JournalStorage(JournalFileBackend(file))
study = optuna.create_study(storage=where, sampler=optuna.samplers.RandomSampler(seed=1))
grid = {side: optuna.distributions.CategoricalDistribution(range(64)) for side in ("row", "column")}
begin = time.perf_counter()
for _ in range(trials):
    trial = study.ask(grid)
    study.tell(trial, 1.0)
print(trials / (time.perf_counter() - begin))
