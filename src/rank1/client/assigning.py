"""Assignment without a round trip: cached shares, and a send queue that survives a restart."""

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

from rank1 import atomic, checks
from rank1.assignment import assign
from rank1.client.transport import Transport, encoded, error_of, report_body, without_none
from rank1.errors import FileError, Rank1Error, StorageError, reason

__all__ = ["Assigning", "Assignment", "Recorder"]

#: Items in one request.
PART = 1000
#: Seconds to wait before asking for shares again after the service didn't answer.
SILENCE = 5.0
#: Seconds to wait for new shares if older ones or a fallback can be shown instead.
PATIENCE = 2.0
#: Statuses that a later attempt may not get, and that of a body that is too large.
AGAIN, TOO_LARGE = (401, 408, 429), 413
#: Refused items to keep.
REFUSED = 1000
#: Seconds between two attempts to send the queue, at first and at most.
PAUSE, LONGEST = 0.2, 60.0


@dataclass(frozen=True)
class Assignment:
    """The levels that a unit sees."""

    unit: str
    levels: dict[str, str] = field(hash=False)
    #: The version of the shares; None for the fallback, which doesn't count as evidence.
    version: int | None


class Assigning:
    """The methods of a `RemoteStudy` that work with shares."""

    _client: Transport
    _path: str
    _shares: dict[str, Any] | None = None
    _fresh_until = 0.0
    _silent_until = 0.0

    def shares(self) -> dict[str, Any]:
        """Return the current version of the shares, cached for up to its maximum age.

        If the service doesn't answer, returns the last version: the service accepts records of any
        version later. See `Study.shares`.
        """
        return self._current(quick=False)

    def _current(self, quick: bool) -> dict[str, Any]:
        """Return the shares; quickly if the caller, or the cache, has something else to show."""
        client, now = self._client, time.monotonic()
        quick = quick or self._shares is not None
        if now >= self._fresh_until and not (quick and now < self._silent_until):
            timeout = min(PATIENCE, client.timeout) if quick else None
            try:
                found = client.get(f"{self._path}/shares", timeout)
                self._shares, self._fresh_until = found, time.monotonic() + found["max_age"]
            except StorageError:
                self._silent_until = time.monotonic() + SILENCE
                if self._shares is None:
                    raise
        if self._shares is None:
            raise StorageError("the service didn't answer a moment ago")
        return self._shares

    def assign(
        self,
        unit: str,
        given: Mapping[str, str] | None = None,
        fallback: Mapping[str, str] | None = None,
    ) -> Assignment:
        """Draw a unit's levels locally from the current shares.

        Parameters
        ----------
        unit
            The unit's name; the same unit and shares always give the same levels.
        given
            The levels that come with the unit, by side.
        fallback
            The levels to show if the service can't be reached and no shares are cached; default:
            raise the error. With a fallback or cached shares, a call waits for at most 2 seconds,
            and for 5 seconds after a failure calls send no request.
        """
        try:
            shares = self._current(quick=fallback is not None)
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
        """Store an exposure whose levels were drawn from a version's shares; see `Study.record`."""
        _raise(self.record_many([(unit, version, levels, reward, guardrails)])[0])

    def record_many(
        self, records: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> list[Rank1Error | None]:
        """Store exposures, each the arguments of `record` as a sequence or a dict.

        Returns None or an error for each.
        """
        given = checks.in_order("records", records, checks.RECORD, 3)
        return self.send("records", [report_body(checks.RECORD, each) for each in given])

    def reward(
        self, unit: str, reward: float, guardrails: Mapping[str, float] | None = None
    ) -> None:
        """Store the reward for a unit's exposure."""
        _raise(self.reward_many([(unit, reward, guardrails)])[0])

    def reward_many(
        self, rewards: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> list[Rank1Error | None]:
        """Store rewards, each the arguments of `reward` as a sequence or a dict.

        Returns None or an error for each.
        """
        given = checks.in_order("rewards", rewards, checks.REWARD, 2)
        return self.send("rewards", [report_body(checks.REWARD, each) for each in given])

    def send(self, what: str, bodies: Sequence[Mapping[str, Any]]) -> list[Rank1Error | None]:
        """Send "records" or "rewards" in the service's format; a unit counts only once."""
        answers: list[Rank1Error | None] = []
        for begin in range(0, len(bodies), PART):
            part = bodies[begin : begin + PART]
            found = self._client.post(f"{self._path}/{what}", {what: part})["results"]
            answers += [
                error_of(each["status"], each.get("problem")) if each["status"] >= 400 else None
                for each in found
            ]
        return answers

    def recorder(self, path: str | os.PathLike[str]) -> Recorder:
        """Make a queue that sends records and rewards in the background; see `Recorder`."""
        return Recorder(self, path)


class Recorder:
    """Sends records and rewards in the background, in batches, until they are confirmed.

    A file keeps everything that isn't confirmed, and it is sent after a restart. Items that the
    service refuses are dropped; `refused` lists the last 1,000 of them.

    Parameters
    ----------
    study
        A `RemoteStudy`.
    path
        The file; it must belong to this process alone.

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
        #: Why the queue waits: no answer, or a token that isn't valid (now); None if it doesn't.
        self.problem: Rank1Error | None = None
        #: The last refused items, each with its error.
        self.refused: list[tuple[dict[str, Any], Rank1Error]] = []
        try:
            self._file = self._path.open("ab+", buffering=0)
        except OSError as error:
            raise FileError(f"can't write {str(path)!r}: {reason(error)}") from None
        self._file.seek(0)
        data = self._file.read()
        found = [_read(line) for line in data.split(b"\n")]
        self._queue = [each for each in found if each is not None]
        end = data.rfind(b"\n") + 1
        if end < len(data):  # the process ended while writing the last line
            if found[-1] is None:
                self._file.truncate(end)
            else:
                try:
                    self._append(b"\n")
                except FileError:
                    self._file.close()
                    raise
        self._thread = threading.Thread(target=self._work, name="rank1-recorder", daemon=True)
        self._thread.start()

    def record(
        self,
        seen: Assignment,
        reward: float | None = None,
        guardrails: Mapping[str, float] | None = None,
    ) -> None:
        """Queue a unit's exposure; a fallback isn't evidence, and is only counted."""
        if seen.version is None:
            self._add("records", {"unit": seen.unit, "levels": seen.levels, "fallback": True})
        else:
            told = seen.unit, seen.version, seen.levels, reward, guardrails
            self._add("records", report_body(checks.RECORD, told))

    def reward(
        self, unit: str, reward: float, guardrails: Mapping[str, float] | None = None
    ) -> None:
        """Queue the reward of a unit."""
        self._add("rewards", report_body(checks.REWARD, (unit, reward, guardrails)))

    def _add(self, what: str, item: dict[str, Any]) -> None:
        line = encoded([what, without_none(**item)])
        what, item = json.loads(line)
        with self._changed:
            self._append(line.encode() + b"\n")
            self._queue.append((what, item))
            self._changed.notify()

    def _append(self, left: bytes) -> None:
        """Write all of a line to the file, or nothing."""
        if self._file.closed:
            raise FileError(f"can't write {str(self._path)!r}: the recorder is closed")
        end = os.fstat(self._file.fileno()).st_size
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._file.truncate(end)
            found = f"can't write {str(self._path)!r}: {reason(error)}; the report isn't queued"
            raise FileError(found) from None

    @property
    def unsent(self) -> int:
        """The number of items that aren't confirmed yet."""
        return len(self._queue)

    def close(self, timeout: float = 5.0) -> None:
        """Send the queue, for up to `timeout` seconds; the rest stays in the file."""
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
        pause, most = PAUSE, PART
        while True:
            with self._changed:
                while not self._queue and not self._closing:
                    self._changed.wait()
                if not self._queue:
                    return
                what, same = next(itertools.groupby(self._queue[:most], lambda each: each[0]))
                batch = [item for _, item in same]
            try:
                answers = self._study.send(what, batch)
            except Rank1Error as error:
                status = getattr(error, "status", 0)
                if status == TOO_LARGE and len(batch) > 1:
                    most = len(batch) // 2
                    continue
                # An answer without a problem of ours is from something in between, such as a proxy.
                if getattr(error, "ours", False) and status not in AGAIN:
                    pause, self.problem = PAUSE, None
                    self._confirm(batch, [error] * len(batch))
                    continue
                self.problem = error
                with self._changed:
                    if self._closing:
                        return
                    self._changed.wait(pause)
                pause = min(2 * pause, LONGEST)
                continue
            pause, self.problem = PAUSE, None
            self._confirm(batch, answers)

    def _confirm(self, batch: list[dict[str, Any]], answers: Sequence[Rank1Error | None]) -> None:
        """Take items out of the queue, and keep those that were refused."""
        self.refused += [(i, e) for i, e in zip(batch, answers, strict=True) if e is not None]
        del self.refused[:-REFUSED]
        with self._changed:
            del self._queue[: len(batch)]
            if not self._file.closed:
                self._rewrite()

    def _rewrite(self) -> None:
        """Write the file again without the confirmed items."""
        if not self._queue:
            self._file.truncate(0)  # needs no disk space
            return
        try:
            with atomic.whole_file(self._path, sync=False) as temporary:
                temporary.write_text("".join(json.dumps(each) + "\n" for each in self._queue))
        except FileError:
            return  # the file still has what is confirmed, which may safely be sent again
        self._file.close()
        self._file = self._path.open("ab", buffering=0)


def _read(line: bytes) -> tuple[str, dict[str, Any]] | None:
    """Return the kind and the item of a line, or None if it is incomplete or damaged."""
    try:
        what, item = json.loads(line)
    except (ValueError, TypeError):
        return None
    return (what, item) if what in ("records", "rewards") and isinstance(item, dict) else None


def _raise(error: Rank1Error | None) -> None:
    if error is not None:
        raise error
