"""idTS: Thompson sampling on the hidden success probabilities of rows and columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import inlined, jit, record
from rank1.policies.base import Known, Policy, Records, Simple, require_unit_rewards
from rank1.policies.betas import CACHES, is_success, largest, refresh, start_betas, uniform_tag

__all__ = ["IdTS"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: The record `at` of the state: passes of the variational update, or 0 for the incremental one.
AT = record("passes")
#: From here on the series in `exp_digamma` is accurate to 1e-14.
SERIES_FROM = 16.0


class Lines(NamedTuple):
    """Posteriors of one side, in the form that `betas` needs: Beta(1 + successes, 1 + failures)."""

    successes: Floats
    failures: Floats
    log_beta: Floats
    arms: Ints
    rates: Floats
    block_rates: Floats
    level: Records


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    ones: Ints  # S: rewards of 1 for each pair
    zeros: Ints  # F: rewards of 0
    row_psi: Floats  # e^ψ(a), e^ψ(b) of each row
    column_psi: Floats  # e^ψ(c), e^ψ(d) of each column
    row_successes: Floats
    row_failures: Floats
    row_log_beta: Floats
    row_arms: Ints
    row_rates: Floats
    row_block_rates: Floats
    row_level: Records
    column_successes: Floats
    column_failures: Floats
    column_log_beta: Floats
    column_arms: Ints
    column_rates: Floats
    column_block_rates: Floats
    column_level: Records


class IdTSState(_Arrays, Simple):
    """q = ∏ Beta(a_i, b_i)·∏ Beta(c_j, d_j): a and b are `row_successes` + 1, `row_failures` + 1.

    The fields of each side are those of `Lines`.
    """

    caches = tuple(f"{side}_{name}" for side in ("row", "column") for name in CACHES)

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """The row and the column with the largest samples; the tag is for the Bernoulli trick."""
        row, column = largest(rows_of(self), rng), largest(columns_of(self), rng)
        return row * self.limits[1].levels + column, uniform_tag(rng)

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Count a success with probability `reward`."""
        success = is_success(tag, reward)
        if success:
            self.ones[arm] += 1
        else:
            self.zeros[arm] += 1
        if self.at[0].passes == 0:
            row = arm // self.limits[1].levels
            increment(self, row, arm - row * self.limits[1].levels, success)
        else:
            for _ in range(self.at[0].passes):
                one_pass(self)

    def best(self) -> int:
        """The row and the column with the largest posterior means, among those with a report."""
        L = int(self.limits[1].levels)
        counts = (self.ones + self.zeros).reshape(-1, L)
        row = _best(self.row_successes, self.row_failures, counts.sum(axis=1))
        return row * L + _best(self.column_successes, self.column_failures, counts[row])


def _best(successes: Floats, failures: Floats, counts: Ints) -> int:
    means = (1 + successes) / (2 + successes + failures)
    return int(np.where(counts > 0, means, -1.0).argmax())


@inlined
def rows_of(state: Any) -> Lines:
    """The rows, for `betas`."""
    return Lines(
        state.row_successes, state.row_failures, state.row_log_beta, state.row_arms,
        state.row_rates, state.row_block_rates, state.row_level,
    )  # fmt: skip


@inlined
def columns_of(state: Any) -> Lines:
    """The columns, for `betas`."""
    return Lines(
        state.column_successes, state.column_failures, state.column_log_beta, state.column_arms,
        state.column_rates, state.column_block_rates, state.column_level,
    )  # fmt: skip


@jit
def exp_digamma(x: float) -> float:
    """e^ψ(x) for x ≥ 1, to about 1e-14, with neither a logarithm nor a power for large x.

    With y = x − 1/2 it is y + 1/(24y) − 37/(5760y³) + …, and ψ(x) = ψ(x + 1) − 1/x.
    """
    down = 0.0
    while x < SERIES_FROM:
        down += 1.0 / x
        x += 1.0
    y = x - 0.5
    z = 1.0 / (y * y)
    series = (
        y
        + (
            1.0 / 24.0
            + z * (-37.0 / 5760.0 + z * (10313.0 / 2903040.0 - z * 5509121.0 / 1393459200.0))
        )
        / y
    )
    return series * math.exp(-down) if down > 0.0 else series


@inlined
def increment(state: Any, i: int, j: int, success: bool) -> None:
    """Update only the pulled row and column."""
    rows, columns = rows_of(state), columns_of(state)
    if success:
        rows.successes[i] += 1.0
        columns.successes[j] += 1.0
    else:
        row_one, row_zero = state.row_psi[i, 0], state.row_psi[i, 1]
        column_one, column_zero = state.column_psi[j, 0], state.column_psi[j, 1]
        # Which of the two was 0: both, only the row's, or only the column's.
        w10, w01 = row_one * column_zero, row_zero * column_one
        total = row_zero * column_zero + w10 + w01
        w10 /= total
        w01 /= total
        rows.successes[i] += w10
        rows.failures[i] += 1.0 - w10
        columns.successes[j] += w01
        columns.failures[j] += 1.0 - w01
    learn(rows, state.row_psi, i)
    learn(columns, state.column_psi, j)


@inlined
def learn(lines: Any, psi: Floats, k: int) -> None:
    """Update what depends on the posterior of line k."""
    a, b = 1.0 + lines.successes[k], 1.0 + lines.failures[k]
    psi[k, 0], psi[k, 1] = exp_digamma(a), exp_digamma(b)
    lines.log_beta[k] = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    refresh(lines, k)


@jit
def one_pass(state: Any) -> None:
    """Coordinate ascent: the hidden outcomes of every zero, then all posteriors given these.

    A pair without zeros has no hidden outcomes.
    """
    K, L = state.limits[0].levels, state.limits[1].levels
    a, b = state.row_successes, state.row_failures
    c, d = state.column_successes, state.column_failures
    for j in range(L):
        c[j] = 0.0
        d[j] = 0.0
    for i in range(K):
        row_one, row_zero = state.row_psi[i, 0], state.row_psi[i, 1]
        won = lost = 0.0
        for j in range(L):
            ones, zeros = float(state.ones[i * L + j]), float(state.zeros[i * L + j])
            w10 = row_one * state.column_psi[j, 1]
            w01 = row_zero * state.column_psi[j, 0]
            share = zeros / (row_zero * state.column_psi[j, 1] + w10 + w01)
            w10 *= share
            w01 *= share
            won += ones + w10
            lost += zeros - w10
            c[j] += ones + w01
            d[j] += zeros - w01
        a[i] = won
        b[i] = lost
    for i in range(K):
        state.row_psi[i, 0], state.row_psi[i, 1] = exp_digamma(1.0 + a[i]), exp_digamma(1.0 + b[i])
    for j in range(L):
        psi = state.column_psi[j]
        psi[0], psi[1] = exp_digamma(1.0 + c[j]), exp_digamma(1.0 + d[j])


@dataclass(frozen=True)
class IdTS(Policy):
    """Thompson sampling on hidden factors: samples the rates of rows and columns, not of pairs.

    A reward of 1 means that both the row and the column had a 1; a reward of 0 means that at least
    one of them had a 0, without showing which. The posterior is approximated by independent Beta
    laws, one per row and one per column. Each step samples all of them, and plays the row and the
    column with the largest samples. A reward between 0 and 1 counts as a 1 with that probability.

    Parameters
    ----------
    update
        How to find the Beta laws. "incremental": use each reward once, with the probabilities of
        the hidden outcomes at that time. "variational": use all rewards so far, by passes of
        coordinate ascent from where the last step ended.
    passes
        Passes of the variational update after each reward, at least 1.

    Notes
    -----
    It has no proof. The approximation treats the factors as independent and so is overconfident:
    most runs have less regret than policies that are known to be optimal, and a few stay with a
    wrong pair for long. Look at the worst runs, not only at the mean.

    With the incremental update only samples that can win are drawn, see `rank1.policies.betas`.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> result = rank1.simulate(rank1.IdTS(), problem, n=10_000, runs=3, seed=1)
    >>> result.best_pairs("id_ts")
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Yu, Kveton, Wen, Zhang, Mengshoel: Graphical models meet bandits: a variational Thompson
    sampling approach. ICML 2020. https://arxiv.org/abs/2007.04915
    """

    name = "id_ts"
    sides = 2
    layout = 2
    update: str = "variational"
    passes: int = 2

    def __post_init__(self) -> None:
        checks.one_of("update", self.update, ("variational", "incremental"))
        checks.integer("passes", self.passes, 1, 1000)

    def start(self, known: Known) -> IdTSState:
        """The state before the first step."""
        self.check(known.grid)
        require_unit_rewards(self.name, known)
        K, L = known.K, known.L
        at = np.zeros(1, AT)
        if self.update == "variational":
            at[0].passes = self.passes
        fields: dict[str, NDArray[Any]] = {}
        for side, lines in (("row", K), ("column", L)):
            betas = start_betas(lines, lines)
            del betas["rest"]  # nothing is loaded
            betas["arms"][:lines] = np.arange(lines)
            betas["successes"], betas["failures"] = np.zeros(lines), np.zeros(lines)
            if self.update == "variational":
                # All posteriors change in every step, so the first window, without a level, stays.
                betas["level"][0].left = 2**62
            fields |= {f"{side}_{name}": array for name, array in betas.items()}
        return IdTSState(
            limits=known.limits,
            at=at,
            ones=np.zeros(K * L, np.int64),
            zeros=np.zeros(K * L, np.int64),
            row_psi=np.full((K, 2), exp_digamma(1.0)),
            column_psi=np.full((L, 2), exp_digamma(1.0)),
            **fields,
        )
