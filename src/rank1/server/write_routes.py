"""Routes that change a study: create, ask, tell, cancel, revise, import, retire."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from typing import Annotated, Any

from fastapi import APIRouter, Body
from starlette.responses import Response

from rank1.documents import Imported
from rank1.errors import ConflictError, InputError, Rank1Error, StudyExistsError
from rank1.server import models, schemas
from rank1.server.authorization import (
    AdministeredStudy,
    CurrentToken,
    IdempotencyKey,
    WritableStudy,
    require,
)
from rank1.server.metrics import Metrics
from rank1.server.problem_details import item_results, json_response, status_of
from rank1.server.read_routes import about
from rank1.server.registry import StudyRegistry
from rank1.studies import revising, suggestions
from rank1.studies.spec import make_spec
from rank1.studies.unit_of_work import UnitOfWork

__all__ = ["write_routes"]


def write_routes(registry: StudyRegistry, metrics: Metrics) -> APIRouter:
    """Make the routes; each one answers after the commit."""
    routes = APIRouter(prefix="/v1/studies")

    @routes.post(
        "", status_code=201, tags=["studies"], summary="Create a study",
        response_model=schemas.Study,
    )  # fmt: skip
    async def create_study(
        body: models.Create, token: CurrentToken, key: IdempotencyKey = None
    ) -> Response:
        require(token, "admin", body.name)
        if body.name in (".", ".."):
            raise InputError("name", body.name, "a name that can be part of a URL")
        fields = body.model_dump(warnings=False)
        name = fields.pop("name")
        fields = {field: value for field, value in fields.items() if value is not None}
        fields.setdefault("seed", None)
        if key is not None and body.seed is None:
            # Derive the seed from the key: it tells a retry from another study of the same name.
            seal = hashlib.blake2b(f"{name}\0{key}".encode(), digest_size=6)
            fields["seed"] = int.from_bytes(seal.digest())
        return json_response(await registry.read(_created, registry, name, fields, key), 201)

    @routes.post("/{name}/ask", status_code=201, tags=["play"], response_model=schemas.Suggestion)
    async def ask(
        name: WritableStudy,
        key: IdempotencyKey = None,
        body: Annotated[models.Ask, Body()] = models.Ask(),  # noqa: B008
    ) -> Response:
        """Ask for the next arm to show."""

        def job(work: UnitOfWork) -> Any:
            return suggestions.suggest(work, 1, key, body.unit, body.data, body.given)[0]

        given = await registry.write(name, job)
        metrics.asks.inc()
        return json_response(given.to_dict(), 201)

    @routes.post(
        "/{name}/ask/batch",
        status_code=201,
        tags=["play"],
        response_model=schemas.AskResults,
    )
    async def ask_many(
        name: WritableStudy, body: models.AskMany, key: IdempotencyKey = None
    ) -> Response:
        """Ask for many arms: either a count, or a list of asks with units and keys."""
        count, asks = body.count, body.asks
        if (count is None) == (asks is None):
            raise InputError("count", count, "given if asks isn't, and only then")

        def job(work: UnitOfWork) -> list[Any]:
            if asks is None:
                return list(suggestions.suggest(work, count or 1, key, None, body.data, body.given))
            return [_ask_one(work, one, _own_key(key, k, one)) for k, one in enumerate(asks)]

        given = await registry.write(name, job)
        metrics.asks.inc(_accepted(given))
        return json_response({"results": _results(given, "suggestion", 201, metrics)}, 201)

    @routes.post("/{name}/tell", tags=["play"], response_model=schemas.Report)
    async def tell(name: WritableStudy, body: models.Tell, key: IdempotencyKey = None) -> Response:
        """Report a reward. The id makes a retry safe."""

        def job(work: UnitOfWork) -> Any:
            (found,) = suggestions.take_reports(
                work, [(body.id, body.reward, body.guardrails)], key
            )
            if isinstance(found, Rank1Error):
                raise found
            return found

        report = await registry.write(name, job)
        metrics.tells.inc()
        return json_response(report.to_dict())

    @routes.post("/{name}/tell/batch", tags=["play"], response_model=schemas.TellResults)
    async def tell_many(
        name: WritableStudy, body: models.TellMany, key: IdempotencyKey = None
    ) -> Response:
        """Report many rewards. Each one is accepted or refused by itself."""
        valid = [
            (each.id, each.reward, each.guardrails) for each in body.reports if not _is_error(each)
        ]

        def job(work: UnitOfWork) -> list[Any]:
            taken = iter(suggestions.take_reports(work, valid, key) if valid else ())
            return [each if _is_error(each) else next(taken) for each in body.reports]

        found = await registry.write(name, job)
        metrics.tells.inc(_accepted(found))
        return json_response({"results": _results(found, "report", 200, metrics)})

    @routes.post("/{name}/cancel", tags=["play"], response_model=schemas.Cancelled)
    async def cancel(
        name: WritableStudy, body: models.Cancel, key: IdempotencyKey = None
    ) -> Response:
        """Cancel a suggestion that was never shown. A retry changes nothing."""
        await registry.write(name, lambda work: suggestions.cancel(work, body.id, key))
        return json_response({"id": body.id, "state": "cancelled"})

    @routes.post(
        "/{name}/revisions", status_code=201, tags=["studies"], response_model=schemas.Revised
    )
    async def revise(
        name: AdministeredStudy, body: models.Revise, key: IdempotencyKey = None
    ) -> Response:
        """Add and retire levels."""
        given = {name: each for name, each in body.model_dump(warnings=False).items() if each}

        def job(work: UnitOfWork) -> int:
            return revising.revise(work, revising.change_of(work.spec.sides, **given), key)

        return json_response({"revision": await registry.write(name, job), **given}, 201)

    @routes.post("/{name}/imports", status_code=201, tags=["studies"], response_model=Imported)
    async def import_history(
        name: AdministeredStudy, body: models.Import, key: IdempotencyKey = None
    ) -> Response:
        """Import rewards from elsewhere. The same rewards, or the same key, count only once."""

        def work() -> dict[str, Any]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                rewards = list(map(_with_floats, body.rewards))
                return registry.study(name).import_history(rewards, key).to_dict()

        return json_response(await registry.read(work), 201)

    @routes.post("/{name}/retire", tags=["studies"], response_model=schemas.Study)
    async def retire(name: AdministeredStudy, key: IdempotencyKey = None) -> Response:
        """Close the study: it gives no more suggestions, but still accepts reports."""

        def work() -> dict[str, Any]:
            if registry.row(name).retired is None:
                with contextlib.suppress(ConflictError):  # another request has already retired it
                    registry.study(name).retire()
            return about(registry, name)

        return json_response(await registry.read(work))

    return routes


def _created(
    registry: StudyRegistry, name: str, fields: dict[str, Any], key: str | None
) -> dict[str, Any]:
    try:
        registry.create(name, **fields)
    except StudyExistsError:
        retried = key is not None and fields["seed"] is not None
        if not retried or make_spec(**fields) != registry.study(name).spec:
            raise
    return about(registry, name)


def _with_floats(row: Any) -> Any:
    """Read whole rewards as floats: the digest that finds a repeated import depends on it.

    >>> _with_floats(["a", "x", 1])
    ['a', 'x', 1.0]
    """
    if not isinstance(row, list):
        return row
    return [float(each) if type(each) is int and abs(each) < 2**53 else each for each in row]


def _own_key(key: str | None, place: int, one: models.AskOne) -> str | None:
    """Return the key of one ask in a batch: its own, or one derived from the request's key.

    An ask with a unit needs no key: the unit gets the same suggestion until its reward arrives.
    """
    if _is_error(one):
        return None
    if key is None or one.key is not None or one.unit is not None:
        return one.key
    seal = hashlib.blake2b(f"{key}\0{place}".encode(), digest_size=16)
    return f"batch {seal.hexdigest()}"


def _is_error(one: Any) -> bool:
    return isinstance(one, Rank1Error)


def _ask_one(work: UnitOfWork, one: models.AskOne, key: str | None) -> Any:
    """Return a suggestion, or the error for this ask alone."""
    if _is_error(one):
        return one
    return work.attempt(
        lambda work: suggestions.suggest(work, 1, key, one.unit, one.data, one.given)[0]
    )


def _accepted(found: list[Any]) -> int:
    return sum(not _is_error(one) for one in found)


def _results(found: list[Any], what: str, status: int, metrics: Metrics) -> list[dict[str, Any]]:
    metrics.conflicts.inc(sum(_is_error(one) and status_of(one) == 409 for one in found))
    return item_results(found, lambda one: {"status": status, what: one.to_dict()})
