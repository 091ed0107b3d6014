"""Open Bandit Pipeline (obp): every pair is an action."""

from __future__ import annotations

from obp.policy import BernoulliTS, EpsilonGreedy

from benchmarks.compare.game import Game


def _play(game: Game, policy: BernoulliTS | EpsilonGreedy) -> None:
    for _ in range(game.n):
        action = int(policy.select_action()[0])
        policy.update_params(action, game.pull(*divmod(action, game.L)))


def epsilon_greedy(game: Game) -> None:
    _play(game, EpsilonGreedy(n_actions=game.K * game.L, random_state=game.seed, epsilon=0.1))


def thompson(game: Game) -> None:
    _play(game, BernoulliTS(n_actions=game.K * game.L, random_state=game.seed))


EARN = {"EpsilonGreedy(epsilon=0.1)": epsilon_greedy, "BernoulliTS": thompson}
SHARED = {"_play": EARN}
