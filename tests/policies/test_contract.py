"""What every policy must do. A new policy is found through `POLICIES` and needs no line here."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.errors import TypingError

import rank1
from rank1.policies import POLICIES, Known, Policy, Pull, ask, tell
from tests.support import known_of, play_compiled

PROBLEM = rank1.Bernoulli([0.9, 0.2, 0.5], [0.3, 0.8])
# GLM-UCB divides by the lowest mean, which is 0 in one of the problems.
NEEDED: dict[str, dict[str, Any]] = {"glm_ucb": {"c_mu": 0.1}}
EVERY_POLICY = pytest.mark.parametrize(
    "policy", [cls(**NEEDED.get(name, {})) for name, cls in POLICIES.items()], ids=str
)


def start(policy: Policy, n: int = 2000, problem: rank1.Problem = PROBLEM) -> Any:
    return policy.start(known_of(problem, n))


def state_bytes(state: Any) -> bytes:
    return b"".join(np.asarray(value).tobytes() for value in state)


@EVERY_POLICY
def test_state_is_plain_arrays(policy: Policy) -> None:
    for value in start(policy):
        assert isinstance(value, np.ndarray)
        assert value.dtype.kind in "iufbV"


@EVERY_POLICY
def test_start_is_always_the_same_and_shares_nothing(policy: Policy) -> None:
    first, second = start(policy), start(policy)
    assert state_bytes(first) == state_bytes(second)
    rng = np.random.default_rng(0)
    before = state_bytes(second)
    for _ in range(50):
        tell(first, ask(first, rng), 1.0)
    assert state_bytes(second) == before


@EVERY_POLICY
def test_ask_and_tell_make_the_choices_of_the_loop(policy: Policy) -> None:
    n = 300
    pairs, rewards, last = play_compiled(policy, PROBLEM, n, seed=3)
    state, rng = start(policy, n), np.random.default_rng(3)
    for t in range(n):
        pull = ask(state, rng)
        assert (pull.row, pull.column) == tuple(pairs[t])
        reward, _ = PROBLEM.law.draw(pull.row, pull.column, rng)
        assert reward == rewards[t]
        tell(state, pull, reward)
    assert state_bytes(state) == state_bytes(last)


@EVERY_POLICY
def test_saved_and_loaded_it_goes_on_unchanged(policy: Policy) -> None:
    state, rng = start(policy), np.random.default_rng(5)
    for _ in range(100):
        tell(state, ask(state, rng), float(rng.random() < 0.5))
    pending = [ask(state, rng) for _ in range(3)]
    file = io.BytesIO()
    np.savez(file, **state._asdict())
    file.seek(0)
    arrays = np.load(file)
    loaded = type(state)(
        **{name: arrays[name].view(a.dtype) for name, a in state._asdict().items()}
    )
    other = np.random.default_rng()
    other.bit_generator.state = rng.bit_generator.state
    for pull in pending:
        tell(state, pull, 1.0)
        tell(loaded, pull, 1.0)
    for _ in range(200):
        pull = ask(state, rng)
        assert pull == ask(loaded, other)
        reward = float((pull.row + pull.column) % 2)
        tell(state, pull, reward)
        tell(loaded, pull, reward)
    assert state_bytes(state) == state_bytes(loaded)


@EVERY_POLICY
@settings(max_examples=30, deadline=None, derandomize=True)
@given(data=st.data())
def test_late_unordered_and_missing_rewards(policy: Policy, data: st.DataObject) -> None:
    """Any mix of asking, reporting in any order and giving back; pairs stay inside the grid."""
    state, rng = start(policy, n=200), np.random.default_rng(data.draw(st.integers(0, 99)))
    out: list[Pull] = []
    for action in data.draw(st.lists(st.sampled_from("aaattf"), max_size=120)):
        if action == "a":
            pull = ask(state, rng)
            assert 0 <= pull.row < PROBLEM.K
            assert 0 <= pull.column < PROBLEM.L
            out.append(pull)
        elif out:
            pull = out.pop(data.draw(st.integers(0, len(out) - 1)))
            if action == "t":
                tell(state, pull, PROBLEM.law.draw(pull.row, pull.column, rng)[0])
            else:
                state = state.forget(*pull)
    row, column = state.best()
    assert 0 <= row < PROBLEM.K
    assert 0 <= column < PROBLEM.L


@EVERY_POLICY
def test_learns_with_every_reward_late(policy: Policy) -> None:
    """Rewards of 20 pulls at a time, last first; every tenth is given back."""
    if policy.name == "uniform":
        pytest.skip("it doesn't learn")
    problem = rank1.Bernoulli([1.0, 0.2], [0.1, 1.0])
    n = 12_000
    state, rng = start(policy, n, problem), np.random.default_rng(7)
    for batch in range(n // 20):
        pulls = [ask(state, rng) for _ in range(20)]
        for k, pull in enumerate(reversed(pulls)):
            if (20 * batch + k) % 10 == 9:
                state = state.forget(*pull)
            else:
                tell(state, pull, problem.law.draw(pull.row, pull.column, rng)[0])
    assert state.best() == problem.best_pair


@EVERY_POLICY
def test_finds_the_best_pair_of_an_easy_problem(policy: Policy) -> None:
    problem = rank1.Bernoulli([0.1, 1.0, 0.2], [0.3, 0.1, 1.0])
    result = rank1.simulate(policy, problem, n=20_000, runs=3, seed=1)
    assert result.best_pairs(policy.label) == [(1, 2)] * 3


@EVERY_POLICY
@pytest.mark.parametrize(
    ("K", "L", "n"), [(1, 1, 1), (1, 1, 50), (1, 4, 3), (4, 1, 100), (3, 3, 2)]
)
def test_small_grids_and_short_runs(policy: Policy, K: int, L: int, n: int) -> None:
    problem = rank1.Bernoulli(np.linspace(0.2, 1, K), np.linspace(0.9, 0, L))
    result = rank1.simulate(policy, problem, n=n, runs=2, seed=1)
    outcome = result.outcomes[0]
    assert outcome.expected.shape == (2, n)
    assert np.all(outcome.expected[:, -1] <= n)
    assert np.all(np.diff(outcome.expected, axis=1) >= 0)


@EVERY_POLICY
def test_goes_on_past_the_horizon(policy: Policy) -> None:
    state, rng = start(policy, n=30), np.random.default_rng(1)
    for _ in range(500):
        tell(state, ask(state, rng), 1.0)
    assert state.best()[0] < PROBLEM.K


class AllocatingState(NamedTuple):
    counts: np.ndarray[Any, Any]

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        return int(np.zeros(2)[0]), 0, 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        self.counts[0] += 1


def test_nothing_is_allocated_in_a_step() -> None:
    """Steps are compiled without a memory manager: a policy that allocated would not compile."""
    with pytest.raises(TypingError, match="zeros"):
        ask(AllocatingState(np.zeros(1)), np.random.default_rng(1))


@EVERY_POLICY
def test_policy_is_an_immutable_value(policy: Policy) -> None:
    same = type(policy)(**policy.settings)
    assert same == policy
    assert hash(same) == hash(policy)
    with pytest.raises(AttributeError):
        policy.name = "other"  # type: ignore[misc]


@EVERY_POLICY
def test_what_does_not_belong_to_the_grid_is_refused(policy: Policy) -> None:
    state, rng = start(policy), np.random.default_rng(1)
    pull = ask(state, rng)
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="reward must be a finite number"):
            tell(state, pull, bad)
    for row, column in ((-1, 0), (3, 0), (0, -1), (0, 2), (100_000, 0)):
        with pytest.raises(ValueError, match="pull must lie on the grid of 3 rows and 2 columns"):
            tell(state, Pull(row, column, pull.tag), 1.0)
    for bad in (-0.001, 1.001, 5.0):
        with pytest.raises(ValueError, match=rf"reward must be a number in \[0, 1\], got {bad}"):
            tell(state, pull, bad)
    tell(state, pull, 1.0)


def test_known_has_defaults_for_a_live_study() -> None:
    assert Known(2, 3, 100).sigma == 0
    with pytest.raises(ValueError, match="oracle must be told the best pair, got none"):
        rank1.Oracle().start(Known(2, 3, 100))


@pytest.mark.parametrize("name", ["uniform", "ucb1", "linucb", "thompson", "uts", "kl_ucb", "osub"])
def test_an_unplayed_pair_is_not_the_best(name: str) -> None:
    """One report, and it is the worst reward there is."""
    wide = name in ("uniform", "ucb1", "linucb")
    state = POLICIES[name]().start(Known(2, 2, 100, low=-1.0 if wide else 0.0))
    tell(state, Pull(0, 1, 0), -1.0 if wide else 0.0)
    assert state.best() == (0, 1)
