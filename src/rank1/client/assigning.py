"""Assignment without a round trip: cached shares, records, and a queue that survives a restart."""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from rank1 import atomic
from rank1.assignment import assign
from rank1.client.transport import Transport, error_of
from rank1.errors import Rank1Error, StorageError

__all__ = ["Assigning", "Assignment", "Recorder"]

#: Items of one request.
PART = 1000
#: Seconds for which a service that didn't answer isn't asked for shares again.
SILENCE = 5.0
#: Seconds between two tries to send what is queued, at first and at most.
PAUSE, LONGEST = 0.2, 60.0


@dataclass(frozen=True)
class Assignment:
    """What a unit sees."""

    unit: str
    levels: dict[str, str] = field(hash=False)
    #: The version of the shares; None for the fallback, which is no evidence.
    version: int | None


class Assigning:
    """What a `RemoteStudy` does by shares."""

    _client: Transport
    _path: str
    _shares: dict[str, Any] | None = None
    _fresh_until = 0.0

    def shares(self) -> dict[str, Any]:
        """The current version of the shares, see `Study.shares`; cached as long as it may be.

        While the service doesn't answer, the last ones: every version is accepted later.
        """
        if self._shares is None or time.monotonic() >= self._fresh_until:
            try:
                self._shares = self._client.get(f"{self._path}/shares")
                self._fresh_until = time.monotonic() + self._shares["max_age"]
            except StorageError:
                if self._shares is None:
                    raise
                self._fresh_until = time.monotonic() + SILENCE
        return self._shares

    def assign(
        self,
        unit: str,
        given: Mapping[str, str] | None = None,
        fallback: Mapping[str, str] | None = None,
    ) -> Assignment:
        """The levels of a unit, drawn here by the current shares.

        Parameters
        ----------
        unit
            Whom it is for; the same unit and shares give the same levels.
        given
            The levels that come with the unit, by side.
        fallback
            What to show if the service can't be reached and no shares are cached; default: raise
            the error.
        """
        try:
            shares = self.shares()
        except StorageError:
            if fallback is None:
                raise
            return Assignment(unit, dict(fallback), None)
        return Assignment(unit, assign(shares, unit, given), shares["version"])

    def record(
        self,
        unit: str,
        version: int,
        levels: Mapping[str, str],
        reward: float | None = None,
        guardrails: Mapping[str, float] | None = None,
    ) -> None:
        """Store an exposure whose levels were drawn by a version; see `Study.record`."""
        _raise(self.record_many([(unit, version, levels, reward, guardrails)])[0])

    def record_many(self, records: Iterable[Sequence[Any]]) -> list[Rank1Error | None]:
        """Store exposures, each as the arguments of `record`; an error where one is refused."""
        return self._sent("records", ("unit", "version", "levels", "reward", "guardrails"), records)

    def reward(
        self, unit: str, reward: float, guardrails: Mapping[str, float] | None = None
    ) -> None:
        """Store the reward of a unit's exposure."""
        _raise(self.reward_many([(unit, reward, guardrails)])[0])

    def reward_many(self, rewards: Iterable[Sequence[Any]]) -> list[Rank1Error | None]:
        """Store rewards, each as the arguments of `reward`; an error where one is refused."""
        return self._sent("rewards", ("unit", "reward", "guardrails"), rewards)

    def _sent(
        self, what: str, names: tuple[str, ...], items: Iterable[Sequence[Any]]
    ) -> list[Rank1Error | None]:
        bodies = [
            {name: value for name, value in zip(names, item, strict=False) if value is not None}
            for item in items
        ]
        return self.send(what, bodies)

    def send(self, what: str, bodies: Sequence[Mapping[str, Any]]) -> list[Rank1Error | None]:
        """Send "records" or "rewards", as the service takes them; a unit counts once."""
        answers: list[Rank1Error | None] = []
        for begin in range(0, len(bodies), PART):
            part = list(bodies[begin : begin + PART])
            found = self._client.post(f"{self._path}/{what}", {what: part})["results"]
            answers += [
                error_of(each["status"], each.get("problem")) if each["status"] >= 400 else None
                for each in found
            ]
        return answers

    def recorder(self, path: str | os.PathLike[str]) -> Recorder:
        """A queue of records and rewards that sends in the background; see `Recorder`."""
        return Recorder(self, path)


class Recorder:
    """Records and rewards that are sent in the background, in batches, until they are confirmed.

    What isn't confirmed is in a file, and is sent after a restart. What the service refuses is
    dropped, and kept in `refused`.

    Parameters
    ----------
    study
        A `RemoteStudy`.
    path
        The file, for this process alone.

    Examples
    --------
    >>> with study.recorder("unsent.jsonl") as recorder:  # doctest: +SKIP
    ...     seen = study.assign("visitor-17")
    ...     recorder.record(seen)
    ...     recorder.reward("visitor-17", 1.0)
    """

    def __init__(self, study: Assigning, path: str | os.PathLike[str]) -> None:
        self._study, self._path = study, Path(path)
        self._changed = threading.Condition()
        self._closing = False
        #: What the service has refused: the item and the error.
        self.refused: list[tuple[dict[str, Any], Rank1Error]] = []
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        self._queue: list[tuple[str, dict[str, Any]]] = [
            (found[0], found[1]) for line in lines if (found := _read(line)) is not None
        ]
        self._file = self._path.open("a", encoding="utf-8")
        if lines and not self._path.read_text().endswith("\n"):
            self._file.write("\n")  # the last line was cut short
        self._thread = threading.Thread(target=self._work, name="rank1-recorder", daemon=True)
        self._thread.start()

    def record(self, seen: Assignment, reward: float | None = None) -> None:
        """Note that a unit saw its assignment; a fallback isn't evidence, and isn't noted."""
        if seen.version is not None:
            item: dict[str, Any] = {
                "unit": seen.unit, "version": seen.version, "levels": seen.levels
            }  # fmt: skip
            self._add("records", item if reward is None else {**item, "reward": reward})

    def reward(self, unit: str, reward: float) -> None:
        """Note the reward of a unit."""
        self._add("rewards", {"unit": unit, "reward": reward})

    def _add(self, what: str, item: dict[str, Any]) -> None:
        with self._changed:
            self._file.write(json.dumps([what, item], allow_nan=False) + "\n")
            self._file.flush()
            self._queue.append((what, item))
            self._changed.notify()

    @property
    def unsent(self) -> int:
        """How many items wait to be confirmed."""
        return len(self._queue)

    def close(self, timeout: float = 5.0) -> None:
        """Send what is queued, for some seconds at most; the rest stays in the file."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout)
        with self._changed:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self) -> None:
        try:
            self._run()
        finally:
            self._study._client.close()  # this thread's connection

    def _run(self) -> None:
        pause = PAUSE
        while True:
            with self._changed:
                while not self._queue and not self._closing:
                    self._changed.wait()
                if not self._queue:
                    return
                what, same = next(itertools.groupby(self._queue[:PART], lambda each: each[0]))
                batch = [item for _, item in same]
            try:
                answers = self._study.send(what, batch)
            except Rank1Error:
                with self._changed:
                    if self._closing:
                        return
                    self._changed.wait(pause)
                pause = min(2 * pause, LONGEST)
                continue
            pause = PAUSE
            for item, error in zip(batch, answers, strict=True):
                if error is not None:
                    self.refused.append((item, error))
            with self._changed:
                del self._queue[: len(batch)]
                if not self._file.closed:
                    self._rewrite()

    def _rewrite(self) -> None:
        """The file without what is confirmed."""
        self._file.close()
        with atomic.whole_file(self._path, sync=False) as temporary:
            temporary.write_text("".join(json.dumps(each) + "\n" for each in self._queue))
        self._file = self._path.open("a", encoding="utf-8")


def _read(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None  # it was cut short when the process ended


def _raise(error: Rank1Error | None) -> None:
    if error is not None:
        raise error
