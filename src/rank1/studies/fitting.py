"""Is a study's grid of rank one? By replaying its own policy on the fitted grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import checks
from rank1.compiled import generator, kernel_for
from rank1.documents import to_document
from rank1.policies.base import choose, update
from rank1.policies.folding import load_tallies
from rank1.studies.spec import Spec, started
from rank1.studies.state import StudyState

if TYPE_CHECKING:
    from rank1.fit import Fit

__all__ = ["Deviation", "StudyFit", "fit_of"]

Floats = NDArray[np.float64]

#: A p-value below this is taken as a sign against rank one.
LEVEL = 0.05


class Deviation(NamedTuple):
    """An arm beside what would fit."""

    #: Its labels, in the order of the sides.
    arm: tuple[str, ...]
    rate: float
    fitted: float
    #: The signed root of its part of the deviance.
    residual: float


@dataclass(frozen=True)
class StudyFit:
    """How a study's grid compares with the likeliest one of rank one; what `Study.fit` returns."""

    #: The levels that live, by side.
    sides: dict[str, list[str]]
    #: The fit itself, with factors, effects and residuals.
    model: Fit
    #: Means of the likeliest grid of rank one, in the units of the rewards; a dimension for each
    #: side.
    means: Floats
    deviance: float
    degrees_of_freedom: int
    #: By replaying the study's policy on the fitted grid; None where nothing is known.
    p_value: float | None
    repetitions: int
    #: By side, the factors of its levels relative to the largest.
    effects: dict[str, list[float]]
    #: The arms that deviate most, the worst first.
    deviating: list[Deviation]
    advice: str

    def to_dict(self) -> dict[str, Any]:
        """The main facts as plain values, for JSON; of two sides, also as rows and columns."""
        found: dict[str, Any] = to_document(
            {name: value for name, value in vars(self).items() if name != "model"}
        )
        found["explained"] = to_document(float(self.model.explained))
        found["deviating"] = [
            {"levels": dict(zip(self.sides, each.arm, strict=True))} | to_document(each._asdict())
            for each in self.deviating
        ]
        for each in found["deviating"]:
            arm = each.pop("arm")
            if len(arm) == 2:
                each["row"], each["column"] = arm
        if len(self.sides) == 2:
            found["rows"], found["columns"] = found["sides"].values()
            found["row_effects"], found["column_effects"] = found["effects"].values()
        return found


def _play(
    state: Any, means: Floats, rng: np.random.Generator, n: int, won: Floats, trials: Floats
) -> None:
    for _ in range(n):
        arm, tag = choose(state, rng)
        reward = 1.0 if rng.random() < means[arm] else 0.0
        update(state, arm, tag, reward)
        won[arm] += reward
        trials[arm] += 1.0


def fit_of(known: StudyState, spec: Spec, now: float, B: int, seed: int) -> StudyFit:
    """The fit of all evidence so far."""
    from rank1.fit import fit, p_value

    B = checks.integer("B", B, 1)
    counts, sums = known.evidence(now)
    won = np.clip(sums, 0, counts)
    found = fit(won, counts - won)
    imported = known.of_living(known.book.imported)
    shape = counts.shape
    own = int(counts.sum() - imported.sum())

    def replay(means: Floats, rng: np.random.Generator) -> tuple[ArrayLike, ArrayLike]:
        """As many rewards as there were: those from elsewhere first, arm by arm."""
        means = np.clip(means, 0.0, 1.0).ravel()
        trials = np.floor(imported).ravel()
        successes = rng.binomial(trials.astype(np.int64), means).astype(np.float64)
        if own > 0:
            state = started(spec, shape)
            kernel_for(load_tallies, state, work=B * trials.size)(state, trials, successes)
            with generator(np.random.SeedSequence(int(rng.integers(2**63)))) as inner:
                play = kernel_for(_play, state, work=B * own)
                play(state, means, inner, own, successes, trials)
        return successes.reshape(shape), (trials - successes).reshape(shape)

    reported = bool(counts.sum() > 0)
    testable = sum(size > 1 for size in shape) > 1
    p = p_value(found, replay, B, seed) if reported and testable else None
    low, high = spec.reward_range
    sides = {side: known.living_labels(side) for side in known.labels}
    deviating = [
        Deviation(
            tuple(names[level] for names, level in zip(sides.values(), levels, strict=True)),
            low + (high - low) * rate, low + (high - low) * fitted, residual,
        )
        for levels, rate, fitted, residual in found.deviating(5)
    ]  # fmt: skip
    return StudyFit(
        sides=sides,
        model=found,
        means=low + (high - low) * found.means,
        deviance=found.deviance,
        degrees_of_freedom=found.degrees_of_freedom,
        p_value=p,
        repetitions=B,
        effects=dict(zip(sides, [each[:, 0].tolist() for each in found.effects], strict=True)),
        deviating=deviating,
        advice=_advice(p, deviating, reported, testable, found.degrees_of_freedom),
    )


def _advice(
    p: float | None, deviating: list[Deviation], reported: bool, testable: bool, freedom: int
) -> str:
    if not testable:
        return "A single line is of rank one whatever its means are: there is nothing to test."
    if not reported or p is None:
        return "Nothing is reported yet, so there is nothing to fit."
    if freedom == 0:
        return "Too few arms have reports: those that have fit any product, so nothing is tested."
    if p >= LEVEL:
        return (
            f"No sign against rank one (p = {p:.3g}): what assumes it may be used, the stopping "
            "rule among it. Arms that were hardly tried can still be off."
        )
    worst = deviating[0]
    return (
        f"The grid isn't of rank one (p = {p:.3g}): {' × '.join(worst.arm)} has a mean of "
        f"{worst.rate:.3g} where {worst.fitted:.3g} would fit. Look at the verdict that doesn't "
        "assume rank one, and take a policy that doesn't, like kl_ucb or thompson. On repeated "
        "looks, look at doubling numbers of reports and ask for a p below 0.05/2, 0.05/4, …"
    )
