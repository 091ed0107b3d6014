"""Rewards that are known from elsewhere."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rank1.checks import shown
from rank1.errors import FileError, InputError, InputTypeError, Rank1Error
from rank1.studies.asking import check_reward, key_used, under_key
from rank1.studies.desk import Desk, Work
from rank1.studies.log import Event, Kind

__all__ = ["import_history"]

#: Columns that a file must have.
COLUMNS = ("row", "column", "reward")

History = str | os.PathLike[str] | Iterable[tuple[str, str, float]]


def import_history(desk: Desk, history: History, key: str | None) -> int:
    """Add rewards of pairs to the log, once; how many."""
    given = list(_rows(history))
    spec = desk.spec
    if key is None:
        seal = hashlib.blake2b(repr(given).encode(), digest_size=16)
        key = f"history {seal.hexdigest()}"

    def work(doing: Work) -> int:
        before = under_key(doing, key, Kind.HISTORY)
        places = {
            side: {name: k for k, name in enumerate(names)}
            for side, names in doing.memory.labels.items()
        }
        counted: Counter[tuple[int, int, float]] = Counter()
        for number, (row, column, reward) in enumerate(given, 1):
            for side, label in (("rows", row), ("columns", column)):
                if label not in places[side]:
                    raise InputError(
                        f"line {number} of the history: {side[:-1]} must be one of the study's, "
                        f"got {shown(label)}"
                    )
            try:
                value = check_reward(spec, reward)
            except Rank1Error as error:
                raise InputError(f"line {number} of the history: {error}") from None
            counted[places["rows"][row], places["columns"][column], value] += 1
        if not counted:
            raise InputError("the history has no rewards")
        if before:
            stored = {(each.row, each.column, each.value): each.tag for each in before}
            if stored != dict(counted):
                raise key_used(key)
            return len(given)
        if not doing.memory.policy.counts:
            warnings.warn(
                f"{spec.policy} can't learn from rewards that it didn't ask for: the history "
                "counts as evidence only",
                UserWarning,
                stacklevel=5,
            )
        doing.append(
            [
                Event(Kind.HISTORY, row, column, tag=count, value=value, key=key, position=k)
                for k, ((row, column, value), count) in enumerate(sorted(counted.items()))
            ]
        )
        return len(given)

    return desk.transact(work)


def _rows(history: History) -> Iterable[tuple[Any, Any, Any]]:
    """Row, column and reward of each line."""
    if isinstance(history, str | os.PathLike):
        yield from _lines(Path(history))
        return
    asked = "history must be a file or rows of (row, column, reward)"
    if not isinstance(history, Iterable) or hasattr(history, "columns"):
        raise InputTypeError(f"{asked}, got {shown(history)}")
    for line in history:
        try:
            row, column, reward = line
        except (TypeError, ValueError):
            raise InputError(f"{asked}, got {shown(line)}") from None
        yield row, column, reward


def _lines(path: Path) -> Iterable[tuple[Any, Any, Any]]:
    """Those of a file."""
    import polars as pl

    readers = {
        # Rewards as text: what they are mustn't be guessed from the first lines.
        ".csv": lambda: pl.read_csv(path, schema_overrides=dict.fromkeys(COLUMNS, pl.String)),
        ".jsonl": lambda: pl.read_ndjson(path, infer_schema_length=None),
        ".parquet": lambda: pl.read_parquet(path),
    }
    if path.suffix not in readers:
        raise FileError(f"{str(path)!r} must end with {', '.join(readers)}")
    try:
        frame = readers[path.suffix]()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FileError(f"{str(path)!r} can't be read: {error}") from None
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise FileError(
            f"{str(path)!r} must have the columns {', '.join(COLUMNS)}; "
            f"missing: {', '.join(missing)}, there are: {', '.join(frame.columns)}"
        )
    for row, column, reward in frame.select(COLUMNS).iter_rows():
        yield row, column, _reward(reward)


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
