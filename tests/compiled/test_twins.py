"""Python and compiled code do the same: the compiled twin of each policy's kernels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import rank1
from rank1.compiled import kernel
from rank1.policies import POLICIES
from rank1.policies.live import _choose, _update
from rank1.simulation.loop import NEVER, play, room_for_curve
from rank1.testing.policies import _same
from tests.support import start

# Of the law that `tests/policies/test_contract.py` has, since each law is compiled anew.
PROBLEM = rank1.spike(4, 3, 0.4, 0.4, 0.5, 0.5)
N = 2000


@contextmanager
def strict() -> Iterator[None]:
    """No warning of NumPy's numbers, where Python's would be silent."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        yield


def assert_same(python: Any, compiled: Any, step: int) -> None:
    """States are the same, bit for bit; caches but for what two logarithms differ by."""
    for field, one, two in zip(python._fields, python, compiled, strict=True):
        same = one.tobytes() == two.tobytes() or (field in python.caches and _same(one, two))
        assert same, (step, field)


@pytest.mark.parametrize("name", POLICIES)
def test_the_loop_makes_the_same_choices(name: str) -> None:
    """From the same random numbers, up to the last state."""
    states = [start(POLICIES[name](), PROBLEM, N) for _ in range(2)]
    generators = [np.random.default_rng(3) for _ in range(2)]
    curves = [room_for_curve(N) for _ in range(2)]
    loops = [play, kernel(play, states[1], PROBLEM.law, NEVER)]
    with strict():
        for loop, state, rng, curve in zip(loops, states, generators, curves, strict=True):
            every, totals = np.arange(1, N + 1), np.zeros(2)
            end = loop(state, PROBLEM.law, rng, NEVER, PROBLEM.arms, 0, N, every, curve, totals)
            assert end == (N, 0, False)
    assert curves[0][:, 2:].tolist() == curves[1][:, 2:].tolist()
    assert_same(states[0], states[1], N)
    assert generators[0].random() == generators[1].random()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("uts", "rank1elim") else pytest.mark.validate)
        for name in POLICIES
    ],
)
def test_asks_and_tells_are_the_same(name: str) -> None:
    """With rewards between 0 and 1, too."""
    python, compiled = (start(POLICIES[name](), PROBLEM, N) for _ in range(2))
    choose, update = kernel(_choose, compiled), kernel(_update, compiled)
    generators = [np.random.default_rng(3) for _ in range(2)]
    rewards = np.random.default_rng(5).random(N)
    rewards[::3] = rewards[::3] < 0.5
    with strict():
        for step, reward in enumerate(rewards.tolist()):
            pull: Any = choose(compiled, generators[1])
            assert tuple(_choose(python, generators[0])) == pull, step
            _update(python, *pull, reward)  # type: ignore[call-arg]
            update(compiled, *pull, reward)
            assert_same(python, compiled, step)
    assert generators[0].random() == generators[1].random()
