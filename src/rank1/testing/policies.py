"""What every policy must do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from rank1.compiled import kernel
from rank1.errors import InputError
from rank1.policies import Policy, Pull, State, ask, restore, snapshot, tell
from rank1.policies.base import expects, forget, issued, load, update
from rank1.problems import Bernoulli, Problem
from rank1.simulation import simulate
from rank1.simulation.known import known_of
from rank1.testing.expect import expect, run_checks
from rank1.testing.play import play_compiled

__all__ = ["POLICY_CHECKS", "check_policy"]

PROBLEM = Bernoulli([0.9, 0.2, 0.5], [0.3, 0.8])


def check_policy(policy: Policy, seed: int = 0) -> None:
    """Try a policy with late, unordered and missing rewards, and all else that it promises.

    Parameters
    ----------
    policy
        With any settings. It must be able to play grids of any size with rewards of 0 and 1, and
        recommend the best pair of an easy one.
    seed
        Of the random numbers; the same seed, the same trials.

    Raises
    ------
    AssertionError
        Which says what the policy should have done, and what it did.

    Examples
    --------
    >>> import rank1
    >>> from rank1.testing import check_policy
    >>> check_policy(rank1.UCB1(confidence=1.5))
    """
    run_checks(getattr(policy, "label", repr(policy)), POLICY_CHECKS, policy, seed)


def _start(policy: Policy, n: int = 2000, problem: Problem = PROBLEM) -> State:
    return policy.start(known_of(policy, problem, n))


def _bytes(state: State) -> bytes:
    return b"".join(np.asarray(array).tobytes() for array in state._asdict().values())


# Two functions and not four: compiling each takes long for its state, however little it does.


def _tell_of(state: Any, row: int, column: int, tag: int, reward: float) -> None:
    """What a study does with a report; without a reward the pull is handed out."""
    if np.isnan(reward):
        issued(state, row, column, tag)
    elif expects(state, row, column, tag):
        update(state, row, column, tag, reward)


def _load(state: Any, row: int, column: int, tag: int, count: int, total: float) -> None:
    """Rewards by their number and sum; without any the pull is given back."""
    if count > 0:
        load(state, row, column, count, total)
    else:
        forget(state, row, column, tag)


def _issue(state: State, pull: Pull) -> None:
    kernel(_tell_of, state)(state, *pull, np.nan)


def _ask(state: State, rng: np.random.Generator) -> Pull:
    """A pull that is known to lie on the grid."""
    pull = ask(state, rng)
    K, L, *_ = state.limits[0].item()
    whole = all(isinstance(part, int) for part in pull)
    expect(whole, f"row, column and tag must be whole numbers, got {pull}")
    inside = 0 <= pull.row < K and 0 <= pull.column < L
    expect(inside, f"there are {K} rows and {L} columns, got {pull}")
    return pull


def _expect_best(state: State) -> None:
    row, column = state.best()
    K, L, *_ = state.limits[0].item()
    expect(0 <= row < K and 0 <= column < L, f"best() must be a pair, got {(row, column)}")


def is_an_immutable_value(policy: Policy, seed: int = 0) -> None:
    """A policy is a frozen dataclass of its settings."""
    expect(isinstance(policy, Policy), f"it must be an instance of rank1.Policy, got {policy!r}")
    expect(isinstance(policy.name, str), f"its name must be a text, got {policy.name!r}")
    same = type(policy)(**policy.settings)
    expect(same == policy, f"made again from its settings it must be the same, got {same!r}")
    expect(hash(same) == hash(policy), "equal policies must have the same hash")
    try:
        policy.name = "other"  # type: ignore[misc]
    except AttributeError:
        return
    raise AssertionError("its class must be decorated with @dataclass(frozen=True)")


def is_told_the_truth_only_if_it_asks(policy: Policy, seed: int = 0) -> None:
    """`start` takes what a live study knows, or refuses it if the policy declares `needs_truth`."""
    known = dataclasses.replace(known_of(policy, PROBLEM, 100), truth=None)
    try:
        policy.start(known)
    except InputError as error:
        expect(policy.needs_truth, f"without the truth it should start, but: {error}")
        expect(policy.name in str(error), f"the error must name {policy.name}, got: {error}")
    else:
        expect(not policy.needs_truth, "it says needs_truth, but starts without the truth")


def has_a_state_of_plain_arrays(policy: Policy, seed: int = 0) -> None:
    """`start` returns a NamedTuple of NumPy arrays with the methods of `rank1.State`."""
    state = _start(policy)
    methods = "choose", "issued", "update", "expects", "forget", "best"
    for member in ("limits", *methods, *(("load",) if policy.counts else ()), "_asdict"):
        expect(hasattr(state, member), f"the state must have {member}")
    for cache in policy.caches:
        expect(cache in state._asdict(), f"its cache {cache} must be one of its arrays")
    limits = known_of(policy, PROBLEM, 2000).limits
    expect(state.limits.tobytes() == limits.tobytes(), "its field limits must be known.limits")
    for name, array in state._asdict().items():
        expect(isinstance(array, np.ndarray), f"{name} must be an array, got {type(array)}")
        plain = array.dtype.kind in "iufbV"
        expect(plain, f"{name} must be of numbers or records of numbers, got {array.dtype}")


def starts_always_the_same(policy: Policy, seed: int = 0) -> None:
    """`start` always gives the same state, which shares no memory with another."""
    first, second = _start(policy), _start(policy)
    before = _bytes(second)
    expect(_bytes(first) == before, "two states before the first step must be equal")
    rng = np.random.default_rng(seed)
    for _ in range(50):
        tell(first, _ask(first, rng), 1.0)
    expect(_bytes(second) == before, "what one state learned was seen in another")


def compiles(policy: Policy, seed: int = 0) -> None:
    """`choose` and `update` are compiled by Numba, and so must not allocate memory."""
    state = _start(policy)
    tell(state, _ask(state, np.random.default_rng(seed)), 1.0)


def takes_rewards_late_unordered_or_never(policy: Policy, seed: int = 0) -> None:
    """Any mix of asking, reporting in any order and giving back keeps pulls on the grid."""
    for trial in range(30):
        rng = np.random.default_rng((seed, trial))
        state = _start(policy, n=200)
        out: list[Pull] = []
        for _ in range(rng.integers(1, 121)):
            action = rng.random()
            if action < 0.5 or not out:
                out.append(_ask(state, rng))
                continue
            pull = out.pop(rng.integers(len(out)))
            if action < 0.85:
                tell(state, pull, PROBLEM.law.draw(pull.row, pull.column, rng)[0])
            else:
                state = state.forget(*pull)
        _expect_best(state)


def takes_a_thousand_asks_before_any_report(policy: Policy, seed: int = 0) -> None:
    """A batch of 1,000 pulls is handed out before the first reward comes in."""
    state, rng = _start(policy), np.random.default_rng(seed)
    pulls = [_ask(state, rng) for _ in range(1000)]
    _expect_best(state)
    for pull in reversed(pulls):
        tell(state, pull, PROBLEM.law.draw(pull.row, pull.column, rng)[0])
    for _ in range(100):
        tell(state, _ask(state, rng), 1.0)
    _expect_best(state)


def goes_on_past_the_horizon(policy: Policy, seed: int = 0) -> None:
    """More than n pulls may be asked for."""
    state, rng = _start(policy, n=30), np.random.default_rng(seed)
    for _ in range(500):
        tell(state, _ask(state, rng), 1.0)
    _expect_best(state)


def makes_the_choices_of_the_loop(policy: Policy, seed: int = 0) -> None:
    """Asked one pull at a time, it makes the choices of the simulation's loop."""
    n = 300
    last, state = _start(policy, n), _start(policy, n)
    pairs, rewards = play_compiled(last, PROBLEM, n, seed)
    rng = np.random.default_rng(seed)
    for t in range(n):
        pull = _ask(state, rng)
        row, column = pairs[t].tolist()
        same = (pull.row, pull.column) == (row, column)
        expect(same, f"step {t}: asked for {pull}, but in the loop for ({row}, {column})")
        reward, _ = PROBLEM.law.draw(row, column, rng)
        expect(reward == rewards[t], f"step {t}: it drew other random numbers than in the loop")
        tell(state, pull, reward)
    expect(_bytes(state) == _bytes(last), "the states differ after the same run")


def is_the_same_when_it_is_folded(policy: Policy, seed: int = 0) -> None:
    """Told of pulls and rewards, a state is the one that chose the pulls."""
    for trial in range(20):
        rng = np.random.default_rng((seed, trial))
        chose, told = _start(policy, n=200), _start(policy, n=200)
        out: list[Pull] = []
        for _ in range(rng.integers(1, 400)):
            action = rng.random()
            if action < 0.5 or not out:
                out.append(_ask(chose, rng))
                _issue(told, out[-1])
            elif action < 0.9:
                pull, reward = out.pop(rng.integers(len(out))), rng.random()
                tell(chose, pull, reward)
                tell(told, pull, reward)
            else:
                pull = out.pop(rng.integers(len(out)))
                chose, told = chose.forget(*pull), told.forget(*pull)
        for (name, array), other in zip(chose._asdict().items(), told, strict=True):  # type: ignore[call-overload]
            if name not in policy.caches:
                same = array.tobytes() == other.tobytes()
                expect(same, f"after the same pulls and rewards {name} is {other}, not {array}")


def takes_any_pull_that_it_is_told_of(policy: Policy, seed: int = 0) -> None:
    """Pulls that it would not have chosen, with any tag, do no harm."""
    for trial in range(30):
        rng = np.random.default_rng((seed, trial))
        state = _start(policy, n=200)
        for _ in range(rng.integers(1, 121)):
            tag = int(rng.integers(-(2**63), 2**63 - 1)) >> int(rng.integers(0, 64))
            pull = Pull(int(rng.integers(3)), int(rng.integers(2)), tag)
            if rng.random() < 0.5:
                _issue(state, pull)
            if rng.random() < 0.5:
                kernel(_tell_of, state)(state, *pull, rng.random())
            if rng.random() < 0.2:
                own = _ask(state, rng)
                state = state.forget(*own) if rng.random() < 0.5 else state
            _expect_best(state)
        for _ in range(50):
            _ask(state, rng)


def takes_counts_for_rewards(policy: Policy, seed: int = 0) -> None:
    """Where it says `counts`: it learns as much from `load` as from single rewards of 0 and 1."""
    if not policy.counts:
        return
    rng = np.random.default_rng(seed)
    won, lost = rng.integers(1, 50, (3, 2)), rng.integers(51, 100, (3, 2))
    won[1, 1] = 500
    single, loaded = _start(policy), _start(policy)
    for pair in (pairs := list(np.ndindex(3, 2))):
        pull = Pull(pair[0], pair[1], 0)
        for reward in [1.0] * int(won[pair]) + [0.0] * int(lost[pair]):
            tell(single, pull, reward)
    for pair in reversed(pairs):
        kernel(_load, loaded)(loaded, *pair, 0, int(won[pair] + lost[pair]), float(won[pair]))
    expect(loaded.best() == (1, 1), f"(1, 1) is best, got {loaded.best()}")
    expect(single.best() == (1, 1), f"(1, 1) is best, got {single.best()}")
    for name, array in loaded._asdict().items():
        if name in ("counts", "sums", "successes", "failures"):
            other = single._asdict()[name]
            same = np.allclose(array, other, rtol=1e-12, atol=0)
            expect(same, f"{name} is {array} after load, and {other} after single rewards")
    pairs_asked = {_ask(loaded, rng)[:2] for _ in range(100)}
    expect((1, 1) in pairs_asked, f"the best of what was loaded should be asked for: {pairs_asked}")
    for pair in pairs:
        for total in (0.4, 0.4, 0.4, 0.4, 0.4):
            kernel(_load, loaded)(loaded, *pair, 0, 1, total)
    kernel(_load, loaded)(loaded, *_ask(loaded, rng), 0, 0.0)
    if hasattr(loaded, "successes"):
        more = loaded.successes.sum() - won.sum()
        expect(more == 12, f"30 rewards with a total of 12 must be 12 successes, got {more}")


def goes_on_from_a_snapshot(policy: Policy, seed: int = 0) -> None:
    """Saved and restored, pending pulls included, it goes on unchanged."""
    state, rng = _start(policy), np.random.default_rng(seed)
    for _ in range(100):
        tell(state, _ask(state, rng), float(rng.random() < 0.5))
    pending = [_ask(state, rng) for _ in range(4)]
    state = state.forget(*pending.pop())
    same, restored = restore(snapshot(policy, state), [type(policy)])
    expect(same == policy, f"the policy came back as {same!r}")
    expect(type(restored) is type(state), f"the state came back as a {type(restored)}")
    expect(_bytes(restored) == _bytes(state), "the arrays came back with other values")
    other = np.random.default_rng()
    other.bit_generator.state = rng.bit_generator.state
    for pull in pending:
        tell(state, pull, 1.0)
        tell(restored, pull, 1.0)
    for step in range(200):
        pull, again = _ask(state, rng), _ask(restored, other)
        expect(pull == again, f"after {step} steps it asked for {again} instead of {pull}")
        reward = float((pull.row + pull.column) % 2)
        tell(state, pull, reward)
        tell(restored, pull, reward)
    expect(_bytes(state) == _bytes(restored), "the states differ after the same pulls")


def refuses_what_is_not_on_the_grid(policy: Policy, seed: int = 0) -> None:
    """`rank1.tell` refuses pulls outside the grid and rewards outside their range."""
    state = _start(policy)
    pull = _ask(state, np.random.default_rng(seed))
    for reward in (float("nan"), float("inf"), -0.001, 1.001, 5.0):
        _expect_refused(state, pull, reward)
    for row, column in ((-1, 0), (3, 0), (0, -1), (0, 2), (100_000, 0)):
        _expect_refused(state, Pull(row, column, pull.tag), 1.0)
    tell(state, pull, 1.0)


def _expect_refused(state: State, pull: Pull, reward: float) -> None:
    before = _bytes(state)
    try:
        tell(state, pull, reward)
    except InputError:
        expect(_bytes(state) == before, f"{pull} with reward {reward} changed the state")
        return
    raise AssertionError(f"it took {pull} with reward {reward}")


def plays_small_grids_and_short_runs(policy: Policy, seed: int = 0) -> None:
    """One row, one column, one pair, and fewer steps than pairs are played as well."""
    for K, L, n in ((1, 1, 1), (1, 1, 50), (1, 4, 3), (4, 1, 100), (3, 3, 2)):
        problem = Bernoulli(np.linspace(0.2, 1, K), np.linspace(0.9, 0, L))
        regret = simulate(policy, problem, n=n, runs=2, seed=seed).outcomes[0].expected
        expect(regret.shape == (2, n), f"{K}×{L}, n={n}: regret has shape {regret.shape}")
        sound = np.all(regret[:, -1] <= n) and np.all(np.diff(regret, axis=1) >= 0)
        expect(sound, f"{K}×{L}, n={n}: regret is {regret.tolist()}")


def finds_the_best_pair(policy: Policy, seed: int = 0) -> None:
    """It recommends the best pair of an easy problem."""
    problem = Bernoulli([0.1, 1.0, 0.2], [0.3, 0.1, 1.0])
    found = simulate(policy, problem, n=20_000, runs=3, seed=1 + seed).outcomes[0].best_pairs
    expect(found == [(1, 2)] * 3, f"(1, 2) is best, got {found} in three runs of 20,000 steps")


def learns_from_late_rewards(policy: Policy, seed: int = 0) -> None:
    """With rewards of 20 pulls at a time, last first, every tenth missing, it learns the same."""
    problem, n = Bernoulli([1.0, 0.2], [0.1, 1.0]), 12_000
    state, rng = _start(policy, n, problem), np.random.default_rng(seed)
    for batch in range(n // 20):
        pulls = [_ask(state, rng) for _ in range(20)]
        for k, pull in enumerate(reversed(pulls)):
            if (20 * batch + k) % 10 == 9:
                state = state.forget(*pull)
            else:
                tell(state, pull, problem.law.draw(pull.row, pull.column, rng)[0])
    expect(state.best() == (0, 1), f"(0, 1) is best, got {state.best()} after {n:,} pulls")


#: All of them, in an order in which the first that fails says most.
POLICY_CHECKS: tuple[Callable[..., None], ...] = (
    is_an_immutable_value,
    is_told_the_truth_only_if_it_asks,
    has_a_state_of_plain_arrays,
    compiles,
    starts_always_the_same,
    takes_rewards_late_unordered_or_never,
    takes_a_thousand_asks_before_any_report,
    goes_on_past_the_horizon,
    refuses_what_is_not_on_the_grid,
    makes_the_choices_of_the_loop,
    is_the_same_when_it_is_folded,
    takes_any_pull_that_it_is_told_of,
    takes_counts_for_rewards,
    goes_on_from_a_snapshot,
    plays_small_grids_and_short_runs,
    finds_the_best_pair,
    learns_from_late_rewards,
)
