"""rank1's stopping rule, checked after every pull."""

from __future__ import annotations

import numpy as np

import rank1
from benchmarks.compare.game import Game
from rank1 import stopping


def _find(game: Game, policy: rank1.Policy) -> tuple[int, int] | None:
    state = policy.start(rank1.Known(game.K, game.L, game.n))
    watch = stopping.start_watch([game.K, game.L], confidence=0.95)
    rng = np.random.default_rng(game.seed)
    while not stopping.may_stop(watch):
        if game.steps == 10**6:
            return None
        pull = rank1.ask(state, rng)
        reward = game.pull(*divmod(pull.arm, game.L))
        rank1.tell(state, pull, reward)
        stopping.report(watch, pull.arm, reward)
    return divmod(int(watch.at[0].leader), game.L)


def top_two(game: Game) -> tuple[int, int] | None:
    return _find(game, rank1.TopTwo())


def equal_split(game: Game) -> tuple[int, int] | None:
    return _find(game, rank1.Uniform())


FIND = {"TopTwo": top_two, "equal split": equal_split}
SHARED = {"_find": FIND}
