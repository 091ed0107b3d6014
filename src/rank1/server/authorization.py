"""Authorization: route dependencies that check the token and return the study's name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Header, Path, Request

from rank1.server.problem_details import RefusedError
from rank1.server.tokens import Token
from rank1.studies.events import MAX_TEXT

__all__ = [
    "AdministeredStudy",
    "AssignableStudy",
    "CurrentToken",
    "IdempotencyKey",
    "LoggedStudy",
    "ReadableStudy",
    "WritableStudy",
    "require",
]

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_TEXT,
        description="A retry with the same key returns the same response.",
    ),
]


def require(token: Token, role: str, study: str | None = None) -> None:
    """Raise RefusedError if a token doesn't allow a role's actions on a study."""
    if token.allows(role, study):
        return
    if token.link:
        problem = "a shared link only shows results: no log and no names of units"
        raise RefusedError(403, problem, "ask an admin")
    needed = "reader" if role == "log" else role
    what = "all studies" if study is None else f"study {study!r}"
    problem = f"the token must have the role {needed} for {what}"
    raise RefusedError(403, problem, "create one with `rank1 serve token`")


async def _current_token(request: Request) -> Token:
    token: Token = request.state.token
    return token


def _of(role: str) -> Callable[..., Awaitable[str]]:
    async def name_of(
        request: Request,
        name: Annotated[str, Path(description="The study's name.", max_length=12 * MAX_TEXT)],
    ) -> str:
        study = unquote(name)  # the middleware leaves it encoded
        require(request.state.token, role, study)
        return study

    return name_of


CurrentToken = Annotated[Token, Depends(_current_token)]
ReadableStudy = Annotated[str, Depends(_of("reader"))]
LoggedStudy = Annotated[str, Depends(_of("log"))]
AssignableStudy = Annotated[str, Depends(_of("browser"))]
WritableStudy = Annotated[str, Depends(_of("writer"))]
AdministeredStudy = Annotated[str, Depends(_of("admin"))]
