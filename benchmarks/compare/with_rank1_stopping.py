"""rank1's stopping rule, checked whenever the pulls have grown by 1%."""

from __future__ import annotations

import numpy as np

import rank1
from benchmarks.compare.game import Game
from rank1 import stopping

MOST = 10**6


def top_two(game: Game) -> tuple[int, ...] | None:
    state = rank1.TopTwo().start(rank1.Known(game.K, game.L, game.n))
    rng, rewards = np.random.default_rng(game.seed), np.zeros((2, game.K, game.L))
    while game.steps < MOST:
        for _ in range(max(1, game.steps // 100)):
            pull = rank1.ask(state, rng)
            row, column = divmod(pull.arm, game.L)
            reward = game.pull(row, column)
            rank1.tell(state, pull, reward)
            rewards[1 - reward, row, column] += 1
        found = stopping.verdict(rewards[0], rewards[1], confidence=0.95)
        if found.stop:
            return found.leader
    return None


def equal_split(game: Game) -> tuple[int, ...] | None:
    pairs, shown = range(game.K * game.L), 0
    sums = np.zeros(len(pairs), np.int64)
    while game.steps < MOST:
        more = max(1, shown // 100)
        sums, shown = sums + game.rounds(pairs, more), shown + more
        successes = sums.reshape(game.K, game.L)
        found = stopping.verdict(successes, shown - successes, confidence=0.95)
        if found.stop:
            return found.leader
    return None


FIND = {"TopTwo": top_two, "equal split": equal_split}
