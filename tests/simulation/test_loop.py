"""The compiled loop and single steps within stages: pulls outside the grid, and random streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import rank1
from rank1.policies.base import Policy, Simple
from rank1.policies.elimination import EliminationState, start_elimination
from rank1.policies.stages import LEAPS
from rank1.simulation.series import Series

PROBLEM = rank1.spike(2, 3, 0.3, 0.4, 0.5, 0.5)


class AstrayArrays(NamedTuple):
    limits: Any
    at: Any


class AstrayState(AstrayArrays, Simple):
    """Plays arm 5 until its step comes."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        self.at[0] += 1
        if self.at[0] == self.at[1]:
            return self.at[2], 0
        return 5, 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        self.at[3] += arm

    def best(self) -> int:
        return 0


@dataclass(frozen=True)
class Astray(Policy):
    name = "astray"
    arm: int = 0
    step: int = 7

    def start(self, known: rank1.Known) -> Any:
        return AstrayState(known.limits, np.array([0, self.step, self.arm, 0]))


@pytest.mark.parametrize("step", [1, 7, 300_000])
@pytest.mark.parametrize("arm", [6, 99, 10**7, -1, -(2**62)])
def test_a_pull_outside_the_grid_is_refused(arm: int, step: int) -> None:
    """Without the check, a far arm reads memory that isn't there."""
    message = rf"must be a policy that pulls arms 0 … 5 of the grid 2×3, got {arm} at step {step}$"
    with pytest.raises(rank1.InputError, match=rf"astray.* {message}") as caught:
        rank1.simulate(Astray(arm, step), PROBLEM, 400_000, 1)
    assert caught.value.value == arm


@pytest.mark.parametrize("arm", range(6))
def test_every_arm_of_the_grid_is_on_it(arm: int) -> None:
    result = rank1.simulate(Astray(arm), PROBLEM, 7, 1, checkpoints=7)
    steps = np.diff(result.outcomes[0].expected[0], prepend=0)
    gaps = (PROBLEM.best_mean - PROBLEM.means).ravel()
    assert steps == pytest.approx([gaps[5]] * 6 + [gaps[arm]])


class AstrayStages(EliminationState):
    """An elimination policy that errs in the last of its single steps."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        self.at[0].place += 1
        if self.at[0].reported == 3:
            return 7, 0
        return 0, 0


class AstrayElim(Policy):
    name = "astray_elim"
    leaps = LEAPS

    def start(self, known: rank1.Known) -> AstrayStages:
        return start_elimination(AstrayStages, known, [10**6] * 31, [1.0] * 31)


@pytest.mark.usefixtures("uncompiled")
def test_single_steps_within_stages_are_checked_too() -> None:
    """Four steps are less than a round, so that they are played one by one."""
    with pytest.raises(rank1.InputError, match=r"astray_elim must be .* got 7 at step 4$"):
        rank1.simulate(AstrayElim(), PROBLEM, 4, 1, method="stages")


def test_the_streams_of_many_runs_are_unrelated() -> None:
    """Correlations of first numbers over 4000 runs, within four standard errors."""
    series = Series.of(rank1.Uniform(), PROBLEM, 10)
    numbers = []
    for run in range(4000):
        seeds = [series.seed_of(run, stream) for stream in (None, 1, 2)]
        numbers.append([np.random.default_rng(seed).random() for seed in seeds])
    off = np.corrcoef(np.array(numbers).T) - np.eye(3)
    assert np.abs(off).max() < 4 / np.sqrt(4000)


def test_generators_are_given_back_when_a_run_fails() -> None:
    from rank1.compiled.generators import _idle

    with pytest.raises(rank1.InputError):
        rank1.simulate(Astray(9), PROBLEM, 10, 1)
    idle = len(_idle)
    for _ in range(3):
        with pytest.raises(rank1.InputError):
            rank1.simulate(Astray(9), PROBLEM, 10, 1)
    assert len(_idle) == idle
