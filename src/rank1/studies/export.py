"""A study's suggestions as a table, and its rewards under another policy."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1 import atomic, checks
from rank1.compiled import generator, kernel
from rank1.documents import Replayed
from rank1.errors import FileError, InputError
from rank1.policies import Known, Policy
from rank1.policies.base import choose, update
from rank1.settings import parse_policy
from rank1.studies.log import Event, Events, Expiry, Kind, suggestion_id
from rank1.studies.memory import Memory
from rank1.studies.spec import Spec
from rank1.studies.storage import Reader, StudyRow

__all__ = ["Replayed", "export_log", "lines_of", "page_lines", "replay_log"]

PAGE = 10_000


def lines_of(study: StudyRow, memory: Memory, log: Reader) -> Iterator[dict[str, Any]]:
    """A dict for each suggestion, in order."""
    after = 0
    while page := log.page(study.id, after, PAGE, kinds=(Kind.SUGGESTED,)):
        after = page[-1].seq
        yield from page_lines(study, memory.labels, log, page)


def page_lines(
    study: StudyRow, labels: dict[str, list[str]], log: Reader, page: list[Event]
) -> Iterator[dict[str, Any]]:
    """A dict for each of these suggestions."""
    became: dict[int, dict[int, Event]] = {}
    for event in log.outcomes(study.id, [each.seq for each in page]):
        became.setdefault(event.suggestion, {})[event.kind] = event
    for asked in page:
        outcome = became.get(asked.seq, {})
        told = outcome.get(Kind.REPORTED)
        state = "reported" if told else "pending"
        if not told and Kind.CANCELLED in outcome:
            state = "cancelled"
        elif not told and Kind.EXPIRED in outcome:
            state = "expired"
        yield {
            "id": suggestion_id(study.uid, asked.seq, asked.nonce),
            "row": labels["rows"][asked.row],
            "column": labels["columns"][asked.column],
            "state": state,
            "reward": told.value if told else None,
            "asked_at": asked.at,
            "told_at": told.at if told else None,
            "late": bool(told and told.tag == 1),
            "propensity": None if math.isnan(asked.value) else asked.value,
            "unit": asked.unit,
        }


def export_log(study: StudyRow, memory: Memory, log: Reader, path: str | os.PathLike[str]) -> int:
    """Write a line for each suggestion, as JSONL or Parquet; how many."""
    place = Path(path)
    if place.suffix not in (".jsonl", ".parquet"):
        raise FileError(f"{str(place)!r} must end with .jsonl or .parquet")
    lines = 0
    if place.suffix == ".jsonl":
        with atomic.whole_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            for line in lines_of(study, memory, log):
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                lines += 1
        return lines
    import polars as pl

    schema = {
        "id": pl.String, "row": pl.String, "column": pl.String, "state": pl.String,
        "reward": pl.Float64, "asked_at": pl.Float64, "told_at": pl.Float64, "late": pl.Boolean,
        "propensity": pl.Float64, "unit": pl.String,
    }  # fmt: skip
    frame = pl.DataFrame(list(lines_of(study, memory, log)), schema=schema)
    with atomic.whole_file(path) as temporary:
        frame.write_parquet(temporary)
    return len(frame)


def _play(
    state: Any, rng: np.random.Generator, rewards: Any, begins: Any, used: Any, out: Any
) -> None:
    """Each pull takes its pair's next reward; `out` has steps, sum and the pair that had none."""
    L = used.shape[1]
    while True:
        row, column, tag = choose(state, rng)
        place = begins[row * L + column] + used[row, column]
        if place == begins[row * L + column + 1]:
            out[2], out[3] = row, column
            return
        used[row, column] += 1
        update(state, row, column, tag, rewards[place])
        out[0] += 1
        out[1] += rewards[place]


def _counted(events: Events) -> NDArray[np.bool_]:
    """Which events are rewards: a default is one, and then what comes later isn't."""
    default = (events.kind == Kind.EXPIRED) & (events.tag == Expiry.DEFAULT)
    filled = np.isin(events.suggestion, events.suggestion[default])
    reported = (events.kind == Kind.REPORTED) & ~filled
    return reported | default | (events.kind == Kind.HISTORY)


def replay_log(
    memory: Memory, spec: Spec, log: Reader, study: StudyRow, policy: Policy | str, seed: int
) -> Replayed:
    """Play another policy on the rewards of a log, each pair's in their order.

    A reward says nothing of which policy asked for it, so as long as means stay, these are draws
    like any others. It ends where the log has no more rewards of a pair.
    """
    chosen = parse_policy(policy) if isinstance(policy, str) else policy
    events = log.read(study.id)
    K, L = len(memory.living["rows"]), len(memory.living["columns"])
    queues: list[list[float]] = [[] for _ in range(K * L)]
    for e in np.flatnonzero(_counted(events)).tolist():
        kind = events.kind[e]
        # Event seq is at place seq − 1.
        pair = e if kind == Kind.HISTORY else int(events.suggestion[e]) - 1
        i = memory.book.row_of[events.row[pair]]
        j = memory.book.column_of[events.column[pair]]
        if i >= 0 and j >= 0:
            times = int(events.tag[e]) if kind == Kind.HISTORY else 1
            queues[i * L + j] += [spec.scaled(float(events.value[e]))] * times
    rewards = np.array([x for queue in queues for x in queue])
    if not len(rewards):
        raise InputError("there is nothing to replay: no reward is reported yet")
    begins = np.cumsum([0, *map(len, queues)])
    state = chosen.start(Known(K, L, spec.horizon or max(len(rewards), K * L)))
    used, out = np.zeros((K, L), np.int64), np.zeros(4)
    seed = checks.integer("seed", seed, 0)
    with generator(np.random.SeedSequence(seed)) as rng:
        kernel(_play, state)(state, rng, rewards, begins, used, out)
    low, high = spec.reward_range
    rows, columns = memory.living_labels("rows"), memory.living_labels("columns")
    row, column = state.best()
    steps = int(out[0])
    return Replayed(
        policy=chosen.label,
        steps=steps,
        rate=float(low + (high - low) * out[1] / steps) if steps else math.nan,
        rewards=len(rewards),
        logged_rate=float(low + (high - low) * rewards.mean()),
        best=(rows[row], columns[column]),
        exhausted=None if steps == len(rewards) else (rows[int(out[2])], columns[int(out[3])]),
    )
