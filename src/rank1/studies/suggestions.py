"""Suggestions and reports: what becomes of an ask, a tell and a cancel in a transaction."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
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
    shown,
)
from rank1.policies import Pull
from rank1.studies import fold
from rank1.studies.events import (
    Event,
    Kind,
    check_text,
    data_text,
    nonces,
    read_id,
    suggestion_id,
)
from rank1.studies.spec import Spec, labels_of
from rank1.studies.state import Change
from rank1.studies.unit_of_work import UnitOfWork

__all__ = [
    "MAX_COUNT",
    "cancel",
    "change_of",
    "check_reward",
    "key_used",
    "revise",
    "suggest",
    "take_reports",
    "under_key",
]

#: The most suggestions of one ask.
MAX_COUNT = 100_000


def under_key(work: UnitOfWork, key: str | None, kind: Kind) -> list[Event]:
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
        f"key {shown(key)} was used for something else", "take a new key for another request",
        key=key,
    )  # fmt: skip


def suggest(
    work: UnitOfWork,
    count: int = 1,
    key: str | None = None,
    unit: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> list[Suggestion]:
    """Hand out pulls; those that were handed out already to the same key or unit."""
    log, study, state = work.log, work.study.id, work.state
    text = data_text(data)
    given = under_key(work, key, Kind.SUGGESTED)
    if given and len(given) != count:
        raise ConflictError(
            f"key {shown(key)} was used for {len(given):,} suggestions, not {count:,}",
            "take a new key for another request", key=key,
        )  # fmt: skip
    if given:
        if any((each.unit, each.data) != (unit, text) for each in given):
            raise key_used(key)
        return [_suggestion(work, each) for each in given]
    if state.book.at["retired"][0]:
        raise ConflictError(
            f"study {work.study.name!r} is retired: it gives no suggestions", study=work.study.name
        )
    arm = None
    if unit is not None:
        check_text("unit", unit)
        if count != 1:
            raise InputError("count", count, "1 where a unit is given")
        last = log.of_unit(study, unit)
        if last is not None and state.lives(last.arm):
            became = {each.kind for each in log.outcomes(study, [last.seq])}
            if Kind.CANCELLED not in became:
                if Kind.REPORTED not in became and key is None:
                    return [_suggestion(work, last)]
                arm = last.arm
    if arm is None:
        propensity = state.policy.propensity(math.prod(state.shape))
        work.ahead = True
        with generator(np.random.SeedSequence((work.spec.seed, state.seq))) as rng:
            pulls = state.choose(rng, count)
    else:  # a new visit: the same arm, which wasn't chosen
        propensity, pulls = math.nan, [Pull(arm, -1)]
    events = [
        Event(
            Kind.SUGGESTED, arm=pull.arm, tag=pull.tag, value=propensity, nonce=nonce, key=key,
            position=place, unit=unit, data=text,
        )
        for place, (pull, nonce) in enumerate(zip(pulls, nonces(count), strict=True))
    ]  # fmt: skip
    first = work.append(events, issued=arm is None)
    at = work.now
    return [
        _suggestion(work, each._replace(seq=seq, at=at)) for seq, each in enumerate(events, first)
    ]


def _suggestion(work: UnitOfWork, event: Event) -> Suggestion:
    """An event as a suggestion."""
    window = work.spec.reward_window
    return Suggestion(
        id=suggestion_id(work.study.uid, event.seq, event.nonce),
        levels=work.state.named(event.arm),
        asked_at=event.at,
        expires_at=None if window is None else event.at + window,
        unit=event.unit,
        key=event.key,
        data=None if event.data is None else json.loads(event.data),
    )


def check_reward(spec: Spec, reward: Any) -> float:
    """A reward that the study can take."""
    low, high = spec.reward_range
    if isinstance(reward, bool | np.bool_):
        reward = float(reward)
    expected = f"a number in [{low:g}, {high:g}]"
    if not checks._is_real(reward):
        raise InputTypeError("reward", reward, expected)
    if not (math.isfinite(reward) and low <= reward <= high):
        raise InputError("reward", reward, expected, got=str(reward))
    return float(reward)


def take_reports(
    work: UnitOfWork, reports: Sequence[tuple[str, Any]], key: str | None = None
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
            reward = check_reward(work.spec, told)
            asked = _asked(work, text)
            named.add(asked.seq)
            answer = fresh.get(asked.seq)
            if answer is None:
                late = _became(work, asked, text)
                if isinstance(late, Event):
                    answer = _report(work, asked, late.value, late.at, late.tag == 1)
                else:
                    answer = fresh[asked.seq] = _report(work, asked, reward, now, late)
                    events.append(
                        Event(
                            Kind.REPORTED, arm=asked.arm, tag=int(late), suggestion=asked.seq,
                            value=reward, nonce=nonce, key=key, position=len(events),
                        )
                    )  # fmt: skip
            if answer.reward != reward:
                problem = (
                    f"suggestion {text!r} has the reward {answer.reward:g} already, got {reward:g}"
                )
                raise ConflictError(problem, id=text)
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
    arm: int
    #: As in the table, or GONE where it isn't there.
    status: int


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
        return _Asked(seq, nonce, work.state.in_log(entry.arm), entry.status)
    if not found or found[0].kind != Kind.SUGGESTED or found[0].nonce != nonce:
        raise UnknownSuggestionError(
            f"no suggestion of {name!r} has the id {text!r}", id=text, study=name
        )
    return _Asked(seq, nonce, found[0].arm, fold.GONE)


def _became(work: UnitOfWork, asked: _Asked, text: str) -> Event | bool:
    """The report of a suggestion; without one, whether it is expired. CancelledError."""
    if asked.status in (fold.PENDING, fold.WAITING):
        return asked.status == fold.WAITING
    became = {each.kind: each for each in work.log.outcomes(work.study.id, [asked.seq])}
    if Kind.CANCELLED in became:
        raise CancelledError(
            f"suggestion {text!r} was cancelled: nothing can be reported of it", id=text
        )
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
    """Note that a suggestion was never shown; a second time changes nothing."""
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
            f"suggestion {text!r} is expired, and the default was counted as its reward: it can't "
            "be cancelled any more",
            id=text,
        )
    event = Event(Kind.CANCELLED, arm=asked.arm, tag=int(became), suggestion=asked.seq, key=key)
    work.append([event])


def change_of(
    sides: Iterable[str],
    add: Mapping[str, Iterable[str]] | None = None,
    retire: Mapping[str, Iterable[str]] | None = None,
    **two_sided: Iterable[str],
) -> Change:
    """Levels to add and to retire, by side; or `add_rows`, `retire_columns` … of two sides."""
    sides = list(sides)
    made: dict[str, dict[str, tuple[str, ...]]] = {"add": {}, "retire": {}}
    for what, given in (("add", add), ("retire", retire)):
        if given is not None and not isinstance(given, Mapping):
            raise InputTypeError(what, given, "a mapping from names of sides to names of levels")
        for side, labels in (given or {}).items():
            if side not in sides:
                raise InputError(what, side, f"by sides, which are {', '.join(sides)}")
            made[what][side] = labels_of(f"{what}.{side}", labels)
    for name, labels in two_sided.items():
        what, _, side = name.partition("_")
        if labels:
            if len(sides) != 2:
                raise InputError(
                    name, labels, "left out: the study hasn't two sides", f"use {what}"
                )
            place = sides[("rows", "columns").index(side)]
            made[what][place] = labels_of(name, labels)
    return Change(made["add"], made["retire"])


def revise(work: UnitOfWork, change: Change, key: str | None = None) -> int:
    """Add and retire levels; the number of the revision."""
    for event in under_key(work, key, Kind.REVISED):
        if Change.read(event.data) != change:
            raise key_used(key)
        return event.tag
    if change.added or change.retired:
        work.state.check_change(change)
        number = work.state.revision + 1
        work.append([Event(Kind.REVISED, tag=number, data=json.dumps(change.to_dict()), key=key)])
    return work.state.revision
