"""Routes that read a study: settings, results, fit, history, revisions and exports."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import AsyncIterator, Callable
from operator import getitem
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from fastapi import APIRouter, Header, Query, Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from rank1.errors import InputError
from rank1.policies import POLICIES
from rank1.server import schemas
from rank1.server.authorization import (
    AdministeredStudy,
    CurrentToken,
    LoggedStudy,
    ReadableStudy,
    require,
)
from rank1.server.problem_details import json_response
from rank1.server.registry import StudyRegistry
from rank1.server.study_view import MAX_ARMS, is_large
from rank1.studies import Study
from rank1.studies.state import StudyState
from rank1.studies.storage import StudyRow

__all__ = ["UNCHANGED", "about", "is_current", "read_routes"]

#: Lines of an export that are read at a time.
PART = 2000
#: The most events that are read for one page of a filtered history.
MAX_SEEN = 20_000
#: The most revisions in an answer.
MAX_REVISIONS = 100_000
#: The most arms on a page.
MAX_PAGE = 10_000
#: A spreadsheet takes a cell that begins with one of these for a formula.
FORMULA = ("=", "+", "-", "@")

T = TypeVar("T")

#: The answer when a request's ETag is still current.
UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "Not changed"}}


def read_routes(registry: StudyRegistry) -> APIRouter:
    """Make the routes."""
    routes = APIRouter(prefix="/v1/studies")

    async def _looked(name: str, request: Request, key: Any, function: Callable[[Study], T]) -> T:
        """Call a function with a study; for large studies, one call at a time."""
        study = await registry.read(registry.study, name)
        if not is_large(study):
            return await registry.read(function, study)
        return await registry.read_slowly(
            (key, name), lambda: function(study), request.is_disconnected
        )

    @routes.get("", tags=["studies"], summary="List the studies", response_model=schemas.StudyList)
    async def list_studies(token: CurrentToken, archived: bool = False) -> Response:
        """List the studies that aren't archived, or only the archived ones."""
        rows = await registry.read(registry.rows)
        listed = [row for row in rows if (row.archived is not None) == archived]
        seen = [row for row in listed if token.allows("reader", row.name)]
        return json_response({"studies": [_listed(row) for row in seen]})

    @routes.get(
        "/{name}", tags=["studies"], summary="What a study is", response_model=schemas.Study
    )
    async def get_study(name: ReadableStudy) -> Response:
        return json_response(await registry.read(about, registry, name))

    @routes.get("/{name}/best", tags=["results"], response_model=schemas.Best)
    async def get_best(name: ReadableStudy, request: Request) -> Response:
        """Get the leader, intervals for arms and effects, and whether the study may stop, and why.

        Tables of arms are empty if there are more than 100,000: `…/arms` lists them page by page.
        """
        return await _looked(name, request, "best", _best)

    @routes.get("/{name}/arms", tags=["results"], response_model=schemas.Arms)
    async def list_arms(
        name: ReadableStudy,
        request: Request,
        after: Annotated[int, Query(ge=0, le=2**62, description="`next` of the page before.")] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 1000,
    ) -> Response:
        """List the arms page by page, with their rewards so far, mean and pending suggestions."""
        return await _looked(
            name, request, ("arms", after, limit),
            lambda study: json_response(_page_of_arms(study, after, limit)),
        )  # fmt: skip

    @routes.get("/{name}/report", tags=["results"], response_class=HTMLResponse)
    async def get_report(name: ReadableStudy, request: Request) -> Response:
        """Get a report for readers who don't know the study: one HTML file, ready to print."""
        text = await _looked(name, request, "report", lambda study: study.report_text())
        return HTMLResponse(text)

    @routes.get("/{name}/view", tags=["results"], response_model=schemas.View, responses=UNCHANGED)
    async def get_view(
        name: ReadableStudy,
        request: Request,
        if_none_match: Annotated[str | None, Header()] = None,
        accept_encoding: Annotated[str, Header(include_in_schema=False)] = "",
    ) -> Response:
        """Get all that the page shows, in one document; 304 if nothing has changed."""
        tag, document, small = await _looked(
            name, request, "view", lambda study: registry.view(name).get()
        )
        headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
        if is_current(if_none_match, tag):
            return Response(status_code=304, headers=headers)
        if "gzip" in accept_encoding:
            headers["Content-Encoding"] = "gzip"
            document = small
        return Response(document, headers=headers, media_type="application/json")

    @routes.get("/{name}/fit", tags=["results"], response_model=schemas.Fit)
    async def get_fit(
        name: ReadableStudy,
        request: Request,
        repetitions: Annotated[int, Query(ge=19, le=999)] = 199,
        seed: Annotated[int, Query(ge=0, le=2**53)] = 1,
    ) -> Response:
        """Test whether the grid is of rank one by replaying the study; this may be slow.

        Studies with more than 100,000 arms are refused: testing them can take hours.
        """
        if is_large(await registry.read(registry.study, name)):
            raise InputError(
                "name", name, f"a study of at most {MAX_ARMS:,} arms", "use `rank1 study fit`"
            )

        return await registry.read_separately(
            request.is_disconnected, name, _fit, repetitions, seed
        )

    @routes.get("/{name}/replay", tags=["results"], response_model=schemas.Replayed)
    async def get_replay(
        name: ReadableStudy,
        request: Request,
        token: CurrentToken,
        policy: Annotated[str, Query(min_length=1, max_length=200)],
        seed: Annotated[int, Query(ge=0, le=2**53)] = 1,
    ) -> Response:
        """Replay another policy on the logged rewards; an admin may name `module:Class`."""
        if _names_module(policy):  # the service would import it
            require(token, "admin", name)
        found = await registry.read_separately(
            request.is_disconnected, name, Study.replay, policy, seed
        )
        return json_response(found.to_dict())

    @routes.get("/{name}/verification", tags=["results"], response_model=schemas.Verified)
    async def get_verification(name: AdministeredStudy, request: Request) -> Response:
        """Recompute the study from its log and compare the results."""
        found = await registry.read_separately(request.is_disconnected, name, Study.verify)
        return json_response(found.to_dict())

    @routes.get("/{name}/history", tags=["log"], response_model=schemas.History)
    async def get_history(
        name: LoggedStudy,
        after: Annotated[
            int | None, Query(ge=0, le=2**62, description="`next` of the page before.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        kind: Annotated[list[schemas.KindName] | None, Query(max_length=12)] = None,
        side: Annotated[str | None, Query(max_length=256, description="With `level`.")] = None,
        level: Annotated[str | None, Query(max_length=256)] = None,
        row: Annotated[str | None, Query(max_length=256)] = None,
        column: Annotated[str | None, Query(max_length=256)] = None,
        newest: bool = False,
    ) -> Response:
        """Read the log page by page, oldest events first or newest first."""
        wanted = {"row": row, "column": column}

        def is_wanted(line: dict[str, Any]) -> bool:
            levels = line.get("levels", {})
            return (level is None or levels.get(side) == level) and all(
                label is None or line.get(name) == label for name, label in wanted.items()
            )

        def look() -> dict[str, Any]:
            study, cursor, seen = registry.study(name), after, 0
            found: list[dict[str, Any]] = []
            while len(found) < limit and seen < MAX_SEEN:
                page = study.events(cursor, max(limit, 100), kinds=kind or (), newest=newest)
                if not page:
                    return {"events": found, "next": None}
                seen += len(page)
                for line in page:
                    cursor = line["seq"]
                    if is_wanted(line):
                        if "change" in line:
                            line["change"] = _change(study, line["change"])
                        found.append(line)
                        if len(found) == limit:
                            break
            return {"events": found, "next": cursor}

        return json_response(await registry.read(look))

    @routes.get("/{name}/revisions", tags=["log"], response_model=schemas.Revisions)
    async def list_revisions(name: ReadableStudy) -> Response:
        """List the revisions: when levels were added and retired."""

        def look() -> Response:
            study = registry.study(name)
            made = [
                {"revision": each["revision"], "at": each["at"], "seq": each["seq"]}
                | _change(study, each["change"])
                for each in study.events(limit=MAX_REVISIONS, kinds=["revised"])
            ]
            return json_response({"revision": study.revision, **_living(study), "revisions": made})

        return await registry.read(look)

    @routes.get("/{name}/export", tags=["log"], response_class=StreamingResponse)
    async def export(name: LoggedStudy, format: Literal["jsonl", "csv"] = "jsonl") -> Response:
        """Stream one line for each suggestion."""
        study = await registry.read(registry.study, name)
        first = await registry.read(study.lines, 0, PART)  # fail here, not in mid-stream
        media = {"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8"}[format]
        kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in name)[:60]
        return StreamingResponse(
            _exported(registry, study, format, first),
            media_type=media,
            headers={"Content-Disposition": f'attachment; filename="rank1-{kept}.{format}"'},
        )

    return routes


def is_current(if_none_match: str | None, tag: str) -> bool:
    """Whether a client's ETags include this one; a proxy that compresses makes them weak.

    >>> is_current('"b-1", W/"a-1"', '"a-1"'), is_current(None, '"a-1"')
    (True, False)
    """
    known = [each.strip().removeprefix("W/") for each in (if_none_match or "").split(",")]
    return tag in known or "*" in known


def _best(study: Study) -> Response:
    return json_response(study.best(tables=not is_large(study)).to_dict())


def _fit(study: Study, repetitions: int, seed: int) -> Response:
    return json_response(study.fit(B=repetitions, seed=seed).to_dict())


def _page_of_arms(study: Study, after: int, limit: int) -> dict[str, Any]:
    """Return the arms from number `after` on, in the order of the sides (last side fastest)."""

    def page(state: StudyState, now: float) -> dict[str, Any]:
        counts, sums = state.evidence(now)
        pending, (low, high) = state.pending().ravel(), study.spec.reward_range
        names = [state.living_labels(side) for side in state.labels]
        some = np.arange(after, min(after + limit, counts.size))
        levels = np.stack(np.unravel_index(some, counts.shape), axis=1)
        found = [
            {
                "levels": dict(zip(state.labels, map(getitem, names, place), strict=True)),
                "reports": count,
                "mean": low + (high - low) * total / count if count else None,
                "pending": waiting,
            }
            for place, count, total, waiting in zip(
                levels.tolist(), counts.ravel()[some].tolist(), sums.ravel()[some].tolist(),
                pending[some].tolist(), strict=True,
            )
        ]  # fmt: skip
        end = after + limit
        return {"size": counts.size, "arms": found, "next": end if end < counts.size else None}

    return study.access.compute(page)


def about(registry: StudyRegistry, name: str) -> dict[str, Any]:
    """Return a study's settings and counts."""
    row, study = registry.row(name), registry.study(name)
    return {
        **_listed(row),
        **study.spec.to_dict(),
        **_living(study),
        "revision": study.revision,
        "totals": study.counts(),
    }


def _living(study: Study) -> dict[str, Any]:
    """Return the living levels by side; with two sides, also as rows and columns."""
    sides = study.sides
    two = dict(zip(("rows", "columns"), sides.values(), strict=True)) if len(sides) == 2 else {}
    return {"sides": sides, **two}


def _listed(row: StudyRow) -> dict[str, Any]:
    return {
        "name": row.name, "uid": row.uid, "created": row.created, "retired": row.retired,
        "archived": row.archived, "events": row.last_seq, "last_at": row.last_at,
    }  # fmt: skip


def _names_module(policy: str) -> bool:
    """Whether a policy's text names `module:Class`.

    >>> [_names_module(text) for text in ("uts", "ucb1:confidence=2", "mine:Policy:a=1")]
    [False, False, True]
    """
    name, _, rest = policy.partition(":")
    return bool(rest) and name not in POLICIES and "=" not in rest.partition(":")[0]


def _change(study: Study, change: dict[str, Any]) -> dict[str, Any]:
    """Return the added and retired levels by side; with two sides, also as rows and columns."""
    found = {what: levels for what, levels in change.items() if levels}
    if len(study.spec.sides) == 2:
        for what, levels in change.items():
            for word, side in zip(("rows", "columns"), study.spec.sides, strict=True):
                if side in levels:
                    found[f"{what}_{word}"] = levels[side]
    return found


async def _exported(
    registry: StudyRegistry, study: Study, format: str, part: tuple[list[dict[str, Any]], int]
) -> AsyncIterator[bytes]:
    """Yield the export in parts, each read separately: a slow client keeps nothing open."""
    sides, first = list(study.spec.sides), True
    while True:
        lines, after = part
        text = io.StringIO()
        if format == "csv":
            writer = csv.writer(text)
            if first:
                writer.writerow(map(_safe, ("id", *sides, *_COLUMNS, *study.spec.guardrails)))
            for line in lines:
                line["data"] = line["data"] and json.dumps(line["data"])
                cells = [line["id"], *line["levels"].values(), *map(line.get, _COLUMNS)]
                writer.writerow(map(_safe, [*cells, *line.get("guardrails", {}).values()]))
        else:
            text.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        first = False
        if written := text.getvalue():
            yield written.encode()
        if not after:
            return
        part = await registry.read(study.lines, after, PART)


_COLUMNS = (
    "state", "reward", "counted_as", "asked_at", "told_at", "late", "propensity", "version",
    "count", "unit", "data",
)  # fmt: skip


def _safe(cell: Any) -> Any:
    """Escape a cell's text, so that no spreadsheet takes it for a formula.

    >>> _safe("=1+1"), _safe(" ＝1+1"), _safe("\u200b=1"), _safe(-1.0)
    ("'=1+1", "' ＝1+1", "'\u200b=1", -1.0)
    """
    text = unicodedata.normalize("NFKC", cell) if isinstance(cell, str) else ""
    text = text.lstrip("".join(each for each in text if not each.isprintable() or each.isspace()))
    formula = text.startswith(FORMULA) or str(cell).startswith(("\t", "\r", "\n"))
    return f"'{cell}" if formula else cell
