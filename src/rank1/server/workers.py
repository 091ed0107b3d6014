"""Several worker processes that serve one address: `rank1 serve --workers`."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import Any

from rank1.errors import BackendError
from rank1.server.config import Config
from rank1.server.middleware import log
from rank1.server.tokens import Token, Tokens

__all__ = ["supervise"]

#: Seconds to wait before replacing a process that ended unexpectedly.
PAUSE = 1.0
#: Seconds that a process gets to end, in addition to the drain time.
MORE = 15.0


def supervise(
    config: Config, listener: socket.socket, own: Sequence[Token], ready: Callable[[], Any]
) -> None:
    """Run several worker processes until SIGTERM or Ctrl-C; replace those that end early.

    They share a socket: a connection goes to any free process. `own` are the tokens that aren't in
    the file; `ready` is called when all processes accept connections.
    """
    context = multiprocessing.get_context("spawn")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    processes: list[Any] = []

    def start(number: int) -> tuple[Any, Any]:
        # Only the first process sends webhooks.
        mine = config if number == 0 else dataclasses.replace(config, webhook="")
        up = context.Event()
        process = context.Process(target=_work, args=(mine, listener, own, up), daemon=True)
        process.start()
        return process, up

    try:
        processes, events = map(list, zip(*map(start, range(config.workers)), strict=True))
        for up in events:
            while not up.wait(0.1):
                if not all(process.is_alive() for process in processes):
                    raise BackendError("a worker couldn't start", "see the log above")
        ready()
        while True:
            ended = connection.wait([process.sentinel for process in processes])
            for number, process in enumerate(processes):
                if process.sentinel in ended:
                    log.error("worker %d ended by itself (%s)", process.pid, process.exitcode)
                    time.sleep(PAUSE)
                    processes[number], _ = start(number)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(config.drain + MORE)
            process.kill()


def _work(config: Config, listener: socket.socket, own: Sequence[Token], up: Any) -> None:
    """Serve in a worker process."""
    from rank1.server.run import serve_on, set_up_log

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()
    set_up_log()
    serve_on(config, listener, Tokens(config.tokens, own), up.set)
