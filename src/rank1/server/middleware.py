"""Middleware for every request: authentication, limits, headers, metrics and the access log."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rank1.errors import Rank1Error
from rank1.server.config import Config
from rank1.server.metrics import Metrics
from rank1.server.problem_details import RefusedError, problem_response, status_of
from rank1.server.registry import StudyRegistry
from rank1.server.tokens import Tokens

__all__ = ["CSP", "Middleware", "RateLimiter", "log"]

#: No resources from other hosts, no inline scripts, no frames. Plotly sets inline styles.
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

_HEADERS = [
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
#: Paths that are split before their parts are decoded, so that a study's name may contain a slash.
_DECODED_LATER = "/v1/"

#: Paths that require a token, and path endings that pages of other origins may use.
_CLOSED = ("/v1/", "/metrics")
_SHARED = ("/shares", "/records", "/rewards")
#: A cache must not give a page what it stored for another origin, or for none.
_VARY = (b"vary", b"Origin")
#: Paths that are answered even when there are too many connections.
_ALWAYS = ("/healthz", "/metrics")

#: The most bytes of request bodies in memory at once (or two of the largest, if that is more).
MAX_HELD = 64 * 2**20
#: A body that is too large by at most this factor is read to its end and discarded.
MAX_DISCARDED = 16

# Request ids are counted up: a random number for each request would cost a system call.
_PROCESS, _numbers = secrets.token_hex(4), itertools.count(1)

log = logging.getLogger("rank1.server")


class Middleware:
    """An ASGI application that wraps another one."""

    def __init__(
        self,
        app: ASGIApp,
        registry: StudyRegistry,
        metrics: Metrics,
        tokens: Tokens,
        config: Config,
    ) -> None:
        self.app, self.registry, self.metrics, self.tokens = app, registry, metrics, tokens
        self.rates, self.max_body = RateLimiter(config.rate), config.max_body
        self.patience, self.access_log = config.patience, config.access_log
        #: Bytes of the bodies of all unanswered requests.
        self.held = 0
        #: Whether there are too many connections, in total or from the request's address.
        self.crowded: Callable[[Scope], bool] = lambda scope: False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or the startup and shutdown of the service."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, sent = time.perf_counter(), 500, False
        head = scope["method"] == "HEAD"  # answered like GET, but without the body
        if head:  # on a copy, because the server itself must know that there is no body
            scope = {**scope, "method": "GET"}
        raw = scope.get("raw_path")
        if raw and scope["path"].startswith(_DECODED_LATER):
            scope["path"] = raw.decode("ascii", "replace")
        scope["state"] = {**scope.get("state", {}), "request_id": f"{_PROCESS}-{next(_numbers):x}"}

        limit = _BodyLimit(self, scope, receive)

        async def answer(message: Message) -> None:
            if limit.refused and not sent:
                # The application treats any failure to read a body as invalid JSON.
                await limit.discard()
                await problem_response(limit.refused)(scope, receive, begin)
            elif not limit.refused:
                await begin(message)

        async def begin(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status, sent = message["status"], True
                given = {name for name, _ in message["headers"]}
                own = scope["state"].get("cors", [])
                given |= {name for name, _ in own}
                message["headers"] = [
                    *message["headers"],
                    *own,
                    *(each for each in _HEADERS if each[0] not in given),
                    (b"x-request-id", scope["state"]["request_id"].encode()),
                ]
                if b"cache-control" not in given:
                    message["headers"].append((b"cache-control", b"no-store"))
            elif head:
                message = {**message, "body": b""}
            await send(message)

        try:
            self._share(scope)
            if scope["path"] not in _ALWAYS and self.crowded(scope):
                raise RefusedError(
                    503, "there are too many connections", "try again later", Connection="close"
                )
            if self._is_preflight(scope):
                await Response(status_code=204)(scope, receive, answer)
                return
            self._authenticate(scope)
            await self.app(scope, limit.receive, answer)
        except Rank1Error as error:
            if status_of(error) == 500:
                log.error("%s: %s", type(error).__name__, error)
            if not sent:
                await problem_response(error)(scope, receive, answer)
        except asyncio.CancelledError:  # the service is stopping, and this request took too long
            if not sent:
                ending = RefusedError(503, "the service is shutting down", "try again later")
                await problem_response(ending)(scope, receive, begin)
        except Exception as error:
            log.error("unexpected %r", error, exc_info=error, extra={"about": _about(scope)})
            if not sent:
                failed = Rank1Error("internal error; see the service's log")
                await problem_response(failed)(scope, receive, answer)
        finally:
            limit.release()
            self._note(scope, status, time.perf_counter() - began)

    def _share(self, scope: Scope) -> None:
        """Let pages of known origins read all answers, also those to an invalid token."""
        if scope["path"].endswith(_SHARED):
            origin = dict(scope["headers"]).get(b"origin", b"").decode("latin-1")
            allowed = bool(origin) and self.tokens.allow_origin(origin)
            scope["state"]["cors"] = _cors(origin) if allowed else [_VARY]

    def _is_preflight(self, scope: Scope) -> bool:
        """Whether this is a CORS preflight request."""
        headers = dict(scope["headers"])
        asked = scope["method"] == "OPTIONS" and b"access-control-request-method" in headers
        if not asked or not scope["path"].endswith(_SHARED):
            return False
        if len(scope["state"]["cors"]) > 1:
            scope["state"]["cors"] += [
                (b"access-control-allow-methods", b"GET, POST"),
                (b"access-control-allow-headers", b"authorization, content-type, if-none-match"),
                (b"access-control-max-age", b"7200"),
            ]
        return True

    def _authenticate(self, scope: Scope) -> None:
        """Find the token of a request before its body is read."""
        if not scope["path"].startswith(_CLOSED):
            return
        headers = dict(scope["headers"])
        kind, _, text = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        # A beacon can't set headers, so a browser's token, which is public, may be in the URL.
        beacon = not kind and scope["path"].endswith(_SHARED)
        if beacon:
            query = parse_qs(scope["query_string"].decode("latin-1"))
            kind, text = "bearer", query.get("token", [""])[0]
        token = self.tokens.find(text.strip()) if kind.lower() == "bearer" else None
        if token is None or (beacon and token.role != "browser"):
            problem = "the request has no valid token"
            hint = "send the header Authorization: Bearer TOKEN"
            raise RefusedError(401, problem, hint, WWW_Authenticate="Bearer")
        scope["state"]["token"] = token
        origin = headers.get(b"origin", b"").decode("latin-1")
        if token.role != "browser" and "cors" in scope["state"]:
            scope["state"]["cors"] = [_VARY]
        elif token.role == "browser" and origin and origin not in token.origins:
            raise RefusedError(
                403, f"the token isn't valid for pages from {origin}", "create one with this origin"
            )
        if not self.rates.admit(token.id, token.rate):
            raise RefusedError(
                429, "too many requests with this token", "wait a second", Retry_After="1"
            )

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self.metrics.request(route, method, status, seconds)
        if self.access_log or status >= 500:
            about = {**_about(scope), "status": status, "ms": round(1000 * seconds, 1)}
            log.info("request", extra={"about": about})


class _BodyLimit:
    """A `receive` that refuses bodies that are too large or too slow."""

    def __init__(self, middleware: Middleware, scope: Scope, receive: Receive) -> None:
        self._receive, self._middleware = receive, middleware
        self._most, self._patience = middleware.max_body, middleware.patience
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        self._declared = int(length) if length.isdigit() else 0
        self._waits = any(name == b"expect" for name, _ in scope["headers"])
        self._size, self._held, self._done, self._end = 0, 0, False, 0.0
        self.refused: RefusedError | None = None

    async def receive(self) -> Message:
        """Return the next part of the body."""
        if self._done:
            return await self._receive()
        try:
            self._check(self._declared)
            now = asyncio.get_running_loop().time()
            self._end = self._end or now + self._patience  # for the whole body
            async with asyncio.timeout_at(self._end):
                message = await self._receive()
        except TimeoutError:
            problem = f"the body took more than {self._patience:g} seconds"
            raise self._refuse(408, problem, "send it all at once") from None
        size = len(message.get("body", b""))
        self._size += size
        self._held += size
        self._middleware.held += size
        self._done = not message.get("more_body", False)
        self._check(self._size)
        if self._middleware.held > max(MAX_HELD, 2 * self._most):
            raise self._refuse(503, "too many large requests at once", "try again", Retry_After="1")
        return message

    def release(self) -> None:
        """Give back the body's share of memory once the request is answered."""
        self._middleware.held -= self._held
        self._held = 0

    async def discard(self) -> None:
        """Read the rest of a refused body, up to a limit.

        A client that is still sending when the connection closes wouldn't see the answer.
        """
        most = MAX_DISCARDED * self._most
        slow = self.refused is not None and self.refused.status != 413
        if self._done or self._waits or slow or self._declared > most:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                while self._size <= most and not self._done:
                    message = await self._receive()
                    self._size += len(message.get("body", b""))
                    self._done = not message.get("more_body", False)

    def _check(self, size: int) -> None:
        if size > self._most:
            problem = f"the body is larger than {self._most:,} bytes"
            raise self._refuse(413, problem, "send fewer items at a time")

    def _refuse(self, status: int, problem: str, hint: str, **headers: str) -> RefusedError:
        self.refused = RefusedError(status, problem, hint, Connection="close", **headers)
        return self.refused


def _cors(origin: str) -> list[tuple[bytes, bytes]]:
    """Return the headers that let a page of this origin read the answer."""
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", b"etag, retry-after"),
        _VARY,
        (b"cross-origin-resource-policy", b"cross-origin"),
    ]


def _about(scope: Scope) -> dict[str, Any]:
    """Return what the log records about a request: no query, headers or body."""
    state = scope.get("state", {})
    return {
        "method": scope["method"],
        "path": scope["path"],
        "id": state.get("request_id"),
        "token": getattr(state.get("token"), "id", None),
        "client": (scope.get("client") or ("",))[0],
    }


class JsonFormatter(logging.Formatter):
    """Formats log records as lines of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line."""
        line = {"time": round(record.created, 3), "level": record.levelname.lower()}
        line["message"] = record.getMessage()
        line.update(getattr(record, "about", {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class RateLimiter:
    """A token bucket for each token: `rate` requests per second, and bursts of the same size.

    >>> now = [0.0]
    >>> rates = RateLimiter(2, clock=lambda: now[0])
    >>> [rates.admit("a") for _ in range(3)], rates.admit("b")
    ([True, True, False], True)
    >>> now[0] = 0.5
    >>> rates.admit("a")
    True
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._left: dict[str, tuple[float, float]] = {}

    def admit(self, who: str, rate: float | None = None) -> bool:
        """Whether one more request is allowed; a token's own rate applies if it is lower."""
        now = self._clock()
        rate = self._rate if rate is None else min(rate, self._rate)
        left, at = self._left.get(who, (max(rate, 1.0), now))
        left = min(max(rate, 1.0), left + (now - at) * rate)
        self._left[who] = (left - 1 if left >= 1 else left, now)
        return left >= 1
