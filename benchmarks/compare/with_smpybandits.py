"""SMPyBandits: every pair is an arm."""

from __future__ import annotations

import random

import numpy as np
from SMPyBandits.Policies import UCB, Thompson

from benchmarks.compare.game import Game


def _play(game: Game, policy: UCB | Thompson) -> None:
    random.seed(game.seed)
    np.random.seed(game.seed)  # noqa: NPY002 (it uses no other generator)
    policy.startGame()
    for _ in range(game.n):
        arm = policy.choice()
        policy.getReward(arm, game.pull(*divmod(arm, game.L)))


def ucb(game: Game) -> None:
    _play(game, UCB(game.K * game.L))


def thompson(game: Game) -> None:
    _play(game, Thompson(game.K * game.L))


EARN = {"UCB": ucb, "Thompson": thompson}
SHARED = {"_play": EARN}
