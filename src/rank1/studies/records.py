"""Exposures that clients drew from a version's shares, and their rewards."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rank1 import checks
from rank1.assignment import held_out
from rank1.documents import Recorded, Report
from rank1.errors import (
    ConflictError,
    InputError,
    InputTypeError,
    Rank1Error,
    UnknownSuggestionError,
    listed,
    shown,
)
from rank1.studies.events import HELD_OUT, Event, Kind, check_text, nonces
from rank1.studies.revising import revise
from rank1.studies.spec import Spec
from rank1.studies.state import Change, StudyState
from rank1.studies.suggestions import (
    check_guardrails,
    check_reward,
    check_same,
    exposed,
    guardrail_events,
    guardrails_with,
    store_reports,
)
from rank1.studies.unit_of_work import UnitOfWork

__all__ = ["DrawnArms", "exposure", "is_name", "no_shares", "take_records", "take_rewards"]

#: How many recently used versions to keep arms for; clients may still use an older version.
MAX_KNOWN = 16
#: The key of the cached arms that held-out units are shown.
CONTROL = "control"


def take_records(work: UnitOfWork, records: Sequence[Sequence[Any]]) -> list[Recorded | Rank1Error]:
    """Store the new exposures among these; return an answer or the error for each.

    Each is a unit, a version, its levels and, optionally, a reward with guardrails.
    """
    if not work.spec.design:
        raise no_shares(work.study.name, work.spec)
    arms, now = DrawnArms(work.spec, work.state, work.drawn), work.now
    units = [each[0] for each in records if is_name(each[0])]
    found = work.log.of_units(work.study.id, units, recorded=True)
    _add_new_levels(work, arms, records, set(found))
    told = _told(work, found)
    answers: list[Recorded | Rank1Error] = []
    events: list[Event] = []
    later: list[tuple[int, tuple[Any, ...]]] = []  # rewards of earlier records without one
    for item, nonce in zip(records, nonces(len(records)), strict=True):
        try:
            new, metrics = exposure(work.spec, arms, item, nonce, now)
            unit, _, levels, *rest = item
            arm, tag, reward = new.arm, new.tag, new.value
            one = found.get(unit)
            if one is None:
                found[unit], told[unit] = new, (reward, metrics)
                events.append(new)
                if metrics:
                    events += guardrail_events(arm, tag, metrics)
                answers.append(_recorded(new, levels, reward, True))
                continue
            _check_same(work, one, arm, tag)
            if not math.isnan(reward):
                if math.isnan(told[unit][0]):
                    later.append((len(answers), (unit, *rest)))
                    told[unit] = reward, metrics
                check_same(work.spec, "unit", unit, told[unit], (reward, metrics))
            answers.append(_recorded(one, levels, told[unit][0], False))
        except Rank1Error as error:
            answers.append(error)
    if events:
        work.append(events)
    for (place, _), told_now in zip(
        later, take_rewards(work, [reward for _, reward in later]), strict=True
    ):
        if isinstance(told_now, Rank1Error):
            answers[place] = told_now
    return answers


def exposure(
    spec: Spec, arms: DrawnArms, item: Sequence[Any], nonce: int, at: float = 0.0
) -> tuple[Event, dict[int, float]]:
    """Return the event of a record, and its guardrails; raises if the record is invalid."""
    unit, version, levels, *rest = item
    check_text("unit", unit)
    held = bool(spec.holdout) and held_out({"salt": spec.salt, "holdout": spec.holdout}, unit)
    arm = arms.control(unit, levels) if held else arms.drawn(version, levels)
    metrics = check_guardrails(spec, rest[1] if len(rest) > 1 else None)
    reward = math.nan
    if rest and rest[0] is not None:
        reward = check_reward(spec, rest[0])
    elif metrics:
        raise InputError("guardrails", rest[1], "left out if there is no reward")
    tag = HELD_OUT if held else int(version)
    event = Event(Kind.RECORDED, arm=arm, tag=tag, value=reward, nonce=nonce, unit=unit, at=at)
    return event, metrics


def no_shares(name: str, spec: Spec) -> ConflictError:
    """Return the error for a study whose policy chooses the arms."""
    return ConflictError(
        f"study {name!r} has no shares, because {spec.policy} chooses its arms",
        'create a study with goal="find" and no policy', study=name,
    )  # fmt: skip


def take_rewards(work: UnitOfWork, rewards: Sequence[Sequence[Any]]) -> list[Report | Rank1Error]:
    """Store the new rewards among these; return an answer or the error for each.

    Each is a unit, its reward and, optionally, guardrails.
    """
    if not rewards:
        return []
    found = work.log.of_units(work.study.id, [each[0] for each in rewards if is_name(each[0])])
    found |= _first_records(work, found)
    exposures: list[Any] = []
    for unit, *_ in rewards:
        try:
            one = found.get(check_text("unit", unit))
        except Rank1Error as error:
            exposures.append(error)
            continue
        if one is None:
            problem = f"unit {shown(unit)} has no exposure in {work.study.name!r}"
            exposures.append(UnknownSuggestionError(problem, "record the unit first", unit=unit))
        else:
            exposures.append(exposed(work, one))
    return store_reports(work, rewards, exposures, by="unit")


def _first_records(work: UnitOfWork, found: Mapping[str, Event]) -> dict[str, Event]:
    """Return the records pending a reward of units that asked later; the first exposure counts."""
    units = [unit for unit, event in found.items() if event.kind == Kind.SUGGESTED]
    if not units:
        return {}
    records = work.log.of_units(work.study.id, units, recorded=True)
    told = _told(work, {k: each for k, each in records.items() if each.kind == Kind.RECORDED})
    return {unit: records[unit] for unit, (reward, _) in told.items() if math.isnan(reward)}


class DrawnArms:
    """Looks up, by labels, the arms that versions draw.

    Parameters
    ----------
    spec
        The study's specification.
    state
        The study's state, or None if only what is in `known` will be used.
    known
        A cache, filled here: by version or `CONTROL`, the sides with what each label adds to an
        arm's number. Entries never become stale, because the shares of a version never change and
        levels keep their numbers.
    """

    def __init__(self, spec: Spec, state: StudyState | None, known: dict[Any, Any]) -> None:
        self._spec, self._state, self._known = spec, state, known

    def drawn(self, version: Any, levels: Any) -> int:
        """Return the log's number of an arm that a version draws."""
        arm = self._cached(version, levels)
        # True and 1.0 equal 1 as keys.
        return self._explained(version, levels) if arm is None or type(version) is not int else arm

    def _cached(self, key: Any, levels: Any) -> int | None:
        """Return the number of an arm, or None if a label isn't cached or the levels are wrong."""
        try:
            known = self._known[key]
            arm: int = sum([numbers[levels[side]] for side, numbers in known])
            return arm if len(levels) == len(known) else None
        except (KeyError, TypeError):
            return None

    def _keep(self, key: Any, shown: Mapping[str, Sequence[str]]) -> list[Any]:
        """Cache what each label adds to an arm's number: those shown, and all of given sides."""
        state = self._there()
        while len(self._known) >= MAX_KNOWN:
            self._known.pop(next(iter(self._known)))
        known = self._known[key] = [
            (side, {
                label: level * stride
                for level, label in enumerate(labels)
                if side in self._spec.given or label in shown[side]
            })
            for (side, labels), stride in zip(state.labels.items(), state.room.strides, strict=True)
        ]  # fmt: skip
        return known

    def _explained(self, version: Any, levels: Any) -> int:
        """Do the same for a version or level that isn't cached, or raise what is wrong."""
        state = self._there()
        versions = state.live.versions
        number = checks.integer("version", version, 0)
        if number not in versions:
            raise InputError("version", number, f"one of the study's, 0 … {max(versions)}")
        sides = ", ".join(state.labels)
        if not isinstance(levels, Mapping):
            raise InputTypeError("levels", levels, f"a level of each of {sides}")
        if set(levels) != set(state.labels):
            raise InputError("levels", dict(levels), f"a level of each of {sides}")
        known = self._known.get(number)
        if known is None or any(
            len(numbers) != len(state.labels[side])
            for side, numbers in known
            if side in self._spec.given
        ):
            shares = state.live.versions[number].shares
            known = self._keep(number, {
                side: [label for label, share in zip(labels, shares[k], strict=False) if share > 0]
                for k, (side, labels) in enumerate(state.labels.items())
            })  # fmt: skip
        for side, numbers in known:
            if not isinstance(levels[side], str) or levels[side] not in numbers:
                expected = f"one that version {number} draws: {listed(numbers)}"
                raise InputError(f"levels.{side}", levels[side], expected)
        return sum(numbers[levels[side]] for side, numbers in known)

    def control(self, unit: str, levels: Any) -> int:
        """Return the log's number of the control, which a held-out unit must be shown."""
        arm = self._cached(CONTROL, levels)
        if arm is not None:
            return arm
        state, control = self._there(), self._spec.control or {}
        expected = f"the control ({shown(control)}) for unit {shown(unit)}, which is held out"
        if not isinstance(levels, Mapping):
            raise InputTypeError("levels", levels, expected)
        given = {side: levels.get(side) for side in self._spec.given}
        for side, label in given.items():
            if label not in state.labels[side]:
                raise InputError(f"levels.{side}", label, f"among {shown(state.labels[side])}")
        if dict(levels) != {**control, **given}:
            raise InputError("levels", dict(levels), expected)
        self._keep(CONTROL, {side: [label] for side, label in control.items()})
        return state.arm_of(levels)

    def _there(self) -> StudyState:
        if self._state is None:
            raise LookupError
        return self._state


def is_name(unit: Any) -> bool:
    """Return whether this is a name for a unit: others can't be looked up in every database."""
    try:
        check_text("unit", unit)
    except Rank1Error:
        return False
    return True


def _add_new_levels(
    work: UnitOfWork, arms: DrawnArms, records: Sequence[Sequence[Any]], known_units: set[str]
) -> None:
    """Add unknown levels of given sides if the study adds them and the record is valid.

    Another record of a known unit contradicts the first if it has an unknown level.
    """
    if work.spec.new_levels != "add":
        return
    known = {side: work.state.living_labels(side) for side in work.spec.given}
    familiar = {side: labels[0] for side, labels in known.items()}
    new: dict[str, dict[Any, None]] = {}
    for unit, version, levels, *_ in records:
        if is_name(unit) and unit in known_units:
            continue
        named = levels if isinstance(levels, Mapping) else {}
        unknown = {side: named.get(side) for side in known if named.get(side) not in known[side]}
        if not unknown:
            continue
        try:
            for side, label in unknown.items():
                check_text(f"levels.{side}", label)
            exposure(work.spec, arms, (unit, version, {**named, **familiar}), 1)
        except Rank1Error:  # reported in the record's own answer
            continue
        known_units.add(str(unit))
        for side, label in unknown.items():
            new.setdefault(side, {})[label] = None
    if new:
        revise(work, Change({side: tuple(labels) for side, labels in new.items()}, {}))


def _check_same(work: UnitOfWork, before: Event, arm: int, tag: int) -> None:
    """Raise ConflictError if the unit's stored record differs; its version may be older."""
    unit = shown(before.unit)
    if before.kind != Kind.RECORDED:
        raise ConflictError(f"unit {unit} was given a suggestion", "report by its id")
    if before.arm != arm or (before.tag == HELD_OUT) != (tag == HELD_OUT):
        labels = " × ".join(work.state.named(before.arm).values())
        under = "held out" if before.tag == HELD_OUT else f"under version {before.tag}"
        raise ConflictError(f"unit {unit} was already recorded: {labels}, {under}")


def _recorded(event: Event, levels: Mapping[str, str], reward: float, new: bool) -> Recorded:
    return Recorded(
        str(event.unit),
        None if event.tag == HELD_OUT else event.tag,
        dict(levels),
        event.at,
        None if math.isnan(reward) else reward,
        new,
    )


def _told(
    work: UnitOfWork, found: Mapping[str, Event]
) -> dict[str, tuple[float, Mapping[int, float]]]:
    """Return each exposure's reward (NaN while it has none) and its guardrails."""
    rewards = {unit: event for unit, event in found.items() if event.kind == Kind.RECORDED}
    units = {event.seq: unit for unit, event in rewards.items() if math.isnan(event.value)}
    for outcome in work.log.outcomes(work.study.id, list(units)) if units else ():
        if outcome.kind == Kind.REPORTED:
            rewards[units[outcome.suggestion]] = outcome
    metrics: dict[int, dict[int, float]] = {}
    if work.spec.guardrails and rewards:
        metrics = guardrails_with(
            work.log, work.study.id, work.spec, [event.seq for event in rewards.values()]
        )
    return {unit: (event.value, metrics.get(event.seq, {})) for unit, event in rewards.items()}
