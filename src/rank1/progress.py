"""A progress bar with the time left, on standard error and only where that is a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

__all__ = ["Progress"]


class Progress:
    """A bar over `total` units of work; nothing is drawn where nobody could see it.

    >>> with Progress(True, "cells", 2) as bar:
    ...     bar.advance(1, "first")
    """

    def __init__(self, wanted: bool, unit: str, total: float) -> None:
        self._bar: Any = None
        #: What a unit of the work at hand counts for, where some of it takes longer.
        self.scale = 1.0
        #: Stands before what is shown.
        self.title = ""
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

    def advance(self, done: float, what: str) -> None:
        """So many units more are done; `what` is shown before the bar."""
        if self._bar:
            title = f"{self.title}, {what}" if self.title else what
            self._bar.update(self._task, advance=done * self.scale, description=title)
