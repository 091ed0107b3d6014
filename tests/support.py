"""Play policies and their literal versions, and record every choice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

from rank1.literal import LITERAL
from rank1.policies import Policy
from rank1.problems import Bernoulli, Categorical, Problem
from rank1.simulation.known import known_of
from rank1.testing import play_compiled

Pairs = NDArray[np.int64]
Rewards = NDArray[np.float64]


def examples(count: int) -> settings:
    """Set how many examples Hypothesis tries in `make test`; `make validate` tries ten times that."""
    return settings(max_examples=count * settings().max_examples // 30)


def few(values: Iterable[Any], count: int) -> list[Any]:
    """Keep the first values for `make test`; the others run only in `make validate`."""
    return [
        pytest.param(value, marks=() if k < count else pytest.mark.validate)
        for k, value in enumerate(values)
    ]


def others_uncompiled(problems: Iterable[Problem]) -> list[Any]:
    """Run problems whose law isn't the paper's as plain Python, because each law needs compiling.

    In `make validate` they are compiled.
    """
    found: list[Any] = []
    for problem in problems:
        if isinstance(problem, Bernoulli):
            found.append(problem)
        else:
            found.append(pytest.param(problem, marks=pytest.mark.uncompiled))
            found.append(pytest.param(problem, marks=pytest.mark.validate))
    return found


def alike(problem: Problem) -> Problem:
    """Return the same grid with a common type of rewards, because each type needs compiling."""
    if not isinstance(problem, Bernoulli):
        return problem
    return Categorical([0.0, 1.0], np.stack([1 - problem.means, problem.means], axis=-1))


def start(policy: Policy, problem: Problem, n: int) -> Any:
    """Return the state before the first step."""
    return policy.start(known_of(policy, problem, n))


def literal_of(policy: Policy, problem: Problem, n: int, **more: Any) -> Any:
    """Return the literal version of a policy, before its first step."""
    return LITERAL[policy.name](known_of(policy, problem, n), **policy.settings, **more)


def play_policy(policy: Policy, problem: Problem, n: int, seed: int) -> tuple[Pairs, Rewards, Any]:
    """Play the loop of `rank1.simulate`; return pairs, rewards and the final state."""
    state = start(policy, problem, n)
    return *play_compiled(state, problem, n, seed), state
