"""The service in this process, without a socket: tests can set its clock and break its storage."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rank1.server.app import make_app
from rank1.server.config import read_config
from rank1.server.registry import StudyRegistry
from rank1.server.tokens import Tokens


class Answer(NamedTuple):
    status: int
    document: Any
    headers: Mapping[str, str]


class InProcess:
    """An application, and the tokens that it accepts."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.tokens = Tokens(folder / "tokens.json")
        self.token = self.tokens.create("admin")
        storage = str(folder / "rank1.db")
        self.app = make_app(read_config({"storage": storage, **settings}), self.tokens)
        self.registry: StudyRegistry = self.app.registry

    def call(self, path: str, body: Any = None, token: str | None = None, **more: str) -> Answer:
        """Return the answer to a GET or, with a body, to a POST; "" means no token."""
        return asyncio.run(self.request(path, body, token, **more))

    async def request(
        self,
        path: str,
        body: Any = None,
        token: str | None = None,
        method: str | None = None,
        **more: str,
    ) -> Answer:
        token = self.token if token is None else token
        headers = {"content-type": "application/json", "authorization": f"Bearer {token}", **more}
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "http_version": "1.1", "scheme": "http", "path": path,
            "method": method or ("GET" if body is None else "POST"),
            "raw_path": path.encode(), "query_string": query.encode(), "client": ("127.0.0.1", 1),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }  # fmt: skip
        sent: list[Any] = []
        parts = [b"" if body is None else json.dumps(body).encode()]

        async def receive() -> dict[str, Any]:
            if not parts:
                await asyncio.Future()  # the client stays connected until it has its answer
            return {"type": "http.request", "body": parts.pop()}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        data = b"".join(message.get("body", b"") for message in sent[1:])
        given = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        is_json = given.get("content-type", "").endswith("json")
        return Answer(sent[0]["status"], json.loads(data) if is_json else data.decode(), given)


@contextmanager
def in_process(folder: Path, **settings: Any) -> Iterator[InProcess]:
    service = InProcess(folder, **settings)
    try:
        yield service
    finally:
        service.registry.close()
