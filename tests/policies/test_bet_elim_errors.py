"""How often the true best level goes, where the others are nearly as good: at most α.

Each case is 2,000 runs of 20,000 pulls on a 3×3 grid of .5 against .4999, at α = .05 and .5. The
numbers of runs in which a true best level went may exceed 2,000·α by three standard errors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rank1
from rank1.compiled import kernel
from rank1.policies.base import choose, update
from rank1.simulation.known import known_of

RUNS, PULLS = 2000, 20_000
BEST, OTHER = 0.5, 0.4999
PROBLEM = rank1.Product([[BEST, OTHER, OTHER]] * 2)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def near_tie(
    state: Any,
    rng: np.random.Generator,
    means: Floats,
    pulls: int,
    law: int,
    cycle: float,
    batch: int,
    delays: Ints,
    arms: Ints,
    tags: Ints,
    rewards: Floats,
    when: Ints,
) -> None:
    """Rewards of one law, whose rates may cycle to a tenth, that come in batches or late."""
    for t in range(pulls):
        arms[t], tags[t] = choose(state, rng)
        mean = means[arms[t]]
        if cycle > 0.0:
            mean *= 0.55 + 0.45 * math.cos(2.0 * math.pi * t / cycle)
        x = 1.0 if rng.random() < mean else 0.0
        if law == 1:  # uniform on [0, 2·mean]
            x = rng.random() * 2.0 * mean
        elif law == 2:  # Beta(mean, 1 − mean)
            x = rng.beta(mean, 1.0 - mean)
        rewards[t] = x
        when[t] = t + delays[1 if x > 0.5 else 0]
        if batch > 1:
            if (t + 1) % batch == 0:
                for k in range(t + 1 - batch, t + 1):
                    update(state, arms[k], tags[k], rewards[k])
        else:
            for late in range(2):
                k = t - delays[late]
                if k >= 0 and when[k] == t and (late == 0 or delays[0] != delays[1]):
                    update(state, arms[k], tags[k], rewards[k])


CASES: dict[str, dict[str, Any]] = {
    "at once": {},
    "cycling": {"cycle": 3000.0},
    "batches": {"batch": 500},
    "all late": {"delays": (1000, 1000)},
    "failures late": {"delays": (2000, 0)},
    "uniform": {"law": 1},
    "beta": {"law": 2},
}


def lost(case: dict[str, Any], runs: int, pulls: int, alpha: float, lift: float = 0.0) -> int:
    """In how many runs a true best level went."""
    delays = np.array(case.get("delays", (0, 0)))
    policy = rank1.BetElim(confidence=1 - alpha, window=int(delays.max()), min_lift=lift)
    count = 0
    for run in range(runs):
        state, rng = policy.start(known_of(policy, PROBLEM, pulls)), np.random.default_rng([7, run])
        room = *np.zeros((2, pulls), np.int64), np.zeros(pulls), np.zeros(pulls, np.int64)
        kernel(near_tie, state)(
            state, rng, PROBLEM.means.ravel(), pulls, case.get("law", 0), case.get("cycle", 0.0),
            case.get("batch", 1), delays, *room,
        )  # fmt: skip
        assert state.at[0].reports >= pulls - delays.max()
        count += not (state.living[0] and state.living[3])
    return count


@pytest.mark.validate
@pytest.mark.parametrize("alpha", [0.05, 0.5])
@pytest.mark.parametrize("name", CASES)
def test_the_true_best_goes_in_at_most_alpha_of_the_runs(name: str, alpha: float) -> None:
    count = lost(CASES[name], RUNS, PULLS, alpha)
    assert count <= RUNS * alpha + 3 * math.sqrt(RUNS * alpha * (1 - alpha)), count
    if alpha == 0.5:
        assert count > 20, "the bets should have some power"


@pytest.mark.uncompiled
def test_few_of_the_best_go_in_short_runs() -> None:
    """The same with 20 runs of 500 pulls: at α = .5 at most 10 may go, and three errors more."""
    assert lost(CASES["cycling"], 20, 500, 0.5) <= 16
