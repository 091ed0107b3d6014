"""The exact shortcut for elimination policies: whole sweeps at once.

Within a stage every pull is independent of the others, and which pulls are made depends only on
the random columns and rows of the sweeps. Over m sweeps the columns are multinomial counts, and
the rewards of a pair that is pulled N times are one sum of N draws. So m sweeps cost as much as
the remaining pairs, however large m is. Sweeps that a checkpoint cuts are played step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit, method
from rank1.policies.elimination import (
    COLUMNS,
    ISSUING,
    PLACE,
    REPORTED,
    ROWS,
    SIDE,
    STAGE,
    SWEEP,
    end_stages,
)
from rank1.simulation.loop import gap, record, step

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
    at = state.at
    counts, weights, used = scratch[0], scratch[1], scratch[2]
    mark = 0
    while steps[mark] <= t:
        mark += 1
    while t < stop:
        sweeps = 0
        if at[SIDE] == 0 and at[PLACE] == 0:
            left = state.n_stage[at[STAGE]] - at[SWEEP]
            sweeps = min(left, (min(stop, steps[mark]) - t) // (at[ROWS] + at[COLUMNS]))
        if sweeps > 0:
            stage = at[STAGE]
            spread(sweeps, state.h_column[stage], law.column_twin, counts, weights, rng)
            explore(
                state.C_row, state.rows[: at[ROWS]], True, counts, used, state, law, rng, totals
            )
            spread(sweeps, state.h_row[stage], law.row_twin, counts, weights, rng)
            explore(
                state.C_column,
                state.columns[: at[COLUMNS]],
                False,
                counts,
                used,
                state,
                law,
                rng,
                totals,
            )
            pulls = sweeps * (at[ROWS] + at[COLUMNS])
            t += pulls
            at[REPORTED] += pulls
            at[SWEEP] += sweeps
            if at[SWEEP] == state.n_stage[stage]:
                at[ISSUING] += 1
                end_stages(state)
        else:
            step(state, law, rng, totals)
            t += 1
        if t == steps[mark]:
            record(curve, mark, totals)
            mark += 1


@jit
def spread(
    sweeps: int, h: Ints, twin: Ints, counts: Ints, weights: Ints, rng: np.random.Generator
) -> None:
    """How often each line is the partner in `sweeps` sweeps; twins' counts are put together."""
    size = len(h)
    for k in range(size):
        counts[k] = 0
    if sweeps <= size:
        for _ in range(sweeps):
            counts[twin[h[int(rng.random() * size)]]] += 1
        return
    for k in range(size):
        weights[k] = 0
    for k in range(size):
        weights[twin[h[k]]] += 1
    # A multinomial, as binomials one line after another.
    for k in range(size):
        if weights[k] == size:
            counts[k] = sweeps
        elif weights[k] > 0:
            counts[k] = rng.binomial(sweeps, weights[k] / size)
        sweeps -= counts[k]
        size -= weights[k]
        if sweeps == 0:
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
    stage = state.at[STAGE]
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
