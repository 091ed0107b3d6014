"""Progress with the time left, on standard error: a bar on a terminal, else now and then a line."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

__all__ = ["Progress", "clock", "short"]

#: Seconds between two lines.
PAUSE = 10.0


def short(value: float) -> str:
    """A number in few characters.

    >>> short(35_210_000), short(1234), short(56)
    ('35.2M', '1.23k', '56')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


class Progress:
    """A bar over `total` units of work; with `lines`, plain lines where there is no terminal.

    >>> with Progress(True, "cells", 2) as bar:
    ...     bar.advance(1, "first")
    """

    def __init__(self, wanted: bool, unit: str, total: float, *, lines: bool = False) -> None:
        self._bar: Any = None
        #: What a unit of the work at hand counts for, where some of it takes longer.
        self.scale = 1.0
        #: Stands before what is shown.
        self.title = ""
        self._lines = wanted and lines and not sys.stderr.isatty()
        self._begin = self._printed = time.monotonic()
        self._done, self._total, self._what = 0.0, total, ""
        if wanted and sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                progress.TaskProgressColumn(),
                progress.TextColumn("left"),
                progress.TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(unit, total=total)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()
        if self._lines and self._what:
            print(f"{self._what}, {clock(time.monotonic() - self._begin)} taken", file=sys.stderr)

    def advance(self, done: float, what: str) -> None:
        """So many units more are done; `what` is shown before the bar."""
        done *= self.scale
        what = f"{self.title}, {what}" if self.title else what
        if self._bar:
            self._bar.update(self._task, advance=done, description=what)
        self._done, self._what, now = self._done + done, what, time.monotonic()
        left = (now - self._begin) * (self._total / max(self._done, 1e-9) - 1)
        if self._lines and now - self._printed >= PAUSE and left > 0:
            print(f"{what}, {clock(left)} left", file=sys.stderr, flush=True)
            self._printed = now


def clock(seconds: float) -> str:
    """A span of time.

    >>> clock(3700.2)
    '1:01:40'
    """
    return str(timedelta(seconds=round(seconds)))
