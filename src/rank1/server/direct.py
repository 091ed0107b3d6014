"""A fast path for the most frequent requests, which bypasses the framework.

For a single ask or tell, matching the route and resolving its dependencies took three quarters of
the time. This module parses the usual form of such a request and calls the same route function.
Anything unusual, such as a body that doesn't validate, goes to the framework as if nothing had been
read, so that errors and schemas are defined in one place.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rank1.errors import Rank1Error
from rank1.server import models
from rank1.studies.events import MAX_TEXT

__all__ = ["Direct"]

#: The last word of a path: the role it requires, and the model of its body; None if the route reads
#: the body itself.
_MODELS: dict[str, tuple[str, type[BaseModel] | None]] = {
    "ask": ("writer", models.Ask),
    "tell": ("writer", models.Tell),
    "records": ("browser", None),
    "rewards": ("browser", None),
}


class Direct:
    """An ASGI application in front of another one, to which it passes unusual requests.

    Of the other's routes, those of `/v1/studies/{name}/` that `_MODELS` names are handled here;
    `refused` makes the response to an error.
    """

    def __init__(
        self,
        app: ASGIApp,
        routes: list[BaseRoute],
        refused: Callable[[Rank1Error], Response],
    ) -> None:
        self._app, self._refused = app, refused
        found = {getattr(route, "path", "").rpartition("{name}/")[2]: route for route in routes}
        self._routes: dict[str, Any] = {word: found[word] for word in _MODELS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or pass it to the other application."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self._app(scope, receive, send)
        parts = scope["path"].split("/")
        if len(parts) != 5 or parts[4] not in _MODELS or parts[1:3] != ["v1", "studies"]:
            return await self._app(scope, receive, send)
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)

        left = [body]

        async def again() -> Message:
            """Replay the body, then receive from the client as usual."""
            return {"type": "http.request", "body": left.pop()} if left else await receive()

        job = self._job(scope, parts[3], parts[4], body, again)
        if job is None:
            return await self._app(scope, again, send)
        scope["route"] = self._routes[parts[4]]  # for the metrics
        try:
            response = await job
        except Rank1Error as error:
            response = self._refused(error)
        return await response(scope, receive, send)

    def _job(
        self, scope: Scope, name: str, word: str, body: bytes, again: Receive
    ) -> Awaitable[Response] | None:
        """Return the call that answers a request, or None if the request is unusual."""
        role, model = _MODELS[word]
        endpoint, study = self._routes[word].endpoint, unquote(name)
        if not 0 < len(study) <= MAX_TEXT or not scope["state"]["token"].allows(role, study):
            return None
        if model is None:
            return endpoint(study, Request(scope, again))
        keys = []
        for header, value in scope["headers"]:
            if header == b"idempotency-key":
                keys.append(value.decode("latin-1"))
            elif header == b"content-type" and value != b"application/json":
                return None
        if len(keys) > 1 or not all(0 < len(key) <= MAX_TEXT for key in keys):
            return None
        try:
            given = model.model_validate(json.loads(body or b"{}"))
        except (ValueError, RecursionError):
            return None
        return endpoint(study, key=keys[0] if keys else None, body=given)
