"""Rewards that are known from elsewhere."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rank1.errors import FileError, InputError, InputTypeError
from rank1.policies.base import has_counts
from rank1.studies.events import Event, Kind
from rank1.studies.suggestions import check_reward, key_used, under_key
from rank1.studies.unit_of_work import StudyAccess, UnitOfWork

__all__ = ["History", "history_lines", "import_history"]

#: A file, or lines of one label for each side and the reward.
History = str | os.PathLike[str] | Iterable[Sequence[Any]]


def import_history(access: StudyAccess, history: History, key: str | None) -> int:
    """Add rewards of arms to the log, once; how many."""
    given = list(history_lines(history, list(access.spec.sides)))
    spec = access.spec
    if key is None:
        seal = hashlib.blake2b(repr(given).encode(), digest_size=16)
        key = f"history {seal.hexdigest()}"

    def work(doing: UnitOfWork) -> int:
        before = under_key(doing, key, Kind.HISTORY)
        state = doing.state
        places = [
            (side, {name: k for k, name in enumerate(names)})
            for side, names in state.labels.items()
        ]
        counted: Counter[tuple[int, float]] = Counter()
        for number, (*labels, reward) in enumerate(given, 1):
            try:
                levels = []
                for (side, known), label in zip(places, labels, strict=True):
                    if label not in known:
                        raise InputError(side, label, "one of the study's")
                    levels.append(known[label])
                counted[state.room.arm(levels), check_reward(spec, reward)] += 1
            except (InputError, InputTypeError) as error:
                raise error.within(f"line {number} of the history") from None
        if not counted:
            raise InputError("history", history, "one with rewards", got="none")
        if before:
            if {(each.arm, each.value): each.tag for each in before} != dict(counted):
                raise key_used(key)
            return len(given)
        if not has_counts(state.state):
            warnings.warn(
                f"{spec.policy} can't learn from rewards that it didn't ask for: the history "
                "counts as evidence only",
                UserWarning,
                stacklevel=5,
            )
        doing.append(
            [
                Event(Kind.HISTORY, arm=arm, tag=count, value=value, key=key, position=k)
                for k, ((arm, value), count) in enumerate(sorted(counted.items()))
            ]
        )
        return len(given)

    return access.transact(work)


def history_lines(history: History, sides: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """The labels and the reward of each line."""
    if isinstance(history, str | os.PathLike):
        yield from _file_lines(Path(history), [*sides, "reward"])
        return
    expected = f"a file or lines of ({', '.join(sides)}, reward)"
    if not isinstance(history, Iterable) or hasattr(history, "columns"):
        raise InputTypeError("history", history, expected)
    for line in history:
        try:
            labels = tuple(line)
        except TypeError:
            raise InputError("history", line, expected) from None
        if len(labels) != len(sides) + 1:
            raise InputError("history", line, expected)
        yield labels


def _file_lines(path: Path, columns: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """Those of a file."""
    import polars as pl

    readers = {
        # Rewards as text: what they are mustn't be guessed from the first lines.
        ".csv": lambda: pl.read_csv(path, schema_overrides=dict.fromkeys(columns, pl.String)),
        ".jsonl": lambda: pl.read_ndjson(path, infer_schema_length=None),
        ".parquet": lambda: pl.read_parquet(path),
    }
    if path.suffix not in readers:
        raise FileError(f"{str(path)!r} must end with {', '.join(readers)}", where=str(path))
    try:
        frame = readers[path.suffix]()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FileError(f"{str(path)!r} can't be read: {error}", where=str(path)) from None
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise FileError(
            f"{str(path)!r} must have the columns {', '.join(columns)}; "
            f"missing: {', '.join(missing)}, there are: {', '.join(frame.columns)}",
            where=str(path),
        )
    for *labels, reward in frame.select(columns).iter_rows():
        yield (*labels, _reward(reward))


def _reward(given: Any) -> Any:
    """A number where a file has one; else what it has, for the message."""
    if given is None:
        return math.nan
    if not isinstance(given, str):
        return given
    try:
        return float({"true": "1", "false": "0"}.get(given.strip().lower(), given))
    except ValueError:
        return given
