"""Rewards that come late, in any order or never: beside the literal version, and as a log."""

from __future__ import annotations

from typing import Any

import numpy as np

from rank1.compiled import kernel, method
from rank1.policies import Policy, Pull, ask, tell
from rank1.problems import Problem
from tests.support import literal_of, start


def assert_same_choices(policy: Policy, problem: Problem, asks: int, seed: int) -> None:
    """Step by step, from the same random numbers; 1 to 40 pulls are pending at a time."""
    state, literal = start(policy, problem, asks), literal_of(policy, problem, asks)
    rng, other = np.random.default_rng(seed), np.random.default_rng(seed)
    world = np.random.default_rng(seed + 1000)
    pending: list[Pull] = []
    for step in range(asks):
        pull, expected = ask(state, rng), literal.choose(other)
        assert pull.arm == expected[0], f"step {step}"
        pending.append(pull)
        while pending and world.random() < 1.02 - 1 / (1 + len(pending) / 10):
            pull = pending.pop(int(world.integers(len(pending))))
            if world.random() < 0.1:
                state = state.forget(*pull)
                literal.forget(*pull)
            else:
                reward, _ = problem.law.draw(pull.arm, world)
                tell(state, pull, reward)
                literal.update(*pull, reward)


_issued, _load, _forget = method("issued"), method("load"), method("forget")


def _issue(state: Any, arm: int, tag: int) -> None:
    _issued(state, arm, tag)


def _known(state: Any, arm: int, count: int, total: float) -> None:
    _load(state, arm, count, total)


def _give_back(state: Any, arm: int, tag: int) -> None:
    _forget(state, arm, tag)


def issue(state: Any, pull: Pull) -> None:
    """By a kernel, as a live study does it."""
    kernel(_issue, state)(state, *pull)


def load(state: Any, arm: int, count: int, total: float) -> None:
    """By a kernel, too."""
    kernel(_known, state)(state, arm, count, total)


def fold_of(policy: Policy, problem: Problem, asks: int, seed: int) -> tuple[Any, Any]:
    """A state after a run with late and missing rewards, and the fold over the run's log."""
    state, folded = start(policy, problem, asks), start(policy, problem, asks)
    rng, world = np.random.default_rng(seed), np.random.default_rng(seed + 1000)
    pending: list[Pull] = []
    for _ in range(asks):
        pull = ask(state, rng)
        issue(folded, pull)
        pending.append(pull)
        while pending and world.random() < 0.9 - 1 / (1 + len(pending)):
            pull = pending.pop(int(world.integers(len(pending))))
            if world.random() < 0.1:
                state = state.forget(*pull)
                kernel(_give_back, folded)(folded, *pull)
            else:
                reward, _ = problem.law.draw(pull.arm, world)
                tell(state, pull, reward)
                tell(folded, pull, reward)
    return state, folded


def state_bytes(state: Any) -> dict[str, bytes]:
    """Every array of a state, bit by bit."""
    return {name: np.asarray(array).tobytes() for name, array in state._asdict().items()}
