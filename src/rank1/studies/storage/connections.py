"""A process's connections to a database, which are not shared across a fork."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rank1.errors import StorageError

__all__ = ["Connections", "inherited"]

#: Seconds that a fork waits for transactions in other threads.
FORK_PATIENCE = 10.0

C = TypeVar("C")


class Connections(Generic[C]):
    """A pool of open connections; each is used by one thread at a time.

    Connections aren't shared across a fork: a child must neither use nor close a connection of its
    parent. Before a fork, idle connections are closed; with `alone`, the fork also waits for those
    in use. Any that are still open then remain the parent's.

    Parameters
    ----------
    connect, close
        Functions that open and close a connection.
    alone
        Whether a file that is open during the fork is unusable for the child: SQLite keeps a list
        of its locks, and the child would inherit that list but not the locks.
    """

    def __init__(self, connect: Callable[[], C], close: Callable[[C], Any], alone: bool) -> None:
        self._connect, self._close, self._alone = connect, close, alone
        self._idle: list[C] = []
        self._users: list[int] = []  # threads
        self._renew()
        _pools.add(self)

    def _renew(self) -> None:
        self._gate = threading.Condition(threading.Lock())
        #: A lock on which the threads of a process can queue.
        self.writing = threading.Lock()

    def take(self) -> C:
        """Take a connection; the caller must `give` it back or `drop` it."""
        with self._gate:
            self._users.append(threading.get_ident())
            if self._idle:
                return self._idle.pop()
        try:
            return self._connect()
        except BaseException:
            self._leave()
            raise

    def give(self, connection: C) -> None:
        """Return a connection to the pool."""
        self._leave(connection)

    def drop(self, connection: C) -> None:
        """Close a connection that is no longer usable."""
        try:
            self._close(connection)
        finally:
            self._leave()

    def _leave(self, *kept: C) -> None:
        with self._gate:
            self._idle += kept
            me = threading.get_ident()
            self._users.remove(me if me in self._users else self._users[0])
            self._gate.notify_all()

    def check_not_forked(self, pid: int, connection: C) -> None:
        """Raise if the parent process began this work."""
        if os.getpid() != pid:
            # Dropping the last reference would close the connection, here and for the parent.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
            raise StorageError(
                "a child process can't continue a transaction of its parent",
                "fork before or after the transaction",
            )

    def close(self) -> None:
        """Close all idle connections."""
        with self._gate:
            while self._idle:
                self._close(self._idle.pop())

    def before_fork(self) -> None:
        """Block new uses of connections, and close idle ones."""
        self._gate.acquire()
        if self._alone and threading.get_ident() not in self._users:
            self._gate.wait_for(lambda: not self._users, FORK_PATIENCE)
        while self._idle:
            with contextlib.suppress(Exception):  # for example, if the server is gone
                self._close(self._idle.pop())

    def after_fork_in_parent(self) -> None:
        """Allow connections to be used again."""
        self._gate.release()

    def after_fork_in_child(self) -> None:
        """Start with an empty pool."""
        global _inherited
        _inherited = _inherited or (self._alone and bool(self._users))
        self._users = []
        self._renew()


_pools: weakref.WeakSet[Connections[Any]] = weakref.WeakSet()
_forking: list[Connections[Any]] = []
_inherited = False


def inherited() -> bool:
    """Return whether this process was forked while an `alone` connection was in use."""
    return _inherited


def _before_fork() -> None:
    _forking[:] = _pools
    for pool in _forking:
        pool.before_fork()


def _after_fork_in_parent() -> None:
    for pool in _forking:
        pool.after_fork_in_parent()
    _forking.clear()


def _after_fork_in_child() -> None:
    for pool in _forking:
        pool.after_fork_in_child()
    _forking.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
