"""rank1's sampler in Optuna: row and column are two categorical parameters."""

from __future__ import annotations

import optuna

from benchmarks.compare.game import Game
from rank1.optuna import PairSampler


def pair_sampler(game: Game) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: optuna.Trial) -> float:
        row = trial.suggest_categorical("row", range(game.K))
        column = trial.suggest_categorical("column", range(game.L))
        return game.pull(row, column)

    sampler = PairSampler("row", "column", policy="uts", seed=game.seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=game.n)


EARN = {'PairSampler(policy="uts")': pair_sampler}
