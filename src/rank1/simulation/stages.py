"""The exact shortcut for elimination policies: whole rounds at once.

Within a stage every pull is independent of the others, and which pulls are made depends only on
the random columns and rows of the rounds. Over m rounds the columns are multinomial counts, and
the rewards of a pair that is pulled N times are one sum of N draws. So m rounds cost as much as
the remaining pairs, however large m is. Sweeps that a checkpoint cuts are played step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit, method
from rank1.policies.elimination import end_stages
from rank1.simulation.loop import gap, note, step

__all__ = ["play_stages"]

Ints = NDArray[np.int64]

draw_many = method("draw_many", inline=False)


def play_stages(
    state: Any,
    law: Any,
    rng: np.random.Generator,
    t: int,
    stop: int,
    steps: Ints,
    curve: NDArray[np.float64],
    totals: NDArray[np.float64],
    scratch: Ints,
) -> None:
    """As `steps.play`, and equal to it in law, for an elimination state without late rewards.

    `scratch` is room for three rows of max(K, L) numbers.
    """
    at = state.at[0]
    counts, weights, used = scratch[0], scratch[1], scratch[2]
    mark = 0
    while steps[mark] <= t:
        mark += 1
    while t < stop:
        rounds = 0
        if at.side == 0 and at.place == 0:
            left = state.n_stage[at.stage] - at.rounds
            rounds = min(left, (min(stop, steps[mark]) - t) // (at.rows + at.columns))
        if rounds > 0:
            stage = at.stage
            spread(rounds, state.h_column[stage], law.column_twin, counts, weights, rng)
            explore(state.C_row, state.rows[: at.rows], True, counts, used, state, law, rng, totals)
            spread(rounds, state.h_row[stage], law.row_twin, counts, weights, rng)
            explore(
                state.C_column,
                state.columns[: at.columns],
                False,
                counts,
                used,
                state,
                law,
                rng,
                totals,
            )
            pulls = rounds * (at.rows + at.columns)
            t += pulls
            at.reported += pulls
            at.rounds += rounds
            if at.rounds == state.n_stage[stage]:
                at.issuing += 1
                end_stages(state)
        else:
            step(state, law, rng, totals)
            t += 1
        if t == steps[mark]:
            note(curve, mark, totals)
            mark += 1


@jit
def spread(
    rounds: int, h: Ints, twin: Ints, counts: Ints, weights: Ints, rng: np.random.Generator
) -> None:
    """How often each line is the partner in `rounds` rounds; twins' counts are put together."""
    size = len(h)
    for k in range(size):
        counts[k] = 0
    if rounds <= size:
        for _ in range(rounds):
            counts[twin[h[int(rng.random() * size)]]] += 1
        return
    for k in range(size):
        weights[k] = 0
    for k in range(size):
        weights[twin[h[k]]] += 1
    # A multinomial, as binomials one line after another.
    for k in range(size):
        if weights[k] == size:
            counts[k] = rounds
        elif weights[k] > 0:
            counts[k] = rng.binomial(rounds, weights[k] / size)
        rounds -= counts[k]
        size -= weights[k]
        if rounds == 0:
            return


@jit
def explore(
    C: NDArray[np.float64],
    lines: Ints,
    rows: bool,
    counts: Ints,
    used: Ints,
    state: Any,
    law: Any,
    rng: np.random.Generator,
    totals: NDArray[np.float64],
) -> None:
    """Draw the sums of exploring each line over its partners."""
    stage = state.at[0].stage
    partners = 0
    for k in range(state.h_column.shape[1] if rows else state.h_row.shape[1]):
        if counts[k] > 0:
            used[partners] = k
            partners += 1
    for line in lines:
        for partner in used[:partners]:
            row, column = (line, partner) if rows else (partner, line)
            total, regret = draw_many(law, row, column, counts[partner], rng)
            C[stage, line] += total
            totals[0] += counts[partner] * gap(law, row, column)
            totals[1] += regret
