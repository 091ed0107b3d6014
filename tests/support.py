"""Playing runs so that every choice can be seen."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import kernel
from rank1.policies.base import Known, Policy
from rank1.problems.base import Problem
from rank1.simulation.loop import draw, gap, play


class Recorded(NamedTuple):
    """A law that writes down every pull and reward."""

    law: Any
    pairs: NDArray[np.int64]
    rewards: NDArray[np.float64]
    used: NDArray[np.int64]

    def gap(self, row: int, column: int) -> float:
        return gap(self.law, row, column)

    def draw(self, row: int, column: int, rng: np.random.Generator) -> tuple[float, float]:
        reward, regret = draw(self.law, row, column, rng)
        t = self.used[0]
        self.used[0] += 1
        self.pairs[t, 0] = row
        self.pairs[t, 1] = column
        self.rewards[t] = reward
        return reward, regret


class Reference(Protocol):
    """A literal implementation of a policy, in plain Python."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]: ...

    def update(self, row: int, column: int, tag: int, reward: float) -> None: ...


def known_of(problem: Problem, n: int) -> Known:
    return Known(problem.K, problem.L, n, *problem.facts)


def play_compiled(
    policy: Policy, problem: Problem, n: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], Any]:
    """Pairs, rewards and the last state of a run through the compiled loop."""
    assert problem.block is None
    law = Recorded(problem.law, np.zeros((n, 2), np.int64), np.zeros(n), np.zeros(1, np.int64))
    state = policy.start(known_of(problem, n))
    rng = np.random.default_rng(seed)
    steps, curve, totals = np.array([n]), np.zeros((1, 2)), np.zeros(2)
    K, L = problem.K, problem.L
    kernel(play, state, law)(state, law, rng, K, L, 0, n, steps, curve, totals)
    return law.pairs, law.rewards, state


def play_reference(
    reference: Reference, problem: Problem, n: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pairs and rewards of a literal implementation, from the same stream of random numbers."""
    rng = np.random.default_rng(seed)
    pairs, rewards = np.zeros((n, 2), np.int64), np.zeros(n)
    law = problem.law
    for t in range(n):
        row, column, tag = reference.choose(rng)
        reward, _ = law.draw(row, column, rng)
        reference.update(row, column, tag, reward)
        pairs[t], rewards[t] = (row, column), reward
    return pairs, rewards
