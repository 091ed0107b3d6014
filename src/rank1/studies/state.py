"""The state of a study in a process: its log, folded so far."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import __version__
from rank1.compiled import kernel_for, ready
from rank1.errors import DamagedError, Rank1Error, SnapshotError
from rank1.grid import Grid
from rank1.policies import Known, Pull, State, restore, snapshot
from rank1.policies.base import choose
from rank1.policies.folding import load_tallies
from rank1.policies.mistakes import best_arm
from rank1.studies import fold
from rank1.studies.events import Events, Kind
from rank1.studies.evidence import renumbered
from rank1.studies.fold import Book
from rank1.studies.fold_records import fold_records
from rank1.studies.levels import Change, Levels
from rank1.studies.live_design import DrawnState, LiveDesign
from rank1.studies.spec import ON_EXPIRY, Spec, started
from rank1.studies.traffic import Traffic

__all__ = ["Change", "OpenSuggestion", "StudyState", "layout_of"]

#: Increase this when the meaning of the book changes: older snapshots are then ignored.
LAYOUT = 6
#: Scalars of a book that must agree between two folds of the same log.
COMPARED = (
    "suggested", "reported", "cancelled", "expired", "retired", "learned", "evidence", "version",
    "held", "gained", "squares", "held_sum", "held_squares", "limit", "time",
)  # fmt: skip
#: A study with a half-life of h reports forgets a little after every h/16 reports.
FADING = 16

Ints = NDArray[np.int64]


class OpenSuggestion(NamedTuple):
    """An open suggestion: see `fold.OPEN`."""

    seq: int
    arm: int
    living: int
    tag: int
    nonce: int
    status: int
    number: int
    asked: float
    value: float


# NumPy is slow to convert enums to numbers.
_SUGGESTED, _RECORDED = int(Kind.SUGGESTED), int(Kind.RECORDED)


def layout_of(spec: Spec) -> str:
    """Return the layout of readable snapshots: same release, policy and array layouts."""
    return f"{__version__} {spec.policy} {spec.made_policy().layout} {LAYOUT}"


class StudyState(Levels):
    """The levels, the policy's state and the book, up to the event `seq`.

    Only `fold` and `choose` change it; after `choose`, the events for the chosen arms must follow.
    """

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self.policy = spec.made_policy()
        #: The design, if the study draws by shares.
        self.design = LiveDesign(spec, self.grid.sizes) if spec.design else None
        self.state: State = self._new_state()
        self.book = fold.new_book(self.grid.arms, _rules(spec))
        self.traffic = Traffic()

    @property
    def seq(self) -> int:
        """The seq of the last folded event."""
        return int(self.book.at["seq"][0])

    def lives(self, arm: int) -> bool:
        """Return whether an arm of the log can be played now (or drawn, with shares)."""
        if self.design is None:
            return bool(self.places_of(arm)[1] >= 0)
        levels = self.levels_of(arm)
        sides = zip(self.living.items(), levels, strict=True)
        given = all(level in living for (side, living), level in sides if side in self.spec.given)
        return given and self.design.propensity(levels) > 0

    # Folding

    def fold(
        self, events: Events, texts: Mapping[int, str | None] = {}, issued: bool = False
    ) -> None:
        """Fold the events that follow; `texts` has the data of some, by seq.

        With `issued`, the policy's state chose the suggestions among them, and already knows them.
        """
        self.traffic.add(events)
        shown = (events.kind == _SUGGESTED) | (events.kind == _RECORDED)
        self._make_room(int(np.count_nonzero(shown)))
        place, reason = 0, fold.REVISE
        while place < events.size:
            if reason == fold.REVISE:  # from here on, arms have other indices
                tables, living = self.places_of(events.arm)
            if self.design is not None:
                loop = ready(fold.fold_events, self.state, self.book, work=0)
                if not hasattr(loop, "overloads"):  # not compiled, nor is that needed for records
                    place = fold_records(self.book, events, tables, place)
                    if place == events.size:
                        break
            work = events.size - place
            if self.design is not None and not self.book.rules[0].by_window:  # NumPy folds records
                alone = (events.kind == _RECORDED) & ~np.isnan(events.value)
                work -= int(np.count_nonzero(alone[place:]))
            loop = kernel_for(fold.fold_events, self.state, self.book, work=work)
            place, reason = loop(self.state, self.book, events, tables, living, place, issued)
            last = int(events.seq[place - 1])
            if reason == fold.FORGET:
                at = self.book.at[0]
                self.state = self.state.forget(int(at.arm), int(at.tag))
            elif reason == fold.FULL:
                self.settled()
            elif reason == fold.VERSION:
                self._begin(int(events.tag[place - 1]), texts.get(last))
            elif reason == fold.BAD:
                raise DamagedError(
                    f"event {events.seq[place]} of the log is of an arm that isn't on the grid",
                    "the storage is damaged; go back to a backup",
                )
            elif reason == fold.REVISE:
                self._revise(Change.read(texts.get(last)))
            elif reason == fold.FADE:
                self._fade()

    @property
    def live(self) -> LiveDesign:
        """The design; only for a study that draws by shares."""
        if self.design is None:
            raise DamagedError(f"event {self.seq} is for a study that draws by shares")
        return self.design

    def settled(self) -> LiveDesign:
        """Return the design after betting on all evidence so far."""
        self.live.settle(self.book)
        return self.live

    def _begin(self, version: int, text: str | None) -> None:
        at, live = self.book.at[0], self.settled()
        live.install(version, text, self.seq, float(at.time), int(at.evidence))
        at.limit = live.limit

    def choose(self, rng: np.random.Generator, count: int) -> list[Pull]:
        """Choose the next pulls, with arms as the log numbers them."""
        pulls = np.zeros((count, 2), np.int64)
        kernel_for(_choose_many, self.state, work=count)(self.state, rng, pulls)
        arms, tags = pulls.T.tolist()
        return list(map(Pull, self.arms_of(arms), tags))

    def recommended(self) -> tuple[str, ...]:
        """Return the labels of the arm that the policy recommends."""
        if self.design is not None:
            return tuple(self.named(self.leading()).values())
        (arm,) = self.arms_of([best_arm(self.policy, self.state)])
        return tuple(self.named(arm).values())

    def leading(self) -> int:
        """Return the arm of a design's leading levels, with the best levels of given sides."""
        found = self.settled()
        version, leaders = found.current, []
        counts, sums = self.book.counts, self.book.sums
        for side, leader in enumerate(version.leaders):
            if leader < 0:  # a given side, or no bets yet: levels are drawn equally
                others = tuple(k for k in range(len(self.grid.sizes)) if k != side)
                won, tried = (each.reshape(self.grid.sizes).sum(others) for each in (sums, counts))
                means = np.where(tried > 0, won / np.maximum(tried, 1), -1.0)
                leader = int(np.where(version.living[side], means, -2.0).argmax())
            leaders.append(leader)
        return self.room.arm(leaders)

    def _make_room(self, count: int) -> None:
        at, table = self.book.at[0], self.book.table
        if self.book.at["used"][0] + count <= len(table):
            return
        kept = self.open_table()
        room = np.zeros(max(64, 2 * (len(kept) + count)), fold.OPEN)
        room[: len(kept)] = kept
        at.used, at.head = len(kept), 0
        self.book = self.book._replace(table=room)

    def open_table(self) -> NDArray[Any]:
        """Return the open suggestions as records (`fold.OPEN`)."""
        table = self.book.table[: self.book.at[0].used]
        return table[table["status"] != fold.GONE]

    def find(self, seq: int) -> OpenSuggestion | None:
        """Return an open suggestion, or None if it can only get a late report."""
        k = fold.place_in(self.book, seq)
        return None if k < 0 else OpenSuggestion._make(self.book.table[k].item())

    def overdue(self, now: float) -> list[int]:
        """Return the pending suggestions whose window has closed."""
        return fold.overdue(self.book, now)

    def pending(self) -> NDArray[np.int64]:
        """Return the number of pending suggestions of each active arm."""
        table = self.open_table()
        waiting = table["living"][np.isin(table["status"], (fold.PENDING, fold.WAITING))]
        counts = np.bincount(waiting[waiting >= 0], minlength=Grid(self.shape).arms)
        return counts.reshape(self.shape)

    def counts(self) -> dict[str, int]:
        """Return the number of suggestions, in total and by outcome; outcomes don't overlap."""
        at = self.book.at[0]
        asked, told = int(at.suggested), int(at.reported)
        expired, cancelled = int(at.expired), int(at.cancelled)
        return {
            "suggestions": asked,
            "reports": told,
            "pending": asked - told - expired - cancelled,
            "expired": expired,
            "cancelled": cancelled,
        }

    def evidence(self, now: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return counts and sums of the active arms: the evidence for the stopping rule now."""
        book = self.as_of(now).book
        # Allocate memory only for arms with rewards: on a large grid, few have any.
        some = np.flatnonzero(book.counts)
        places = self.places_of(renumbered(some, self.grid, self.room))[1]
        some, places = some[places >= 0], places[places >= 0]
        counts, sums = (np.zeros(self.shape) for _ in range(2))
        counts.flat[places], sums.flat[places] = book.counts[some], book.sums[some]
        return counts, sums

    def as_of(self, now: float) -> StudyState:
        """Return the state after all windows that have closed by now; nothing is written.

        It shares arrays with this one, and must not fold events.
        """
        if not len(fold.closable(self.book, now)):
            return self
        after, names = copy.copy(self), ("at", "counts", "sums", "table", "journal")
        after.book = self.book._replace(**{name: getattr(self.book, name).copy() for name in names})
        after.book.at[0].limit = np.iinfo(np.int64).max
        after.design = None if self.design is None else self.design.copied()
        while not ready(_close, after.book)(after.book, now):
            after.settled()
        return after

    # Revisions and forgetting

    def _revise(self, change: Change) -> None:
        before, tables = self.grid, self.book
        open_arms = self.book.table["arm"].copy()
        if self.design is not None:
            self.settled()  # before arms get other indices
        added, retired = self.change(change)
        if self.grid.sizes != before.sizes:
            corner = tuple(slice(size) for size in before.sizes)
            grown: dict[str, Any] = {}
            for name in fold.TABLES:
                whole = np.zeros(self.grid.sizes)
                whole[corner] = getattr(tables, name).reshape(before.sizes)
                grown[name] = whole.ravel()
            self.book = tables._replace(**grown)
        in_log = renumbered(open_arms, before, self.room)
        self.book.table["arm"], self.book.table["living"] = self.places_of(in_log)
        if self.design is None:
            self._start_anew()
        else:
            time = float(self.book.at[0].time)
            self.design.revise(before, self.grid, added, retired, self.seq, time)

    def _fade(self) -> None:
        assert self.spec.forgetting is not None
        factor = 0.5 ** (self.book.at[0].learned / self.spec.forgetting)
        self.book.known[...] *= factor
        self.book.known_sums[...] *= factor
        self.book.at[0].learned = 0
        self._start_anew()

    def _start_anew(self) -> None:
        """Start a new policy state with all knowledge; it doesn't know earlier pulls."""
        self.state = self._new_state()
        known, sums = self.of_living(self.book.known), self.of_living(self.book.known_sums)
        load = kernel_for(load_tallies, self.state, work=known.size)
        load(self.state, known.ravel(), sums.ravel())
        tags = self.book.table["tag"][: self.book.at[0].used]
        tags[tags >= 0] = -1

    def _new_state(self) -> State:
        """Return the policy's state before the first pull."""
        drawn: Any = DrawnState(Known(n=1, sides=self.room).limits) if self.spec.design else None
        return drawn or started(self.spec, self.shape)

    # Snapshots

    def to_bytes(self) -> bytes:
        """Serialize the state for `from_bytes`."""
        book, file = self.book, io.BytesIO()
        learned: dict[str, Any] = {**self._learned(), **self.traffic.to_arrays()}
        some = np.flatnonzero((book.counts != 0) | (book.known != 0))  # fast on large grids
        header = json.dumps(
            {"labels": self.labels, "living": self.living, "revision": self.revision}
        )
        np.savez(
            file,
            header=np.array(header),
            at=book.at,
            table=self.open_table(),
            arms=some,
            delays=book.delays,
            journal=book.journal[: book.at[0].noted],
            **learned,
            **{name: getattr(book, name)[some] for name in fold.TABLES},
        )
        return file.getvalue()

    def _learned(self) -> dict[str, NDArray[Any]]:
        if self.design is not None:
            return self.design.to_arrays()
        return {"policy": np.frombuffer(snapshot(self.policy, self.state), np.uint8)}

    @classmethod
    def from_bytes(cls, spec: Spec, data: bytes) -> StudyState:
        """Restore a state from `to_bytes`; raises SnapshotError if it can't be read."""
        made = cls.__new__(cls)
        made.spec, made.policy = spec, spec.made_policy()
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                arrays = dict(file)
            header = json.loads(str(arrays["header"]))
            made.labels, made.living = header["labels"], header["living"]
            made.revision = header["revision"]
            made._number()
            policy, made.design = made.policy, None
            if spec.design:
                made.state = made._new_state()
                made.design = LiveDesign.from_arrays(spec, made.grid.sizes, arrays)
            else:
                policy, made.state = restore(arrays["policy"].tobytes(), [type(made.policy)])
            book = fold.new_book(made.grid.arms, _rules(spec))
            book.at[...], book.delays[...] = arrays["at"], arrays["delays"]
            book.journal[: len(arrays["journal"])] = arrays["journal"]
            table = arrays["table"].view(fold.OPEN)
            book.at[0].used, book.at[0].head = len(table), 0
            for name in fold.TABLES:
                getattr(book, name)[arrays["arms"]] = arrays[name]
            made.book = book._replace(table=table)
            made.traffic = Traffic.from_arrays(arrays)
        except (ValueError, TypeError, KeyError, IndexError, OSError, Rank1Error) as error:
            raise SnapshotError(f"the snapshot can't be read: {error!r}") from None
        if policy != made.policy:
            raise SnapshotError(f"the snapshot is of {policy}, not of {made.policy}")
        return made

    def differences(self, other: StudyState) -> list[str]:
        """Describe the differences between two folds of one log; caches may differ."""
        found = [
            f"{what} are {ours} and {theirs}"
            for what, ours, theirs in (
                ("events", self.seq, other.seq),
                ("revisions", self.revision, other.revision),
                ("labels", self.labels, other.labels),
                ("levels that live", self.living, other.living),
            )
            if ours != theirs
        ]
        pairs = [
            (name, getattr(self.book, name), getattr(other.book, name)) for name in fold.TABLES
        ]
        pairs.append(("pending suggestions", self.open_table(), other.open_table()))
        pairs += [(name, self.book.at[name], other.book.at[name]) for name in COMPARED]
        pairs.append(("delays", self.book.delays, other.book.delays))
        traffic = other.traffic.to_arrays()
        for name, array in self.traffic.to_arrays().items():
            pairs.append((name.replace("_", " "), array, traffic[name]))
        if self.design is not None and other.design is not None:
            one, two = self.settled().compared(self.book), other.settled().compared(other.book)
            pairs += [(name.replace("_", " "), one[name], two[name]) for name in one]
        theirs = other.state._asdict()
        for name, array in self.state._asdict().items():
            if name not in self.state.caches:
                pairs.append((f"{name} of {self.policy.name}", array, theirs[name]))
        return found + [f"{name} differ" for name, one, two in pairs if not _same(one, two)]


def _same(one: NDArray[Any], two: NDArray[Any]) -> bool:
    """Return whether arrays are equal up to rounding differences of compiled code."""
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if one.dtype.names:
        return all(_same(one[name], two[name]) for name in one.dtype.names)
    if one.dtype.kind != "f":
        return one.tobytes() == two.tobytes()
    return np.allclose(one, two, rtol=1e-9, atol=1e-12, equal_nan=True)


def _rules(spec: Spec) -> NDArray[Any]:
    rules = np.zeros(1, fold.RULES)
    one = rules[0]
    one.on_expiry = int(ON_EXPIRY[spec.on_expiry])
    one.low, one.high = spec.reward_range
    one.default = spec.default_reward
    one.window = np.inf if spec.reward_window is None else spec.reward_window
    one.design = spec.design
    one.by_window = spec.by_window if spec.design else spec.on_expiry == "default"
    if spec.forgetting is not None:
        one.forget_every = max(1, round(spec.forgetting / FADING))
    return rules


def _choose_many(state: Any, rng: np.random.Generator, pulls: NDArray[np.int64]) -> None:
    for k in range(len(pulls)):
        pulls[k, 0], pulls[k, 1] = choose(state, rng)


def _close(book: Book, now: float) -> bool:
    return bool(fold.close_windows(book, now))
