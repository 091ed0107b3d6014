"""What changes a study over HTTP: create, ask, tell, cancel, revise, retire."""

from __future__ import annotations

import contextlib
import hashlib
import json
import warnings
from typing import Annotated, Any

from fastapi import APIRouter, Body
from starlette.responses import Response

from rank1.errors import (
    ConflictError,
    InputError,
    Rank1Error,
    StudyExistsError,
)
from rank1.server import models
from rank1.server.authorization import (
    AdministeredStudy,
    CurrentToken,
    IdempotencyKey,
    WritableStudy,
    require,
)
from rank1.server.metrics import Metrics
from rank1.server.problem_details import json_response, problem_of, status_of
from rank1.server.read_routes import about
from rank1.server.registry import StudyRegistry
from rank1.studies import asking
from rank1.studies.desk import Work
from rank1.studies.log import Event, Kind
from rank1.studies.spec import labels_of, make_spec

__all__ = ["write_routes"]

NEW: dict[int | str, dict[str, Any]] = {201: {"description": "Stored."}}


def write_routes(registry: StudyRegistry, metrics: Metrics) -> APIRouter:
    """The routes; each answers after the commit."""
    routes = APIRouter(prefix="/v1/studies")

    @routes.post("", status_code=201, tags=["studies"], summary="Create a study")
    async def create(
        body: models.Create, token: CurrentToken, key: IdempotencyKey = None
    ) -> Response:
        require(token, "admin", body.name)
        if body.name in (".", ".."):
            raise InputError(f"name must be one that can be part of an address, got {body.name!r}")
        fields = body.model_dump()
        name = fields.pop("name")
        if key is not None and body.seed is None:
            # The key lives on in the seed: so a second try is known from another's study.
            seal = hashlib.blake2b(f"{name}\0{key}".encode(), digest_size=6)
            fields["seed"] = int.from_bytes(seal.digest())
        return json_response(await registry.read(_created, registry, name, fields, key), 201)

    @routes.post("/{name}/ask", status_code=201, tags=["play"], response_model=models.Suggestion)
    async def ask(
        name: WritableStudy,
        key: IdempotencyKey = None,
        body: Annotated[models.Ask, Body()] = models.Ask(),  # noqa: B008
    ) -> Response:
        """The next pair to show."""

        def work(doing: Work) -> Any:
            return asking.suggest(doing, doing.spec, 1, key, body.unit)[0]

        given = await registry.write(name, work)
        metrics.asks.inc()
        return json_response(vars(given), 201)

    @routes.post(
        "/{name}/ask/batch", status_code=201, tags=["play"], response_model=models.AskResults
    )
    async def ask_many(
        name: WritableStudy, body: models.AskMany, key: IdempotencyKey = None
    ) -> Response:
        """Many pairs: a count of them, or a list of asks with units and keys of their own."""
        if (body.count is None) == (body.asks is None):
            raise InputError("count must be given, or asks in its place; not both")
        asks = body.asks

        def work(doing: Work) -> list[Any]:
            if asks is None:
                return list(asking.suggest(doing, doing.spec, body.count or 1, key, None))
            return [_each(doing, one, _own(key, place, one)) for place, one in enumerate(asks)]

        given = await registry.write(name, work)
        good = sum(not isinstance(one, Rank1Error) for one in given)
        metrics.asks.inc(good)
        return json_response({"results": _results(given, "suggestion", 201, metrics)}, 201)

    @routes.post("/{name}/tell", tags=["play"], response_model=models.Report)
    async def tell(name: WritableStudy, body: models.Tell, key: IdempotencyKey = None) -> Response:
        """A reward has come in. The id makes it safe to send again."""

        def work(doing: Work) -> Any:
            (found,) = asking.take_reports(doing, doing.spec, [(body.id, body.reward)], key)
            if isinstance(found, Rank1Error):
                raise found
            return found

        report = await registry.write(name, work)
        metrics.tells.inc()
        return json_response(vars(report))

    @routes.post("/{name}/tell/batch", tags=["play"], response_model=models.TellResults)
    async def tell_many(
        name: WritableStudy, body: models.TellMany, key: IdempotencyKey = None
    ) -> Response:
        """Many rewards, each taken or refused by itself."""
        pairs = [(each.id, each.reward) for each in body.reports]
        found = await registry.write(
            name, lambda doing: asking.take_reports(doing, doing.spec, pairs, key)
        )
        metrics.tells.inc(sum(not isinstance(one, Rank1Error) for one in found))
        return json_response({"results": _results(found, "report", 200, metrics)})

    @routes.post("/{name}/cancel", tags=["play"])
    async def cancel(
        name: WritableStudy, body: models.Cancel, key: IdempotencyKey = None
    ) -> Response:
        """A suggestion was never shown. Again is as good as once."""
        await registry.write(name, lambda doing: asking.cancel(doing, doing.spec, body.id, key))
        return json_response({"id": body.id, "state": "cancelled"})

    @routes.post("/{name}/revisions", status_code=201, tags=["studies"])
    async def revise(
        name: AdministeredStudy, body: models.Revise, key: IdempotencyKey = None
    ) -> Response:
        """Add and retire rows and columns."""
        given = {side: labels for side, labels in body.model_dump().items() if labels}
        change = {side: list(labels_of(side, labels)) for side, labels in given.items()}
        if not change:
            raise InputError("add_rows must be given, or another of the lists; all are empty")
        return json_response(
            await registry.write(name, lambda doing: _revised(doing, change, key)), 201
        )

    @routes.post("/{name}/imports", status_code=201, tags=["studies"])
    async def import_history(
        name: AdministeredStudy, body: models.Import, key: IdempotencyKey = None
    ) -> Response:
        """Add rewards that are known from elsewhere; the same ones, or the same key, once."""

        def work() -> int:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                return registry.study(name).import_history(body.rewards, key)

        return json_response({"rewards": await registry.read(work)}, 201)

    @routes.post("/{name}/retire", tags=["studies"])
    async def retire(name: AdministeredStudy, key: IdempotencyKey = None) -> Response:
        """Close the study: no suggestions any more; reports are still taken. Once is enough."""

        def work() -> dict[str, Any]:
            if registry.row(name).retired is None:
                with contextlib.suppress(ConflictError):  # somebody else was faster
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
        again = key is not None and fields["seed"] is not None
        if not again or make_spec(**fields).text != registry.study(name).spec.text:
            # Where it is kept is nobody's business.
            told = f"there is a study {name!r}: open it, or take another name"
            raise StudyExistsError(told) from None
    return about(registry, name)


def _own(key: str | None, place: int, one: models.AskOne) -> str | None:
    """The key of one of many asks: its own, or one that the request's key stands for.

    A unit needs none: while it waits for its reward it is given the same suggestion.
    """
    if key is None or one.key is not None or one.unit is not None:
        return one.key
    seal = hashlib.blake2b(f"{key}\0{place}".encode(), digest_size=16)
    return f"batch {seal.hexdigest()}"


def _each(doing: Work, one: models.AskOne, key: str | None) -> Any:
    """What is given, or the error of this one; after a failure of the storage nothing goes on."""
    before = doing.memory.seq
    ahead, doing.ahead = doing.ahead, False
    try:
        return asking.suggest(doing, doing.spec, 1, key, one.unit)[0]
    except Rank1Error as error:
        if doing.ahead or doing.memory.seq != before:
            raise
        return error
    finally:
        doing.ahead = doing.ahead or ahead


def _results(found: list[Any], what: str, status: int, metrics: Metrics) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    for one in found:
        if isinstance(one, Rank1Error):
            if status_of(one) == 409:
                metrics.conflicts.inc()
            results.append({"status": status_of(one), "problem": problem_of(one)})
        else:
            results.append({"status": status, what: vars(one)})
    return results


def _revised(doing: Work, change: dict[str, list[str]], key: str | None) -> dict[str, Any]:
    text = json.dumps(change)
    for event in asking.under_key(doing, key, Kind.REVISED):
        if event.data != text:
            raise asking.key_used(key)
        return {"revision": event.tag, **change}
    doing.memory.check_revision(text)
    number = doing.memory.revision + 1
    doing.append([Event(Kind.REVISED, tag=number, data=text, key=key)])
    return {"revision": number, **change}
