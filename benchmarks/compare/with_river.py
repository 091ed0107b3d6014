"""river: every pair is an arm."""

from __future__ import annotations

from river import bandit, proba

from benchmarks.compare.game import Game


def _play(game: Game, policy: bandit.base.Policy) -> None:
    arms = list(range(game.K * game.L))
    for _ in range(game.n):
        arm = policy.pull(arms)
        policy.update(arm, game.pull(*divmod(arm, game.L)))


def ucb(game: Game) -> None:
    _play(game, bandit.UCB(delta=1, seed=game.seed))


def thompson(game: Game) -> None:
    _play(game, bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=game.seed))


EARN = {"UCB": ucb, "ThompsonSampling": thompson}
SHARED = {"_play": EARN}
