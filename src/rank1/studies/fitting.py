"""Is a study's grid of rank one? By replaying its own policy on the fitted grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import generator, kernel
from rank1.fit import Fit, fit, p_value
from rank1.policies.base import choose, update
from rank1.policies.folding import load_tallies
from rank1.studies.memory import Memory
from rank1.studies.spec import Spec, started

__all__ = ["StudyFit", "fit_of"]

Floats = NDArray[np.float64]

#: A p-value below this is taken as a sign against rank one.
LEVEL = 0.05


@dataclass(frozen=True)
class StudyFit:
    """How a study's grid compares with the likeliest one of rank one; what `Study.fit` returns."""

    rows: list[str]
    columns: list[str]
    #: The fit itself, with factors, effects and residuals.
    model: Fit
    #: K×L means of the likeliest grid of rank one, in the units of the rewards.
    means: Floats
    deviance: float
    degrees_of_freedom: int
    #: By replaying the study's policy on the fitted grid; None where nothing is known.
    p_value: float | None
    repetitions: int
    #: The pairs that deviate most: row, column, observed and fitted mean, signed root of deviance.
    deviating: list[tuple[str, str, float, float, float]]
    advice: str

    def to_dict(self) -> dict[str, Any]:
        """The main facts as plain values, for JSON."""
        return {
            "rows": self.rows,
            "columns": self.columns,
            "means": self.means.tolist(),
            "deviance": self.deviance,
            "degrees_of_freedom": self.degrees_of_freedom,
            "explained": self.model.explained,
            "p_value": self.p_value,
            "repetitions": self.repetitions,
            "row_effects": self.model.row_effects[:, 0].tolist(),
            "column_effects": self.model.column_effects[:, 0].tolist(),
            "deviating": [
                dict(zip(("row", "column", "rate", "fitted", "residual"), each, strict=True))
                for each in self.deviating
            ],
            "advice": self.advice,
        }


def _play(
    state: Any, means: Floats, rng: np.random.Generator, n: int, won: Floats, trials: Floats
) -> None:
    for _ in range(n):
        row, column, tag = choose(state, rng)
        reward = 1.0 if rng.random() < means[row, column] else 0.0
        update(state, row, column, tag, reward)
        won[row, column] += reward
        trials[row, column] += 1.0


def fit_of(memory: Memory, spec: Spec, now: float, B: int, seed: int) -> StudyFit:
    """The fit of all evidence so far."""
    B = checks.integer("B", B, 1)
    counts, sums = memory.evidence(now)
    won = np.clip(sums, 0, counts)
    found = fit(won, counts - won)
    imported = memory.of_living(memory.book.imported)
    K, L = counts.shape
    own = int(counts.sum() - imported.sum())

    def replay(means: Floats, rng: np.random.Generator) -> tuple[ArrayLike, ArrayLike]:
        """As many rewards as there were: those from elsewhere first, pair by pair."""
        means = np.clip(means, 0.0, 1.0)
        given = np.floor(imported)
        successes = rng.binomial(given.astype(np.int64), means).astype(np.float64)
        trials = given.copy()
        if own > 0:
            state = started(spec, K, L)
            kernel(load_tallies, state)(state, given, successes)
            with generator(np.random.SeedSequence(int(rng.integers(2**63)))) as inner:
                kernel(_play, state)(state, means, inner, own, successes, trials)
        return successes, trials - successes

    known = bool(counts.sum() > 0)
    p = p_value(found, replay, B, seed) if known and min(K, L) > 1 else None
    low, high = spec.reward_range
    rows, columns = memory.living_labels("rows"), memory.living_labels("columns")
    deviating = [
        (
            rows[cell.row], columns[cell.column],
            low + (high - low) * cell.rate, low + (high - low) * cell.fitted, cell.residual,
        )
        for cell in found.deviating(5)
    ]  # fmt: skip
    return StudyFit(
        rows=rows,
        columns=columns,
        model=found,
        means=low + (high - low) * found.means,
        deviance=found.deviance,
        degrees_of_freedom=found.degrees_of_freedom,
        p_value=p,
        repetitions=B,
        deviating=deviating,
        advice=_advice(p, deviating, known, min(K, L), found.degrees_of_freedom),
    )


def _advice(p: float | None, deviating: list[Any], known: bool, lines: int, freedom: int) -> str:
    if lines == 1:
        return "A single line is of rank one whatever its means are: there is nothing to test."
    if not known or p is None:
        return "Nothing is reported yet, so there is nothing to fit."
    if freedom == 0:
        return "Too few pairs have reports: those that have fit any product, so nothing is tested."
    if p >= LEVEL:
        return (
            f"No sign against rank one (p = {p:.3g}): what assumes it may be used, the stopping "
            "rule among it. Pairs that were hardly tried can still be off."
        )
    row, column, rate, fitted, _ = deviating[0]
    return (
        f"The grid isn't of rank one (p = {p:.3g}): {row} × {column} has a mean of {rate:.3g} "
        f"where {fitted:.3g} would fit. Look at the verdict that doesn't assume rank one, "
        "and take a policy that doesn't, like kl_ucb or thompson. On repeated looks, look at "
        "doubling numbers of reports and ask for a p below 0.05/2, 0.05/4, …"
    )
