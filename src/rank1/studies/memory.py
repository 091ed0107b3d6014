"""What a process knows of a study: its log, folded so far."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rank1
from rank1.checks import shown
from rank1.compiled import kernel
from rank1.errors import DamagedError, InputError, Rank1Error, SnapshotError
from rank1.policies import Pull, State, restore, snapshot
from rank1.policies.base import choose
from rank1.policies.folding import load_tallies
from rank1.studies import fold
from rank1.studies.fold import Book
from rank1.studies.log import Events, Kind
from rank1.studies.spec import ON_EXPIRY, Spec, labels_of, started

__all__ = ["Memory", "Revision", "layout_of"]

#: To be raised when the book changes its meaning: older snapshots are not read.
LAYOUT = 1
#: A study with a half-life of h reports forgets a little after each h/16 of them.
FADING = 16


class Entry(NamedTuple):
    """A suggestion in the table, see `fold.ENTRY`."""

    seq: int
    row: int
    column: int
    tag: int
    nonce: int
    status: int
    asked: float
    value: float


class Revision:
    """Which rows and columns come and go, as an event's JSON has it."""

    SIDES = ("rows", "columns")

    def __init__(self, text: str | None) -> None:
        fields = json.loads(text or "{}")
        self.added = {side: tuple(fields.get(f"add_{side}", ())) for side in self.SIDES}
        self.retired = {side: tuple(fields.get(f"retire_{side}", ())) for side in self.SIDES}


_SUGGESTED = int(Kind.SUGGESTED)  # NumPy takes long to find out that an enum is a number


def layout_of(spec: Spec) -> str:
    """Which snapshots can be read: those of the same version, policy and layouts."""
    return f"{rank1.__version__} {spec.policy} {spec.made_policy().layout} {LAYOUT}"


class Memory:
    """Labels, the policy's state and the book, as of the event `seq`.

    It changes with every event that it is told of by `fold`, and with nothing else, but for
    `choose`, which is followed by the events of what was chosen.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.policy = spec.made_policy()
        self.revision = 0
        self.labels = {"rows": list(spec.rows), "columns": list(spec.columns)}
        #: Indices of the lines that live, in the order in which the policy has them.
        self.living = {side: list(range(len(names))) for side, names in self.labels.items()}
        self.state: State = started(spec, len(spec.rows), len(spec.columns))
        self.book = fold.new_book(len(spec.rows), len(spec.columns), _rules(spec))

    @property
    def seq(self) -> int:
        """The last event that was folded."""
        return int(self.book.at["seq"][0])

    # Folding

    def fold(
        self, events: Events, text_of: Callable[[int], str | None], chosen: bool = False
    ) -> None:
        """Take in the events that follow; `text_of(seq)` has the `data` of one of them."""
        self._make_room(int(np.count_nonzero(events.kind == _SUGGESTED)))
        place = 0
        while place < events.size:
            loop = kernel(fold.fold_events, self.state, self.book)
            place, reason = loop(self.state, self.book, *events, place, chosen)
            if reason == fold.FORGET:
                at = self.book.at[0]
                self.state = self.state.forget(int(at.row), int(at.column), int(at.tag))
            elif reason == fold.BAD:
                raise DamagedError(
                    f"event {events.seq[place]} of the log is of a pair that isn't on the grid: "
                    "the storage is damaged; go back to a backup"
                )
            elif reason == fold.REVISE:
                self._revise(text_of(int(events.seq[place - 1])))
            elif reason == fold.FADE:
                self._fade()

    def choose(self, rng: np.random.Generator, count: int) -> list[Pull]:
        """The next pulls, with rows and columns as the log numbers them."""
        pulls = np.zeros((count, 3), np.int64)
        kernel(_choose_many, self.state)(self.state, rng, pulls)
        rows, columns = self.living["rows"], self.living["columns"]
        return [Pull(rows[i], columns[j], tag) for i, j, tag in pulls.tolist()]

    def _make_room(self, count: int) -> None:
        at, table = self.book.at[0], self.book.table
        if self.book.at["used"][0] + count <= len(table):
            return
        kept = self.pending_table()
        room = np.zeros(max(64, 2 * (len(kept) + count)), fold.ENTRY)
        room[: len(kept)] = kept
        at.used, at.head = len(kept), 0
        self.book = self.book._replace(table=room)

    def pending_table(self) -> NDArray[Any]:
        """The suggestions that something may still become of, as records (`fold.ENTRY`)."""
        table = self.book.table[: self.book.at[0].used]
        return table[table["status"] != fold.GONE]

    def find(self, seq: int) -> Entry | None:
        """The entry of a suggestion, or None where nothing can become of it but a late report."""
        k = kernel(_place_of)(self.book.table, self.book.at, seq)
        return None if k < 0 else Entry._make(self.book.table[k].item())

    def overdue(self, now: float) -> list[int]:
        """The suggestions whose window has closed without anything having become of them."""
        return fold.overdue(self.book, now)

    def lives(self, row: int, column: int) -> bool:
        """Whether the pair can be asked for."""
        return bool(self.book.row_of[row] >= 0 and self.book.column_of[column] >= 0)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns live."""
        return len(self.living["rows"]), len(self.living["columns"])

    def living_labels(self, side: str) -> list[str]:
        """The rows or columns that live."""
        return [self.labels[side][index] for index in self.living[side]]

    def evidence(self, now: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Counts and sums of the pairs that live: what the stopping rule may look at now."""
        book = self.book
        if book.rules[0].by_window:
            copies = {name: getattr(book, name).copy() for name in ("counts", "sums", "table")}
            book = book._replace(at=book.at.copy(), **copies)
            kernel(_close, book)(book, now)
        return self.of_living(book.counts), self.of_living(book.sums)

    def of_living(self, table: NDArray[Any]) -> NDArray[Any]:
        """The rows and columns of a K×L table that live."""
        return np.ascontiguousarray(table[np.ix_(self.living["rows"], self.living["columns"])])

    # Revisions and forgetting

    def check_revision(self, text: str) -> None:
        """Refuse a revision that can't be, before it is in the log."""
        change = Revision(text)
        for side in Revision.SIDES:
            names, living = self.labels[side], set(self.living_labels(side))
            new = [name for name in change.added[side] if name not in names]
            labels_of(side, new, names)
            for name in change.added[side]:
                if name in living or change.added[side].count(name) > 1:
                    raise InputError(f"{side} must all be different, got {shown(name)} twice")
            for name in change.retired[side]:
                if name not in living or change.retired[side].count(name) > 1:
                    raise InputError(
                        f"retire_{side} must be among {shown(sorted(living))}, got {shown(name)}"
                    )
            if len(change.retired[side]) == len(living) and not change.added[side]:
                raise InputError(f"{side} must not all be retired: one at least has to live")
        rows, columns = (
            len(self.living[side]) + len(change.added[side]) - len(change.retired[side])
            for side in Revision.SIDES
        )
        started(self.spec, rows, columns)

    def _revise(self, text: str | None) -> None:
        change = Revision(text)
        for side in Revision.SIDES:
            names, living = self.labels[side], self.living[side]
            for name in change.retired[side]:
                living.remove(names.index(name))
            for name in change.added[side]:
                if name not in names:
                    names.append(name)
                living.append(names.index(name))
            living.sort()
        self.revision += 1
        K, L = len(self.labels["rows"]), len(self.labels["columns"])
        book = self.book
        if book.counts.shape != (K, L):
            tables: dict[str, Any] = {}
            for name in fold.TABLES:
                old = getattr(book, name)
                tables[name] = np.zeros((K, L))
                tables[name][: old.shape[0], : old.shape[1]] = old
            book = book._replace(**tables)
        self.book = book._replace(
            row_of=_places(self.living["rows"], K), column_of=_places(self.living["columns"], L)
        )
        self._start_anew()

    def _fade(self) -> None:
        assert self.spec.forgetting is not None
        factor = 0.5 ** (self.book.at[0].learned / self.spec.forgetting)
        self.book.known[...] *= factor
        self.book.known_sums[...] *= factor
        self.book.at[0].learned = 0
        self._start_anew()

    def _start_anew(self) -> None:
        """A new state that knows what is known; pulls that are out mean nothing to it."""
        self.state = started(self.spec, *self.shape)
        known, sums = self.of_living(self.book.known), self.of_living(self.book.known_sums)
        kernel(load_tallies, self.state)(self.state, known, sums)
        self.book.table["tag"][: self.book.at[0].used] = -1

    # Snapshots

    def to_bytes(self) -> bytes:
        """All of it, for `from_bytes`."""
        book, file = self.book, io.BytesIO()
        tables = {name: getattr(book, name).ravel() for name in fold.TABLES}
        some = np.flatnonzero(tables["counts"] + tables["known"])
        header = json.dumps(
            {"labels": self.labels, "living": self.living, "revision": self.revision}
        )
        np.savez(
            file,
            header=np.array(header),
            at=book.at,
            table=self.pending_table(),
            pairs=some,
            policy=np.frombuffer(snapshot(self.policy, self.state), np.uint8),
            **{name: table[some] for name, table in tables.items()},
        )
        return file.getvalue()

    @classmethod
    def from_bytes(cls, spec: Spec, data: bytes) -> Memory:
        """What `to_bytes` kept; SnapshotError if it can't be."""
        memory = cls.__new__(cls)
        memory.spec, memory.policy = spec, spec.made_policy()
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                arrays = dict(file)
            header = json.loads(str(arrays["header"]))
            policy, memory.state = restore(arrays["policy"].tobytes(), [type(memory.policy)])
            memory.labels, memory.living = header["labels"], header["living"]
            memory.revision = header["revision"]
            K, L = len(memory.labels["rows"]), len(memory.labels["columns"])
            book = fold.new_book(K, L, _rules(spec))
            book.at[...] = arrays["at"]
            table = arrays["table"].view(fold.ENTRY)
            room = np.zeros(max(64, 2 * len(table)), fold.ENTRY)
            room[: len(table)] = table
            book.at[0].used, book.at[0].head = len(table), 0
            for name in fold.TABLES:
                getattr(book, name).ravel()[arrays["pairs"]] = arrays[name]
            rows, columns = _places(memory.living["rows"], K), _places(memory.living["columns"], L)
            memory.book = book._replace(table=room, row_of=rows, column_of=columns)
        except (ValueError, TypeError, KeyError, IndexError, OSError, Rank1Error) as error:
            raise SnapshotError(f"the snapshot can't be read: {error!r}") from None
        if policy != memory.policy:
            raise SnapshotError(f"the snapshot is of {policy}, not of {memory.policy}")
        return memory

    def differences(self, other: Memory) -> list[str]:
        """What differs between two folds of one log, a sentence each; caches may."""
        found = [
            f"{what} are {ours} and {theirs}"
            for what, ours, theirs in (
                ("events", self.seq, other.seq),
                ("revisions", self.revision, other.revision),
                ("labels", self.labels, other.labels),
                ("lines that live", self.living, other.living),
            )
            if ours != theirs
        ]
        pairs = [
            (name, getattr(self.book, name), getattr(other.book, name)) for name in fold.TABLES
        ]
        pairs.append(("pending suggestions", self.pending_table(), other.pending_table()))
        for name in ("suggested", "reported", "cancelled", "expired", "retired", "learned"):
            pairs.append((name, self.book.at[name], other.book.at[name]))
        theirs = other.state._asdict()
        for name, array in self.state._asdict().items():
            if name not in self.policy.caches:
                pairs.append((f"{name} of {self.policy.name}", array, theirs[name]))
        for name, one, two in pairs:
            if one.shape != two.shape or one.tobytes() != two.tobytes():
                found.append(f"{name} differ")
        return found


def _rules(spec: Spec) -> NDArray[Any]:
    rules = np.zeros(1, fold.RULES)
    one = rules[0]
    one.on_expiry = int(ON_EXPIRY[spec.on_expiry])
    one.low, one.high = spec.reward_range
    one.default = spec.default_reward
    one.window = np.inf if spec.reward_window is None else spec.reward_window
    one.by_window = spec.on_expiry == "default"
    if spec.forgetting is not None:
        one.forget_every = max(1, round(spec.forgetting / FADING))
    return rules


def _places(living: Sequence[int], size: int) -> NDArray[np.int64]:
    places = np.full(size, -1, np.int64)
    places[list(living)] = np.arange(len(living))
    return places


def _choose_many(state: Any, rng: np.random.Generator, pulls: NDArray[np.int64]) -> None:
    for k in range(len(pulls)):
        row, column, tag = choose(state, rng)
        pulls[k, 0], pulls[k, 1], pulls[k, 2] = row, column, tag


def _place_of(table: Any, at: Any, seq: int) -> int:
    return fold.place_of(table, at[0].used, seq)


def _close(book: Book, now: float) -> None:
    fold.close_windows(book, now)
