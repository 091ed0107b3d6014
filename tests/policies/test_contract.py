"""What every policy must do. A new policy is found through `POLICIES` and needs no line here."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core import event

import rank1
from rank1.literal import LITERAL
from rank1.policies import POLICIES, Known, Policy, Pull, ask, tell
from rank1.policies.base import Records, Simple, label_of
from rank1.simulation.known import known_of
from rank1.testing import POLICY_CHECKS, check_policy, policies
from tests.support import examples, few, start

PROBLEM = rank1.Bernoulli([0.9, 0.2, 0.5], [0.3, 0.8])
# GLM-UCB divides by the lowest mean, which is 0 in one of the problems.
NEEDED: dict[str, dict[str, Any]] = {"glm_ucb": {"c_mu": 0.1}}
EVERY = [cls(**NEEDED.get(name, {})) for name, cls in POLICIES.items()]
EVERY_POLICY = pytest.mark.parametrize("policy", EVERY, ids=str)


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@EVERY_POLICY
def test_contract(
    policy: Policy,
    check: Callable[[Policy], None],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """The loop is compiled for all, what studies need besides for two; see `make validate`.

    Only UTS is compiled for any number of sides; the others for the law of other tests. What needs
    no loop runs as written.
    """
    monkeypatch.setattr(policies, "TRIALS", 4)
    if policy.name not in ("uts", "rank1elim"):
        monkeypatch.setattr(policies, "kernel", lambda function, *given: function)
    loop = (policies.compiles, policies.makes_the_choices_of_the_loop)
    if check in loop or (check is policies.finds_the_best_arm and not policy.leaps):
        if policy.name != "uts":
            monkeypatch.setattr(policies, "SIDES", (2,))
            monkeypatch.setattr(policies, "_problem", lambda sides: rank1.Bernoulli(*sides))
    else:
        request.getfixturevalue("uncompiled")
    check(policy)


@pytest.mark.validate
@EVERY_POLICY
def test_the_whole_contract(policy: Policy) -> None:
    """With what studies need compiled, and more random orders."""
    check_policy(policy)


@pytest.mark.uncompiled
@pytest.mark.parametrize("sides", [1, pytest.param(4, marks=pytest.mark.validate)])
@pytest.mark.parametrize(
    "policy", [cls() for cls in POLICIES.values() if cls.sides is None], ids=str
)
def test_contract_for_other_numbers_of_sides(
    policy: Policy, sides: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`check_policy` has two and three."""
    monkeypatch.setattr(policies, "SIDES", (sides,))
    monkeypatch.setattr(policies, "TRIALS", 4)
    for check in (
        policies.runs_as_it_is_written,
        policies.takes_rewards_late_unordered_or_never,
        policies.is_the_same_when_it_is_folded,
        policies.takes_any_pull_that_it_is_told_of,
        policies.takes_counts_for_rewards,
        policies.goes_on_from_a_snapshot,
    ):
        check(policy)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=lambda policy: policy.name)
def test_sides_that_a_policy_cannot_play_are_refused(policy: type[Policy]) -> None:
    for_two = ("rank1elim", "rank1elim_kl", "pair_elim", "id_ts", "linucb", "glm_ucb")
    assert policy.sides == (2 if policy.name in for_two else None)
    for sides in ((3,), (2, 3, 2)):
        if policy.sides == 2:
            with pytest.raises(rank1.InputError, match=rf"sides must be 2 for {policy.name}, got"):
                policy().start(Known(sides=sides, n=100))


def test_a_literal_version_is_that_of_a_policy() -> None:
    """Those of the papers have one; a policy without a shortcut needs none."""
    assert len(LITERAL) > 12
    assert list(LITERAL) == [name for name in POLICIES if name in LITERAL]


@EVERY_POLICY
@examples(15)
@given(data=st.data())
def test_late_unordered_and_missing_rewards(policy: Policy, data: st.DataObject) -> None:
    """As the check of that name, with examples that Hypothesis makes small."""
    state, rng = start(policy, PROBLEM, 200), np.random.default_rng(data.draw(st.integers(0, 99)))
    pending: list[Pull] = []
    for action in data.draw(st.lists(st.sampled_from("aaattf"), max_size=120)):
        if action == "a":
            pull = ask(state, rng)
            assert 0 <= pull.arm < PROBLEM.arms
            pending.append(pull)
        elif pending:
            pull = pending.pop(data.draw(st.integers(0, len(pending) - 1)))
            if action == "t":
                tell(state, pull, PROBLEM.law.draw(pull.arm, rng)[0])
            else:
                state = state.forget(*pull)
    assert 0 <= state.best() < PROBLEM.arms


#: They learn of levels, and may recommend two of them that were never shown together.
OF_LEVELS = {
    "rank1elim", "rank1elim_kl", "pair_elim", "factor_ts", "bet_elim", "linucb", "glm_ucb"
}  # fmt: skip


@pytest.mark.uncompiled
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    "policy",
    [
        *(policy for policy in EVERY if policy.name not in {*OF_LEVELS, "oracle"}),
        rank1.UTS(first_round=False),
        rank1.IdTS("incremental"),
    ],
    ids=str,
)
def test_an_arm_without_a_report_is_not_recommended(policy: Policy, share: float) -> None:
    """However the first rewards turn out, and in whatever order they come in."""
    for seed in range(8):
        state, rng, reported = start(policy, PROBLEM, 200), np.random.default_rng(seed), set()
        pulls = [ask(state, rng) for _ in range(8)]
        for k in rng.permutation(8):
            tell(state, pulls[k], float(rng.random() < share))
            reported.add(pulls[k].arm)
            assert state.best() in reported


@pytest.mark.parametrize("policy", few([rank1.UTS(), *EVERY], 1), ids=str)
def test_after_warming_up_nothing_is_compiled(policy: Policy) -> None:
    rank1.warm_up(policy)
    state, rng = start(policy, PROBLEM, 1000), np.random.default_rng(1)
    with event.install_recorder("numba:compile") as compiled:
        for _ in range(3):
            tell(state, ask(state, rng), 1.0)
        state = state.forget(*ask(state, rng))
        tell(state, ask(state, rng), 0.0)
        state.best()
    assert compiled.buffer == []


REGRETS = """
import json, rank1
problem = rank1.spike(3, 4, 0.4, 0.5, 0.4, 0.3)
regrets = {}
for name, cls in rank1.POLICIES.items():
    policy = cls(c_mu=0.1) if name == "glm_ucb" else cls()
    result = rank1.simulate(policy, problem, 300, 2, seed=1)
    regrets[name] = result.outcomes[0].expected.tolist()
print(json.dumps(regrets))
"""


@pytest.mark.validate
def test_plain_python_makes_the_choices_of_compiled_code() -> None:
    """In whole runs of simulations; `makes_the_choices_of_the_loop` has single ones."""

    def regrets(**extra: str) -> Any:
        command, env = [sys.executable, "-c", REGRETS], os.environ | extra
        run = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
        return json.loads(run.stdout)

    assert regrets(NUMBA_DISABLE_JIT="1") == regrets()


class Arrays(NamedTuple):
    limits: Records
    counts: np.ndarray[Any, Any]


class MineState(Arrays, Simple):
    """A state that can be broken in several ways."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        return int(rng.random() * len(self.counts)), 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        self.counts[arm] += 1

    def best(self) -> int:
        return 0


class Allocating(MineState):
    """Steps are compiled without a memory manager: what allocates doesn't compile."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        return int(np.zeros(2)[0]), 0


class Dictionary(MineState):
    def update(self, arm: int, tag: int, reward: float) -> None:
        seen = {arm: reward}
        self.counts[arm] += len(seen)


class Typo(MineState):
    def update(self, arm: int, tag: int, reward: float) -> None:
        self.count[arm] += 1  # type: ignore[index]


class OffTheGrid(MineState):
    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        return len(self.counts) - 1 + int(rng.random() * 1.1), 0


class Fractional(MineState):
    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        return rng.random(), 0  # type: ignore[return-value]


class WithoutTag(MineState):
    def choose(self, rng: np.random.Generator) -> int:  # type: ignore[override]
        return int(rng.random() * len(self.counts))


class Unseeded(MineState):
    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        return int(np.random.rand() * len(self.counts)), 0  # noqa: NPY002


def from_elsewhere() -> float:
    return random.random()


class UnseededElsewhere(MineState):
    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        return int(from_elsewhere() * len(self.counts)), 0


class Forgetful(MineState):
    def forget(self, arm: int, tag: int) -> Any:
        raise KeyError(arm)


class Undecided(MineState):
    def best(self) -> Any:
        return None


class FewArguments(MineState):
    def update(self, arm: int, reward: float) -> None:  # type: ignore[override]
        self.counts[arm] += 1


class Counting(MineState):
    """Its choices change it, and it can't be told of them."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        self.counts[0] += 1
        return 0, 0


class Bare(Arrays):
    """What `Simple` would supply is missing."""

    caches = ()
    choose, update, best = MineState.choose, MineState.update, MineState.best


class BareIssued(Bare):
    forget, expects = Simple.forget, Simple.expects


class BareForget(Bare):
    issued, expects = Simple.issued, Simple.expects


class OneArray(NamedTuple):
    counts: np.ndarray[Any, Any]


class NoLimits(OneArray, Simple):
    choose, update, best = MineState.choose, MineState.update, MineState.best


SHARED = np.zeros(12, np.int64)


def counts(known: Known) -> np.ndarray[Any, Any]:
    return np.zeros(known.arms, np.int64)


def policy_of(begin: Callable[[Known], Any]) -> Policy:
    @dataclass(frozen=True)
    class Mine(Policy):
        name = "mine"

        def start(self, known: Known) -> Any:
            return begin(known)

    return Mine()


def told_by(begin: Callable[[Known], Any]) -> str:
    """What `check_policy` says of a policy with such a state."""
    with pytest.raises(AssertionError) as caught:
        check_policy(policy_of(begin))
    return str(caught.value)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (Allocating, r"choose \(.*test_contract\.py:\d+\): .*zeros.*"),
        (Dictionary, r"update \(.*test_contract\.py:\d+\): .*"),
        (Typo, r"mine: update \(test_contract\.py:\d+\): .*"),
        (Fractional, r"choose \(test_contract\.py:\d+\): .* whole numbers, got \(0\.\d+, 0\)"),
        (WithoutTag, r"choose \(test_contract\.py:\d+\): .* an arm and a tag, .*, got \d+"),
        (Unseeded, r"choose \(test_contract\.py:\d+\): .* its own generator: draw from `rng`"),
        (UnseededElsewhere, r"choose \(test_contract\.py:\d+\): .* its own generator"),
        (Forgetful, r"mine: forget \(test_contract\.py:\d+\): KeyError: \d+"),
        (BareIssued, r"issued \(test_contract\.py:\d+\): the state BareIssued has no issued: .*"),
        (BareForget, r"forget \(test_contract\.py:\d+\): the state BareForget has no forget: .*"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_mistake_is_one_line(state: Any, message: str) -> None:
    """Policy, method, file and line, cause."""
    told = told_by(lambda known: state(known.limits, counts(known)))
    assert re.fullmatch(f"mine: .*{message}.*", told), told
    assert len(told) < 400


def test_a_state_without_limits() -> None:
    told = told_by(lambda known: NoLimits(counts(known)))
    assert re.search(r"limits \(test_contract\.py:\d+\): the state NoLimits has no limits", told)


@pytest.mark.parametrize(
    ("state", "method", "message"),
    [
        (BareForget, "forget", "has no forget"),
        (FewArguments, "update", r"it must take the arguments \(self, arm, tag, reward\)"),
        (Undecided, "best", "it must return an arm, a whole number, got None"),
    ],
)
def test_mistakes_are_found_in_a_run(state: Any, method: str, message: str) -> None:
    policy = policy_of(lambda known: state(known.limits, counts(known)))
    with pytest.raises(rank1.PolicyError, match=rf"mine: {method} .*{message}") as caught:
        rank1.simulate(policy, PROBLEM, 100, 1)
    assert caught.value.method == method  # type: ignore[attr-defined]


def test_a_state_that_is_not_arrays_is_found_before_a_run() -> None:
    policy = policy_of(lambda known: MineState(known.limits, {}))  # type: ignore[arg-type]
    with pytest.raises(
        rank1.PolicyError, match=r"mine: start .*counts must be an array .* got dict"
    ):
        rank1.simulate(policy, PROBLEM, 100, 1)


def test_a_mistake_is_one_line_where_it_runs_as_python() -> None:
    state = policy_of(lambda known: Typo(known.limits, counts(known))).start(Known(2, 3, 100))
    message = r"Typo\.update \(.*test_contract\.py:\d+\): TypeError: .* not subscriptable"
    with pytest.raises(rank1.PolicyError, match=message) as caught:
        rank1.tell(state, rank1.Pull(0, 0), 1.0)
    assert caught.value.method == "update"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("begin", "message"),
    [
        (
            lambda known: OffTheGrid(known.limits, counts(known)),
            r"there are 6 arms, got Pull\(arm=6, tag=0\)",
        ),
        (
            lambda known: Counting(known.limits, counts(known)),
            "told of pulls and rewards equals .* after the same pulls and rewards counts is",
        ),
        (
            lambda known: MineState(known.limits, SHARED[: known.arms]),
            "which shares no memory .* what one state learned was seen in another",
        ),
        (
            lambda known: MineState(known.limits, [0] * known.arms),  # type: ignore[arg-type]
            r"start \(test_contract\.py:\d+\): the state's counts must be an array .*, got list",
        ),
        (
            lambda known: MineState(Known(9, 9, 9).limits, counts(known)),
            "its field limits must be known.limits",
        ),
        (
            lambda known: MineState(known.limits, np.zeros(known.truth.best_arm)),
            r"start \(test_contract\.py:\d+\): AttributeError: .* no attribute 'best_arm'",
        ),
        (
            lambda known: MineState(known.limits, counts(known)),
            r"It recommends the best arm of an easy problem. \(1, 2\) is best, got",
        ),
    ],
)
def test_a_policy_that_breaks_the_contract_is_told_so(
    begin: Callable[[Known], Any], message: str
) -> None:
    assert re.search(f"mine: .*{message}", told_by(begin))


def test_a_policy_must_be_frozen() -> None:
    class Thawed(rank1.Uniform):
        __setattr__ = object.__setattr__

    with pytest.raises(AssertionError, match=r"must be decorated with @dataclass\(frozen=True\)"):
        check_policy(Thawed())


def test_known_has_defaults_for_a_live_study() -> None:
    known = Known(2, 3, 1e2)  # type: ignore[arg-type]
    assert (known.n, known.low, known.high, known.sigma, known.truth) == (100, 0, 1, 0, None)
    assert isinstance(known.n, int)
    with pytest.raises(ValueError, match=r"low must be at most high, which is 0\.5, got 1\.0"):
        Known(2, 3, 100, low=1.0, high=0.5)
    with pytest.raises(ValueError, match="sigma must be a number of at least 0, got -1"):
        Known(2, 3, 100, sigma=-1)


def test_the_truth_is_told_where_it_is_needed() -> None:
    problem = rank1.Gaussian([0.2, 0.9], [0.5, 0.7], sigma=0.3)
    told = {name for name, cls in POLICIES.items() if known_of(cls(), problem, 9).truth}
    assert told == {"oracle", "glm_ucb"}
    assert known_of(rank1.GLMUCB(c_mu=0.1), problem, 9).truth is None
    known = known_of(rank1.Oracle(), problem, 9)
    assert known == Known(2, 2, 9, -np.inf, np.inf, 0.3, rank1.Truth(3, 0.1))
    with pytest.raises(ValueError, match="truth must be known for oracle, got None"):
        rank1.Oracle().start(Known(2, 3, 100))


@pytest.mark.parametrize(
    "name", ["uniform", "ucb1", "linucb", "thompson", "uts", "kl_ucb", "osub", "id_ts"]
)
def test_an_unplayed_arm_is_not_the_best(name: str) -> None:
    """One report, and it is the worst reward there is."""
    wide = name in ("uniform", "ucb1", "linucb")
    state = POLICIES[name]().start(Known(2, 2, 100, low=-1.0 if wide else 0.0))
    tell(state, Pull(1, 0), -1.0 if wide else 0.0)
    assert state.best() == 1


@pytest.mark.parametrize(
    ("policy", "label"),
    [
        (rank1.Rank1Elim(), "rank1elim"),
        (rank1.Rank1Elim(1), "rank1elim"),
        (rank1.Rank1Elim(0.5), "rank1elim:confidence_scale=0.5"),
        (rank1.UTS(3), "uts:gamma=3"),
        (rank1.UTS(2), "uts"),
        (rank1.LinUCB(1 / 3, "determinant"), "linucb:confidence_scale=1/3,radius=determinant"),
        (rank1.GLMUCB(c_mu=0.25), "glm_ucb:c_mu=0.25"),
    ],
)
def test_a_policy_has_one_name(policy: Policy, label: str) -> None:
    assert policy.label == label
    assert label_of(policy.name, policy.settings, type(policy)) == label


def test_the_settings_that_are_given_are_named() -> None:
    assert label_of("linucb", {"noise": 1.0}, rank1.LinUCB) == "linucb:noise=1"
    assert label_of("linucb", {"noise": 0.5}, rank1.LinUCB) == "linucb"
    assert label_of("linucb", {"noise": 0.5}) == "linucb:noise=0.5"
