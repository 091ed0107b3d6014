"""Python and compiled code do the same, bit for bit: the compiled twin of each policy's kernels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import rank1
from rank1.compiled import kernel
from rank1.policies import POLICIES
from rank1.policies.live import _choose, _update
from tests.support import start


@pytest.mark.parametrize("name", POLICIES)
def test_choices_states_and_random_numbers_are_the_same(name: str) -> None:
    problem = rank1.spike(4, 3, 0.4, 0.4, 0.5, 0.5)
    python, compiled = (start(POLICIES[name](), problem, 2000) for _ in range(2))
    choose, update = kernel(_choose, compiled), kernel(_update, compiled)
    generators = [np.random.default_rng(3) for _ in range(2)]
    rewards = np.random.default_rng(5).random(2000)
    rewards[::3] = rewards[::3] < 0.5
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")  # of NumPy's numbers, where Python's would be silent
        for step, reward in enumerate(rewards.tolist()):
            pull: Any = choose(compiled, generators[1])
            assert tuple(_choose(python, generators[0])) == pull, step
            _update(python, *pull, reward)  # type: ignore[call-arg]
            update(compiled, *pull, reward)
            for field, one, two in zip(python._fields, python, compiled, strict=True):
                assert np.asarray(one).tobytes() == np.asarray(two).tobytes(), (step, field)
    assert generators[0].random() == generators[1].random()
