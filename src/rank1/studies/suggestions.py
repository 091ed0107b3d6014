"""Suggestions and reports: what ask, tell and cancel do inside a transaction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rank1 import checks
from rank1.compiled import generator
from rank1.documents import Report, Suggestion
from rank1.errors import (
    CancelledError,
    ConflictError,
    EndedError,
    InputError,
    InputTypeError,
    OtherStudyError,
    Rank1Error,
    StorageError,
    UnknownSuggestionError,
    shown,
)
from rank1.studies import fold
from rank1.studies.drawing import drawn, given_levels
from rank1.studies.events import (
    HELD_OUT,
    REPEAT,
    Event,
    Kind,
    check_text,
    data_text,
    late_report,
    nonces,
    read_data,
    read_id,
    suggestion_id,
)
from rank1.studies.revising import revise
from rank1.studies.spec import Spec
from rank1.studies.state import Change
from rank1.studies.storage import Reader
from rank1.studies.unit_of_work import UnitOfWork, key_used, under_key

__all__ = [
    "MAX_COUNT",
    "cancel",
    "check_guardrails",
    "check_reward",
    "check_same",
    "exposed",
    "guardrail_events",
    "guardrails_with",
    "store_reports",
    "suggest",
    "take_reports",
]

#: The maximum number of suggestions per ask.
MAX_COUNT = 100_000


def suggest(
    work: UnitOfWork,
    count: int = 1,
    key: str | None = None,
    unit: str | None = None,
    data: Mapping[str, Any] | None = None,
    given: Mapping[str, str] | None = None,
) -> list[Suggestion]:
    """Make suggestions, or return the earlier ones for a known key or a unit with one pending.

    A unit gets another suggestion if a level of its pending one is no longer shown.
    """
    log, study, state = work.log, work.study.id, work.state
    text = data_text(data)
    before = under_key(work, key, Kind.SUGGESTED)
    if before and len(before) != count:
        raise ConflictError(
            f"key {shown(key)} was used for {len(before):,} suggestions, not {count:,}",
            "use a new key for a different request", key=key,
        )  # fmt: skip
    if before:
        told = given if isinstance(given, Mapping) else {}
        segment = {side: told.get(side) for side in work.spec.given}
        for each in before:
            same = segment.items() <= state.named(each.arm).items()
            if not same or (each.unit, each.data) != (unit, text):
                raise key_used(key)
        return [_suggestion(work, each) for each in before]
    if state.book.at["retired"][0]:
        raise EndedError(
            f"study {work.study.name!r} is retired, so it gives no more suggestions",
            "ship its winner, or create another study",
            study=work.study.name,
        )
    levels, new = given_levels(work, given)
    last = None
    if unit is not None:
        check_text("unit", unit)
        if count != 1:
            raise InputError("count", count, "1 if a unit is given")
        last = log.of_unit(study, unit)
    if last is not None:
        became = {each.kind for each in log.outcomes(study, [last.seq])}
        if last.kind == Kind.SUGGESTED and not became:
            _check_given(state.named(last.arm), levels, unit)
            if last.tag == HELD_OUT or state.lives(last.arm):
                return [_suggestion(work, last)]
        if Kind.CANCELLED in became and last.tag != REPEAT:
            last = None  # it was never shown
    if new:  # nothing refuses the request any more
        revise(work, Change(new, {}))
    chosen = state.design is None and (last is None or not state.lives(last.arm))
    if state.design is not None:
        pulls = drawn(work, count, unit, levels, last)
    elif chosen:
        propensity = state.policy.propensity(math.prod(state.shape))
        work.ahead = True
        with generator(np.random.SeedSequence((work.spec.seed, state.seq))) as rng:
            pulls = [(*pull, propensity) for pull in state.choose(rng, count)]
    else:  # a new visit: show the same arm again, not a newly chosen one
        assert last is not None
        pulls = [(last.arm, REPEAT if work.spec.repeat == "once" else -1, math.nan)]
    events = [
        Event(
            Kind.SUGGESTED, arm=arm, tag=tag, value=propensity, nonce=nonce, key=key,
            position=place, unit=unit, data=text,
        )
        for place, ((arm, tag, propensity), nonce) in enumerate(
            zip(pulls, nonces(count), strict=True)
        )
    ]  # fmt: skip
    first = work.append(events, issued=chosen)
    at = work.now
    return [
        _suggestion(work, each._replace(seq=seq, at=at)) for seq, each in enumerate(events, first)
    ]


def _check_given(pending: Mapping[str, str], given: Mapping[str, str], unit: str | None) -> None:
    """Raise ConflictError if a unit's pending suggestion has other levels of given sides."""
    before = {side: pending[side] for side in given}
    if before != given:
        raise ConflictError(
            f"unit {shown(unit)} has a pending suggestion for {before}, got {dict(given)}",
            "report or cancel that one first", unit=unit,
        )  # fmt: skip


def _suggestion(work: UnitOfWork, event: Event) -> Suggestion:
    """Convert an event to a suggestion."""
    window = work.spec.reward_window
    return Suggestion(
        id=suggestion_id(work.study.uid, event.seq, event.nonce),
        levels=work.state.named(event.arm),
        asked_at=event.at,
        expires_at=None if window is None else event.at + window,
        unit=event.unit,
        key=event.key,
        data=read_data(event, work.log.damaged),
    )


def check_reward(spec: Spec, reward: Any) -> float:
    """Check that the reward is valid for the study, and return it."""
    low, high = spec.reward_range
    if isinstance(reward, bool | np.bool_):
        reward = float(reward)
    real = checks._is_real(reward)
    if real and low <= reward <= high:  # NaN isn't
        return float(reward)
    expected = f"a number in [{low:g}, {high:g}]"
    if not real:
        raise InputTypeError("reward", reward, expected)
    raise InputError("reward", reward, expected, got=str(reward))


def check_guardrails(spec: Spec, told: Any) -> dict[int, float]:
    """Check the guardrail values reported with a reward; return them by number of the metric."""
    if told is None:
        return {}
    if not isinstance(told, Mapping):
        raise InputTypeError("guardrails", told, "a mapping from their names to numbers")
    names, found = list(spec.guardrails), {}
    for name, value in told.items():
        if name not in names:
            known = ", ".join(names) or "none"
            raise InputError("guardrails", name, f"among the study's ({known})")
        value = float(value) if isinstance(value, bool | np.bool_) else value
        found[names.index(name) + 1] = float(checks.number(f"guardrails.{name}", value, 0, 1))
    return found


def take_reports(
    work: UnitOfWork, reports: Sequence[Sequence[Any]], key: str | None = None
) -> list[Report | Rank1Error]:
    """Store the new reports among these; return an answer for each, or the error that refused it.

    Each report is an id, its reward and, optionally, guardrails.
    """
    found: list[_Asked | Rank1Error] = []
    for text, *_ in reports:
        try:
            found.append(_asked(work, text))
        except Rank1Error as error:
            found.append(error)
    return store_reports(work, reports, found, key)


def store_reports(
    work: UnitOfWork,
    reports: Sequence[Sequence[Any]],
    found: Sequence[_Asked | Rank1Error],
    key: str | None = None,
    by: str = "suggestion",
) -> list[Report | Rank1Error]:
    """Store reports of known exposures; `by` says what each report identifies its exposure by."""
    before = {each.suggestion for each in under_key(work, key, Kind.REPORTED)}
    answers: list[Report | Rank1Error] = []
    fresh: dict[int, tuple[Report, Mapping[int, float]]] = {}  # by seq of the suggestion
    events: list[Event] = []
    named: set[int] = set()
    some, now, log, study = nonces(len(reports)), work.now, work.log, work.study.id
    for (text, told, *more), asked, nonce in zip(reports, found, some, strict=True):
        try:
            reward = check_reward(work.spec, told)
            metrics = check_guardrails(work.spec, more[0] if more else None)
            if isinstance(asked, Rank1Error):
                raise asked
            named.add(asked.seq)
            answer, stored = fresh.get(asked.seq, (None, metrics))
            if answer is None:
                late = _became(work, asked, text, by)
                if isinstance(late, Event):
                    answer = _report(work, asked, late.value, late.at, late.tag != 0)
                    stored = {}
                    if metrics:
                        stored = guardrails_with(log, study, work.spec, [late.seq])[late.seq]
                else:
                    answer = _report(work, asked, reward, now, late)
                    fresh[asked.seq] = answer, metrics
                    tag, metric = late_report(asked.tag) if late else (0, 0)
                    metric = metric if work.spec.design else 0
                    events.append(
                        Event(
                            Kind.REPORTED, arm=asked.arm, tag=tag, suggestion=asked.seq,
                            value=reward, nonce=nonce, key=key, position=len(events), metric=metric,
                        )
                    )  # fmt: skip
                    events += guardrail_events(asked.arm, asked.tag, metrics)
            check_same(work.spec, by, text, (answer.reward, stored), (reward, metrics))
            answers.append(answer)
        except StorageError:  # it affects more than this report
            raise
        except Rank1Error as error:
            answers.append(error)
    if before and (events or not before <= named):
        raise key_used(key)
    if events:
        work.append(events)
    return answers


def guardrail_events(arm: int, tag: int, metrics: Mapping[int, float]) -> list[Event]:
    """Return the events for the metrics reported with a reward; they directly follow its event."""
    return [
        Event(Kind.GUARDRAIL, arm=arm, tag=tag, value=value, metric=metric)
        for metric, value in metrics.items()
    ]


def guardrails_with(
    log: Reader, study: int, spec: Spec, rewards: Sequence[int]
) -> dict[int, dict[int, float]]:
    """Return the metrics stored with rewards, by the seq of the event that holds the reward."""
    behind = range(1, len(spec.guardrails) + 1)
    events = log.events(study, [seq + k for seq in rewards for k in behind]) if behind else []
    at = {event.seq: event for event in events if event.kind == Kind.GUARDRAIL}
    found: dict[int, dict[int, float]] = {seq: {} for seq in rewards}
    for seq, metrics in found.items():
        for k in behind:
            if seq + k not in at:
                break
            metrics[at[seq + k].metric] = at[seq + k].value
    return found


def check_same(
    spec: Spec,
    by: str,
    name: str,
    stored: tuple[float, Mapping[int, float]],
    told: tuple[float, Mapping[int, float]],
) -> None:
    """Raise ConflictError if a report contradicts the stored one.

    Guardrails are reported with their reward. A duplicate may leave them out.
    """
    facts = {"id" if by == "suggestion" else by: name}
    (before, kept), (reward, metrics) = stored, told
    if before != reward:
        problem = f"{by} {shown(name)} already has the reward {before:g}, got {reward:g}"
        raise ConflictError(problem, **facts)
    for metric, value in metrics.items():
        if kept.get(metric) != value:
            label = list(spec.guardrails)[metric - 1]
            has = f"{label} = {kept[metric]:g}" if metric in kept else f"a reward without {label}"
            raise ConflictError(
                f"{by} {shown(name)} already has {has}, got {label} = {value:g}",
                "guardrails are reported once, together with the reward", **facts,
            )  # fmt: skip


class _Asked(NamedTuple):
    """The suggestion with an id, or the exposure of a unit."""

    seq: int
    nonce: int
    arm: int
    tag: int
    #: The status in the table, or GONE if it is no longer there.
    status: int
    #: The event that holds its reward, if known.
    report: Event | None = None


def _asked(work: UnitOfWork, text: str) -> _Asked:
    uid, seq, nonce = read_id(text)
    name = work.study.name
    if uid != work.study.uid:
        names = [each.name for each in work.log.studies() if each.uid == uid]
        other = f"study {names[0]!r}" if names else "another study"
        raise OtherStudyError(
            f"{text!r} is an id of {other}; those of {name!r} begin with {work.study.uid}-",
            id=text, study=name,
        )  # fmt: skip
    entry = work.state.find(seq)
    found = work.log.events(work.study.id, [seq]) if entry is None else []
    if entry is not None and entry.nonce == nonce:
        return _Asked(seq, nonce, work.state.in_log(entry.arm), entry.tag, entry.status)
    if not found or found[0].kind != Kind.SUGGESTED or found[0].nonce != nonce:
        raise UnknownSuggestionError(
            f"no suggestion of {name!r} has the id {text!r}", id=text, study=name
        )
    return _Asked(seq, nonce, found[0].arm, found[0].tag, fold.GONE)


def exposed(work: UnitOfWork, event: Event) -> _Asked:
    """Look up an exposure by its event."""
    entry = work.state.find(event.seq)
    status = fold.GONE if entry is None else entry.status
    report = None
    if event.kind == Kind.RECORDED and not math.isnan(event.value):
        report = event._replace(tag=0)
    return _Asked(event.seq, event.nonce, event.arm, event.tag, status, report)


def _became(work: UnitOfWork, asked: _Asked, text: str, by: str = "suggestion") -> Event | bool:
    """Return a suggestion's report, or whether it expired without one; raises CancelledError."""
    if asked.report is not None:
        return asked.report
    if asked.status in (fold.PENDING, fold.WAITING):
        return asked.status == fold.WAITING
    became = {each.kind: each for each in work.log.outcomes(work.study.id, [asked.seq])}
    if asked.status == fold.REPORTED and not became:  # it was recorded with its reward
        return work.log.events(work.study.id, [asked.seq])[0]._replace(tag=0)
    if Kind.CANCELLED in became:
        whose = "suggestion" if by == "suggestion" else f"the suggestion of {by}"
        raise CancelledError(f"{whose} {text!r} was cancelled: it can't have a reward", id=text)
    return became.get(Kind.REPORTED, Kind.EXPIRED in became)


def _report(work: UnitOfWork, asked: _Asked, reward: float, at: float, late: bool) -> Report:
    return Report(
        id=suggestion_id(work.study.uid, asked.seq, asked.nonce),
        levels=work.state.named(asked.arm),
        reward=reward,
        told_at=at,
        late=late,
    )


def cancel(work: UnitOfWork, text: str, key: str | None = None) -> None:
    """Record that a suggestion was never shown; a duplicate changes nothing."""
    asked = _asked(work, text)
    if any(each.suggestion != asked.seq for each in under_key(work, key, Kind.CANCELLED)):
        raise key_used(key)
    try:
        became = _became(work, asked, text)
    except CancelledError:
        return
    if isinstance(became, Event):
        raise ConflictError(f"suggestion {text!r} has a reward, so it can't be cancelled", id=text)
    if became and work.spec.on_expiry == "default":
        raise ConflictError(
            f"suggestion {text!r} has expired, and the default was counted as its reward, so it "
            "can't be cancelled any more",
            id=text,
        )
    event = Event(Kind.CANCELLED, arm=asked.arm, tag=int(became), suggestion=asked.seq, key=key)
    work.append([event])
