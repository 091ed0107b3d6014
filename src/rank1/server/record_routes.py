"""Routes for assignment without a round trip: shares, records and rewards.

A page in a browser needs these routes, so they accept a browser's token. They read a body whatever
its media type is, because a beacon can't send application/json without a preflight request.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from rank1.checks import RECORD, REWARD
from rank1.errors import InputError, InputTypeError, Rank1Error
from rank1.server import models, schemas
from rank1.server.authorization import AssignableStudy
from rank1.server.metrics import Metrics
from rank1.server.problem_details import item_results, json_response
from rank1.server.read_routes import UNCHANGED, is_current
from rank1.server.registry import StudyRegistry
from rank1.studies.appending import new_records, new_rewards
from rank1.studies.records import take_records, take_rewards
from rank1.studies.unit_of_work import StudyAccess, UnitOfWork

__all__ = ["record_routes"]

#: The result of a record that was stored without the study's lock.
_NEW = object()
#: The fields a client sends after it couldn't reach the service and showed its fallback.
_FALLBACK = {"unit", "levels", "fallback"}


def _body(model: Any) -> dict[str, Any]:
    """Return the OpenAPI schema of a body that FastAPI doesn't parse itself."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def record_routes(registry: StudyRegistry, metrics: Metrics) -> APIRouter:
    """Make the routes."""
    routes = APIRouter(prefix="/v1/studies", tags=["assignment"])

    @routes.get("/{name}/shares", response_model=schemas.Shares, responses=UNCHANGED)
    async def get_shares(
        name: AssignableStudy, if_none_match: Annotated[str | None, Header()] = None
    ) -> Response:
        """Get the current version of the shares; `rank1.assign` draws a unit's levels from it."""
        study = await registry.read(registry.study, name)
        found = await registry.read(study.shares)
        tag = f'"{study.uid}-{found["version"]}"'
        headers = {"ETag": tag, "Cache-Control": f"public, max-age={found['max_age']}"}
        if is_current(if_none_match, tag):
            return Response(status_code=304, headers=headers)
        return json_response(found, 200, headers)

    @routes.post(
        "/{name}/records",
        response_model=schemas.RecordResults,
        openapi_extra=_body(models.Records),
    )
    async def add_records(name: AssignableStudy, request: Request) -> Response:
        """Store exposures whose levels were drawn from a version's shares.

        Each record is accepted or refused by itself. A unit is recorded once: a duplicate gets
        the same answer.
        """
        items = await _items(request, "records")
        fallbacks = sum(_is_fallback(each) for each in items)
        metrics.fallbacks.inc(fallbacks)
        found = await _stored(registry, name, items, RECORD, take_records, new_records, _NEW)
        metrics.records.inc(sum(not isinstance(each, Rank1Error) for each in found) - fallbacks)
        return json_response({"results": item_results(found, _result)})

    @routes.post(
        "/{name}/rewards",
        response_model=schemas.RewardResults,
        openapi_extra=_body(models.Rewards),
    )
    async def add_rewards(name: AssignableStudy, request: Request) -> Response:
        """Store rewards by unit. Each one is accepted or refused by itself."""
        items = await _items(request, "rewards")
        found = await _stored(registry, name, items, REWARD, take_rewards, new_rewards, None)
        metrics.tells.inc(sum(not isinstance(each, Rank1Error) for each in found))
        return json_response({"results": item_results(found, _result)})

    return routes


async def _items(request: Request, name: str) -> list[Any]:
    """Read the list under this name from the body."""
    raw = await request.body()
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError("the body", raw.decode("utf-8", "replace"), "JSON", str(error)) from None
    if not isinstance(body, dict) or set(body) != {name}:
        raise InputTypeError("the body", body, f'{{"{name}": […]}}')
    items = body[name]
    if not isinstance(items, list) or not 1 <= len(items) <= models.MAX_BATCH:
        kind = InputError if isinstance(items, list) else InputTypeError
        raise kind(name, items, f"a list of 1 to {models.MAX_BATCH:,} items")
    return items


async def _stored(
    registry: StudyRegistry,
    name: str,
    items: list[Any],
    fields: tuple[str, ...],
    take: Callable[[UnitOfWork, Any], list[Any]],
    new: Callable[[StudyAccess, Any], list[Any]],
    stored: Any,
) -> list[Any]:
    """Store the valid items; returns a result or an error for each item."""
    checked = [_checked(each, fields) for each in items]
    valid = [each for each in checked if isinstance(each, tuple)]
    if not valid:
        await registry.read(registry.row, name)
        return checked
    taken = iter(await registry.append(name, valid, take, new, stored))
    return [next(taken) if isinstance(each, tuple) else each for each in checked]


def _checked(item: Any, fields: tuple[str, ...]) -> Any:
    """Return the item's fields in order, an error if it is invalid, or None for a fallback."""
    if _is_fallback(item):
        return None
    if not isinstance(item, dict):
        return InputTypeError("the item", item, f"an object with {', '.join(fields)}")
    for name in item:
        if name not in fields:
            return InputError("the item", name, f"an object with {', '.join(fields)}")
    values = tuple(map(item.get, fields))
    reward = item.get("reward")
    if isinstance(reward, bool | str):
        return InputTypeError("reward", reward, "a number")
    guardrails = item.get("guardrails")
    if isinstance(guardrails, dict) and any(isinstance(v, bool) for v in guardrails.values()):
        return InputTypeError("guardrails", guardrails, "numbers")
    return values


def _is_fallback(item: Any) -> bool:
    return isinstance(item, dict) and item.get("fallback") is True and set(item) <= _FALLBACK


def _result(found: Any) -> dict[str, Any]:
    return {"status": 201 if found is _NEW or getattr(found, "new", False) else 200}
