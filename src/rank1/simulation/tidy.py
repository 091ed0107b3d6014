"""One file format for runs: a tidy Parquet file, with one row per run and checkpoint.

Columns: problem, its settings and its sides (their numbers of levels), policy and its settings, n,
run, step, expected_regret, realised_regret, and best_arm, the number (in row-major order) of the
arm that the run recommends at its end. A setting that doesn't apply is null; one that is neither a
number nor a word is JSON. A policy's setting with the name of another column gets the prefix
`policy_`.

The metadata has the rest: what was planned, which runs are missing, and a SHA-256 digest of the
whole file, which every reader checks.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.atomic import whole_file
from rank1.errors import FileError, InputError
from rank1.simulation.block import Block

if TYPE_CHECKING:
    import polars as pl

__all__ = ["REGRETS", "Part", "Tidy", "frame_of", "read_tidy", "write_tidy"]

#: Version of the layout: a program rejects a file with a later version instead of misreading it.
FORMAT = 4
#: Files of this version, for two sides only, have best_row and best_column instead of best_arm.
TWO_SIDES = 3
#: Rows written at a time.
BATCH = 200_000
REGRETS = ("expected_regret", "realised_regret")
FIXED = ("problem", "sides", "policy", "n", "run", "step", *REGRETS, "best_arm")
#: A longer list of numbers is replaced by its digest.
MAX_JSON = 2000

_DIGEST = re.compile(rb'"rank1-sha256": "([0-9a-f]{64})"')
_ZEROS = b"0" * 64


class Part(NamedTuple):
    """The runs of one series, as stored in a file."""

    #: Name, sides and settings of the problem; see `problem_document`.
    problem: Mapping[str, Any]
    policy: str
    settings: Mapping[str, Any]
    n: int
    checkpoints: NDArray[np.int64]
    #: By their first run.
    blocks: Mapping[int, Block]


class Tidy(NamedTuple):
    """An open file; rows are read when needed."""

    frame: pl.LazyFrame
    facts: dict[str, Any]


def write_tidy(path: str | os.PathLike[str], parts: Sequence[Part], facts: dict[str, Any]) -> int:
    """Write runs in batches, and put the complete file in place. Returns the number of rows."""
    import polars as pl
    from polars.io.plugins import register_io_source

    table, schema, told = _table(parts)
    told |= facts | {"format": FORMAT, "rank1-sha256": _ZEROS.decode()}
    with whole_file(path) as temporary:
        try:
            register_io_source(lambda *_: _frames(parts, table), schema=schema).sink_parquet(
                temporary, metadata={"rank1": json.dumps(told)}
            )
        except pl.exceptions.PolarsError as error:  # a full disk, described in many words
            with temporary.open("ab") as file:  # raises the system's own error
                file.write(bytes(100_000))
            raise OSError(str(error).splitlines()[0]) from None
        _seal(temporary)
    return sum(
        block.runs * len(part.checkpoints) for part in parts for block in part.blocks.values()
    )


def frame_of(parts: Sequence[Part], facts: dict[str, Any]) -> Tidy:
    """What a file of these runs would contain, without writing it."""
    import polars as pl

    table, schema, told = _table(parts)
    frames = list(_frames(parts, table))
    frame = pl.concat(frames) if frames else pl.DataFrame(schema=schema)
    return Tidy(frame.lazy(), told | facts | {"format": FORMAT})


def read_tidy(path: str | os.PathLike[str]) -> Tidy:
    """Open a file that `write_tidy` wrote, and check that it is undamaged."""
    import polars as pl

    path = Path(path)
    if not path.is_file():
        what = f"path must name a file of results, got {os.fspath(path)!r}"
        raise MissingFileError(what, path=os.fspath(path))
    try:
        # Before anything else reads the file: damaged data can break its readers in many ways.
        if (found := _file_digest(path)) is not None and found.told != found.true:
            raise ValueError("its checksum is wrong")
        facts = json.loads(pl.read_parquet_metadata(path)["rank1"])
        if facts["format"] in (TWO_SIDES, FORMAT) and found is None:
            raise ValueError("it has no digest")
        frame = pl.scan_parquet(path, glob=False)
        frame.collect_schema()
    except (Exception, pl.exceptions.PanicException) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        hint = f"{reason}; it may be truncated or damaged: create it again"
        raise InputError("path", os.fspath(path), "a complete file of results", hint) from None
    if facts["format"] not in (TWO_SIDES, FORMAT):
        got = f"format {facts['format']} in {os.fspath(path)!r}"
        expected = f"a file of format {TWO_SIDES} or {FORMAT}"
        hint = "install the version of rank1 that wrote it"
        raise InputError("path", os.fspath(path), expected, hint, got=got)
    return Tidy(frame, facts)


class MissingFileError(FileError, FileNotFoundError):
    """There is no file at this path."""


class _FileDigest(NamedTuple):
    #: Its position in the file, the stored digest, and the correct one.
    place: int
    told: str
    true: str


def _file_digest(path: Path) -> _FileDigest | None:
    """The digest of a file; None if it has none, because it isn't ours."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as bits:
        matches = [(match.start(1), match[1]) for match in _DIGEST.finditer(bits)]
        if len(matches) != 1:
            return None
        place, told = matches[0]
        digest = hashlib.sha256()
        for part in (slice(place), slice(place + len(_ZEROS), None)):
            with memoryview(bits) as view, view[part] as some:
                digest.update(some)
            digest.update(_ZEROS if part.stop == place else b"")
        return _FileDigest(place, told.decode(), digest.hexdigest())


def _seal(path: Path) -> None:
    if (found := _file_digest(path)) is None:
        expected = "without the word rank1-sha256, which a file must contain exactly once"
        raise InputError("settings", None, expected, got="one with it")
    with path.open("rb+") as file:
        file.seek(found.place)
        file.write(found.true.encode())


def _table(parts: Sequence[Part]) -> tuple[pl.DataFrame, dict[str, Any], dict[str, Any]]:
    """A row of settings for each part, the file's schema, and which columns are settings."""
    import polars as pl

    of_problem = _names(part.problem["settings"] for part in parts)
    taken = {*FIXED, *of_problem}
    own = _names(part.settings for part in parts)
    of_policy = {f"policy_{name}" if name in taken else name: name for name in own}
    table = pl.DataFrame(
        [
            _column("problem", [part.problem["name"] for part in parts]),
            *(
                _column(name, [part.problem["settings"].get(name) for part in parts])
                for name in of_problem
            ),
            _column("sides", [list(part.problem["sides"]) for part in parts]),
            _column("policy", [part.policy for part in parts]),
            *(
                _column(column, [part.settings.get(name) for part in parts])
                for column, name in of_policy.items()
            ),
            _column("n", [part.n for part in parts]),
        ]
    )
    schema: dict[str, Any] = dict(table.schema) | dict.fromkeys(("run", "step"), pl.Int64)
    schema |= dict.fromkeys(REGRETS, pl.Float64) | {"best_arm": pl.Int64}
    return table, schema, {"problem_settings": of_problem, "policy_settings": list(of_policy)}


def _frames(parts: Sequence[Part], table: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Rows in batches, however the runs were cut into blocks."""
    import polars as pl

    for batch in _batches(parts):
        number, run, step, curves, arms = (
            np.concatenate(columns) for columns in zip(*batch, strict=True)
        )
        yield table[number].with_columns(
            pl.Series("run", run),
            pl.Series("step", step),
            *(pl.Series(name, curves[:, k]) for k, name in enumerate(REGRETS)),
            pl.Series("best_arm", arms),
        )


#: For some rows: the number of the part, run, step, both regrets, and the arm.
Rows = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def _batches(parts: Sequence[Part]) -> Iterator[list[Rows]]:
    batch: list[Rows] = []
    size = 0
    for number, part in enumerate(parts):
        marks = len(part.checkpoints)
        at_once = max(1, BATCH // marks)  # runs
        for first, block in sorted(part.blocks.items()):
            for start in range(0, block.runs, at_once):
                some = block.part(start, min(start + at_once, block.runs))
                count = some.runs * marks
                if batch and size + count > BATCH:
                    yield batch
                    batch, size = [], 0
                numbers = np.arange(first + start, first + start + some.runs)
                batch.append(
                    (
                        np.full(count, number),
                        numbers.repeat(marks),
                        np.tile(part.checkpoints, some.runs),
                        some["curves"].reshape(-1, 2),
                        some["best_arms"].repeat(marks),
                    )
                )
                size += count
    if batch:
        yield batch


def _names(settings: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for some in settings for name in some))


def _column(name: str, values: list[Any]) -> pl.Series:
    import polars as pl

    kinds = {type(value) for value in values if value is not None}
    for plain, dtype in ((bool, pl.Boolean), (int, pl.Int64)):
        if kinds == {plain}:
            return pl.Series(name, values, dtype)
    if kinds <= {int, float}:
        return pl.Series(name, values, pl.Float64, strict=False)
    words = [None if value is None else _word(value) for value in values]
    known = list(dict.fromkeys(word for word in words if word is not None))
    return pl.Series(name, words, pl.Enum(known))


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) <= MAX_JSON:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
