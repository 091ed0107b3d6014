"""Run the service: print its address and token, then serve until it is asked to stop."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import dataclasses
import logging
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from rank1.errors import BackendError, InputError
from rank1.server.app import make_app
from rank1.server.config import Config, is_loopback
from rank1.server.middleware import JsonFormatter, log
from rank1.server.problem_details import json_response, problem_document
from rank1.server.tokens import Tokens
from rank1.server.workers import supervise

__all__ = ["serve", "serve_on", "set_up_log"]

#: Open files beside the connections: databases, logs, modules, and connections to be refused.
SPARE = 256
#: `M_MMAP_THRESHOLD` in malloc.h.
_MMAP_THRESHOLD = -3
#: The largest request head, in bytes.
MAX_HEAD = 16 * 1024


def serve(
    config: Config,
    say: Callable[[str], Any] = print,
    started: Callable[[Any], Any] | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish the running requests.

    `say` is called with the address and the token when the service accepts connections; for
    `started` see `make_app`.
    """
    tokens = Tokens(config.tokens)
    kept = tokens.list()
    if not kept and not is_loopback(config.host):
        expected = "a loopback address while there are no tokens"
        hint = f"create one in {config.tokens!r} first"
        raise InputError("host", config.host, expected, hint)
    # Tokens created on the page only give access to their studies: an admin needs another way in.
    is_open = is_loopback(config.host) and all(token.role != "admin" for token in kept)
    temporary = tokens.create_temporary() if is_open else None
    set_up_log()
    config = dataclasses.replace(config, connections=_room_for(config.connections))
    with _bound(config) as listener:
        host = f"[{config.host}]" if ":" in config.host else config.host
        address = f"http://{host}:{listener.getsockname()[1]}/"
        if temporary is None:
            place = config.shown()["storage"]
            line = f"rank1 is running at {address} with {place} ({len(kept)} tokens)"
        else:
            line = f"rank1 is running at {address}#token={temporary} (press Ctrl-C to stop)"
        if config.workers > 1 and started is None:
            supervise(config, listener, tokens.own(), lambda: say(line))
        else:
            serve_on(config, listener, tokens, lambda: say(line), started)
        log.info("ended")


def serve_on(
    config: Config,
    listener: socket.socket,
    tokens: Tokens,
    ready: Callable[[], Any],
    started: Callable[[Any], Any] | None = None,
) -> None:
    """Serve on a socket in this process."""
    _return_memory()
    app = make_app(config, tokens, started)
    settings = uvicorn.Config(
        app,
        http=_patient(config.patience, config.connections),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=max(1, round(config.drain)),
        backlog=1024,
        lifespan="on",
    )
    server = _Server(settings, ready, app.registry.cancel_slow)
    app.crowded = lambda scope: _is_crowded(server, config.connections, scope)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


def _is_crowded(server: uvicorn.Server, most: int, scope: Any) -> bool:
    """Whether there are too many connections, in total or from one address.

    uvicorn's own limit answers without problem details. One address may have at most half of the
    connections, except this machine's, which may be a proxy.
    """
    connections: set[Any] = server.server_state.connections
    address = (scope.get("client") or ("",))[0]
    if len(connections) <= most // 2 or is_loopback(address):
        return len(connections) > most
    own = sum((each.client or ("",))[0] == address for each in connections)
    return own > most // 2 or len(connections) > most


def _room_for(connections: int) -> int:
    """Raise the limit of open files for this many connections; returns how many there is room for.

    Most shells, and systemd, start a process with room for 1,024 files, but let it raise the limit.
    """
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY in (soft, hard):
        hard = max(soft, connections + SPARE)
    limit = max(soft, min(connections + SPARE, hard))
    if limit > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    room = limit - min(SPARE, limit // 2)
    if room < connections:
        log.warning(
            "the limit of %d open files only has room for %d connections; see ulimit -n",
            limit, room,
        )  # fmt: skip
    return min(connections, room)


def _return_memory() -> None:
    """Let glibc return large tables to the system as soon as they are freed.

    Otherwise, it keeps freed blocks of up to 32 MiB: hundreds of megabytes with large studies.
    """
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 2**20)


def _patient(patience: float, most: int) -> Any:
    """Make a protocol class that closes connections whose request head is too large or too slow.

    If there are far too many connections, each new one replaces an idle one, so that the process
    doesn't run out of files and the liveness check is always answered.
    Its parser refuses Content-Length together with chunks, and lines that end in a bare line feed.
    """

    class Patient(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        _head = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()
            if len(self.connections) > most + SPARE // 4:
                others: Any = self.connections - {self}
                idle = next((each for each in others if not each._in_use()), None)
                if idle is not None:
                    idle.transport.close()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._busy():
                self._stop()
                self._head = 0
                return
            self._head += len(data)
            if self._head > MAX_HEAD and not self.transport.is_closing():
                self.send_400_response(f"The head of a request has at most {MAX_HEAD} bytes.")
            elif self._timer is None:
                self._wait()

        def send_400_response(self, msg: str) -> None:
            """Refuse what isn't a request with problem details, like everything else."""
            answer = json_response(problem_document(400, "Bad request", msg), 400)
            headers = (*self.server_state.default_headers, *answer.raw_headers)
            lines = [name + b": " + value for name, value in (*headers, (b"connection", b"close"))]
            head = STATUS_LINE[400] + b"\r\n".join(lines)
            self.transport.write(head + b"\r\n\r\n" + bytes(answer.body))
            self.transport.close()

        def connection_lost(self, error: Exception | None) -> None:
            self._stop()
            super().connection_lost(error)

        def _in_use(self) -> bool:
            return self._busy() or self.transport.is_closing()

        def _busy(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _wait(self) -> None:
            self._timer = asyncio.get_running_loop().call_later(patience, self._give_up)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _give_up(self) -> None:
            self._timer = None
            if not self._busy() and not self.transport.is_closing():
                self.transport.close()

    return Patient


class _Server(uvicorn.Server):
    """A server that calls `ready` when it accepts connections, and `ending` before it stops."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], Any], ending: Callable[[], Any]
    ) -> None:
        super().__init__(config)
        self._ready, self._ending = ready, ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then call `ready`."""
        await super().startup(sockets)
        if self.started:
            log.info("started")
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish the running requests, except slow reads."""
        self._ending()
        await super().shutdown(sockets)


def _bound(config: Config) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # Unless the protocol is given, asyncio doesn't turn off Nagle's algorithm, and each answer
    # would wait for 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((config.host.strip("[]"), config.port))
        listener.listen()  # fails here if another server already listens on this port
    except OSError as error:
        listener.close()
        problem = f"can't serve on {config.host}:{config.port}: {error.strerror or error}"
        raise BackendError(problem, "choose another port, or 0 for any free port") from None
    return listener


def set_up_log() -> None:
    """Write the log to standard error as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("rank1.server", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler] if name != "uvicorn.error" else []
        logger.setLevel(logging.INFO if name == "rank1.server" else logging.WARNING)
        logger.propagate = name == "uvicorn.error"
