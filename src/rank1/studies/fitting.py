"""Test whether a study's grid has rank one, by replaying the study on the fitted grid."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.documents import to_document
from rank1.grid import Grid
from rank1.studies.events import Events, Kind
from rank1.studies.order import Replayer, grids_of, read_order
from rank1.studies.spec import Spec
from rank1.studies.state import Change, StudyState
from rank1.studies.storage import Reader
from rank1.studies.words import name

if TYPE_CHECKING:
    from rank1.fit import Fit, Replay

__all__ = ["Deviation", "Material", "StudyFit", "fit_of", "read_material"]

Floats = NDArray[np.float64]

#: A p-value up to this is taken as evidence against rank one.
LEVEL = 0.05
#: The smallest B for which p can be that small: 1/(1 + B) ≤ LEVEL.
LEAST_B = round(1 / LEVEL) - 1
#: An arm has enough pulls if they would reveal, with this probability, that it is as good as the
#: leader.
ENOUGH = 0.8


class Deviation(NamedTuple):
    """An arm that deviates from the fit: its average reward, the fitted mean and the residual."""

    #: Its labels, in the order of the sides.
    arm: tuple[str, ...]
    rate: float
    fitted: float
    #: The signed square root of its contribution to the deviance.
    residual: float


@dataclass(frozen=True)
class StudyFit:
    """The fit of a study's grid to the likeliest grid of rank one; returned by `Study.fit`."""

    #: The active levels, by side.
    sides: dict[str, list[str]]
    #: The fit itself, with factors, effects and residuals.
    model: Fit
    #: Means of the likeliest grid of rank one, in units of the reward; a dimension for each side.
    means: Floats
    deviance: float
    degrees_of_freedom: int
    #: From replays of the study on the fitted grid; None if it can't be computed.
    p_value: float | None
    repetitions: int
    #: The arm with the largest average; None if there are no rewards.
    leader: tuple[str, ...] | None
    #: How likely the pulls are to reveal a second peak, wherever it is: the smallest power over all
    #: arms of a one-sided 5% test of the fitted mean against the leader's mean. None if there is
    #: nothing to test.
    power: float | None
    #: The arms whose power is below 80%, lowest first: they have too few pulls.
    hardly_tried: list[tuple[str, ...]]
    #: The factors of each side's levels, relative to the largest.
    effects: dict[str, list[float]]
    #: The arms that deviate most, in descending order.
    deviating: list[Deviation]
    advice: str

    def __str__(self) -> str:
        """Summarize the fit in ten lines, with as many deviations as fit above the advice."""
        size = " × ".join(f"{side} ({len(names)})" for side, names in self.sides.items())
        rewards = int(self.model.successes.sum() + self.model.failures.sum())
        lines = [f"Does the grid have rank one? {size}, {rewards:,} rewards"]
        if self.p_value is not None:
            lines.append(
                f"deviance {self.deviance:.1f} on {self.degrees_of_freedom} "
                f"degree{'s' * (self.degrees_of_freedom != 1)} of freedom, "
                f"p = {self.p_value:.3g} by {self.repetitions} replays; "
                f"{self.model.explained:.0%} explained"
            )
            lines.append(
                f"power {self.power:.0%} to see a second peak at the arm with the least data"
            )
        for side, factors in self.effects.items():
            ranked = sorted(zip(self.sides[side], factors, strict=True), key=lambda one: -one[1])
            shown = ", ".join(f"{name} {factor:.3g}" for name, factor in ranked[:6])
            lines.append(f"{side}: {shown}" + (", …" if len(ranked) > 6 else ""))
        advice = textwrap.wrap(self.advice, 100)
        lines += [
            f"{name(arm)}: mean {rate:.3g}, fitted {fitted:.3g}"
            for arm, rate, fitted, _ in self.deviating[: max(0, min(2, 10 - len(lines + advice)))]
        ]
        return "\n".join(lines + advice)

    def to_dict(self) -> dict[str, Any]:
        """Return the main results as plain values for JSON; two sides also as rows and columns."""
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


class Material(NamedTuple):
    """The input of a fit: a copy, so that nothing is computed while the study is locked."""

    #: The active levels, by side, and the evidence of their arms.
    sides: dict[str, list[str]]
    counts: Floats
    sums: Floats
    #: The evidence of all arms, including retired ones.
    all_counts: Floats
    all_sums: Floats
    #: The log, and the changes of its revisions.
    events: Events
    changes: list[Change]
    now: float


def read_material(known: StudyState, log: Reader, study: int) -> Material:
    """Read everything a fit needs."""
    now, events = log.now(study), log.read(study)
    counts, sums = known.evidence(now)
    revised = events.seq[events.kind == Kind.REVISED].tolist()
    return Material(
        sides={side: known.living_labels(side) for side in known.labels},
        counts=counts,
        sums=sums,
        all_counts=known.book.counts.reshape(known.grid.sizes).copy(),
        all_sums=known.book.sums.reshape(known.grid.sizes).copy(),
        events=events,
        changes=[Change.read(event.data) for event in log.events(study, revised)],
        now=now,
    )


def fit_of(material: Material, spec: Spec, B: int, seed: int) -> StudyFit:
    """Fit all evidence so far, and replay the study on the fitted means.

    If arms were drawn by known shares, replays keep the exposures, and draw only the rewards again.
    Otherwise they use the study's policy, in the log's own order of asks and reports.
    """
    from rank1.fit import fit, fixed_design, p_value, powers
    from rank1.stopping.rule import leader_of

    B, seed = checks.integer("B", B, LEAST_B), checks.integer("seed", seed, 0)
    sides, counts, sums = material.sides, material.counts, material.sums
    won = np.clip(sums, 0, counts)
    found = fit(won, counts - won)
    reported = bool(counts.sum() > 0)
    testable = sum(size > 1 for size in counts.shape) > 1
    p, leader, power = None, None, np.ones(0)
    if reported:
        leader = Grid(counts.shape).levels(leader_of(won.ravel(), (counts - won).ravel()))
    if leader is not None and testable:
        design = spec.design
        replay = fixed_design(counts) if design else _replay(material, spec, found, B)
        p = p_value(found, replay, B, seed, double=not design)
        power = powers(found, leader).ravel()
    low, high = spec.reward_range

    def labels(levels: Sequence[int]) -> tuple[str, ...]:
        return tuple(names[k] for names, k in zip(sides.values(), levels, strict=True))

    made = StudyFit(
        sides=sides,
        model=found,
        means=low + (high - low) * found.means,
        deviance=found.deviance,
        degrees_of_freedom=found.degrees_of_freedom,
        p_value=p,
        repetitions=B,
        leader=None if leader is None else labels(leader),
        power=float(power.min()) if len(power) else None,
        hardly_tried=[
            labels(Grid(counts.shape).levels(int(arm)))
            for arm in np.argsort(power, kind="stable")[: (power < ENOUGH).sum()]
        ],
        effects=dict(zip(sides, [each[:, 0].tolist() for each in found.effects], strict=True)),
        deviating=[
            Deviation(
                labels(levels), low + (high - low) * rate, low + (high - low) * fitted, residual
            )
            for levels, rate, fitted, residual in found.deviating(5)
        ],
        advice="",
    )
    return replace(made, advice=_advice(made, reported, testable))


def _replay(material: Material, spec: Spec, found: Fit, B: int) -> Replay:
    """Return a replay of the study's policy, in the log's own order of asks and reports."""
    from rank1.fit import fit

    grids = grids_of(spec, material.changes)
    order = read_order(material.events, spec, grids, material.now)
    means = found.means
    if means.shape != grids.sizes:  # only here do retired levels have means
        sums = np.clip(material.all_sums, 0, material.all_counts)
        means = fit(sums, material.all_counts - sums).means
    return Replayer(spec, grids, order, means, repetitions=B)


def _advice(found: StudyFit, reported: bool, testable: bool) -> str:
    p, hidden, arms = found.p_value, found.hardly_tried, found.means.size
    if not testable:
        return "A grid with one side always has rank one, so there is nothing to test."
    if not reported or p is None or found.leader is None:
        return "Nothing is reported yet, so there is nothing to fit."
    if found.degrees_of_freedom == 0:
        return "Too few arms have reports to test anything: some product fits them exactly."
    if p <= LEVEL:
        worst = found.deviating[0]
        return (
            f"The grid isn't of rank one (p = {p:.3g}): {name(worst.arm)} has a mean of "
            f"{worst.rate:.3g} where {worst.fitted:.3g} would fit. Look at the verdict that "
            "doesn't assume rank one, and use a policy that doesn't, such as kl_ucb or thompson. "
            "If you repeat this test, do it each time the number of reports has doubled, and "
            "require p below 0.05/2, 0.05/4, …"
        )
    if hidden:
        return (
            f"No evidence against rank one (p = {p:.3g}), but {len(hidden)} of {arms} arms have "
            f"too few pulls to show whether they match {name(found.leader)}: a second peak "
            f"could hide there, above all at {name(hidden[0])} (power {found.power:.0%}). Don't "
            "rely on rank one for these arms: look at the verdict that doesn't assume it, or give "
            "them more pulls."
        )
    return (
        f"No evidence against rank one (p = {p:.3g}); every arm has enough pulls to show a second "
        f"peak (power at least {found.power:.0%}): you can use methods that assume rank one, such "
        "as the stopping rule."
    )
