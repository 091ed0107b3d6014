"""Optuna: row and column are two categorical parameters."""

from __future__ import annotations

import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

from benchmarks.compare.game import Game


def _play(game: Game, sampler: BaseSampler) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: optuna.Trial) -> float:
        row = trial.suggest_categorical("row", range(game.K))
        column = trial.suggest_categorical("column", range(game.L))
        return game.pull(row, column)

    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=game.n)


def random(game: Game) -> None:
    _play(game, RandomSampler(game.seed))


def tpe(game: Game) -> None:
    _play(game, TPESampler(seed=game.seed))


EARN = {"RandomSampler": random, "TPESampler": tpe}
SHARED = {"_play": EARN}
