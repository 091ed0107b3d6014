"""Routes for admins: create, list and revoke tokens."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from rank1.server import answers, models
from rank1.server.authorization import CurrentToken, require
from rank1.server.problem_details import json_response
from rank1.server.tokens import Tokens

__all__ = ["token_routes"]


def token_routes(tokens: Tokens) -> APIRouter:
    """The routes, for admins of all studies."""
    routes = APIRouter(prefix="/v1/tokens", tags=["tokens"])

    @routes.post("", status_code=201, response_model=answers.NewToken)
    def create_token(body: models.CreateToken, token: CurrentToken) -> Response:
        """Create a token. Its text is in this answer and nowhere else."""
        require(token, "admin")
        text = tokens.create(**body.model_dump())
        made = tokens.find(text)
        assert made is not None
        return json_response({**made.public(), "token": text}, 201)

    @routes.get("", response_model=answers.TokenList)
    def list_tokens(token: CurrentToken) -> Response:
        """List the tokens, without their secrets."""
        require(token, "admin")
        return json_response({"tokens": [each.public() for each in tokens.list()]})

    @routes.delete("/{id}", response_model=answers.Token)
    def revoke_token(id: str, token: CurrentToken) -> Response:
        """Revoke a token: it is refused from now on."""
        require(token, "admin")
        return json_response(tokens.revoke(id).public())

    return routes
