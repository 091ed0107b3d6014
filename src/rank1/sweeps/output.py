"""The result of a sweep: one tidy Parquet file, a row for each run and checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rank1.atomic import whole_file
from rank1.errors import FileError, InputError
from rank1.simulation.store import Block
from rank1.sweeps.grid import Grid, Series

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Sweep", "read_sweep", "write_sweep"]

#: Raised when the file's layout changes, so that an old program never misreads a new file.
FORMAT = 1
#: Rows that are put together before they are written.
BATCH = 200_000
METADATA = "rank1_sweep"
REGRETS = ("expected_regret", "realised_regret")
FIXED = ("problem", "policy", "n", "run", "step", *REGRETS)


def write_sweep(
    path: str | os.PathLike[str],
    grid: Grid,
    series: Sequence[Series],
    blocks: Mapping[str, Mapping[int, Block]],
) -> int:
    """Write the runs of every series; returns the number of rows.

    Columns: problem and its settings, policy and its settings, n, run, step, expected_regret,
    realised_regret. A setting that something doesn't have is null there; one that is neither a
    number nor a word is JSON. A policy's setting that is called like another column has `policy_`
    before its name. The file is written a block of runs at a time, and appears when it is whole.
    """
    import polars as pl
    from polars.io.plugins import register_io_source

    problems = [one.problem.description for one in series]
    of_problem = _names(problem["settings"] for problem in problems)
    taken = {*FIXED, *of_problem}
    own = _names(one.policy.settings for one in series)
    of_policy = {f"policy_{name}" if name in taken else name: name for name in own}
    settings = pl.DataFrame(
        [
            _column("problem", [problem["name"] for problem in problems]),
            *(_column(name, [p["settings"].get(name) for p in problems]) for name in of_problem),
            _column("policy", [one.policy.name for one in series]),
            *(
                _column(column, [one.policy.settings.get(name) for one in series])
                for column, name in of_policy.items()
            ),
            _column("n", [one.n for one in series]),
        ]
    )

    def frames(*_: Any) -> Iterator[pl.DataFrame]:
        for rows in _batches(series, blocks):
            what, run, step, curves = map(np.concatenate, zip(*rows, strict=True))
            yield settings[what].with_columns(
                pl.Series("run", run),
                pl.Series("step", step),
                *(pl.Series(name, curves[:, k]) for k, name in enumerate(REGRETS)),
            )

    schema: dict[str, Any] = dict(settings.schema) | dict.fromkeys(("run", "step"), pl.Int64)
    schema |= dict.fromkeys(REGRETS, pl.Float64)
    facts = {
        "format": FORMAT,
        "problem_settings": of_problem,
        "policy_settings": list(of_policy),
        "runs": grid.runs,
        "seed": grid.seed,
    }
    with whole_file(path) as temporary:
        try:
            register_io_source(frames, schema=schema).sink_parquet(
                temporary, metadata={METADATA: json.dumps(facts)}
            )
        except pl.exceptions.PolarsError as error:  # so it calls a full disk
            raise FileError(str(error).splitlines()[0]) from None
    return sum(
        block.curves.shape[0] * block.curves.shape[1]
        for one in series
        for block in blocks[one.key].values()
    )


#: For some rows: the number of the series, run, step, and both regrets.
Rows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def _batches(
    series: Sequence[Series], blocks: Mapping[str, Mapping[int, Block]]
) -> Iterator[list[Rows]]:
    """Rows of about BATCH at a time, however the runs were cut into blocks."""
    batch: list[Rows] = []
    size = 0
    for k, one in enumerate(series):
        for first, block in sorted(blocks[one.key].items()):
            runs, marks, _ = block.curves.shape
            numbers = np.arange(first, first + runs).repeat(marks)
            batch.append(
                (
                    np.full(runs * marks, k),
                    numbers,
                    np.tile(one.steps, runs),
                    block.curves.reshape(-1, 2),
                )
            )
            size += runs * marks
        if size >= BATCH or (batch and k == len(series) - 1):
            yield batch
            batch, size = [], 0


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
    words = [
        value if value is None or isinstance(value, str) else json.dumps(value) for value in values
    ]
    known = list(dict.fromkeys(word for word in words if word is not None))
    return pl.Series(name, words, pl.Enum(known))


@dataclass(frozen=True)
class Sweep:
    """A sweep's file, and which of its columns are settings of what."""

    frame: pl.LazyFrame
    problem_settings: list[str]
    policy_settings: list[str]
    runs: int
    seed: int


def read_sweep(path: str | os.PathLike[str]) -> Sweep:
    """Open what `rank1 sweep` wrote; rows are read when they are asked for."""
    import polars as pl

    path = Path(path)
    if not path.is_file():
        raise InputError(f"the result must be a file of a sweep, got {os.fspath(path)!r}")
    try:
        facts = json.loads(pl.read_parquet_metadata(path)[METADATA])
        frame = pl.scan_parquet(path)
        frame.collect_schema()
    except (pl.exceptions.PolarsError, OSError, KeyError, ValueError):
        raise InputError(
            f"{os.fspath(path)!r} is not a whole file of a sweep, such as `rank1 sweep` writes"
        ) from None
    if facts["format"] != FORMAT:
        raise InputError(
            f"{os.fspath(path)!r} has format {facts['format']}, this version of rank1 reads "
            f"{FORMAT}: install the version that wrote it"
        )
    return Sweep(
        frame, facts["problem_settings"], facts["policy_settings"], facts["runs"], facts["seed"]
    )
