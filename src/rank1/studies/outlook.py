"""Personalisation and forecasts for a study that draws by shares."""

from __future__ import annotations

import math

from rank1 import checks, design
from rank1.documents import Forecast, Personalised, above
from rank1.errors import InputError
from rank1.studies import planning
from rank1.studies.look import Look
from rank1.studies.state import StudyState
from rank1.studies.words import APART, Finding, percent

__all__ = ["forecast_of", "personalise_of"]


def personalise_of(state: StudyState, side: str, by: str) -> Personalised:
    """Test whether choosing a side's level by the level of another side pays off."""
    sides = list(state.labels)
    for name, value in (("side", side), ("by", by)):
        if value not in sides:
            raise InputError(name, value, f"one of the sides, {', '.join(sides)}")
    if side in state.spec.given:
        raise InputError("side", side, "a side that is chosen", "it is given")
    if side == by:
        raise InputError("by", by, f"another side than {side}")
    live, labels, segments = state.settled(), state.labels[side], state.labels[by]
    at, counts = (sides.index(side), sides.index(by)), live.evidence.counts()
    if not counts.pulls.any():
        statement = f"No answer about {side} by {by}: no results yet."
        return Personalised(side, by, False, None, {}, [], {}, None, statement)
    told = live.kept_design(), live.versions, counts, *at
    found, gained = design.personalise(*told), design.gain(*told)
    common = labels[found.common]
    leaders = {name: labels[k] for name, k in zip(segments, found.leaders.tolist(), strict=True)}
    speaking = [segments[k] for k in found.segments]
    if found.pays:
        statement = (
            f"It pays to choose {side} by {by}: no level is best in every {by}. "
            + "; ".join(f"{leaders[name]} leads in {name}" for name in speaking or leaders)
            + f". The gain is about {percent(gained.estimate)}{above(state.spec.reward_range[0])}."
        )
    else:
        statement = (
            f"No evidence that it pays to choose {side} by {by}: "
            f"{common} may be best in every {by}."
        )
    return Personalised(
        side=side,
        by=by,
        pays=found.pays,
        common=common,
        leaders=leaders,
        segments=speaking,
        gain={"estimate": gained.estimate, "low": gained.low, "high": gained.high},
        method=gained.method,
        statement=statement,
    )


def forecast_of(state: StudyState, per_day: float | None, runs: int, seed: int) -> Forecast:
    """Forecast how many more reports the study needs for a verdict, and how many days."""
    if per_day is not None:
        per_day = checks.number("per_day", per_day, 0, 1e12, above=True)
    live, at = state.settled(), state.book.at[0]
    reports = int(at.evidence)
    spread = float(at.squares / at.gained) if at.gained > 0 else 1.0
    seen = planning.totals(live, state.book)
    if not reports or not seen.counts.any():
        hint = "rewards count once the reward window of what was shown has passed"
        if not reports and not state.spec.by_window:
            hint = "no reports yet for arms that the study drew itself"
        raise InputError("reports", 0, "at least 1 for a forecast", hint)
    planned = planning.with_control(live, planning.plan(live), live.current)
    found = design.forecast(
        planned, {live.number: live.current}, live.wealth, seen, reports, runs, seed,
        spread=spread,
    )  # fmt: skip
    more = dict(zip(("10%", "50%", "90%"), found, strict=True))
    days = None if per_day is None else {part: n / per_day for part, n in more.items()}
    finding = Look(state).finding(reported=True)
    return Forecast(reports, more, per_day, days, _words(finding, more, days))


def _words(finding: Finding, more: dict[str, float], days: dict[str, float] | None) -> str:
    if finding.lift is None:
        return "There is only one arm."
    if more["90%"] == 0:
        but = "" if finding.doubt is None else f", but only if {APART}: {finding.doubt}"
        return f"The best level of each side is already known{but}."
    every = [(more, 0, "rewards")] + ([] if days is None else [(days, 1, "days")])
    if math.isinf(more["50%"]):
        if finding.lift.unknown:
            return (
                "It is too early for a forecast: it isn't known yet by how much the leader leads."
            )
        text = "No end in sight: the levels that are left may be alike."
        if math.isfinite(more["10%"]):
            least = " or ".join(
                f"{values['10%']:,.{digits}f} more {what}" for values, digits, what in every
            )
            text += f" But in 10 out of 100 such studies, {least} are enough."
        return text
    spans = " or ".join(_span(*each) for each in every)
    return f"It will take {spans} until the best level of each side is known."


def _span(values: dict[str, float], digits: int, what: str) -> str:
    """Format the median and the ends of a range."""
    low, middle, high = (f"{values[part]:,.{digits}f}" for part in ("10%", "50%", "90%"))
    ends = f"between {low} and {high} in 80 out of 100 such studies"
    if math.isinf(values["90%"]):
        ends = f"at least {low} in 90 out of 100 such studies"
    return f"about {middle} more {what} ({ends})"
