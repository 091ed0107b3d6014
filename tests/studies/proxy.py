"""A proxy for the network between a client and a PostgreSQL server; it can be cut."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path


class Proxy:
    """Forward what arrives at its own port; `cut` is called for each portion from a client.

    It returns None (forward), "before" (cut both sides, don't forward), "after" (forward, and cut
    when the server has answered) or "client" (cut only the client's side, don't forward).
    """

    def __init__(self, socket_file: Path) -> None:
        self.cut: Callable[[bytes], str | None] = lambda data: None
        #: The number of cut connections.
        self.cuts = 0
        self._socket_file = socket_file
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._socket_file))
            self._open += [client, server]
            for work in (self._to_server, self._to_client):
                thread = threading.Thread(target=work, args=(client, server))
                self._threads.append(thread)
                thread.start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(1 << 16):
                what = self.cut(data)
                self.cuts += what is not None
                if what == "client":
                    client.shutdown(socket.SHUT_RDWR)
                    return  # the server thinks that the client is still connected
                if what == "before":
                    break
                if what == "after":
                    client.shutdown(socket.SHUT_WR)  # the answer won't be forwarded
                server.sendall(data)
        except OSError:
            pass
        _shut(client)
        _shut(server)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := server.recv(1 << 16):
                client.sendall(data)
        except OSError:
            pass
        _shut(client)
        _shut(server)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            _shut(each)
        for thread in self._threads:
            thread.join()
        for each in self._open:
            each.close()


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)


def through(proxy: Proxy, url: str) -> str:
    """Return the address of the same database through the proxy."""
    there = f"@127.0.0.1:{proxy.port}/postgres?sslmode=disable"
    return re.sub(r"@/postgres\?host=[^&]*", there, url)


def cut_at_commit(proxy: Proxy, what: str) -> None:
    """Cut the connection at the next commit, once.

    It must be a new connection: a statement that was sent several times is later sent by a short
    name.
    """

    def cut(data: bytes) -> str | None:
        if b"COMMIT" in data:
            proxy.cut = lambda data: None
            return what
        return None

    proxy.cut = cut
