"""Who may do what: dependencies of the routes, which also give the study's name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Header, Path, Request

from rank1.server.answers import Refused
from rank1.server.tokens import Token
from rank1.studies.log import MAX_TEXT

__all__ = ["AdminOf", "Holder", "Key", "ReaderOf", "WriterOf", "check"]

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_TEXT,
        description="The same key again gives the same answer: a request may be retried.",
    ),
]


def check(token: Token, role: str, study: str | None = None) -> None:
    """Refuse what a token isn't for."""
    if not token.allows(role, study):
        what = "all studies" if study is None else f"study {study!r}"
        raise Refused(
            403, f"this token is no {role}'s of {what}", "ask for one with `rank1 serve token`"
        )


async def _holder(request: Request) -> Token:
    token: Token = request.state.holder
    return token


def _of(role: str) -> Callable[..., Awaitable[str]]:
    async def name_of(
        request: Request,
        name: Annotated[str, Path(description="The study's name.", max_length=12 * MAX_TEXT)],
    ) -> str:
        study = unquote(name)  # the guard has left it as it came
        check(request.state.holder, role, study)
        return study

    return name_of


Holder = Annotated[Token, Depends(_holder)]
ReaderOf = Annotated[str, Depends(_of("reader"))]
WriterOf = Annotated[str, Depends(_of("writer"))]
AdminOf = Annotated[str, Depends(_of("admin"))]
