"""Play one pull at a time, as a live study does: ask, show the arm, report its reward later."""

from __future__ import annotations

import math
from operator import index
from typing import Any

import numpy as np

from rank1.compiled import kernel, ready
from rank1.errors import InputError
from rank1.policies.base import Known, Policy, Pull, State, Truth, choose, update

__all__ = ["ask", "tell", "warm_up"]


def _choose(state: Any, rng: np.random.Generator) -> Any:
    return choose(state, rng)


def _update(state: Any, arm: int, tag: int, reward: float) -> None:
    update(state, arm, tag, reward)


def ask(state: State, rng: np.random.Generator) -> Pull:
    """Return the next pull, from the same function that simulations use.

    Runs as Python until this process has compiled it; see `warm_up`.

    >>> import numpy as np, rank1
    >>> state = rank1.UTS().start(rank1.Known(sides=(2, 3, 2), n=1000))
    >>> rng = np.random.default_rng(1)
    >>> pull = rank1.ask(state, rng)
    >>> rank1.tell(state, pull, reward=1.0)
    """
    arm, tag = ready(_choose, state)(state, rng)
    return Pull(index(arm), index(tag))


def tell(state: State, pull: Pull, reward: float) -> None:
    """Report a pull's reward.

    The pull must come from `ask`. Raises an InputError for a pull outside the grid, and for a
    reward outside the range given in `Known`.

    Report every pull once. Rank1Elim and Rank1ElimKL reject a report that no stage is waiting for;
    all other policies can't tell a duplicate from a new report, and count it twice.

    >>> import rank1
    >>> state = rank1.UTS().start(rank1.Known(K=2, L=3, n=1000))
    >>> rank1.tell(state, rank1.Pull(6, tag=0), reward=1.0)
    Traceback (most recent call last):
    ...
    rank1.InputError: pull must be of an arm in 0 … 5, got Pull(arm=6, tag=0)
    """
    if not math.isfinite(reward):
        raise InputError("reward", reward, "a finite number")
    arm, tag = pull
    _, _, arms, _, low, high, _ = state.limits[0].item()  # faster than field by field
    if not 0 <= arm < arms:
        raise InputError("pull", pull, f"of an arm in 0 … {arms - 1}")
    if not low <= reward <= high:
        raise InputError("reward", reward, f"a number in [{low:g}, {high:g}]")
    if not state.expects(arm, tag):
        raise InputError("pull", pull, "one that was asked for and hasn't been reported yet")
    ready(_update, state)(state, arm, tag, float(reward))


def warm_up(policy: Policy, K: int = 2, L: int = 2) -> None:
    """Compile what `ask`, `tell` and `forget` need, and wait until it is done.

    `ask` and `tell` run as Python until this process has compiled code, which makes them about
    twice as fast. Compiling takes seconds; loading from the cache is almost instant. The code is
    the same for all grids and settings; set K and L for a policy that can't play a 2×2 grid.

    >>> import rank1
    >>> rank1.warm_up(rank1.UCB1())
    """
    truth = Truth(best_arm=0, lowest_mean=1.0) if policy.needs_truth else None
    state = policy.start(Known(K, L, n=1000, truth=truth))
    rng = np.random.default_rng(0)
    pull = kernel(_choose, state)(state, rng)
    kernel(_update, state)(state, *pull, 1.0)
    state.forget(*ask(state, rng))
