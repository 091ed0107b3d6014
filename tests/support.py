"""Playing policies and their literal versions so that every choice can be seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rank1 import testing
from rank1.literal import LITERAL
from rank1.policies import Policy
from rank1.problems import Bernoulli, Categorical, Problem
from rank1.simulation.known import known_of

Pairs = NDArray[np.int64]
Rewards = NDArray[np.float64]


def few(values: Iterable[Any], count: int) -> list[Any]:
    """The first of them for `make test`; `make validate` has the others."""
    return [
        pytest.param(value, marks=() if k < count else pytest.mark.validate)
        for k, value in enumerate(values)
    ]


def alike(problem: Problem) -> Problem:
    """The same grid with rewards of a type that all have here: each type is compiled by itself."""
    if not isinstance(problem, Bernoulli):
        return problem
    return Categorical([0.0, 1.0], np.stack([1 - problem.means, problem.means], axis=-1))


def play_compiled(state: Any, problem: Problem, n: int, seed: int) -> tuple[Pairs, Rewards]:
    return testing.play_compiled(state, alike(problem), n, seed)


def play_plain(literal: Any, problem: Problem, n: int, seed: int) -> tuple[Pairs, Rewards]:
    return testing.play_plain(literal, alike(problem), n, seed)


def start(policy: Policy, problem: Problem, n: int) -> Any:
    """The state before the first step."""
    return policy.start(known_of(policy, problem, n))


def literal_of(policy: Policy, problem: Problem, n: int, **more: Any) -> Any:
    """The literal version of a policy, before its first step."""
    return LITERAL[policy.name](known_of(policy, problem, n), **policy.settings, **more)


def play_policy(policy: Policy, problem: Problem, n: int, seed: int) -> tuple[Pairs, Rewards, Any]:
    """Pairs, rewards and the last state of a run through the compiled loop."""
    state = start(policy, problem, n)
    return *play_compiled(state, problem, n, seed), state
