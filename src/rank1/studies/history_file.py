"""Read files of rewards line by line, because they may be larger than memory."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rank1.errors import FileError, InputError, InputTypeError, reason

__all__ = ["MEASURES", "Line", "file_lines", "line_of"]

#: Encodings to try, in this order; the last one accepts every byte.
ENCODINGS = ("utf-8-sig", "cp1252", "latin-1")
SEPARATORS = ",;\t"
#: Rows of a Parquet file to read at once.
PART = 50_000
#: The columns that a line can have besides its levels.
MEASURES = ("reward", "counted_as", "count", "successes", "trials", "id")


class Line(NamedTuple):
    """One line: its number, the labels of its levels, and its measures."""

    number: int
    labels: Sequence[Any]
    #: A reward, or None if there is none; if `trials` is set, the number of successes.
    reward: Any
    count: Any = 1
    trials: Any = None
    #: The suggestion's id, in an export.
    id: Any = None


def file_lines(
    path: Path, sides: Sequence[str], columns: Mapping[str, str] | None
) -> Iterator[Line]:
    """Yield the lines of a CSV, JSONL or Parquet file: see `Study.import_history`.

    The separator of a CSV file and its encoding (UTF-8 or Latin-1) are detected.
    """
    if not isinstance(columns, Mapping | None):
        raise InputTypeError("columns", columns, 'a mapping such as {"reward": "converted"}')
    own = {name: name for name in (*sides, *MEASURES)} | dict(columns or {})
    for name in own:
        if name not in (*sides, *MEASURES):
            raise InputError("columns", name, f"of {', '.join((*sides, *MEASURES))}")
    levels = {side: own[side] for side in sides}
    measures = {name: own[name] for name in MEASURES if name not in sides}
    readers = {".csv": _csv_lines, ".jsonl": _json_lines, ".parquet": _parquet_lines}
    if path.suffix not in readers:
        raise FileError(f"{str(path)!r} must end with {', '.join(readers)}", where=str(path))
    try:
        yield from readers[path.suffix](path, levels, measures)
    except FileError:
        raise
    except (OSError, csv.Error) as error:
        raise FileError(f"{str(path)!r} can't be read: {reason(error)}", where=str(path)) from None


#: The file's own column names, by side or measure.
Names = Mapping[str, str]


def _check_columns(path: Path, levels: Names, measures: Names, present: Sequence[str]) -> None:
    """Refuse a file without the required columns, or with one of them twice."""
    used = {*levels.values(), *measures.values()}
    twice = next((own for own in present if own in used and present.count(own) > 1), None)
    if twice is not None:
        raise FileError(f"{str(path)!r} has the column {twice!r} twice", where=str(path))
    there = {name for name, own in measures.items() if own in present}
    has_measure = "reward" in there or there >= {"successes", "trials"}
    if has_measure and set(levels.values()) <= set(present):
        return
    wanted = [*levels.values(), measures["reward"]]
    missing = [own for own in wanted if own not in present]
    raise FileError(
        f"{str(path)!r} must have the columns {', '.join(wanted)}; missing: {', '.join(missing)}, "
        f"there are: {', '.join(present)}",
        "successes and trials can replace the reward; map columns with other names by "
        'columns={"reward": "converted"}, --column reward=converted',
        where=str(path),
    )


def _csv_lines(path: Path, levels: Names, measures: Names) -> Iterator[Line]:
    with path.open(encoding=_encoding(path), newline="") as file:
        first = file.readline()
        known = {*levels.values(), *measures.values()}
        separator = max(SEPARATORS, key=lambda each: _known(first, each, known))
        file.seek(0)
        reader = csv.reader(file, delimiter=separator)
        header = [name.strip() for name in next(reader, [])]
        _check_columns(path, levels, measures, header)
        places = [header.index(own) for own in levels.values()]
        at = {name: header.index(own) for name, own in measures.items() if own in header}
        for cells in reader:
            if len(cells) != len(header):
                if not any(cells):
                    continue
                raise FileError(
                    f"line {reader.line_num} of {str(path)!r} has {len(cells)} columns, but "
                    f"the first line has {len(header)}",
                    where=str(path),
                )
            values = {name: _number(cells[place], separator) for name, place in at.items()}
            yield line_of(reader.line_num, [cells[place] for place in places], values)


def _encoding(path: Path) -> str:
    for encoding in ENCODINGS:
        try:
            with path.open(encoding=encoding, newline="") as file:
                while file.read(1 << 20):
                    pass
            return encoding
        except UnicodeDecodeError:
            continue
    raise AssertionError


def _known(line: str, separator: str, names: set[str]) -> tuple[int, int]:
    """Return how many columns of a header are known, and how many there are."""
    header = [name.strip() for name in next(csv.reader([line], delimiter=separator), [])]
    return len(names.intersection(header)), len(header)


def _number(text: str, separator: str = ",") -> Any:
    """Convert text to a number; None if it is empty; invalid text is returned for the message.

    >>> _number("1"), _number("true"), _number(""), _number("0,5", ";"), _number("one")
    (1.0, 1.0, None, 0.5, 'one')
    """
    try:
        return float(text)
    except ValueError:
        pass
    if not text.strip():
        return None
    plain = {"true": "1", "false": "0"}.get(text.strip().lower(), text)
    try:
        return float(plain.replace(",", ".") if separator == ";" else plain)
    except ValueError:
        return text


def _json_lines(path: Path, levels: Names, measures: Names) -> Iterator[Line]:
    checked = False
    with path.open(encoding=_encoding(path)) as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                line = json.loads(text)
                if not isinstance(line, dict):
                    raise ValueError("it isn't an object")
                inner = line.get("levels") or {}  # as our own export has them
                line |= {own: inner[side] for side, own in levels.items() if side in inner}
            except (ValueError, TypeError, AttributeError, RecursionError) as error:
                problem = f"line {number} of {str(path)!r} can't be read: {error}"
                raise FileError(problem, where=str(path)) from None
            if not checked:
                _check_columns(path, levels, measures, list(line))
                checked = True
            labels = [line.get(own) for own in levels.values()]
            yield line_of(number, labels, {name: line.get(own) for name, own in measures.items()})


def _parquet_lines(path: Path, levels: Names, measures: Names) -> Iterator[Line]:
    import polars as pl

    try:
        scanned = pl.scan_parquet(path)
        schema = scanned.collect_schema()
        struct = schema.get("levels")
        if isinstance(struct, pl.Struct):  # as our own export has them
            inner = {each.name for each in struct.fields}
            parts = [pl.col("levels").struct.field(side).alias(own)
                     for side, own in levels.items() if side in inner]  # fmt: skip
            scanned = scanned.with_columns(parts)
            schema = scanned.collect_schema()
        _check_columns(path, levels, measures, schema.names())
        there = {name: own for name, own in measures.items() if own in schema}
        chosen = [pl.col(own).alias(f"{k}") for k, own in enumerate(levels.values())]
        chosen += [pl.col(own).alias(name) for name, own in there.items()]
        begin = 0
        while len(frame := scanned.select(chosen).slice(begin, PART).collect()):
            for number, row in enumerate(frame.iter_rows(), begin + 1):
                values = dict(zip(there, row[len(levels) :], strict=True))
                yield line_of(number, row[: len(levels)], values)
            begin += PART
    except pl.exceptions.PolarsError as error:
        raise FileError(f"{str(path)!r} can't be read: {error}", where=str(path)) from None


def line_of(number: int, labels: Sequence[Any], values: Mapping[str, Any]) -> Line:
    """Return a line from its values by measure, some of which may be None."""
    read = {name: _number(each) if isinstance(each, str) else each for name, each in values.items()}
    reward, count, trials = read.get("reward"), read.get("count"), None
    if read.get("counted_as") is not None:  # the default, as our own export says
        reward = read["counted_as"]
    if read.get("trials") is not None:
        if reward is not None:
            error = InputError("trials", read["trials"], "left out where a reward is given")
            raise error.within(f"line {number} of the history")
        reward, trials = read.get("successes"), read["trials"]
    return Line(number, labels, reward, 1 if count is None else count, trials, read.get("id"))
