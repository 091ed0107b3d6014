"""rank1, one pull at a time as in live use."""

from __future__ import annotations

import numpy as np

import rank1
from benchmarks.compare.game import Game


def _play(game: Game, policy: rank1.Policy) -> None:
    state = policy.start(rank1.Known(game.K, game.L, game.n))
    rng = np.random.default_rng(game.seed)
    for _ in range(game.n):
        pull = rank1.ask(state, rng)
        rank1.tell(state, pull, game.pull(*divmod(pull.arm, game.L)))


def uts(game: Game) -> None:
    _play(game, rank1.UTS())


def rank1elim(game: Game) -> None:
    _play(game, rank1.Rank1Elim())


def ucb1(game: Game) -> None:
    _play(game, rank1.UCB1())


def thompson(game: Game) -> None:
    _play(game, rank1.ThompsonSampling())


EARN = {
    "UTS": uts,
    "Rank1Elim": rank1elim,
    "UCB1": ucb1,
    "Thompson sampling": thompson,
}
SHARED = {"_play": EARN}
