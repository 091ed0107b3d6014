"""Export a study's suggestions as a table, and replay its rewards with another policy."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1 import atomic, checks
from rank1.compiled import generator, kernel_for
from rank1.documents import Replayed
from rank1.errors import FileError, InputError, InputTypeError
from rank1.policies import Known, Policy
from rank1.policies.base import choose, update
from rank1.policies.mistakes import start
from rank1.settings import parse_policy
from rank1.studies.events import (
    HELD_OUT,
    OUTCOMES,
    REPEAT,
    Event,
    Events,
    Expiry,
    Kind,
    read_data,
    suggestion_id,
)
from rank1.studies.spec import Spec
from rank1.studies.state import Change, StudyState
from rank1.studies.storage import Reader, StudyRow
from rank1.studies.suggestions import guardrails_with

__all__ = ["EXPORTED", "event_lines", "export_log", "page_lines", "replay_log"]

PAGE = 10_000
#: Events with a line in the export: arms that were shown or suggested.
EXPORTED = (Kind.SUGGESTED, Kind.RECORDED)


def lines_of(study: StudyRow, state: StudyState, log: Reader) -> Iterator[list[dict[str, Any]]]:
    """Yield pages with a dict for each suggestion and exposure, in order."""
    after = 0
    while page := log.page(study.id, after, PAGE, kinds=EXPORTED):
        after = page[-1].seq
        yield list(page_lines(study, state, log, page))


def page_lines(
    study: StudyRow, state: StudyState, log: Reader, page: list[Event]
) -> Iterator[dict[str, Any]]:
    """Yield a dict for each of these suggestions and exposures."""
    became: dict[int, dict[int, Event]] = {}
    for event in log.outcomes(study.id, [each.seq for each in page]):
        became.setdefault(event.suggestion, {})[event.kind] = event
    for asked in page:
        if asked.kind == Kind.RECORDED and not math.isnan(asked.value):
            became[asked.seq] = {Kind.REPORTED: asked._replace(tag=0)}
    rewards = [one[Kind.REPORTED].seq for one in became.values() if Kind.REPORTED in one]
    metrics = guardrails_with(log, study.id, state.spec, rewards)
    names = list(state.spec.guardrails)
    for asked in page:
        outcome = became.get(asked.seq, {})
        told, expired = outcome.get(Kind.REPORTED), outcome.get(Kind.EXPIRED)
        what = "reported" if told else "pending"
        if not told and Kind.CANCELLED in outcome:
            what = "cancelled"
        elif not told and expired:
            what = "expired"
        versioned = state.design is not None or asked.kind == Kind.RECORDED
        known = asked.kind == Kind.SUGGESTED and not math.isnan(asked.value)
        default = expired is not None and expired.tag == Expiry.DEFAULT
        line = {
            "id": suggestion_id(study.uid, asked.seq, asked.nonce),
            **state.document(asked.arm),
            "state": what,
            "reward": told.value if told else None,
            "counted_as": expired.value if expired and default else None,
            "asked_at": asked.at,
            "told_at": told.at if told else None,
            "late": bool(told and told.tag != 0),
            "propensity": asked.value if known else None,
            "version": asked.tag if versioned and asked.tag >= 0 else None,
            "count": int(asked.tag not in (REPEAT, HELD_OUT)),
            "unit": asked.unit,
            "data": read_data(asked, log.damaged),
        }
        if names:
            values = metrics[told.seq] if told else {}
            line["guardrails"] = {name: values.get(k) for k, name in enumerate(names, 1)}
        yield line


def event_lines(
    study: StudyRow, state: StudyState, log: Reader, page: Sequence[Event]
) -> Iterator[dict[str, Any]]:
    """Yield a dict for each of these events, with the fields of its kind."""
    of = {each.suggestion for each in page if each.kind in OUTCOMES}
    asked = {each.seq: each for each in log.events(study.id, list(of))}
    for event in page:
        if event.kind not in Kind.__members__.values():
            raise log.damaged(f"event {event.seq} is of kind {event.kind!r}")
        line: dict[str, Any] = {
            "seq": event.seq, "at": event.at, "kind": Kind(event.kind).name.lower()
        }  # fmt: skip
        pull = asked.get(event.suggestion, event)
        if pull.kind in EXPORTED:
            line["id"] = suggestion_id(study.uid, pull.seq, pull.nonce)
        if pull.kind in (*EXPORTED, Kind.HISTORY, Kind.GUARDRAIL):
            line |= state.document(pull.arm)
        if event.kind in (Kind.REPORTED, Kind.HISTORY, Kind.EXPIRED, Kind.RECORDED):
            line["reward"] = event.value if math.isfinite(event.value) else None
        if event.kind == Kind.HISTORY:
            line["count"] = event.tag
        if event.kind == Kind.GUARDRAIL:
            metrics = dict(enumerate(state.spec.guardrails, 1))
            if event.metric not in metrics:
                raise log.damaged(f"event {event.seq} is of a guardrail that isn't there")
            line |= {"metric": metrics[event.metric], "value": event.value}
        if event.kind == Kind.REPORTED:
            line["late"] = event.tag != 0
        if event.kind in (Kind.RECORDED, Kind.VERSION):
            line["version"] = event.tag if event.tag >= 0 else None
        if event.kind == Kind.REVISED:
            line["revision"] = event.tag
            line["change"] = Change.read(event.data).to_dict()
        if event.kind in (Kind.SUGGESTED, Kind.NOTED) and event.data is not None:
            line["data"] = read_data(event, log.damaged)
        line |= {name: text for name in ("unit", "key") if (text := getattr(event, name))}
        yield line


def export_log(
    study: StudyRow, state: StudyState, log: Reader, path: str | os.PathLike[str]
) -> int:
    """Write the lines of `page_lines` as JSONL or Parquet; return how many."""
    place = Path(path)
    if place.suffix not in (".jsonl", ".parquet"):
        raise FileError(f"{str(place)!r} must end with .jsonl or .parquet", where=str(place))
    pages = lines_of(study, state, log)
    if place.suffix == ".jsonl":
        count = 0
        with atomic.whole_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            for page in pages:
                file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in page)
                count += len(page)
        return count
    import polars as pl

    levels = dict.fromkeys(state.labels, pl.String)
    schema: dict[str, Any] = {
        "id": pl.String,
        **(dict.fromkeys(("row", "column"), pl.String) if len(levels) == 2 else {}),
        "levels": pl.Struct(levels), "state": pl.String, "reward": pl.Float64,
        "counted_as": pl.Float64, "asked_at": pl.Float64, "told_at": pl.Float64, "late": pl.Boolean,
        "propensity": pl.Float64, "version": pl.Int64, "count": pl.Int64,
        "unit": pl.String, "data": pl.String,
    }  # fmt: skip
    if state.spec.guardrails:
        schema["guardrails"] = pl.Struct(dict.fromkeys(state.spec.guardrails, pl.Float64))
    frames = [pl.DataFrame(schema=schema)]
    for page in pages:
        for line in page:  # a table can hold free-form data only as text
            line["data"] = None if line["data"] is None else json.dumps(line["data"])
        frames.append(pl.DataFrame(page, schema=schema))
    whole = pl.concat(frames)
    with atomic.whole_file(path) as temporary:
        whole.write_parquet(temporary)
    return len(whole)


def _replay(
    state: Any, rng: np.random.Generator, rewards: Any, begins: Any, used: Any, result: Any
) -> None:
    """Give each pull its arm's next reward; `result` gets steps, sum and the exhausted arm."""
    while True:
        arm, tag = choose(state, rng)
        place = begins[arm] + used[arm]
        if place == begins[arm + 1]:
            result[2] = arm
            return
        used[arm] += 1
        update(state, arm, tag, rewards[place])
        result[0] += 1
        result[1] += rewards[place]


def _counted(events: Events) -> NDArray[np.bool_]:
    """Return which events count as rewards: a default does, and then a later report doesn't.

    Rewards of held-out units, and of units that were counted before, aren't evidence.
    """
    default = (events.kind == Kind.EXPIRED) & (events.tag == Expiry.DEFAULT)
    filled = np.isin(events.suggestion, events.suggestion[default])
    reported = (events.kind == Kind.REPORTED) & ~filled
    recorded = (events.kind == Kind.RECORDED) & ~np.isnan(events.value)
    counts = events.tag[_shown(events)] > REPEAT
    return (reported | default | recorded) & counts | (events.kind == Kind.HISTORY)


def _shown(events: Events) -> NDArray[np.int64]:
    """Return the index of each event's exposure, or its own if it has none; seqs begin at 1."""
    return np.where(events.suggestion > 0, events.suggestion - 1, np.arange(events.size))


def replay_log(
    known: StudyState, spec: Spec, events: Events, study: StudyRow, policy: Policy | str, seed: int
) -> Replayed:
    """Play another policy on the rewards of a log, taking each arm's rewards in order.

    A reward doesn't depend on which policy asked for it, so as long as means don't change, these
    are draws like any others. The replay ends when the log has no more rewards of an arm.
    """
    other = parse_policy(policy) if isinstance(policy, str) else policy
    if not isinstance(other, Policy):
        raise InputTypeError("policy", policy, "a policy or its name")
    _, living = known.places_of(events.arm)
    counted = np.flatnonzero(_counted(events))
    history = events.kind[counted] == Kind.HISTORY
    arms = living[_shown(events)[counted]]
    times = np.where(history, events.tag[counted], 1) * (arms >= 0)
    order = np.argsort(arms, kind="stable")
    low, high = spec.reward_range
    values = (events.value[counted] - low) / (high - low)
    rewards = np.repeat(values[order], times[order])
    if not len(rewards):
        raise InputError(
            "study", study.name, "one with rewards", "there is nothing to replay", got="none yet"
        )
    size = math.prod(known.shape)
    begins = np.zeros(size + 1, np.int64)
    lives = arms >= 0
    np.add.at(begins, arms[lives] + 1, times[lives])
    begins = np.cumsum(begins)
    n = spec.horizon or max(len(rewards), size)
    state = start(other, Known(n=n, sides=known.shape))
    used, result = np.zeros(size, np.int64), np.zeros(3)
    seed = checks.integer("seed", seed, 0)
    with generator(np.random.SeedSequence(seed)) as rng:
        kernel_for(_replay, state, work=len(rewards))(state, rng, rewards, begins, used, result)

    def labels(arm: int) -> tuple[str, ...]:
        return tuple(known.named(known.arms_of([arm])[0]).values())

    steps = int(result[0])
    return Replayed(
        policy=other.label,
        steps=steps,
        rate=float(low + (high - low) * result[1] / steps) if steps else math.nan,
        rewards=len(rewards),
        logged_rate=float(low + (high - low) * rewards.mean()),
        best=labels(state.best()),
        exhausted=None if steps == len(rewards) else labels(int(result[2])),
    )
