"""Import rewards from elsewhere."""

from __future__ import annotations

import hashlib
import os
import warnings
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.documents import Imported
from rank1.errors import InputError, InputTypeError
from rank1.policies.base import has_counts
from rank1.studies.events import Event, Kind, check_text
from rank1.studies.history_file import MEASURES, Line, file_lines, line_of
from rank1.studies.state import StudyState
from rank1.studies.suggestions import check_reward
from rank1.studies.unit_of_work import StudyAccess, UnitOfWork, key_used

__all__ = ["History", "history_lines", "import_history"]

#: A file; or lines with a label for each side, then the reward; or mappings, as in a JSONL file.
History = str | os.PathLike[str] | Iterable[Sequence[Any] | Mapping[str, Any]]

#: Events to append at once: a list of a million would take a gigabyte.
PART = 5_000
#: Events to compare at once with those of an earlier import.
COMPARED = 50_000
#: The maximum number of lines that an error names.
NAMED = 5


class Tally(NamedTuple):
    """How often each reward of each arm occurred, sorted by arm and reward."""

    arms: NDArray[np.int64]
    values: NDArray[np.float64]
    counts: NDArray[np.int64]


def import_history(
    access: StudyAccess, history: History, key: str | None, columns: Mapping[str, str] | None = None
) -> Imported:
    """Add rewards of arms to the log, only once per key."""
    with access.turn:
        state, _ = access.catch_up()
        tally, skipped, seal = _tallied(access.study.uid, state, history, columns)
    key = f"history {seal}" if key is None else check_text("key", key)
    rewards = int(tally.counts.sum())
    if not rewards:
        got = f"{skipped:,} lines without one" if skipped else "none"
        raise InputError("history", history, "lines with rewards", got=got)

    def work(doing: UnitOfWork) -> Imported:
        before = _is_there(doing, tally, key)
        if not before:
            problem = ""
            if doing.state.design is not None:
                problem = (
                    "a study that draws by shares can't bet on rewards that it didn't draw: the "
                    "history moves its shares and isn't evidence for the verdict"
                )
            elif not has_counts(doing.state.state):
                problem = (
                    f"{doing.spec.policy} can't learn from rewards that it didn't ask for: the "
                    "history counts as evidence only"
                )
            if problem:
                warnings.warn(problem, UserWarning, stacklevel=5)
            for begin in range(0, len(tally.arms), PART):
                part = zip(*(each[begin : begin + PART].tolist() for each in tally), strict=True)
                doing.append(
                    [
                        Event(Kind.HISTORY, arm=arm, tag=count, value=value, key=key, position=k)
                        for k, (arm, value, count) in enumerate(part, begin)
                    ],
                    renew=False,
                )
            doing.renew()
        return Imported(rewards=rewards, skipped=skipped, already_imported=before)

    return access.transact(work)


def _is_there(work: UnitOfWork, tally: Tally, key: str) -> bool:
    """Return whether this was imported under this key; ConflictError if something else was."""
    log, study, size = work.log, work.study.id, len(tally.arms)
    first = log.with_key(study, key, limit=1)
    if not first:
        return False
    # The events of an import are contiguous; in older logs, versions may have begun in between.
    after, done = first[0].seq - 1, 0
    while done < size:
        found = log.read(study, after, min(size - done, COMPARED))
        own = found.kind == Kind.HISTORY
        end = done + int(own.sum())
        same = found.size and all(
            np.array_equal(column[own], each[done:end])
            for column, each in zip((found.arm, found.value, found.tag), tally, strict=True)
        )
        if not same or (found.kind[~own] != Kind.VERSION).any():
            raise key_used(key)
        after, done = int(found.seq[-1]), end
    if any(event.key == key for event in log.events(study, [after + 1, after + 2])):
        raise key_used(key)
    return True


def _tallied(
    uid: str,
    state: StudyState,
    history: History,
    columns: Mapping[str, str] | None,
) -> tuple[Tally, int, str]:
    """Return the tally of a history, its number of lines without a reward, and its digest."""
    spec = state.spec
    low, high = spec.reward_range
    is_file = isinstance(history, str | os.PathLike)
    name = repr(str(history)) if is_file else "the history"
    places = [
        (side, {label: k * stride for k, label in enumerate(labels)})
        for (side, labels), stride in zip(state.labels.items(), state.room.strides, strict=True)
    ]
    arms, values, counts = array("q"), array("d"), array("q")
    skipped, wrong, seal = 0, _Wrong(), hashlib.blake2b(b"[", digest_size=16)
    for line in history_lines(history, list(spec.sides), columns):
        if is_file and line.reward is None and line.trials is None:  # the export has such lines
            skipped += 1
            continue
        try:
            if isinstance(line.id, str) and line.id.startswith(f"{uid}-"):
                raise InputError("id", line.id, "of another study: this study counts it already")
            arm = _arm_of(line, places)
            if line.trials is None:
                parts = [(check_reward(spec, line.reward), _whole("count", line.count))]
            else:
                trials = _whole("trials", line.trials)
                won = _whole("successes", line.reward, trials)
                parts = [(high, won), (low, trials - won)]
        except (InputError, InputTypeError) as error:
            wrong.add(line.number, error.within(f"line {line.number} of {name}"))
            continue
        # Older releases computed the digest from the same list of tuples.
        more = () if (line.count, line.trials) == (1, None) else (line.count, line.trials)
        seal.update(f"{', ' * bool(arms)}{(*line.labels, line.reward, *more)!r}".encode())
        for value, count in parts:
            arms.append(arm)
            values.append(value)
            counts.append(count)
    wrong.check()
    seal.update(b"]")
    return _summed(arms, values, counts), skipped, seal.hexdigest()


class _Wrong:
    """Invalid lines: the first few of them, and how many there are."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[tuple[int, InputError | InputTypeError]] = []

    def add(self, number: int, error: InputError | InputTypeError) -> None:
        self.count += 1
        if len(self.first) < NAMED:
            self.first.append((number, error))

    def check(self) -> None:
        """Raise the first error, if any; it also names the other lines."""
        if not self.count:
            return
        (_, error), *others = self.first
        error.hint = "nothing was imported"
        if others:
            told = [f"line {number} ({each.argument} {each.got})" for number, each in others]
            more = self.count - len(self.first)
            told += [f"{more:,} more"] if more else []
            error.hint += f"; nor can these be used: {', '.join(told)}"
        raise error


def _arm_of(line: Line, places: Sequence[tuple[str, dict[Any, int]]]) -> int:
    """Return the log's number of a line's arm."""
    arm = 0
    for (side, known), label in zip(places, line.labels, strict=True):
        place = None
        if isinstance(label, str):  # from a spreadsheet, where "=1" is "'=1"
            place = known.get(label, known.get(label.removeprefix("'")))
        if place is None:
            raise InputError(side, label, "one of the study's")
        arm += place
    return arm


def _with_float(given: Any) -> Any:
    """Read a whole number as a float, as files do: the digest of a repeated import is the same."""
    return float(given) if type(given) is int and abs(given) < 2**53 else given


def _whole(name: str, given: Any, most: int = 2**53) -> int:
    """Return a count as an integer; files may contain 3.0."""
    if not checks._is_real(given) or not 0 <= given <= most or given != int(given):
        raise InputError(name, given, f"a whole number from 0 to {most:,}")
    return int(given)


def _summed(arms: array[int], values: array[float], counts: array[int]) -> Tally:
    """Add up equal rewards of the same arm."""
    arm, count = np.array(arms, np.int64), np.array(counts, np.int64)
    value = np.array(values, np.float64) + 0.0  # no -0.0
    order = np.lexsort((value, arm))
    order = order[count[order] > 0]
    arm, value, count = arm[order], value[order], count[order]
    begins = np.flatnonzero((np.diff(arm, prepend=-1) != 0) | (np.diff(value, prepend=0.0) != 0))
    summed = np.add.reduceat(count, begins) if len(begins) else count
    return Tally(arm[begins], value[begins], summed)


def history_lines(
    history: History, sides: Sequence[str], columns: Mapping[str, str] | None
) -> Iterator[Line]:
    """Yield the lines of a history."""
    if isinstance(history, str | os.PathLike):
        yield from file_lines(Path(history), sides, columns)
        return
    expected = f"a file or lines of ({', '.join(sides)}, reward)"
    if not isinstance(history, Iterable) or hasattr(history, "columns"):
        raise InputTypeError("history", history, expected)
    if columns:
        raise InputError("columns", columns, "None if rows are given, which have no column names")
    line: Any
    for number, line in enumerate(history, 1):
        if isinstance(line, Mapping):
            measures = {name: _with_float(line.get(name)) for name in MEASURES if name not in sides}
            yield line_of(number, [line.get(side) for side in sides], measures)
            continue
        try:
            *labels, reward = line
        except (TypeError, ValueError):
            raise InputError("history", line, expected) from None
        if len(labels) != len(sides):
            raise InputError("history", line, expected)
        yield Line(number, labels, reward)
