"""Suggestions and reports: what becomes of an ask, a tell and a cancel in a transaction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rank1 import checks
from rank1.compiled import generator
from rank1.documents import Report, Suggestion
from rank1.errors import (
    CancelledError,
    ConflictError,
    InputError,
    InputTypeError,
    OtherStudyError,
    Rank1Error,
    UnknownSuggestionError,
)
from rank1.policies import Pull
from rank1.studies import fold
from rank1.studies.desk import Work
from rank1.studies.log import Event, Kind, check_text, nonces, read_id, suggestion_id
from rank1.studies.memory import Memory
from rank1.studies.spec import Spec

__all__ = [
    "MAX_COUNT",
    "Report",
    "Suggestion",
    "cancel",
    "check_reward",
    "key_used",
    "suggest",
    "take_reports",
    "under_key",
]

#: The most suggestions of one ask.
MAX_COUNT = 100_000


def under_key(work: Work, key: str | None, kind: Kind) -> list[Event]:
    """What a request with this key has stored; ConflictError if it was one of another kind."""
    if key is None:
        return []
    check_text("key", key)
    given = work.log.with_key(work.study.id, key)
    if any(each.kind != kind for each in given):
        raise key_used(key)
    return given


def key_used(key: str | None) -> ConflictError:
    """The error for a key that another request has had."""
    return ConflictError(
        f"key {checks.shown(key)} was used for something else: take a new key for another request"
    )


def suggest(
    work: Work, spec: Spec, count: int, key: str | None, unit: str | None
) -> list[Suggestion]:
    """Hand out pulls; those that were handed out already to the same key or unit."""
    log, study, memory = work.log, work.study.id, work.memory
    given = under_key(work, key, Kind.SUGGESTED)
    if given and len(given) != count:
        raise ConflictError(
            f"key {checks.shown(key)} was used for {len(given):,} suggestions, not {count:,}: "
            "take a new key for another request"
        )
    if given:
        if any(each.unit != unit for each in given):
            raise key_used(key)
        return [_suggestion(work, spec, each) for each in given]
    if memory.book.at["retired"][0]:
        raise ConflictError(f"study {work.study.name!r} is retired: it gives no suggestions")
    pair = None
    if unit is not None:
        check_text("unit", unit)
        if count != 1:
            raise InputError(f"count must be 1 where a unit is given, got {count}")
        last = log.of_unit(study, unit)
        if last is not None and memory.lives(last.row, last.column):
            became = {each.kind for each in log.outcomes(study, [last.seq])}
            if Kind.CANCELLED not in became:
                if Kind.REPORTED not in became and key is None:
                    return [_suggestion(work, spec, last)]
                pair = last.row, last.column
    if pair is None:
        propensity = memory.policy.propensity(*memory.shape)
        work.ahead = True
        with generator(np.random.SeedSequence((spec.seed, memory.seq))) as rng:
            pulls = memory.choose(rng, count)
    else:  # a new visit: the same pair, which nobody chose
        propensity, pulls = math.nan, [Pull(*pair, -1)]
    events = [
        Event(Kind.SUGGESTED, *pull, 0, propensity, nonce, key, place, unit)
        for place, (pull, nonce) in enumerate(zip(pulls, nonces(count), strict=True))
    ]
    first = work.append(events, chosen=pair is None)
    at = work.now
    return [_suggestion(work, spec, each, first + k, at) for k, each in enumerate(events)]


def _suggestion(
    work: Work, spec: Spec, event: Event, seq: int | None = None, at: float | None = None
) -> Suggestion:
    """An event as a suggestion; one that has just been added with its seq and time."""
    seq, at = event.seq if seq is None else seq, event.at if at is None else at
    window, labels = spec.reward_window, work.memory.labels
    return Suggestion(
        id=suggestion_id(work.study.uid, seq, event.nonce),
        **_named(labels, event.row, event.column),
        asked_at=at,
        expires_at=None if window is None else at + window,
        unit=event.unit,
        key=event.key,
    )


def _named(labels: dict[str, list[str]], row: int, column: int) -> dict[str, Any]:
    pair = {"row": labels["rows"][row], "column": labels["columns"][column]}
    return {**pair, "levels": pair}


def check_reward(spec: Spec, reward: Any) -> float:
    """A reward that the study can take."""
    low, high = spec.reward_range
    if isinstance(reward, bool | np.bool_):
        reward = float(reward)
    asked = f"reward must be a number in [{low:g}, {high:g}]"
    if not checks._is_real(reward):
        raise InputTypeError(f"{asked}, got {checks.shown(reward)}")
    if not (math.isfinite(reward) and low <= reward <= high):
        raise InputError(f"{asked}, got {reward}")
    return float(reward)


def take_reports(
    work: Work, spec: Spec, reports: Sequence[tuple[str, Any]], key: str | None = None
) -> list[Report | Rank1Error]:
    """Store what is new of these reports. What is wrong with one is in its place."""
    before = {each.suggestion for each in under_key(work, key, Kind.REPORTED)}
    answers: list[Report | Rank1Error] = []
    fresh: dict[int, Report] = {}  # by suggestion
    events: list[Event] = []
    named: set[int] = set()
    some, now = nonces(len(reports)), work.now
    for (text, told), nonce in zip(reports, some, strict=True):
        try:
            reward = check_reward(spec, told)
            asked = _asked(work, text)
            named.add(asked.seq)
            answer = fresh.get(asked.seq)
            if answer is None:
                late = _became(work, asked, text)
                if isinstance(late, Event):
                    answer = _report(work, asked, late.value, late.at, late.tag == 1)
                else:
                    answer = fresh[asked.seq] = _report(work, asked, reward, now, late)
                    pull = asked.row, asked.column, int(late)
                    place = len(events)
                    events.append(Event(Kind.REPORTED, *pull, asked.seq, reward, nonce, key, place))
            if answer.reward != reward:
                raise ConflictError(
                    f"suggestion {text!r} has the reward {answer.reward:g} already, got {reward:g}"
                )
            answers.append(answer)
        except Rank1Error as error:
            answers.append(error)
    if before and (events or not before <= named):
        raise key_used(key)
    if events:
        work.append(events)
    return answers


class _Asked(NamedTuple):
    """A suggestion that an id is of."""

    seq: int
    nonce: int
    row: int
    column: int
    #: As in the table, or GONE where it isn't there.
    status: int


def _asked(work: Work, text: str) -> _Asked:
    uid, seq, nonce = read_id(text)
    if uid != work.study.uid:
        names = [each.name for each in work.log.studies() if each.uid == uid]
        other = f"study {names[0]!r}" if names else "another study"
        raise OtherStudyError(
            f"{text!r} is an id of {other}; those of {work.study.name!r} begin with "
            f"{work.study.uid}-"
        )
    entry = work.memory.find(seq)
    if entry is not None and entry.nonce == nonce:
        return _Asked(seq, nonce, entry.row, entry.column, entry.status)
    found = work.log.events(work.study.id, [seq]) if entry is None else []
    if not found or found[0].kind != Kind.SUGGESTED or found[0].nonce != nonce:
        raise UnknownSuggestionError(f"no suggestion of {work.study.name!r} has the id {text!r}")
    return _Asked(seq, nonce, found[0].row, found[0].column, fold.GONE)


def _became(work: Work, asked: _Asked, text: str) -> Event | bool:
    """The report of a suggestion; without one, whether it is expired. CancelledError."""
    if asked.status in (fold.PENDING, fold.WAITING):
        return asked.status == fold.WAITING
    became = {each.kind: each for each in work.log.outcomes(work.study.id, [asked.seq])}
    if Kind.CANCELLED in became:
        raise CancelledError(f"suggestion {text!r} was cancelled: nothing can be reported of it")
    return became.get(Kind.REPORTED, Kind.EXPIRED in became)


def _report(work: Work, asked: _Asked, reward: float, at: float, late: bool) -> Report:
    labels = work.memory.labels
    return Report(
        id=suggestion_id(work.study.uid, asked.seq, asked.nonce),
        **_named(labels, asked.row, asked.column),
        reward=reward,
        told_at=at,
        late=late,
    )


def cancel(work: Work, spec: Spec, text: str, key: str | None = None) -> None:
    """Note that a suggestion was never shown; again is as good as once."""
    asked = _asked(work, text)
    if any(each.suggestion != asked.seq for each in under_key(work, key, Kind.CANCELLED)):
        raise key_used(key)
    try:
        became = _became(work, asked, text)
    except CancelledError:
        return
    if isinstance(became, Event):
        raise ConflictError(f"suggestion {text!r} has a reward, so it can't be cancelled")
    if became and spec.on_expiry == "default":
        raise ConflictError(
            f"suggestion {text!r} is expired, and the default was counted as its reward: it can't "
            "be cancelled any more"
        )
    pull = asked.row, asked.column, int(became)
    work.append([Event(Kind.CANCELLED, *pull, asked.seq, key=key)])


def counts_of(memory: Memory) -> dict[str, int]:
    """How many suggestions there are, and what became of them; each is in one of the others."""
    at = memory.book.at[0]
    asked, told = int(at.suggested), int(at.reported)
    expired, cancelled = int(at.expired), int(at.cancelled)
    return {
        "suggestions": asked,
        "reports": told,
        "pending": asked - told - expired - cancelled,
        "expired": expired,
        "cancelled": cancelled,
    }
