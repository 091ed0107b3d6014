"""What can be looked at over HTTP: studies, best, fit, history, revisions, exports."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from starlette.responses import Response, StreamingResponse

from rank1.server.authorization import AdministeredStudy, CurrentToken, ReadableStudy
from rank1.server.problem_details import json_response
from rank1.server.registry import StudyRegistry
from rank1.studies.export import page_lines
from rank1.studies.log import OUTCOMES, Event, Kind, suggestion_id
from rank1.studies.memory import Memory
from rank1.studies.storage import Reader, StudyRow

__all__ = ["about", "read_routes"]

#: Lines of an export that are read at once.
PART = 2000
#: Events that are looked through for a page of a filtered history.
LOOKED_THROUGH = 20_000
#: Cells that a spreadsheet would take for a formula begin with one of these.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")

KindName = Literal[
    "created", "suggested", "reported", "cancelled", "expired", "revised", "history", "retired"
]


def read_routes(registry: StudyRegistry) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1/studies")

    @routes.get("", tags=["studies"], summary="List the studies")
    async def studies(token: CurrentToken) -> Response:
        rows = await registry.read(registry.rows)
        seen = [row for row in rows if token.allows("reader", row.name)]
        return json_response({"studies": [_listed(row) for row in seen]})

    @routes.get("/{name}", tags=["studies"], summary="What a study is")
    async def show(name: ReadableStudy) -> Response:
        return json_response(await registry.read(about, registry, name))

    @routes.get("/{name}/best", tags=["results"])
    async def best(name: ReadableStudy) -> Response:
        """The leader, intervals for pairs and effects, whether one may stop, and why."""
        found = await registry.read(lambda: registry.study(name).best().to_dict())
        return json_response(found)

    @routes.get("/{name}/view", tags=["results"])
    async def view(
        name: ReadableStudy,
        if_none_match: Annotated[str | None, Header()] = None,
        accept_encoding: Annotated[str, Header(include_in_schema=False)] = "",
    ) -> Response:
        """What the page shows, in one document; 304 while nothing has changed."""
        tag, document, small = await registry.read(lambda: registry.view(name).get())
        headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
        if if_none_match == tag:
            return Response(status_code=304, headers=headers)
        if "gzip" in accept_encoding:
            headers["Content-Encoding"] = "gzip"
            document = small
        return Response(document, headers=headers, media_type="application/json")

    @routes.get("/{name}/fit", tags=["results"])
    async def fit(
        name: ReadableStudy,
        repetitions: Annotated[int, Query(ge=1, le=999)] = 199,
        seed: Annotated[int, Query(ge=0, le=2**53)] = 1,
    ) -> Response:
        """Is the grid of rank one? By replaying the study's policy; it may take a while."""
        await registry.read(registry.row, name)
        found = await registry.read_slowly(
            lambda: registry.separate(name).fit(B=repetitions, seed=seed).to_dict()
        )
        return json_response(_finite(found))

    @routes.get("/{name}/replay", tags=["results"])
    async def replay(
        name: ReadableStudy,
        policy: Annotated[str, Query(min_length=1, max_length=200)],
        seed: Annotated[int, Query(ge=0, le=2**53)] = 1,
    ) -> Response:
        """How another policy fares on the rewards of the log."""
        found = await registry.read_slowly(
            lambda: registry.separate(name).replay(policy, seed).to_dict()
        )
        return json_response(found)

    @routes.get("/{name}/verification", tags=["results"])
    async def verify(name: AdministeredStudy) -> Response:
        """Recompute the study from its log, and compare."""
        found = await registry.read_slowly(lambda: registry.separate(name).verify().to_dict())
        return json_response(found)

    @routes.get("/{name}/history", tags=["log"])
    async def history(
        name: ReadableStudy,
        after: Annotated[
            int | None, Query(ge=0, le=2**62, description="`next` of the page before.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        kind: Annotated[list[KindName] | None, Query(max_length=8)] = None,
        row: Annotated[str | None, Query(max_length=256)] = None,
        column: Annotated[str | None, Query(max_length=256)] = None,
        newest: bool = False,
    ) -> Response:
        """The log, page by page, from the oldest event on or from the newest back."""
        kinds = [Kind[each.upper()] for each in kind or ()]
        wanted = {"rows": row, "columns": column}

        def look(memory: Memory, log: Reader) -> dict[str, Any]:
            return _history(registry.row(name), memory, log, after, limit, kinds, wanted, newest)

        return json_response(await registry.read(lambda: registry.study(name)._desk.look(look)))

    @routes.get("/{name}/revisions", tags=["log"])
    async def revisions(name: ReadableStudy) -> Response:
        """How rows and columns have come and gone."""

        def look(memory: Memory, log: Reader) -> dict[str, Any]:
            study = registry.study(name)._desk.study
            events = log.page(study.id, limit=100_000, kinds=(Kind.REVISED,))
            made = [
                {
                    "revision": each.tag,
                    "at": each.at,
                    "seq": each.seq,
                    **json.loads(each.data or "{}"),
                }
                for each in events
            ]
            living = {side: memory.living_labels(side) for side in ("rows", "columns")}
            return {"revision": memory.revision, **living, "revisions": made}

        return json_response(await registry.read(lambda: registry.study(name)._desk.look(look)))

    @routes.get("/{name}/export", tags=["log"], response_class=StreamingResponse)
    async def export(name: ReadableStudy, format: Literal["jsonl", "csv"] = "jsonl") -> Response:
        """A line for each suggestion, as a stream."""
        study = await registry.read(registry.row, name)
        first = await registry.read(_part, registry, study, 0)  # who can't have it hears so at once
        media = {"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8"}[format]
        kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in name)[:60]
        return StreamingResponse(
            _exported(registry, study, format, first),
            media_type=media,
            headers={"Content-Disposition": f'attachment; filename="rank1-{kept}.{format}"'},
        )

    return routes


def about(registry: StudyRegistry, name: str) -> dict[str, Any]:
    """What a study is and how far it has come."""
    row = registry.row(name)
    study = registry.study(name)
    spec = dataclasses.asdict(study.spec)
    return {
        **_listed(row),
        **spec,
        "rows": study.rows,
        "columns": study.columns,
        "revision": study.revision,
        "totals": study.totals(),
    }


def _listed(row: StudyRow) -> dict[str, Any]:
    return {
        "name": row.name, "uid": row.uid, "created": row.created, "retired": row.retired,
        "events": row.last_seq, "last_at": row.last_at,
    }  # fmt: skip


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _history(
    study: StudyRow,
    memory: Memory,
    log: Reader,
    after: int | None,
    limit: int,
    kinds: list[Kind],
    wanted: dict[str, str | None],
    newest: bool,
) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    looked, cursor = 0, after
    while len(found) < limit and looked < LOOKED_THROUGH:
        page = log.page(study.id, cursor, max(limit, 100), kinds=kinds, newest=newest)
        if not page:
            cursor = None
            break
        looked += len(page)
        for line in _event_lines(study, memory, log, page):
            cursor = line["seq"]
            if all(label is None or line.get(side[:-1]) == label for side, label in wanted.items()):
                found.append(line)
                if len(found) == limit:
                    break
    return {"events": found, "next": cursor}


def _event_lines(
    study: StudyRow, memory: Memory, log: Reader, page: list[Event]
) -> Iterator[dict[str, Any]]:
    of = {each.suggestion for each in page if each.kind in OUTCOMES}
    asked = {each.seq: each for each in log.events(study.id, list(of))}
    for event in page:
        line: dict[str, Any] = {
            "seq": event.seq, "at": event.at, "kind": Kind(event.kind).name.lower()
        }  # fmt: skip
        pull = asked.get(event.suggestion, event)
        if pull.kind == Kind.SUGGESTED:
            line["id"] = suggestion_id(study.uid, pull.seq, pull.nonce)
        if pull.kind in (Kind.SUGGESTED, Kind.HISTORY):
            line["row"] = memory.labels["rows"][pull.row]
            line["column"] = memory.labels["columns"][pull.column]
        if event.kind in (Kind.REPORTED, Kind.HISTORY, Kind.EXPIRED):
            line["reward"] = event.value if math.isfinite(event.value) else None
        if event.kind == Kind.HISTORY:
            line["count"] = event.tag
        if event.kind == Kind.REPORTED:
            line["late"] = event.tag == 1
        if event.kind == Kind.REVISED:
            line["revision"] = event.tag
            line["change"] = json.loads(event.data or "{}")
        if event.unit is not None:
            line["unit"] = event.unit
        if event.key is not None:
            line["key"] = event.key
        yield line


_Part = tuple[list[dict[str, Any]], int]


async def _exported(
    registry: StudyRegistry, study: StudyRow, format: str, part: _Part
) -> AsyncIterator[bytes]:
    """Part by part, each as of its own moment: a slow reader holds nothing open."""
    first = True
    while True:
        lines, after = part
        text = io.StringIO()
        if format == "csv":
            writer = csv.DictWriter(text, _COLUMNS)
            if first:
                writer.writeheader()
            writer.writerows(_safe(line) for line in lines)
        else:
            for line in lines:
                text.write(json.dumps(line, ensure_ascii=False) + "\n")
        first = False
        if written := text.getvalue():
            yield written.encode()
        if not after:
            return
        part = await registry.read(_part, registry, study, after)


_COLUMNS = (
    "id", "row", "column", "state", "reward", "asked_at", "told_at", "late", "propensity", "unit",
)  # fmt: skip


def _part(registry: StudyRegistry, study: StudyRow, after: int) -> _Part:
    """Lines, and where to go on; 0 for nowhere."""

    def look(memory: Memory, log: Reader) -> _Part:
        page = log.page(study.id, after, PART, kinds=(Kind.SUGGESTED,))
        lines = list(page_lines(study, memory.labels, log, page))
        return lines, page[-1].seq if len(page) == PART else 0

    return registry.study(study.name)._desk.look(look)


def _safe(line: dict[str, Any]) -> dict[str, Any]:
    """A line whose texts no spreadsheet takes for formulas.

    >>> _safe({"row": "=1+1", "reward": -1.0})
    {'row': "'=1+1", 'reward': -1.0}
    """
    return {
        name: f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell
        for name, cell in line.items()
    }
