"""Play runs and record every choice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import kernel
from rank1.errors import InputError
from rank1.literal import Literal
from rank1.problems.base import Problem
from rank1.simulation.loop import NEVER, play, room_for_curve

__all__ = ["play_compiled", "play_plain"]

Arms = NDArray[np.int64]
Rewards = NDArray[np.float64]


def play_compiled(state: Any, problem: Problem, n: int, seed: int) -> tuple[Arms, Rewards]:
    """The arms and rewards of a run in the compiled loop, which changes the state.

    `state` comes from a policy's `start`, or is any NamedTuple of arrays with compilable methods
    `choose` and `update`.

    >>> import rank1
    >>> problem = rank1.Bernoulli([1.0, 0.0], [1.0])
    >>> state = rank1.UCB1().start(rank1.Known(K=2, L=1, n=3))
    >>> arms, rewards = play_compiled(state, problem, n=3, seed=1)
    >>> arms.tolist(), rewards.tolist()
    ([0, 1, 0], [1.0, 0.0, 1.0])
    """
    if problem.block is not None:
        raise InputError("problem", problem, "one whose rewards are drawn by compiled code")
    law, rng = problem.law, np.random.default_rng(seed)
    every, curve, totals = np.arange(1, n + 1), room_for_curve(n), np.zeros(2)
    kernel(play, state, law, NEVER)(
        state, law, rng, NEVER, problem.arms, 0, n, every, curve, totals
    )
    return curve[:, 2].astype(np.int64), curve[:, 3]


def play_plain(literal: Literal, problem: Problem, n: int, seed: int) -> tuple[Arms, Rewards]:
    """The same in plain Python, with the same random numbers; for literal versions."""
    rng, law = np.random.default_rng(seed), problem.law
    arms, rewards = np.zeros(n, np.int64), np.zeros(n)
    for t in range(n):
        arms[t], tag = literal.choose(rng)
        rewards[t], _ = law.draw(arms[t], rng)
        literal.update(arms[t], tag, rewards[t])
    return arms, rewards
