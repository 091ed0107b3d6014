"""What identifies runs: the key of a series, and the seed of each run."""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import rank1
from rank1.compiled import closure, digest
from rank1.compiled.sources import source_digest
from rank1.policies.folding import load_tallies
from rank1.problems.shuffled import Shuffled
from rank1.simulation import Series
from rank1.simulation import series as series_module
from rank1.simulation.feedback import Feedback
from rank1.simulation.late import late_steps
from rank1.simulation.series import checkpoints_of, policy_number, resolved
from rank1.simulation.stop import BestArmRule, OwnRule, StopRule

PROBLEM = rank1.spike(4, 3, 0.5, 0.4, 0.4, 0.5)
ELIM = rank1.Rank1Elim()


def series(**changes: Any) -> Series:
    arguments: dict[str, Any] = {
        "policy": ELIM, "problem": PROBLEM, "n": 3000, "checkpoints": 5, "seed": 5
    }  # fmt: skip
    return Series.of(**(arguments | changes))


@pytest.mark.parametrize(
    "change",
    [
        {"policy": rank1.Rank1Elim(0.5)},
        {"policy": rank1.Rank1ElimKL()},
        {"problem": rank1.spike(4, 3, 0.5, 0.4, 0.4, 0.4)},
        {"problem": rank1.Gaussian(PROBLEM.u, PROBLEM.v, sigma=0.5)},
        {"n": 3001},
        {"checkpoints": 6},
        {"checkpoints": [600, 1200, 1800, 2401]},
        {"seed": 6},
        {"method": "steps"},
        {"shuffle": True},
    ],
    ids=str,
)
def test_whatever_matters_is_in_the_key(change: dict[str, Any]) -> None:
    assert series(**change).key != series().key


def test_what_does_not_matter_is_not_in_the_key() -> None:
    assert series().key == series().key == pickle.loads(pickle.dumps(series())).key
    # The method that "auto" stands for, not the word.
    assert series(method="stages").key == series(method="auto").key
    assert series(policy=rank1.Uniform(), method="steps").key == series(policy=rank1.Uniform()).key
    # Nor does it matter how checkpoints and settings were written.
    assert series(checkpoints=[600, 1200, 1800, 2400, 3000]).key == series().key
    assert series(policy=rank1.Rank1Elim(1)).key == series().key


def test_a_key_has_the_form_that_the_store_reads() -> None:
    key = series().key
    assert len(key) >= 40
    assert set(key) <= set("0123456789abcdef")


def state(one: Series, run: int) -> list[int]:
    return one.seed_of(run).generate_state(4).tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"policy": rank1.Rank1Elim(0.5)},
        {"policy": rank1.Uniform()},
        {"problem": rank1.spike(4, 3, 0.5, 0.4, 0.4, 0.4)},
        {"problem": rank1.Gaussian(PROBLEM.u, PROBLEM.v, sigma=0.5)},
        {"seed": 6},
    ],
    ids=str,
)
def test_a_seed_is_of_the_policy_the_problem_and_the_run(change: dict[str, Any]) -> None:
    """With the run's number alone, runs of two policies, or on two problems, would go together."""
    assert state(series(**change), 3) != state(series(), 3)
    assert state(series(), 3) == state(series(), 3) != state(series(), 4)


def test_runs_on_two_problems_are_independent() -> None:
    """Twins of one law would tell the same story twice: here uniform play's pulls, over 200 runs.

    The correlation's standard error is 1/√200 = 0.07; seeds of the run's number alone give 1.
    """
    problems = [rank1.Bernoulli([0.9, 0.1], [0.5, b]) for b in (0.5, 0.500001)]
    ends = [
        Series.of(rank1.Uniform(), problem, 500, 1).play(range(200))["curves"][:, -1, 0]
        for problem in problems
    ]
    assert abs(np.corrcoef(ends)[0, 1]) < 4 / 200**0.5


def test_seeds_do_not_depend_on_how_a_run_is_recorded() -> None:
    assert state(series(checkpoints=1), 3) == state(series(checkpoints=100), 3)


def test_a_block_is_its_runs() -> None:
    for method in ("steps", "stages"):
        one = series(method=method)
        block = one.play(range(2, 5))
        assert block["curves"].shape == (3, 5, 2)
        for k, run in enumerate(range(2, 5)):
            alone = one.play_run(run)
            assert np.array_equal(block["curves"][k], alone.curve)
            assert block["best_arms"][k] == alone.best_arm
            assert set(block.arrays) == {"curves", "best_arms"}


def test_a_run_that_is_stopped_ends_between_two_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_module, "CHUNK", 1000)
    asked: list[int] = []

    def stopped() -> bool:
        asked.append(1)
        return len(asked) > 2

    with pytest.raises(KeyboardInterrupt):
        series(policy=rank1.Uniform()).play_run(0, stopped)
    assert len(asked) == 3
    with pytest.raises(KeyboardInterrupt):
        series().play(range(2), lambda: True)


def test_chunks_do_not_change_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    one = series(policy=rank1.Uniform())
    whole = one.play_run(0).curve
    monkeypatch.setattr(series_module, "CHUNK", 7)
    assert np.array_equal(one.play_run(0).curve, whole)


def test_seconds_do_not_count_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling takes place when a kernel is first called; here it takes a quarter of a second."""
    compiled: list[int] = []
    original: Any = vars(series_module)["kernel"]

    def slow(function: Any, *arguments: Any) -> Any:
        loop = original(function, *arguments)

        def first(*rest: Any) -> Any:
            if not compiled:
                compiled.append(1)
                end = time.thread_time() + 0.25
                while time.thread_time() < end:
                    pass
            return loop(*rest)

        return first

    monkeypatch.setattr(series_module, "kernel", slow)
    for one in (series(), series(policy=rank1.Uniform())):
        compiled.clear()
        block = one.play(range(3))
        assert compiled
        assert 0 < block.seconds < 0.2


def test_compiling_leaves_no_trace_in_the_runs() -> None:
    for method in ("steps", "stages"):
        one = series(method=method)
        before = one.play_run(1)
        one.compile()
        assert np.array_equal(one.play_run(1).curve, before.curve)
    # Also of a problem that draws ahead into arrays of its own.
    factors = rank1.Factors([rank1.Beta(2, 1), 0.5], [rank1.Beta(1, 1), 0.5])
    drawn = series(problem=factors, policy=rank1.Uniform())
    first = drawn.play(range(2))["curves"]
    assert np.array_equal(drawn.play(range(2))["curves"], first)


def test_the_method_that_auto_stands_for() -> None:
    assert resolved("auto", ELIM, PROBLEM) == "stages"
    assert resolved("steps", ELIM, PROBLEM) == "steps"
    assert resolved("auto", rank1.Uniform(), PROBLEM) == "steps"
    assert resolved("auto", ELIM, rank1.Factors([rank1.Beta(2, 1)], [0.5])) == "steps"
    with pytest.raises(rank1.InputError, match="method must be auto or steps for uniform"):
        resolved("stages", rank1.Uniform(), PROBLEM)


def test_checkpoints() -> None:
    assert checkpoints_of(3, 100).tolist() == [1, 2, 3]
    assert checkpoints_of(10, 3).tolist() == [3, 6, 10]
    assert checkpoints_of(10, np.array([4, 2, 4])).tolist() == [2, 4, 10]
    large = checkpoints_of(2**53, 10)
    assert large[-1] == 2**53
    assert np.all(np.diff(large) > 0)
    with pytest.raises(rank1.InputError, match=r"checkpoints must be .* at most 10, got 11"):
        checkpoints_of(10, [11])
    with pytest.raises(rank1.InputError, match=r"checkpoints must be .* at most 1000000, got 1"):
        checkpoints_of(10, 10**7)


def test_a_probe_says_what_a_run_takes() -> None:
    """Roughly: it only decides how runs are cut."""
    one = Series.of(rank1.Uniform(), PROBLEM, 3_000_000, 1)
    one.compile()
    probed, spent = one.probe()
    took = min(one.play(range(1)).seconds for _ in range(3))
    assert 0.2 < probed / took < 5
    assert spent < 5 * took
    # What can't be played has cells that say so.
    from tests.simulation.support import Broken

    assert replace(one, policy=Broken()).probe()[0] == 0.0


def test_it_says_what_it_is() -> None:
    text = "rank1elim on spike (K=4, L=3, p_u=0.5, p_v=0.4, delta_u=0.4, delta_v=0.5), n=3,000"
    assert str(series()) == text


class Held(rank1.Bernoulli):
    """Its parameters are where the base class has something computed, and in a slot."""

    __slots__ = ("scale",)

    def __init__(self, p: float, scale: float = 1.0) -> None:
        super().__init__([p, 0.1], [1.0])
        self.means = np.array([[p], [0.1]])
        self.scale = scale


@dataclass(frozen=True)
class Hidden(rank1.Uniform):
    """What it does depends on an attribute that is no setting."""

    name = "hidden"

    def __post_init__(self) -> None:
        object.__setattr__(self, "which", WHICH[0])


WHICH = [1]


def test_values_that_are_no_settings_are_in_the_key() -> None:
    assert series(problem=Held(0.5)).key == series(problem=Held(0.5)).key
    assert series(problem=Held(0.5)).key != series(problem=Held(0.4)).key
    assert series(problem=Held(0.5)).key != series(problem=Held(0.5, 2.0)).key
    # What is merely computed and kept is not.
    used = Held(0.5)
    assert used.best_pair == (0, 0)
    assert series(problem=used).key == series(problem=Held(0.5)).key
    one = Hidden()
    WHICH[0] = 2
    assert series(policy=one).key != series(policy=Hidden()).key


def test_code_of_orders_and_of_late_rewards_is_in_the_key() -> None:
    def code(one: Series) -> list[Any]:
        return [part for part in one._depends_on() if callable(part)]

    assert Shuffled not in code(series())
    assert Shuffled in code(series(shuffle=True))
    late = code(series(policy=rank1.Uniform(), feedback=Feedback(delay=3.0)))
    assert late_steps in late
    assert load_tallies in late


@pytest.mark.parametrize(
    ("stop", "edited"),
    [
        (BestArmRule(0.9), "rank1.simulation.stop"),
        (BestArmRule(0.9), "rank1.stopping.online"),
        (BestArmRule(0.9), "rank1.stopping.evalues"),
        (OwnRule(), "rank1.simulation.stop"),
    ],
    ids=str,
)
def test_code_of_the_rule_is_in_the_key(
    stop: StopRule, edited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a file had been edited on which the rule depends, and the simulation doesn't."""
    with_rule = {"policy": rank1.BetElim(), "method": "steps", "stop": stop}
    keys = [series(**change).key for change in ({}, with_rule)]

    def after_the_edit(home: str) -> str:
        return source_digest(home) + (" edited" if edited in closure(home) else "")

    monkeypatch.setitem(digest.__globals__, "source_digest", after_the_edit)
    now = [series(**change).key for change in ({}, with_rule)]
    assert [one == two for one, two in zip(keys, now, strict=True)] == [True, False]


def plus_one(x: int) -> int:
    return x + 1


def test_seeds_do_not_depend_on_where_a_setting_lies_in_memory() -> None:
    @dataclass(frozen=True)
    class Called(rank1.Uniform):
        name = "called"
        by: Any = None

    assert policy_number(Called(plus_one)) == policy_number(Called(plus_one))
    assert policy_number(Called(plus_one)) != policy_number(Called(resolved))
    with pytest.raises(rank1.NoDigest, match="it isn't in a file"):
        policy_number(Called(lambda x: x + 1))
    with pytest.raises(
        rank1.InputTypeError, match="by must be a plain value, like all settings of call"
    ):
        policy_number(Called(np.arange(3000)))
