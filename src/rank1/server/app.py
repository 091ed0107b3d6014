"""The ASGI application: routes, middleware, and the resources that are open while it runs."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

import rank1
from rank1 import compiled
from rank1.errors import Rank1Error, StorageError
from rank1.server import pages
from rank1.server.authorization import require
from rank1.server.config import Config
from rank1.server.direct import Direct
from rank1.server.manage_routes import manage_routes
from rank1.server.metrics import Metrics
from rank1.server.middleware import Middleware, log
from rank1.server.models import Records, Rewards
from rank1.server.problem_details import (
    RefusedError,
    json_response,
    problem_document,
    problem_response,
    status_of,
    validation_problem,
)
from rank1.server.read_routes import read_routes
from rank1.server.record_routes import record_routes
from rank1.server.registry import StudyRegistry
from rank1.server.schemas import Problem
from rank1.server.token_routes import link_routes, token_routes
from rank1.server.tokens import Tokens
from rank1.server.webhooks import Webhooks
from rank1.server.write_routes import write_routes
from rank1.studies.storage import open_storage

__all__ = ["make_app"]

_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_WORDS = {
    400: "Not JSON", 401: "No valid token", 403: "The token doesn't allow this", 404: "Not found",
    409: "A conflict with what is stored", 413: "Too large", 422: "An invalid value",
    408: "Timeout", 429: "Too many requests", 500: "The service failed", 503: "Retry later",
}  # fmt: skip
_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": _PROBLEM} for status, text in _WORDS.items()
}


def make_app(
    config: Config, tokens: Tokens, started: Callable[[StudyRegistry], Any] | None = None
) -> Any:
    """Make the ASGI application for a configuration.

    `started` is called with the registry when the storage is open; what it returns is closed at
    the end.
    """
    metrics = Metrics()
    hooks: Webhooks | None = None

    def committed() -> None:
        metrics.commits.inc()
        if hooks is not None:
            hooks.committed()

    registry = StudyRegistry(open_storage(config.storage), committed)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # The writer thread and the event loop hand each other work: both need the GIL quickly.
        compiled.in_background()  # requests run as plain Python until compilation is done
        before = sys.getswitchinterval()
        sys.setswitchinterval(0.0005)
        extra = started(registry) if started else None
        nonlocal hooks
        if config.webhook:
            hooks = Webhooks(
                registry, metrics, config.webhook, config.webhook_secret, config.webhook_state
            )
        app.state.ready = True
        try:
            yield
        finally:
            app.state.ready = False
            if hooks is not None:
                hooks.close()
            if extra is not None:
                extra.close()
            registry.close()
            sys.setswitchinterval(before)

    app = FastAPI(
        title="rank1",
        version=rank1.__version__,
        summary="Live studies: ask for an arm, show it, tell its reward.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        responses=_RESPONSES,
        servers=[{"url": ".", "description": "this service, relative to its description"}],
        generate_unique_id_function=lambda route: route.name,
    )
    own = [write_routes(registry, metrics), record_routes(registry, metrics), read_routes(registry)]
    others = manage_routes(registry), token_routes(tokens), link_routes(tokens, registry)
    for routes in (*own, *others, pages.routes()):
        app.include_router(routes)

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        return json_response({"status": "alive", "version": rank1.__version__})

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        if not app.state.ready:
            raise RefusedError(503, "the service is shutting down", "try another server")
        await registry.ready()
        return json_response({"status": "ready"})

    describing = threading.Lock()

    # In a thread, on request: describing everything takes as long as the rest of the start.
    @app.get("/openapi.json", include_in_schema=False)
    def described() -> Response:
        with describing:
            return json_response(_description(app))

    @app.get("/metrics", include_in_schema=False)
    async def counted(request: Request) -> Response:
        require(request.state.token, "reader")
        gauges = registry.gauges() | {"tokens_unreadable": int(tokens.problem is not None)}
        return PlainTextResponse(metrics.text(gauges), media_type="text/plain; version=0.0.4")

    def refuse(error: Rank1Error) -> Response:
        if status_of(error) == 409:
            metrics.conflicts.inc()
        is_storage, is_unexpected = isinstance(error, StorageError), status_of(error) == 500
        metrics.storage_errors.inc(is_storage)
        if is_storage or is_unexpected:
            what = "the storage failed" if is_storage else type(error).__name__
            log.error("%s: %s", what, error, exc_info=error if is_unexpected else None)
        return problem_response(error)

    @app.exception_handler(Rank1Error)
    async def refused(request: Request, error: Rank1Error) -> Response:
        return refuse(error)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        # The middleware logs it.
        return problem_response(Rank1Error("internal error; see the service's log"))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return json_response(validation_problem(list(error.errors()), error.body), 422)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        title = {404: "Unknown address", 405: "Wrong method"}.get(error.status_code, "Bad request")
        document = problem_document(error.status_code, title, str(error.detail), remedy="see /docs")
        return json_response(document, error.status_code, error.headers)

    direct = Direct(app, [route for routes in own for route in routes.routes], refuse)
    return Middleware(direct, registry, metrics, tokens, config)


def _description(app: FastAPI) -> dict[str, Any]:
    """Describe the service in OpenAPI, with what FastAPI doesn't see."""
    schema = app.openapi()
    for model in (Problem, Records, Rewards):
        found = model.model_json_schema(ref_template="#/components/schemas/{model}")
        for name, part in found.pop("$defs", {}).items():
            schema["components"]["schemas"].setdefault(name, part)
        schema["components"]["schemas"].setdefault(model.__name__, found)
    scheme = {"type": "http", "scheme": "bearer"}
    schema["components"]["securitySchemes"] = {"token": scheme}
    schema["security"] = [{"token": []}]
    return schema
