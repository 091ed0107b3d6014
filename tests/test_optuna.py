"""The sampler for Optuna suggests what the policy would, whichever worker asks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)
from optuna.trial import TrialState

import rank1
from rank1.errors import extra
from rank1.optuna import ArmSampler, PairSampler
from rank1.optuna.trials import KEY, Choice
from rank1.policies.base import has_counts
from rank1.studies.spec import HORIZON
from tests.optuna_support import (
    COLUMNS,
    GRID,
    MEANS,
    POLICIES,
    ROWS,
    assert_same,
    pairs,
    place,
    play,
    read,
    reward,
    sampler_of,
    study_of,
    suggest,
)
from tests.optuna_support import quiet as quiet
from tests.support import few

#: Hundreds of trials take less time than compiling.
pytestmark = pytest.mark.uncompiled

NAMES = [*POLICIES, "top_two", "uts"]

# What the sampler suggests


@pytest.mark.parametrize("policy", [*NAMES, *few(NAMES, 0)])  # the latter are compiled
def test_suggestions_are_those_of_the_policy(policy: str) -> None:
    study = study_of(sampler_of(policy))
    play(study, 200)
    first, *later = study.trials
    state: Any = rank1.policies.POLICIES[policy]().start(rank1.Known(3, 4, HORIZON))
    if hasattr(state, "load"):  # the policy didn't choose the first trial
        row, column = place(first)
        state.load(4 * row + column, 1, first.value)
    for trial in later:
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((1, trial.number))))
        pull = rank1.ask(state, rng)
        assert place(trial) == divmod(pull.arm, 4)
        rank1.tell(state, pull, trial.value)
    assert len(set(pairs(study))) > 6


def test_the_best_pair_and_when_to_stop() -> None:
    sampler = sampler_of("ucb1", reward_range=(0, 2))
    study = study_of(sampler)
    message = "study must be one in which a trial has suggested row and column, got one with "
    with pytest.raises(rank1.InputError, match=message + "nothing"):
        sampler.best(study)
    other = study_of(sampler)
    play(other, 1)
    with pytest.raises(
        rank1.InputError, match="suggested rows and column, got one with column, row"
    ):
        PairSampler("rows", "column").best(other)
    study.tell(study.ask(GRID), state=TrialState.PRUNED)
    with pytest.raises(
        rank1.InputError, match="study must be one with a trial that has ended with a value"
    ):
        sampler.best(study)
    for _ in range(60):
        trial = study.ask(GRID)
        study.tell(trial, 2 * MEANS[place(trial)])
    assert sampler.best(study) == {"row": "a", "column": 20}
    verdict = sampler.verdict(study)
    assert verdict.leader == ("a", 20)
    assert not verdict.stop
    assert re.match(
        r"keep going: a × (10|None|True) may still be better than a × 20: the evidence against",
        sampler.reason(study),
    )
    counts = np.bincount([4 * row + column for row, column in pairs(study)], minlength=12)
    successes = counts.reshape(3, 4) * MEANS
    theirs = rank1.stopping.verdict(successes, counts.reshape(3, 4) - successes)
    assert verdict.log_e == pytest.approx(theirs.log_e)


@pytest.mark.parametrize("policy", POLICIES)
def test_to_minimise_is_to_maximise_the_opposite(policy: str) -> None:
    up = study_of(sampler_of(policy))
    down = study_of(sampler_of(policy, reward_range=(-3, 1)), direction="minimize")
    play(up, 60)
    for _ in range(60):
        trial = down.ask(GRID)
        down.tell(trial, 1 - 4 * reward(trial))
    assert pairs(up) == pairs(down)


def test_other_parameters_are_for_the_other_sampler() -> None:
    class Fixed(optuna.samplers.RandomSampler):
        def sample_independent(self, *args: Any) -> Any:
            return 0.25 if args[2] == "x" else super().sample_independent(*args)

    study = study_of(sampler_of(independent_sampler=Fixed(1)))

    def objective(trial: Any) -> float:
        assert trial.suggest_float("x", 0, 1) == 0.25
        trial.suggest_categorical("row", ROWS)
        trial.suggest_categorical("column", COLUMNS)
        return 0.5

    study.optimize(objective, n_trials=5)
    assert [KEY in trial.system_attrs for trial in study.trials] == [False, True, True, True, True]


# What the sampler knows


def test_what_teaches_nothing() -> None:
    study = study_of(sampler_of())
    play(study, 5)
    for failed in (TrialState.FAIL, TrialState.PRUNED):
        trial = study.ask(GRID)
        trial.report(0.9, 1)
        study.tell(trial, state=failed)
    trial = study.ask(GRID)
    with pytest.warns(UserWarning, match="nan"):
        study.tell(trial, float("nan"))
    study.ask(GRID)
    memory = read(study.sampler, study).state
    assert memory.book.counts.sum() == 5
    state: Any = memory.state
    assert state.counts.sum() == 5
    assert len(memory.open_table()) == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_pairs_that_somebody_else_chose(policy: str) -> None:
    """Imported, from another sampler or policy, or from the user: the pull is given back."""
    study = study_of(optuna.samplers.RandomSampler(1))
    play(study, 3)
    study.sampler = sampler_of("uniform")
    play(study, 3)
    study.sampler = sampler = sampler_of(policy)
    study.add_trial(
        optuna.create_trial(
            params={"row": "b", "column": None}, distributions=dict(GRID), value=0.5
        )
    )
    study.enqueue_trial({"row": "c", "column": True})
    study.enqueue_trial({"row": "c"})
    play(study, 2)
    assert place(study.trials[7]) == (2, 3)
    assert place(study.trials[8])[0] == 2
    memory = read(sampler, study).state
    assert memory.book.counts.sum() == memory.book.imported.sum() == 9
    assert len(memory.open_table()) == 0
    play(study, 1)
    assert read(sampler, study).state.book.imported.sum() == 9
    assert_same(sampler, sampler_of(policy), study)


def test_the_page_names_policies_that_do_not_learn_from_others_pairs() -> None:
    page = (Path(__file__).parents[1] / "docs/optuna.md").read_text()
    (named,) = re.findall(r"by policies that learn from counts: all but (.*)\|", page)
    known = rank1.Known(2, 2, 10, truth=rank1.policies.Truth(0, 0.1))
    learns = {name for name, it in rank1.policies.POLICIES.items() if has_counts(it().start(known))}
    without = {name for name, it in rank1.policies.POLICIES.items() if name not in learns}
    assert set(re.findall("`(.*?)`", named)) == without - {"oracle"}  # the oracle is rejected


def test_a_trial_that_is_tried_again_is_another_one() -> None:
    study = study_of(sampler_of("rank1elim"))
    play(study, 2)
    trial = study.ask(GRID)
    study.tell(trial, state=TrialState.FAIL)
    failed = study.trials[-1]
    study.add_trial(
        optuna.create_trial(
            state=TrialState.COMPLETE, value=1.0, params=failed.params,
            distributions=failed.distributions, system_attrs=failed.system_attrs,
        )
    )  # fmt: skip
    play(study, 1)
    assert pairs(study)[-1] == place(failed)  # the failed pull is issued again
    assert read(study.sampler, study).state.book.imported.sum() == 2


def test_pruners_that_show_only_some_trials() -> None:
    """Hyperband shows its samplers the trials of one bracket, a different one each time."""
    study = study_of(sampler_of(), pruner=optuna.pruners.HyperbandPruner(1, 9))

    def objective(trial: Any) -> float:
        trial.report(0.5, 1)
        trial.should_prune()  # else it makes no brackets
        return suggest(trial)

    study.optimize(objective, n_trials=20)
    assert len(study.pruner._pruners) > 1
    assert read(study.sampler, study).state.book.counts.sum() == 20
    assert_same(study.sampler, sampler_of(), study)


# What the sampler rejects


def test_a_value_outside_the_range_is_said_at_once_and_can_be_mended() -> None:
    study = study_of(sampler_of())
    play(study, 3)
    with pytest.raises(rank1.InputError, match=r"value of trial 3 must be in reward_range, from 0"):
        study.tell(study.ask(GRID), 1.5)
    with pytest.raises(rank1.InputError, match="with a wider range the study can continue"):
        study.ask(GRID)
    study.sampler = sampler_of(reward_range=(0, 2))
    play(study, 1)
    assert read(study.sampler, study).state.book.sums.max() >= 0.5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("row", "row"), "sides must be parameters that differ, got 'row' twice"),
        ((1, "column"), "row must be the name of a parameter, got 1"),
        (("row", "column", "oracle"), "policy must be one that doesn't need to know the answer"),
        (("row", "column", "ucb2"), "ucb2"),
        (("row", "column", 3), "policy must be a policy or its name, got 3"),
    ],
)
def test_arguments_that_cannot_be(arguments: Any, words: str) -> None:
    with pytest.raises((rank1.InputError, rank1.InputTypeError), match=words):
        PairSampler(*arguments)


@pytest.mark.parametrize(
    ("sides", "policy", "words"),
    [
        ([], "uts", "sides must be 1 to 16 parameters, got 0"),
        ([str(k) for k in range(17)], "uts", "sides must be 1 to 16 parameters, got 17"),
        (["a", 3], "uts", "sides must be names of parameters, got 3"),
        (None, "uts", "sides must be names of parameters, got None"),
        (["a", "b", "c"], "rank1elim", "policy must be one for 3 sides, got 'rank1elim'"),
    ],
)
def test_sides_that_cannot_be(sides: Any, policy: str, words: str) -> None:
    with pytest.raises(rank1.Rank1Error, match=words):
        ArmSampler(sides, policy)


@pytest.mark.parametrize("sizes", [(4,), (2, 3, 2), (2, 2, 2, 2)])
@pytest.mark.parametrize("policy", ["uts", "top_two", "thompson"])
def test_any_number_of_sides(policy: str, sizes: tuple[int, ...]) -> None:
    """The last level of each side is best, and a sampler continues where another stopped."""
    names = [f"side {k}" for k in range(len(sizes))]
    space = {
        name: optuna.distributions.CategoricalDistribution(range(size))
        for name, size in zip(names, sizes, strict=True)
    }
    sampler = ArmSampler(names, policy, seed=1)
    study = study_of(sampler)
    for number in range(150):
        trial = study.ask(space)
        good = [trial.params[name] == size - 1 for name, size in zip(names, sizes, strict=True)]
        chance = 0.95 * 0.5 ** (len(sizes) - sum(good))
        study.tell(trial, float(np.random.default_rng(number).random() < chance))
    best = {name: size - 1 for name, size in zip(names, sizes, strict=True)}
    assert sampler.best(study) == best
    verdict = sampler.verdict(study)
    assert verdict.leader == tuple(best.values())
    assert_same(sampler, ArmSampler(names, policy, seed=1), study)


def test_the_reason_names_the_choices_of_every_side() -> None:
    names = ["headline", "image", "button"]
    choices: list[Any] = [("A", "B"), ("x", None), (1, 2)]
    space: dict[str, Any] = {
        name: optuna.distributions.CategoricalDistribution(it)
        for name, it in zip(names, choices, strict=True)
    }
    sampler = ArmSampler(names, "uniform", seed=1)
    study = study_of(sampler)
    for _ in range(400):
        trial = study.ask(space)
        study.tell(trial, float(trial.params == {"headline": "B", "image": None, "button": 2}))
    assert sampler.reason(study).startswith(
        "stop: B × None × 2 is best at confidence 95%, because it beats every arm that differs"
    )
    assert "every other arm of the grid" in sampler.reason(study, rank_one=False)


@pytest.mark.parametrize("name", ["reward", "", "x" * 1000])
def test_parameters_of_any_name(name: str) -> None:
    """Names that the sides of a live study can't have work, too."""
    sampler = ArmSampler([name], "ucb1", seed=1)
    study = study_of(sampler)
    for _ in range(20):
        trial = study.ask({name: optuna.distributions.CategoricalDistribution(("a", "b"))})
        study.tell(trial, float(trial.params[name] == "b"))
    assert sampler.best(study) == {name: "b"}


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ([5000], "side 0 must be a parameter with at most 4,096 choices, got 5,000"),
        ([200, 200, 200], "sides must be small enough for 1,048,576 arms"),
    ],
)
def test_grids_that_are_too_large(sizes: list[int], words: str) -> None:
    space: dict[str, Any] = {
        f"side {k}": optuna.distributions.CategoricalDistribution(range(size))
        for k, size in enumerate(sizes)
    }
    study = study_of(ArmSampler(list(space), "uts", seed=1))
    study.tell(study.ask(space), 0.5)
    with pytest.raises(rank1.InputError, match=words):
        study.ask(space)


class Own(rank1.UCB1):
    """A policy from another package."""

    name = "own"


@dataclass(frozen=True)
class OwnLeaping(rank1.ThompsonSampling):
    """A policy from another package with a shortcut, and a state with a field called `shares`."""

    name = "own_leaping"
    leaps = rank1.Rank1Elim.leaps

    def start(self, known: rank1.Known) -> Any:
        state = super().start(known)
        arrays = {**state._asdict(), "shares": np.zeros(2)}
        fields = NamedTuple("Arrays", [(name, Any) for name in arrays])  # type: ignore[misc]
        return type("OwnState", (fields, type(state)), {})(**arrays)


def test_a_shortcut_of_another_package_says_nothing_about_pulls() -> None:
    study = study_of(sampler_of(OwnLeaping()))
    play(study, 20)
    assert read(study.sampler, study).pulls == 19


def test_policies_of_other_packages() -> None:
    """Given by class name or as a value; each treats the other's choices as its own pulls."""
    one, two = sampler_of(f"{__name__}:Own:confidence=2"), sampler_of(Own(confidence=2))
    study = study_of(one)
    play(study, 20)
    study.sampler = two
    play(study, 20)
    assert_same(one, two, study)
    assert read(two, study).state.book.imported.sum() == 1  # the first trial, which is random
    with pytest.raises(rank1.InputError, match="policy must be a class that can be imported"):
        sampler_of("no_such_module:Own")


@pytest.mark.compiled
def test_numba_is_neither_imported_nor_waited_for() -> None:
    code = (
        "import sys, rank1.optuna\n"
        "from tests import optuna_support as t\n"
        "t.optuna.logging.set_verbosity(t.optuna.logging.ERROR)\n"
        "study = t.study_of(t.sampler_of('uts'))\n"
        "t.play(study, 20); study.sampler.best(study); study.sampler.reason(study)\n"
        "assert 'numba' not in sys.modules"
    )
    root = str(Path(__file__).parents[1])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0"}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, env=environment)


def test_choices_that_earlier_versions_wrote_are_read() -> None:
    """They had a row, a column and a tag."""
    former = {"by": ["row", "column", "ucb1", None], "number": 3, "pull": [2, 1, 7]}
    choice = Choice.read({**former, "at": 5.0, "after": 2})
    assert (choice.levels, choice.tag, choice.at) == ([2, 1], 7, 5.0)
    assert Choice.read(asdict(choice)) == choice


def test_settings_that_cannot_be() -> None:
    wrong: list[dict[str, Any]] = [{"reward_range": (1, 1)}, {"horizon": 0}, {"seed": -1}]
    for more in wrong:
        with pytest.raises(rank1.InputError, match=next(iter(more))):
            sampler_of(**{"seed": 1, **more})


def test_a_parameter_that_is_not_categorical() -> None:
    study = study_of(sampler_of())
    with pytest.raises(rank1.InputTypeError, match="row must be a categorical parameter, got Int"):
        study.ask().suggest_int("row", 0, 3)


def test_without_optuna_it_says_how_to_get_it() -> None:
    code = (
        "import sys, rank1; assert 'optuna' not in sys.modules; sys.modules['optuna'] = None\n"
        "try: rank1.optuna\n"
        "except ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == f"rank1.optuna needs optuna: {extra('optuna')}\n"


# Optuna's own tests, which know nothing about rows and columns


class TestOptunaBasic(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    """All basic tests. MultiObjectiveSamplerTestCase doesn't apply: there is one value to learn."""

    test_trial_relative_params = RelativeSamplerTestCase.test_trial_relative_params

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return sampler_of


class TestOptunaCategorical:
    """The tests with only categorical parameters, used as row and column.

    The others suggest x or y as a number, which rows and columns can't be:
    test_sample_relative_numerical and test_sample_relative_mixed.
    """

    test_categorical = BasicSamplerTestCase.test_categorical
    test_conditional = BasicSamplerTestCase.test_conditional_sample_independent
    test_sample_relative_categorical = RelativeSamplerTestCase.test_sample_relative_categorical

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: PairSampler("x", "y", "ucb1", seed=1, reward_range=(-200, 200))
