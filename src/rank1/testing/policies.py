"""What every policy must do."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rank1.compiled import kernel, ready
from rank1.errors import InputError
from rank1.grid import Grid
from rank1.policies import Policy, Pull, State, ask, restore, snapshot, tell
from rank1.policies.base import expects, forget, has_counts, issued, load, update
from rank1.policies.mistakes import best_arm, call, check_state, start
from rank1.problems import Means, Problem
from rank1.simulation import simulate
from rank1.simulation.known import known_of
from rank1.testing.expect import expect, run_checks
from rank1.testing.play import play_compiled

__all__ = ["POLICY_CHECKS", "check_policy"]

#: The numbers of sides of the grids for policies that play any number of sides.
SIDES: tuple[int, ...] = (2, 3)
#: The number of random orders of asks and reports that each check tries.
TRIALS = 30
FACTORS = [0.9, 0.2, 0.5], [0.3, 0.8], [0.4, 0.9], [0.7, 0.6]


def check_policy(policy: Policy, seed: int = 0) -> None:
    """Test a policy with late, unordered and missing rewards, and everything else it promises.

    Parameters
    ----------
    policy
        A policy with any settings. It must be able to play grids of any size with rewards of 0 and
        1, and recommend the best arm of an easy one. It is tested on grids with two and three
        sides, or with the number given by its `sides`.
    seed
        The seed of the random numbers; the same seed gives the same trials.

    Raises
    ------
    AssertionError
        Says what the policy should have done, and what it did. A mistake in its code is reported in
        one line: policy, method, file and line, cause.

    Examples
    --------
    >>> import rank1
    >>> from rank1.testing import check_policy
    >>> check_policy(rank1.Uniform())
    """
    run_checks(getattr(policy, "label", repr(policy)), POLICY_CHECKS, policy, seed)


def _problem(factors: Any) -> Problem:
    """All problems have the same law, because each law is compiled separately."""
    means = np.ones(())
    for side in factors:
        means = np.multiply.outer(means, side)
    return Means(means)


def _problems(policy: Policy) -> Iterator[Problem]:
    for sides in SIDES if policy.sides is None else (policy.sides,):
        more = max(0, sides - len(FACTORS))
        yield _problem([*FACTORS[:sides], *[[0.9]] * more])


def _start(policy: Policy, problem: Problem, n: int = 2000) -> State:
    return start(policy, known_of(policy, problem, n))


def _started(
    policy: Policy, *seeds: Any, n: int = 2000
) -> Iterator[tuple[Problem, State, np.random.Generator]]:
    """A new state of each problem for each seed, with random numbers."""
    for problem in _problems(policy):
        for seed in seeds:
            yield problem, _start(policy, problem, n), np.random.default_rng(seed)


def _trials(seed: int) -> list[tuple[int, int]]:
    return [(seed, trial) for trial in range(TRIALS)]


def _bytes(state: State) -> bytes:
    return b"".join(np.asarray(array).tobytes() for array in state._asdict().values())


def _same(one: Any, other: Any) -> bool:
    """Whether arrays are equal; fractional numbers up to rounding in compiled code."""
    if one.dtype.names:
        return all(_same(one[name], other[name]) for name in one.dtype.names)
    if one.dtype.kind == "f":
        return np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True)
    return np.array_equal(one, other)


def _expect_same(state: State, other: State, when: str) -> None:
    """Compare all arrays except caches, which may differ."""
    for (name, array), theirs in zip(
        state._asdict().items(), other._asdict().values(), strict=True
    ):
        if name not in state.caches:
            expect(_same(array, theirs), f"{when} {name} is {theirs}, not {array}")


# Two functions, not four: compiling each takes long for its state, however little it does.


def _tell_of(state: Any, arm: int, tag: int, reward: float) -> None:
    """What a study does with a report; a NaN reward means that the pull is handed out."""
    if np.isnan(reward):
        issued(state, arm, tag)
    elif expects(state, arm, tag):
        update(state, arm, tag, reward)


def _load(state: Any, arm: int, tag: int, count: int, total: float) -> None:
    """Load a number of rewards with this sum; if it is 0, give the pull back."""
    if count > 0:
        load(state, arm, count, total)
    else:
        forget(state, arm, tag)


def _issue(state: State, pull: Pull) -> None:
    ready(_tell_of, state)(state, *pull, np.nan)


def _ask(state: State, rng: np.random.Generator) -> Pull:
    """Ask for a pull, and check that it lies on the grid."""
    pull, arms = ask(state, rng), int(state.limits[0].arms)
    expect(0 <= pull.arm < arms, f"there are {arms} arms, 0 … {arms - 1}, got {pull}")
    return pull


def _reward(problem: Problem, pull: Pull, rng: np.random.Generator) -> float:
    return float(problem.law.draw(pull.arm, rng)[0])


def _expect_best(state: State) -> None:
    arm, arms = state.best(), int(state.limits[0].arms)
    expect(0 <= arm < arms, f"best() must be an arm in 0 … {arms - 1}, got {arm}")


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
    """`start` works with what a live study knows, or rejects it if the policy `needs_truth`."""
    for problem in _problems(policy):
        known = known_of(policy, problem, 100)
        blind = type(known)(n=100, sides=known.grid)
        try:
            start(policy, blind)
        except InputError as error:
            expect(policy.needs_truth, f"without the truth it should start, but: {error}")
            expect(policy.name in str(error), f"the error must name {policy.name}, got: {error}")
        else:
            expect(not policy.needs_truth, "it says needs_truth, but starts without the truth")


def refuses_other_grids(policy: Policy, seed: int = 0) -> None:
    """`start` and `check` reject a grid with another number of sides than `sides` says."""
    for sides in ([3], [3, 2], [3, 2, 2]):
        if policy.sides not in (None, len(sides)):
            for refuses in (policy.check, lambda grid: policy.start(_blank(policy, grid))):
                try:
                    refuses(Grid(sides))
                except InputError as error:
                    expect(error.argument == "sides", f"its error must be about sides: {error}")
                else:
                    raise AssertionError(f"it plays {policy.sides} sides, but took {len(sides)}")


def _blank(policy: Policy, grid: Grid) -> Any:
    return known_of(policy, Means(np.full(grid.sizes, 0.5)), 100)


def has_a_state_of_plain_arrays(policy: Policy, seed: int = 0) -> None:
    """`start` returns a NamedTuple of NumPy arrays with the methods of `rank1.State`."""
    for problem in _problems(policy):
        state = _start(policy, problem)
        for cache in state.caches:
            expect(cache in state._asdict(), f"its cache {cache} must be one of its arrays")
        limits = known_of(policy, problem, 2000).limits
        expect(state.limits.tobytes() == limits.tobytes(), "its field limits must be known.limits")


def runs_as_it_is_written(policy: Policy, seed: int = 0) -> None:
    """Each method runs in plain Python, and `choose` returns an arm and a tag."""
    for problem, state, rng in _started(policy, seed):
        for step in range(50):
            pull = Pull(*call(policy, state, "choose", rng))
            expect(0 <= pull.arm < problem.arms, f"there are {problem.arms} arms, got {pull}")
            if step % 10 == 9:
                state = call(policy, state, "forget", *pull)
                check_state(policy, state)
                call(policy, state, "issued", *pull)
            if call(policy, state, "expects", *pull):
                call(policy, state, "update", *pull, _reward(problem, pull, rng))
            best_arm(policy, state)
        if has_counts(state):
            call(policy, state, "load", 0, 3, 2.0)


def compiles(policy: Policy, seed: int = 0) -> None:
    """All methods except `best` compile, so they must not allocate; `forget` if it has `load`."""
    problem = next(_problems(policy))
    state = _start(policy, problem)
    play_compiled(state, problem, 10, seed)
    pull = ask(state, np.random.default_rng(seed))
    kernel(_tell_of, state)(state, *pull, np.nan)
    if has_counts(state):
        kernel(_load, state)(state, *pull, 1, 1.0)


def starts_always_the_same(policy: Policy, seed: int = 0) -> None:
    """`start` always returns the same state, which shares no memory with others."""
    for problem, first, rng in _started(policy, seed):
        second = _start(policy, problem)
        before = _bytes(second)
        expect(_bytes(first) == before, "two states before the first step must be equal")
        for _ in range(50):
            tell(first, _ask(first, rng), 1.0)
        expect(_bytes(second) == before, "what one state learned was seen in another")


def takes_rewards_late_unordered_or_never(policy: Policy, seed: int = 0) -> None:
    """Any mix of asking, reporting in any order and giving back keeps pulls on the grid."""
    for problem, state, rng in _started(policy, *_trials(seed), n=200):
        pending: list[Pull] = []
        for _ in range(rng.integers(1, 121)):
            action = rng.random()
            if action < 0.5 or not pending:
                pending.append(_ask(state, rng))
                continue
            pull = pending.pop(rng.integers(len(pending)))
            if action < 0.85:
                tell(state, pull, _reward(problem, pull, rng))
            else:
                state = state.forget(*pull)
        _expect_best(state)


def takes_a_thousand_asks_before_any_report(policy: Policy, seed: int = 0) -> None:
    """A batch of 1,000 pulls can be handed out before the first reward arrives."""
    for problem, state, rng in _started(policy, seed):
        pulls = [_ask(state, rng) for _ in range(1000)]
        _expect_best(state)
        for pull in reversed(pulls):
            tell(state, pull, _reward(problem, pull, rng))
        for _ in range(100):
            tell(state, _ask(state, rng), 1.0)
        _expect_best(state)


def goes_on_past_the_horizon(policy: Policy, seed: int = 0) -> None:
    """It can be asked for more than n pulls."""
    for _, state, rng in _started(policy, seed, n=30):
        for _ in range(500):
            tell(state, _ask(state, rng), 1.0)
        _expect_best(state)


def makes_the_choices_of_the_loop(policy: Policy, seed: int = 0) -> None:
    """Asked for one pull at a time, it makes the same choices as in the simulation loop."""
    n = 300
    for problem, state, rng in _started(policy, seed, n=n):
        last = _start(policy, problem, n)
        arms, rewards = play_compiled(last, problem, n, seed)
        for t in range(n):
            pull = _ask(state, rng)
            same = pull.arm == arms[t]
            expect(same, f"step {t}: asked for {pull}, but in the loop for arm {arms[t]}")
            reward = _reward(problem, pull, rng)
            expect(reward == rewards[t], f"step {t}: it drew other random numbers than in the loop")
            tell(state, pull, reward)
        _expect_same(last, state, "after the same run")


def is_the_same_when_it_is_folded(policy: Policy, seed: int = 0) -> None:
    """A state that is told of pulls and rewards equals the state that chose the pulls."""
    for problem, chose, rng in _started(policy, *_trials(seed), n=200):
        told = _start(policy, problem, n=200)
        pending: list[Pull] = []
        for _ in range(rng.integers(1, 400)):
            action = rng.random()
            if action < 0.5 or not pending:
                pending.append(_ask(chose, rng))
                _issue(told, pending[-1])
            elif action < 0.9:
                pull, reward = pending.pop(rng.integers(len(pending))), rng.random()
                tell(chose, pull, reward)
                tell(told, pull, reward)
            else:
                pull = pending.pop(rng.integers(len(pending)))
                chose, told = chose.forget(*pull), told.forget(*pull)
        _expect_same(chose, told, "after the same pulls and rewards")


def takes_any_pull_that_it_is_told_of(policy: Policy, seed: int = 0) -> None:
    """Pulls that it would not have chosen, with any tag, do no harm."""
    for problem, state, rng in _started(policy, *_trials(seed), n=200):
        for _ in range(rng.integers(1, 121)):
            tag = int(rng.integers(-(2**63), 2**63 - 1)) >> int(rng.integers(0, 64))
            pull = Pull(int(rng.integers(problem.arms)), tag)
            if rng.random() < 0.5:
                _issue(state, pull)
            if rng.random() < 0.5:
                ready(_tell_of, state)(state, *pull, rng.random())
            if rng.random() < 0.2:
                own = _ask(state, rng)
                state = state.forget(*own) if rng.random() < 0.5 else state
            _expect_best(state)
        for _ in range(50):
            _ask(state, rng)


def takes_counts_for_rewards(policy: Policy, seed: int = 0) -> None:
    """If it has `load`: it learns the same from it as from single rewards of 0 and 1."""
    for problem in _problems(policy):
        single, loaded = _start(policy, problem), _start(policy, problem)
        if not has_counts(single):
            return
        rng, arms = np.random.default_rng(seed), problem.arms
        won, lost = rng.integers(1, 50, arms), rng.integers(51, 100, arms)
        best = arms // 2
        won[best] = 500
        for arm in range(arms):
            for reward in [1.0] * int(won[arm]) + [0.0] * int(lost[arm]):
                tell(single, Pull(arm, 0), reward)
        for arm in reversed(range(arms)):
            ready(_load, loaded)(loaded, arm, 0, int(won[arm] + lost[arm]), float(won[arm]))
        for state in (loaded, single):
            expect(state.best() == best, f"arm {best} is best, got {state.best()}")
        for name, array in loaded._asdict().items():
            if name in ("counts", "sums", "successes", "failures"):
                other = single._asdict()[name]
                same = np.allclose(array, other, rtol=1e-12, atol=0)
                expect(same, f"{name} is {array} after load, and {other} after single rewards")
        asked = {_ask(loaded, rng).arm for _ in range(100)}
        expect(best in asked, f"the best of what was loaded should be asked for: {asked}")
        for arm in range(arms):
            for _ in range(5):
                ready(_load, loaded)(loaded, arm, 0, 1, 0.4)
        ready(_load, loaded)(loaded, *_ask(loaded, rng), 0, 0.0)
        if "successes" in loaded._asdict():
            more = loaded._asdict()["successes"].sum() - won.sum()
            expect(more == 2 * arms, f"five rewards of .4 must be 2 successes an arm, got {more}")


def goes_on_from_a_snapshot(policy: Policy, seed: int = 0) -> None:
    """Saved and restored, including pending pulls, it continues unchanged."""
    for _, state, rng in _started(policy, seed):
        for _ in range(100):
            tell(state, _ask(state, rng), float(rng.random() < 0.5))
        pending = [_ask(state, rng) for _ in range(4)]
        state = state.forget(*pending.pop())
        same, restored = restore(snapshot(policy, state), [type(policy)])
        expect(same == policy, f"the policy came back as {same!r}")
        expect(type(restored) is type(state), f"the state came back as a {type(restored)}")
        expect(_bytes(restored) == _bytes(state), "the arrays came back with other values")
        other = copy.deepcopy(rng)
        for pull in pending:
            tell(state, pull, 1.0)
            tell(restored, pull, 1.0)
        for step in range(200):
            pull, again = _ask(state, rng), _ask(restored, other)
            expect(pull == again, f"after {step} steps it asked for {again} instead of {pull}")
            reward = float(pull.arm % 2)
            tell(state, pull, reward)
            tell(restored, pull, reward)
        expect(_bytes(state) == _bytes(restored), "the states differ after the same pulls")


def refuses_what_is_not_on_the_grid(policy: Policy, seed: int = 0) -> None:
    """`rank1.tell` rejects pulls outside the grid and rewards outside their range."""
    for problem, state, rng in _started(policy, seed):
        pull = _ask(state, rng)
        for reward in (float("nan"), float("inf"), -0.001, 1.001, 5.0):
            _expect_refused(state, pull, reward)
        for arm in (-1, problem.arms, 100_000):
            _expect_refused(state, Pull(arm, pull.tag), 1.0)
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
    """It can play one level per side, one arm, and fewer steps than arms."""
    small = {
        None: ((1, 1), (1, 4), (4, 1), (3, 3), (1,), (5,), (1, 1, 1), (1, 3, 1), (2, 1, 2, 1)),
        2: ((1, 1), (1, 4), (4, 1), (3, 3)),
    }
    for sizes in small.get(policy.sides, ((1,) * (policy.sides or 1),)):
        sides = [np.linspace(0.2 + 0.7 * (k % 2), 1 - k % 2, size) for k, size in enumerate(sizes)]
        for n in (1, 2, 60):
            problem = _problem(sides)
            regret = simulate(policy, problem, n=n, runs=2, seed=seed).outcomes[0].expected
            expect(regret.shape == (2, n), f"{sizes}, n={n}: regret has shape {regret.shape}")
            sound = np.all(regret[:, -1] <= n) and np.all(np.diff(regret, axis=1) >= 0)
            expect(sound, f"{sizes}, n={n}: regret is {regret.tolist()}")


def finds_the_best_arm(policy: Policy, seed: int = 0) -> None:
    """It recommends the best arm of an easy problem."""
    factors = [0.1, 1.0, 0.2], [0.3, 0.1, 1.0], [1.0, 0.2], [0.3, 1.0]
    for sides in SIDES if policy.sides is None else (policy.sides,):
        problem = _problem(factors[:sides])
        best, n = problem.grid.levels(problem.best_arm), _steps(policy, 20_000)
        found = simulate(policy, problem, n=n, runs=3, seed=1 + seed).outcomes[0].best_arms
        expect(found == [best] * 3, f"{best} is best, got {found} in three runs of {n:,} steps")


def _steps(policy: Policy, steps: int) -> int:
    """The number of steps to play: policies that play whole stages need more."""
    return steps if policy.leaps else steps // 4


def learns_from_late_rewards(policy: Policy, seed: int = 0) -> None:
    """It learns as well with late rewards: 20 pulls at a time, in reverse, every tenth missing."""
    factors = [1.0, 0.2], [0.1, 1.0], [0.3, 1.0], [1.0, 0.3]
    for sides in SIDES if policy.sides is None else (policy.sides,):
        problem, n = _problem(factors[:sides]), _steps(policy, 12_000)
        state, rng = _start(policy, problem, n), np.random.default_rng(seed)
        for batch in range(n // 20):
            pulls = [_ask(state, rng) for _ in range(20)]
            for k, pull in enumerate(reversed(pulls)):
                if (20 * batch + k) % 10 == 9:
                    state = state.forget(*pull)
                else:
                    tell(state, pull, _reward(problem, pull, rng))
        best = problem.best_arm
        expect(state.best() == best, f"{best} is best, got {state.best()} after {n:,} pulls")


#: All checks, ordered so that the first failure is the most informative.
POLICY_CHECKS: tuple[Callable[..., None], ...] = (
    is_an_immutable_value,
    has_a_state_of_plain_arrays,
    is_told_the_truth_only_if_it_asks,
    runs_as_it_is_written,
    compiles,
    refuses_other_grids,
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
    finds_the_best_arm,
    learns_from_late_rewards,
)
