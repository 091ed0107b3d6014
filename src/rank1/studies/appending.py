"""Store records and rewards of many callers with one statement, without the study's lock.

This is for storages that can add events before they are numbered: see
`rank1.studies.storage.unnumbered` for how that works, and why. It stores only what needs no state
except the versions of the shares, which never change once they have begun: exposures of new units,
and rewards of logged exposures that are still pending. Everything else is left to `take_records`
and `take_rewards` under the lock: duplicates, errors, versions and levels that this process hasn't
seen yet, and late rewards.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from rank1.errors import Rank1Error
from rank1.studies.events import Event, Kind, nonces
from rank1.studies.records import DrawnArms, exposure, is_name
from rank1.studies.storage.base import SideBySide
from rank1.studies.suggestions import check_guardrails, check_reward
from rank1.studies.unit_of_work import StudyAccess, largest_part

__all__ = ["append_group", "new_records", "new_rewards"]

#: A study, and a function that returns the events to store; None for items left to the lock.
Job = tuple[StudyAccess, Callable[[StudyAccess], list[Event | None]]]


def append_group(jobs: Sequence[Job]) -> list[Any]:
    """Return which items each job has stored, or the exception that the job raised."""
    answers: list[Any] = []
    added: list[tuple[int, Event]] = []
    places: list[tuple[int, int]] = []
    for number, (access, work) in enumerate(jobs):
        try:
            events = work(access)
        except Exception as error:
            answers.append(error)
            continue
        answers.append([False] * len(events))
        for place, event in enumerate(events):
            if event is not None:
                added.append((access.study.id, event))
                places.append((number, place))
    if added:
        storage = jobs[0][0].storage
        assert isinstance(storage, SideBySide)
        try:
            for k in storage.add(added):
                number, place = places[k]
                answers[number][place] = True
        except Rank1Error as error:
            return [error] * len(jobs)
    return answers


def new_records(access: StudyAccess, records: Sequence[Sequence[Any]]) -> list[Event | None]:
    """Return the events of exposures, from the input of `take_records`."""
    if not access.spec.design or _is_many(access, records):
        return [None] * len(records)
    # While another thread works on the state, it may be ahead of the log, with levels and versions
    # that will be rolled back: then only those that were used before are known here.
    is_free = access.turn.acquire(blocking=False)
    try:
        arms = DrawnArms(access.spec, access.known if is_free else None, access.drawn)
        events: list[Event | None] = []
        for item, nonce in zip(records, nonces(len(records)), strict=True):
            try:
                event, metrics = exposure(access.spec, arms, item, nonce)
                events.append(event._replace(data=_told(metrics)) if metrics else event)
            except Exception:  # the path with the lock reports errors
                events.append(None)
        return events
    finally:
        if is_free:
            access.turn.release()


def new_rewards(access: StudyAccess, rewards: Sequence[Sequence[Any]]) -> list[Event | None]:
    """Return the events of rewards, from the input of `take_rewards`."""
    study, spec = access.study.id, access.spec
    if _is_many(access, rewards):
        return [None] * len(rewards)
    with access.storage.reading() as log:
        found = log.of_units(study, [each[0] for each in rewards if is_name(each[0])])
        seqs = [
            event.seq
            for event in found.values()
            if event.kind == Kind.RECORDED and math.isnan(event.value)
        ]
        waiting = set(seqs) - {each.suggestion for each in log.outcomes(study, seqs)}
        now = log.now(study)
    events: list[Event | None] = []
    for (unit, told, *more), nonce in zip(rewards, nonces(len(rewards)), strict=True):
        one = found.get(unit) if is_name(unit) else None
        in_time = one is not None and now < one.at + (spec.reward_window or math.inf)
        try:
            reward = check_reward(spec, told)
            metrics = check_guardrails(spec, more[0] if more else None)
        except Rank1Error:
            in_time = False
        if one is None or one.seq not in waiting or not in_time:
            events.append(None)
            continue
        events.append(
            Event(
                Kind.REPORTED, arm=one.arm, tag=one.tag, suggestion=one.seq, value=reward,
                nonce=nonce, data=_told(metrics),
            )
        )  # fmt: skip
    return events


def _told(metrics: dict[int, float]) -> str | None:
    return json.dumps(metrics) if metrics else None


def _is_many(access: StudyAccess, items: Sequence[Any]) -> bool:
    """Return whether folding these requires new versions in between, which takes the lock."""
    known = access.known  # another thread may be folding it
    return known is None or len(items) > largest_part(known.book)
