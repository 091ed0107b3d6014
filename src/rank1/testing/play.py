"""Playing runs so that every choice can be seen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import kernel
from rank1.literal import Literal
from rank1.problems.base import Problem
from rank1.simulation.loop import draw, gap, play

__all__ = ["Recorded", "play_compiled", "play_plain"]

Pairs = NDArray[np.int64]
Rewards = NDArray[np.float64]


class Recorded(NamedTuple):
    """A law that writes down every pull and reward."""

    law: Any
    pairs: Pairs
    rewards: Rewards
    used: NDArray[np.int64]

    def gap(self, row: int, column: int) -> float:
        """The expected regret of one pull."""
        return gap(self.law, row, column)

    def draw(self, row: int, column: int, rng: np.random.Generator) -> tuple[float, float]:
        """One reward and its realised regret."""
        reward, regret = draw(self.law, row, column, rng)
        t = self.used[0]
        self.used[0] += 1
        self.pairs[t, 0] = row
        self.pairs[t, 1] = column
        self.rewards[t] = reward
        return reward, regret


def recorded(problem: Problem, n: int) -> Recorded:
    """The problem's law, with room to write down n pulls."""
    if problem.block is not None:
        raise ValueError("problem must be one whose rewards are drawn by compiled code")
    return Recorded(problem.law, np.zeros((n, 2), np.int64), np.zeros(n), np.zeros(1, np.int64))


def play_compiled(state: Any, problem: Problem, n: int, seed: int) -> tuple[Pairs, Rewards]:
    """Pairs (n×2) and rewards of a run through the compiled loop, which changes the state.

    `state` comes from a policy's `start`, or is any NamedTuple of arrays with a `choose` and an
    `update` that compile.

    >>> import rank1
    >>> problem = rank1.Bernoulli([1.0, 0.0], [1.0])
    >>> state = rank1.UCB1().start(rank1.Known(K=2, L=1, n=3))
    >>> pairs, rewards = play_compiled(state, problem, n=3, seed=1)
    >>> pairs.tolist(), rewards.tolist()
    ([[0, 0], [1, 0], [0, 0]], [1.0, 0.0, 1.0])
    """
    law = recorded(problem, n)
    steps, curve, totals = np.array([n]), np.zeros((1, 2)), np.zeros(2)
    rng = np.random.default_rng(seed)
    kernel(play, state, law)(state, law, rng, problem.K, problem.L, 0, n, steps, curve, totals)
    return law.pairs, law.rewards


def play_plain(literal: Literal, problem: Problem, n: int, seed: int) -> tuple[Pairs, Rewards]:
    """The same in plain Python, from the same random numbers; for literal versions."""
    rng = np.random.default_rng(seed)
    pairs, rewards = np.zeros((n, 2), np.int64), np.zeros(n)
    law = problem.law
    for t in range(n):
        row, column, tag = literal.choose(rng)
        reward, _ = law.draw(row, column, rng)
        literal.update(row, column, tag, reward)
        pairs[t], rewards[t] = (row, column), reward
    return pairs, rewards
