"""Playing policies and their literal versions so that every choice can be seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1 import testing
from rank1.literal import LITERAL
from rank1.policies import Policy
from rank1.problems import Problem
from rank1.simulation.known import known_of

Pairs = NDArray[np.int64]
Rewards = NDArray[np.float64]


def start(policy: Policy, problem: Problem, n: int) -> Any:
    """The state before the first step."""
    return policy.start(known_of(policy, problem, n))


def literal_of(policy: Policy, problem: Problem, n: int, **more: Any) -> Any:
    """The literal version of a policy, before its first step."""
    return LITERAL[policy.name](known_of(policy, problem, n), **policy.settings, **more)


def play_policy(policy: Policy, problem: Problem, n: int, seed: int) -> tuple[Pairs, Rewards, Any]:
    """Pairs, rewards and the last state of a run through the compiled loop."""
    state = start(policy, problem, n)
    return *testing.play_compiled(state, problem, n, seed), state
