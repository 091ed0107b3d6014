"""Routes for managing studies: summaries, forecasts, notes, archiving and deletion."""

from __future__ import annotations

import math
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from rank1.documents import Personalised
from rank1.errors import InputError
from rank1.server import models, schemas
from rank1.server.authorization import (
    AdministeredStudy,
    CurrentToken,
    IdempotencyKey,
    ReadableStudy,
    WritableStudy,
)
from rank1.server.problem_details import json_response
from rank1.server.registry import StudyRegistry
from rank1.server.study_view import summary
from rank1.studies import Study
from rank1.studies.events import MAX_TEXT

__all__ = ["manage_routes"]

#: Simulated continuations of a running study, and simulated runs of a planned one, per forecast.
CONTINUED, RUNS = 60, 20
#: The most arms, and the most levels in total, for which a planned study is forecast.
MOST_ARMS, MOST_LEVELS = 2**12, 128
#: The most visitors to simulate, and the seconds after which no further run starts.
MOST_PULLS, BUDGET = 10**8, 1.0


class Plan(models.Body):
    """A planned study."""

    levels: list[Annotated[int, Field(ge=1)]] = Field(
        description="How many levels each side has.", min_length=1, max_length=16
    )
    rate: float = Field(
        description="Average reward of a visitor, as a fraction of the largest.", ge=1e-4, lt=1
    )
    lift: float = Field(
        0.1, description="How much better the best of each side may be.", ge=0.01, le=10
    )
    min_lift: float = Field(0.0, ge=0, le=1)
    confidence: float = Field(0.95, ge=0.5, le=0.9999)
    per_day: float | None = Field(None, gt=0, le=1e12, description="Visitors a day.")


class Span(BaseModel):
    """The 10%, 50% and 90% quantiles over studies; null if beyond the simulated range."""

    low: float | None
    median: float | None
    high: float | None


class Forecast(BaseModel):
    """How long a study will take until it may stop."""

    visitors: Span
    days: Span | None
    reports: int | None = Field(None, description="For a running study: rewards that count.")
    statement: str | None = Field(None, description="For a running study: the same in words.")


class Lift(BaseModel):
    """The lift of the leader over the control or the runner-up."""

    over: list[str]
    is_control: bool
    estimate: float | None
    low: float | None
    high: float | None
    above: float = Field(description="The lowest reward: lifts compare rewards above it.")
    mean: float | None = Field(description="The leader's average reward.")
    over_mean: float | None


class Summary(BaseModel):
    """The verdict in a few fields."""

    verdict: Literal["none", "go", "stop", "only"] = Field(
        description="only: stop only if one order holds."
    )
    leader: list[str] | None
    lift: Lift | None
    doubt: schemas.Doubt | None
    reports: int


class Note(models.StudyBody):
    """A note, which is stored in the log."""

    text: str = Field(min_length=1, max_length=MAX_TEXT)


class Forgotten(BaseModel):
    """A unit whose name was removed."""

    events: int = Field(description="How many events had its name.")


class Done(BaseModel):
    """The study and its new state."""

    name: str
    state: Literal["noted", "archived", "listed", "deleted"]


def manage_routes(registry: StudyRegistry) -> APIRouter:
    """Make the routes."""
    routes = APIRouter(prefix="/v1")

    @routes.get("/studies/{name}/summary", tags=["results"], response_model=Summary)
    async def get_summary(name: ReadableStudy) -> Response:
        """Get the leader and the verdict in a few fields."""

        def look() -> dict[str, Any]:
            study = registry.study(name)
            return summary(study.best(tables=False), study.spec.given)

        return json_response(await registry.read(look))

    @routes.get("/studies/{name}/forecast", tags=["results"], response_model=Forecast)
    async def get_forecast(
        name: ReadableStudy,
        request: Request,
        per_day: Annotated[float | None, Query(gt=0, le=1e12, allow_inf_nan=False)] = None,
    ) -> Response:
        """Forecast how many more visitors the study needs until it may stop, if nothing changes."""
        await registry.read(registry.row, name)
        found = await registry.read_slowly(
            ("forecast", name, per_day),
            lambda: registry.separate(name).forecast(per_day, runs=CONTINUED),
            request.is_disconnected,
        )
        said = {"reports": found.reports, "statement": found.statement}
        return json_response(_forecast(list(found.more.values()), per_day) | said)

    @routes.get("/studies/{name}/personalise", tags=["results"], response_model=Personalised)
    async def get_personalise(
        name: ReadableStudy, side: str, by: str, request: Request
    ) -> Response:
        """Test whether it pays to choose a side's level by another side's, such as a segment."""
        await registry.read(registry.row, name)
        found = await registry.read_separately(
            request.is_disconnected, name, Study.personalise, side, by
        )
        return json_response(found.to_dict())

    @routes.post("/forecasts", tags=["studies"], response_model=Forecast)
    async def plan(body: Plan, request: Request, token: CurrentToken) -> Response:
        """Forecast by simulation how many visitors a planned study will need."""
        arms = math.prod(body.levels)
        if arms > MOST_ARMS or sum(body.levels) > MOST_LEVELS:
            most = f"of at most {MOST_LEVELS} levels and {MOST_ARMS:,} combinations"
            raise InputError("levels", body.levels, most)
        wanted = body.model_dump(exclude={"per_day"})
        visitors = await registry.read_slowly(
            ("plan", body.model_dump_json(exclude={"per_day"})),
            lambda: _simulated(**wanted),
            request.is_disconnected,
        )
        return json_response(_forecast(visitors, body.per_day))

    @routes.post("/studies/{name}/notes", status_code=201, tags=["log"], response_model=Done)
    async def add_note(name: WritableStudy, body: Note, key: IdempotencyKey = None) -> Response:
        """Add a note to the log."""
        await registry.read(lambda: registry.study(name).note(body.text, key))
        return json_response({"name": name, "state": "noted"}, 201)

    @routes.post("/studies/{name}/forget", tags=["studies"], response_model=Forgotten)
    async def forget_unit(name: AdministeredStudy, body: models.Forget) -> Response:
        """Remove a unit's name and its data from the log; its rewards stay, anonymously."""
        found = await registry.read(lambda: registry.study(name).forget_unit(body.unit))
        return json_response({"events": found})

    @routes.post("/studies/{name}/archive", tags=["studies"], response_model=Done)
    async def archive(name: AdministeredStudy) -> Response:
        """Hide a study from the list. It keeps running and can still be opened by its name."""
        await registry.read(lambda: registry.study(name).archive())
        return json_response({"name": name, "state": "archived"})

    @routes.post("/studies/{name}/unarchive", tags=["studies"], response_model=Done)
    async def unarchive(name: AdministeredStudy) -> Response:
        """Show a study in the list again."""
        await registry.read(lambda: registry.study(name).unarchive())
        return json_response({"name": name, "state": "listed"})

    @routes.delete("/studies/{name}", tags=["studies"], response_model=Done)
    async def delete(
        name: AdministeredStudy,
        confirm: Annotated[str, Query(description="The study's name again, to confirm.")],
    ) -> Response:
        """Permanently delete a study and its log."""
        await registry.read(registry.delete, name, confirm)
        return json_response({"name": name, "state": "deleted"})

    return routes


def _simulated(
    levels: list[int], rate: float, lift: float, min_lift: float, confidence: float
) -> list[float]:
    """Simulate the pulls until a stop; one level of each side is better by `lift`."""
    import numpy as np

    from rank1.policies import BetElim
    from rank1.problems import Product
    from rank1.simulation import identify

    if max(levels) == 1:
        return [0.0] * 3  # nothing to choose from
    factors = [np.array([1.0, *[1 / (1 + lift)] * (size - 1)]) for size in levels]
    best = rate / math.prod(float(side.mean()) for side in factors)
    if best > 1:
        most = f"at most {rate / best:.3g} for a lift of {lift:g}, or the best would exceed 1"
        raise InputError("rate", rate, most)
    factors[0] *= best
    policy, problem = BetElim(min_lift=min_lift), Product(factors)
    pulls: list[float] = []
    began = time.thread_time()
    while len(pulls) < RUNS and (not pulls or time.thread_time() - began < BUDGET):
        one = identify(policy, problem, confidence, n=MOST_PULLS, runs=1, seed=len(pulls))
        found = one.searches[0]
        pulls.append(float(found.pulls[0]) if found.stopped[0] else math.inf)
    return [float(np.quantile(pulls, part, method="nearest")) for part in (0.1, 0.5, 0.9)]


def _forecast(visitors: list[float], per_day: float | None) -> dict[str, Any]:
    def span(scale: float) -> dict[str, float | None]:
        names = ("low", "median", "high")
        return {
            name: n / scale if math.isfinite(n) else None
            for name, n in zip(names, visitors, strict=True)
        }

    return {"visitors": span(1.0), "days": None if per_day is None else span(per_day)}
