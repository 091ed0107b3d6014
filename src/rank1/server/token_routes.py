"""Routes for admins: create, list and revoke tokens and links to a study."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from starlette.responses import Response

from rank1.server import models, schemas
from rank1.server.authorization import AdministeredStudy, CurrentToken, require
from rank1.server.problem_details import json_response
from rank1.server.registry import StudyRegistry
from rank1.server.tokens import Token, Tokens

__all__ = ["link_routes", "token_routes"]


def token_routes(tokens: Tokens) -> APIRouter:
    """Make the routes for admins of all studies."""
    routes = APIRouter(prefix="/v1/tokens", tags=["tokens"])

    @routes.post("", status_code=201, response_model=schemas.NewToken)
    def create_token(body: models.CreateToken, token: CurrentToken) -> Response:
        """Create a token. Only this answer contains its text."""
        require(token, "admin")
        made, text = tokens.add(**body.model_dump())
        return json_response({**made.public(), "token": text}, 201)

    @routes.get("", response_model=schemas.TokenList)
    def list_tokens(token: CurrentToken) -> Response:
        """List the tokens, without their secrets."""
        require(token, "admin")
        return json_response({"tokens": [each.public() for each in tokens.list()]})

    @routes.get("/current", response_model=schemas.Token)
    async def current_token(token: CurrentToken) -> Response:
        """Get the role, studies and limits of this request's token."""
        return json_response(token.public())

    @routes.delete("/{id}", response_model=schemas.Token)
    def revoke_token(id: str, token: CurrentToken) -> Response:
        """Revoke a token: requests with it are refused from now on."""
        require(token, "admin")
        return json_response(tokens.revoke(id).public())

    return routes


def link_routes(tokens: Tokens, registry: StudyRegistry) -> APIRouter:
    """Make the routes for a study's admins: links that give read access without a login."""
    routes = APIRouter(prefix="/v1/studies/{name}/links", tags=["tokens"])

    @routes.post("", status_code=201, response_model=schemas.NewLink)
    async def create_link(name: AdministeredStudy, body: models.CreateLink) -> Response:
        """Create a link that shows this study's results to anyone: no log, no names of units."""
        await registry.read(registry.row, name)
        made, text = await registry.read(
            lambda: tokens.add("reader", [name], body.note, days=body.days, link=True)
        )
        path = f"study?name={quote(name, safe='')}#token={text}"
        return json_response({**_link(made), "token": text, "path": path}, 201)

    @routes.get("", response_model=schemas.LinkList)
    async def list_links(name: AdministeredStudy) -> Response:
        """List the links, without their secrets."""
        found = await registry.read(tokens.links, name)
        return json_response({"links": [_link(each) for each in found.values()]})

    @routes.delete("/{id}", response_model=schemas.Link)
    async def revoke_link(name: AdministeredStudy, id: str) -> Response:
        """Revoke a link: it no longer gives access to the study."""
        return json_response(_link(await registry.read(tokens.revoke, id, name)))

    return routes


def _link(token: Token) -> dict[str, Any]:
    return {name: getattr(token, name) for name in ("id", "created", "note", "expires")}
