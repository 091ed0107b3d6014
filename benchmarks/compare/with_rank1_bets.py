"""rank1's bets: levels are drawn by known shares, and refuted levels are dropped."""

from __future__ import annotations

import numpy as np

import rank1
from benchmarks.compare.game import Game


def _find(game: Game, policy: rank1.BetElim) -> tuple[int, int]:
    state = policy.start(rank1.Known(game.K, game.L, game.n))
    rng = np.random.default_rng(game.seed)
    while not state.done():
        pull = rank1.ask(state, rng)
        rank1.tell(state, pull, game.pull(*divmod(pull.arm, game.L)))
    return divmod(state.best(), game.L)


def one_order(game: Game) -> tuple[int, int]:
    return _find(game, rank1.BetElim(confidence=0.95))


def any_grid(game: Game) -> tuple[int, int]:
    return _find(game, rank1.BetElim(confidence=0.95, any_grid=True))


FIND = {"BetElim": one_order, "BetElim(any_grid=True)": any_grid}
SHARED = {"_find": FIND}
