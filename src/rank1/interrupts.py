"""Ctrl-C that waits: some work must not be broken off in the middle."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["held_back"]


@contextmanager
def held_back(*, children: bool = False) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM take effect when the block ends; a second one takes effect at once.

    Inside a callback from C, such as compiling has many of, Python would print the interrupt and
    forget it.

    Parameters
    ----------
    children
        Whether processes that are started in the block, and by threads that are, never see Ctrl-C:
        a terminal sends it to them, too, but it is their parent that acts on it.

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
    if threading.current_thread() is threading.main_thread():  # others have no handlers
        for each in (signal.SIGINT, signal.SIGTERM):
            if callable(handler := signal.getsignal(each)):
                before[each] = handler
                signal.signal(each, note)
    # A signal that is blocked in this thread would be handed to another one, so that the mask
    # alone holds nothing back. Processes inherit it, and the handlers they don't.
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
