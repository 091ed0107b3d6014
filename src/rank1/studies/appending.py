"""Records and rewards of many callers, stored by one statement and without the study's lock.

For storages that can add events before they have a number: `rank1.studies.storage.unnumbered` says
how that works, and why. What is stored here is what needs no state but the versions of the shares,
which never change once they have begun: exposures of new units, and rewards of exposures that are
in the log and wait for one. All else is left to `take_records` and `take_rewards` under the lock:
duplicates, what is wrong, versions and levels this process hasn't met, rewards that came late.
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

__all__ = ["append_together", "new_records", "new_rewards"]

#: A study, and what makes events of what is to be stored; None for what is left to the lock.
Job = tuple[StudyAccess, Callable[[StudyAccess], list[Event | None]]]


def append_together(jobs: Sequence[Job]) -> list[Any]:
    """Which of its items each job has stored, or the exception it raises in its place."""
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
    """The events of exposures, as `take_records` is given them."""
    if not access.spec.design or _is_many(access, records):
        return [None] * len(records)
    arms = DrawnArms(access.spec, access.known, access.drawn)
    events: list[Event | None] = []
    for item, nonce in zip(records, nonces(len(records)), strict=True):
        try:
            event, metrics = exposure(access.spec, arms, item, nonce)
            events.append(event._replace(data=_told(metrics)) if metrics else event)
        except Exception:  # what is wrong, the lock will say; or another thread folds the state
            events.append(None)
    return events


def new_rewards(access: StudyAccess, rewards: Sequence[Sequence[Any]]) -> list[Event | None]:
    """The events of rewards, as `take_rewards` is given them."""
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
                Kind.REPORTED, one.arm, one.tag, one.seq, reward, nonce, data=_told(metrics)
            )
        )  # fmt: skip
    return events


def _told(metrics: dict[int, float]) -> str | None:
    return json.dumps(metrics) if metrics else None


def _is_many(access: StudyAccess, items: Sequence[Any]) -> bool:
    """Whether versions should begin in the midst of these, which takes the lock."""
    return access.known is None or len(items) > largest_part(access.known.book)
