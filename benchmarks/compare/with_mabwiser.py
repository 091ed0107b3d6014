"""MABWiser: every pair is an arm."""

from __future__ import annotations

from mabwiser.mab import MAB, LearningPolicy

from benchmarks.compare.game import Game


def _play(game: Game, policy: LearningPolicy) -> None:
    arms = list(range(game.K * game.L))
    mab = MAB(arms, policy, seed=game.seed)
    mab.fit(arms, [game.pull(*divmod(arm, game.L)) for arm in arms])  # UCB1 needs a pull of each
    for _ in range(game.n - len(arms)):
        arm = mab.predict()
        mab.partial_fit([arm], [game.pull(*divmod(arm, game.L))])


def ucb1(game: Game) -> None:
    _play(game, LearningPolicy.UCB1())


def thompson(game: Game) -> None:
    _play(game, LearningPolicy.ThompsonSampling())


EARN = {"UCB1": ucb1, "ThompsonSampling": thompson}
SHARED = {"_play": EARN}
