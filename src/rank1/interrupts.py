"""Delay Ctrl-C while work must not be interrupted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["held_back"]


@contextmanager
def held_back(*, children: bool = False) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM take effect at the end of the block; a second one does at once.

    Inside a callback from C, which compiling uses a lot, Python would print the interrupt and
    ignore it.

    Parameters
    ----------
    children
        Whether to hide Ctrl-C from processes started in the block, and by threads started in it: a
        terminal sends it to them, too, but their parent handles it.

    Examples
    --------
    >>> try:
    ...     with held_back():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("the end of the block")
    ... except KeyboardInterrupt:
    ...     print("stopped")
    the end of the block
    stopped
    """
    came: list[int] = []
    before: dict[int, Any] = {}

    def note(number: int, frame: Any) -> None:
        came.append(number)
        if len(came) > 1:
            before[number](number, frame)

    mask: set[Any] | None = None
    if threading.current_thread() is threading.main_thread():  # only it has signal handlers
        for each in (signal.SIGINT, signal.SIGTERM):
            if callable(handler := signal.getsignal(each)):
                before[each] = handler
                signal.signal(each, note)
    # A signal that this thread blocks would go to another thread, so the mask alone delays nothing.
    # Child processes inherit the mask, but not the handlers.
    if children and hasattr(signal, "pthread_sigmask"):
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
        if len(came) == 1:
            signal.raise_signal(came[0])
