"""Progress with the time left: a bar on a terminal or in a notebook, otherwise occasional lines.

Everything except the notebook's bar goes to standard error.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from html import escape
from types import TracebackType
from typing import Any, Self

__all__ = ["Progress", "clock", "short"]

#: Seconds between two lines, and between two updates of a notebook's bar.
PAUSE = 10.0
NOTEBOOK_PAUSE = 0.25


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
    """A bar over `total` units of work; with `lines`, plain lines if there can't be a bar.

    >>> with Progress(True, "cells", 2) as bar:
    ...     bar.advance(1, "first")
    """

    def __init__(self, wanted: bool, unit: str, total: float, *, lines: bool = False) -> None:
        #: rich's bar on a terminal; IPython's display handle in a notebook.
        self._bar: Any = None
        self._display: Any = None
        #: Multiplies the work done from now on, because some of it takes longer.
        self.scale = 1.0
        #: A prefix for the text of `advance`.
        self.title = ""
        terminal, notebook = sys.stderr.isatty(), wanted and _in_notebook()
        self._lines = wanted and lines and not (terminal or notebook)
        self._begin = self._printed = time.monotonic()
        self._done, self._total, self._what = 0.0, total, unit
        if notebook:
            from IPython.display import display

            self._display = display(self._as_html("…"), raw=True, display_id=True)
        elif wanted and terminal:
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
        taken = f"{clock(time.monotonic() - self._begin)} taken"
        if self._display:
            self._display.update(self._as_html(taken), raw=True)
        if self._lines and self._done:
            print(f"{self._what}, {taken}", file=sys.stderr)

    def advance(self, done: float, what: str) -> None:
        """Add `done` units of work; `what` is shown before the bar."""
        done *= self.scale
        what = f"{self.title}, {what}" if self.title else what
        if self._bar:
            self._bar.update(self._task, advance=done, description=what)
        self._done, self._what, now = self._done + done, what, time.monotonic()
        left = (now - self._begin) * (self._total / max(self._done, 1e-9) - 1)
        pause = NOTEBOOK_PAUSE if self._display else PAUSE
        if now - self._printed < pause or left <= 0:
            return
        if self._display:
            self._display.update(self._as_html(f"{clock(left)} left"), raw=True)
            self._printed = now
        elif self._lines:
            print(f"{what}, {clock(left)} left", file=sys.stderr, flush=True)
            self._printed = now

    def _as_html(self, when: str) -> dict[str, str]:
        """The notebook's bar."""
        text = f"{self._what}, {when}"
        bar = f'<progress value="{self._done}" max="{self._total}"></progress>'
        return {"text/plain": text, "text/html": f"{bar} {escape(text)}"}


def _in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    return hasattr(ipython and ipython.get_ipython(), "kernel")


def clock(seconds: float) -> str:
    """A span of time.

    >>> clock(3700.2)
    '1:01:40'
    """
    return str(timedelta(seconds=round(seconds)))
