"""Connections of a process to a database, which don't go through a fork."""

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

#: Seconds that a fork waits for the transactions of other threads.
FORK_PATIENCE = 10.0

C = TypeVar("C")


class Connections(Generic[C]):
    """Open connections that wait for use; one is used by one thread at a time.

    None goes through a fork: a child must neither use nor close a connection of its parent's.
    Before a fork, those that wait are closed; those in use are waited for, where `alone` says so.
    What is still open then stays the parent's.

    Parameters
    ----------
    connect, close
        Open and close one.
    alone
        Whether a file that is open at the fork is lost for the child: SQLite keeps a list of its
        locks, which the child would inherit, but not the locks.
    """

    def __init__(self, connect: Callable[[], C], close: Callable[[C], Any], alone: bool) -> None:
        self._connect, self._close, self._alone = connect, close, alone
        self._idle: list[C] = []
        self._users: list[int] = []  # threads
        self._renew()
        _pools.add(self)

    def _renew(self) -> None:
        self._gate = threading.Condition(threading.Lock())
        #: The threads of a process can queue up here.
        self.writing = threading.Lock()

    def take(self) -> C:
        """A connection, to be given back or dropped."""
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
        """Keep a connection for the next use."""
        self._leave(connection)

    def drop(self, connection: C) -> None:
        """Close a connection that can't be used any more."""
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
        """Refuse to go on with what the parent began."""
        if os.getpid() != pid:
            # The last reference would close the connection, here and for the parent.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
            raise StorageError(
                "a child that was forked within a transaction can't go on with it",
                "it is its parent's; fork before or after",
            )

    def close(self) -> None:
        """Close all that wait."""
        with self._gate:
            while self._idle:
                self._close(self._idle.pop())

    def before_fork(self) -> None:
        """Nobody begins to use a connection from here on; those that wait are closed."""
        self._gate.acquire()
        if self._alone and threading.get_ident() not in self._users:
            self._gate.wait_for(lambda: not self._users, FORK_PATIENCE)
        while self._idle:
            with contextlib.suppress(Exception):  # a server that is gone, for one
                self._close(self._idle.pop())

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._gate.release()

    def after_fork_in_child(self) -> None:
        """Begin anew."""
        global _inherited
        _inherited = _inherited or (self._alone and bool(self._users))
        self._users = []
        self._renew()


_pools: weakref.WeakSet[Connections[Any]] = weakref.WeakSet()
_forking: list[Connections[Any]] = []
_inherited = False


def inherited() -> bool:
    """Whether this process was forked while its parent used a connection that leaves traces."""
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
