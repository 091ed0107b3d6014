"""Tokens: what each one allows, and on which studies. The file holds digests only."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import logging
import math
import os
import secrets
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rank1 import atomic, checks
from rank1.errors import FileError, InputError
from rank1.studies.events import check_text

__all__ = ["ROLES", "Token", "Tokens", "new_token"]

#: What each role allows. "log" means reading the log, which contains the names of units. A
#: browser's token is public: it can only fetch shares, and send records and rewards, of the studies
#: that it names.
ALLOWS = {
    "browser": ("browser",),
    "reader": ("reader", "log"),
    "writer": ("browser", "reader", "log", "writer"),
    "admin": ("browser", "reader", "log", "writer", "admin"),
}
#: What the token of a shared link allows: nothing that shows the names of units.
LINK_ALLOWS = ("reader",)
ROLES = tuple(ALLOWS)
#: The format of a token is r1_ID_SECRET.
_PREFIX = "r1"
_SECRET = 32

log = logging.getLogger("rank1.server")


@dataclasses.dataclass(frozen=True)
class Token:
    """A token as it is stored."""

    id: str
    role: str
    #: The studies it is valid for; None means all of them.
    studies: tuple[str, ...] | None
    #: SHA-256 of the secret. The secret is long and random, so a slow hash isn't needed.
    digest: str
    created: float
    note: str = ""
    #: When it expires, in seconds since 1970; None means never.
    expires: float | None = None
    #: The origins whose pages may use it, such as https://shop.example (browser tokens only).
    origins: tuple[str, ...] = ()
    #: Requests per second; None means the service's limit.
    rate: float | None = None
    #: Whether it belongs to a shared link to its study.
    link: bool = False

    def allows(self, role: str, study: str | None = None) -> bool:
        """Whether it allows a role's actions on a study; without a study, on all of them.

        >>> token, text = new_token("writer", ["spring"])
        >>> token.allows("writer", "spring"), token.allows("reader", "autumn")
        (True, False)
        """
        enough = role in (LINK_ALLOWS if self.link else ALLOWS[self.role])
        return enough and (self.studies is None or (study is not None and study in self.studies))

    def public(self) -> dict[str, Any]:
        """Return all fields except the digest."""
        fields = dataclasses.asdict(self)
        del fields["digest"]
        return fields


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def new_token(
    role: str,
    studies: Sequence[str] | None = None,
    note: str = "",
    *,
    days: float | None = None,
    origins: Sequence[str] = (),
    rate: float | None = None,
    link: bool = False,
) -> tuple[Token, str]:
    """Make a token; returns it with the text that requests send, which isn't stored anywhere.

    >>> new_token("browser", ["spring"], origins=["shop.example"])
    Traceback (most recent call last):
    ...
    rank1.InputError: origins must be like https://shop.example, got 'shop.example'
    """
    checks.one_of("role", role, ROLES)
    for name in studies or ():
        check_text("study", name)
    if days is not None:
        days = checks.number("days", days, 0, 1e5, above=True)
    if rate is not None:
        rate = checks.number("rate", rate, 0, 1e9, above=True)
    if role == "browser":
        if not studies:
            raise InputError("studies", studies, "given, because a browser's token is public")
        for origin in origins:
            _check_origin(origin)
        if not origins:
            raise InputError("origins", [], "at least one, such as https://shop.example")
    elif origins:
        raise InputError("origins", list(origins), "left out: they are for the role browser")
    mark, secret, now = secrets.token_hex(4), secrets.token_urlsafe(_SECRET), time.time()
    names = None if studies is None else tuple(studies)
    expires = None if days is None else now + 86400 * days
    limits = expires, tuple(origins), rate, link
    token = Token(mark, role, names, _digest(secret), now, note, *limits)
    return token, f"{_PREFIX}_{mark}_{secret}"


def _check_origin(origin: Any) -> None:
    parts = urlsplit(origin) if isinstance(origin, str) else None
    if (
        parts is None
        or parts.scheme not in ("http", "https")
        or f"{parts.scheme}://{parts.netloc}" != origin
    ):
        raise InputError("origins", origin, "like https://shop.example")


class Tokens:
    """The tokens in a file. The file may change while the service runs.

    Examples
    --------
    >>> import tempfile
    >>> tokens = Tokens(Path(tempfile.mkdtemp(), "tokens.json"))
    >>> text = tokens.create("reader")
    >>> tokens.find(text).role
    'reader'
    >>> tokens.revoke(tokens.find(text).id).role
    'reader'
    >>> tokens.find(text) is None
    True
    """

    def __init__(self, path: str | os.PathLike[str], own: Sequence[Token] = ()) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._looked = -1.0
        self._kept: dict[str, Token] = {}
        #: Tokens that aren't in the file: only this process and its workers know them.
        self._own = {token.id: token for token in own}
        #: Why the file can't be read at the moment; the tokens read last stay valid.
        self.problem: FileError | None = None

    def create(
        self, role: str, studies: Sequence[str] | None = None, note: str = "", **limits: Any
    ) -> str:
        """Create a token (limits as in `new_token`); returns its text, which is shown only once."""
        return self.add(role, studies, note, **limits)[1]

    def add(
        self, role: str, studies: Sequence[str] | None = None, note: str = "", **limits: Any
    ) -> tuple[Token, str]:
        """Create a token like `create`; returns the token and its text."""
        token, text = new_token(role, studies, note, **limits)
        with self._lock:
            self._write({**self._read(), token.id: token})
        return token, text

    def create_temporary(self) -> str:
        """Create an admin's token that is valid until the process ends."""
        token, text = new_token("admin")
        self._own[token.id] = token
        return text

    def own(self) -> list[Token]:
        """Return the tokens that aren't in the file."""
        return list(self._own.values())

    def list(self) -> list[Token]:
        """Return all tokens in the file, oldest first."""
        with self._lock:
            return sorted(self._read().values(), key=lambda token: token.created)

    def links(self, study: str) -> dict[str, Token]:
        """Return the shared links to a study by id, oldest first."""
        return {t.id: t for t in self.list() if t.link and t.studies == (study,)}

    def revoke(self, id: str, of_study: str | None = None) -> Token:
        """Revoke a token and return it; with a study, only one of that study's links."""
        links = None if of_study is None else self.links(of_study)
        with self._lock:
            kept = self._read()
            known = kept if links is None else links
            if id not in known or id not in kept:
                raise InputError("id", id, f"one of {', '.join(known) or 'none'}")
            revoked = kept.pop(id)
            self._write(kept)
        return revoked

    def allow_origin(self, origin: str) -> bool:
        """Whether any token may be used by pages of this origin."""
        self._look()
        return any(origin in token.origins for token in self._kept.values())

    def find(self, text: str) -> Token | None:
        """Return the valid token with this text, or None; both cases take the same time."""
        prefix, _, rest = text.partition("_")
        mark, _, secret = rest.partition("_")
        self._look()
        token = self._kept.get(mark) or self._own.get(mark)
        expected = token.digest if token else _digest("")
        same = hmac.compare_digest(_digest(secret), expected)
        valid = same and token is not None and prefix == _PREFIX
        if not valid or token is None or (token.expires or math.inf) <= time.time():
            return None
        return token

    def _look(self) -> None:
        """Read the file again if it has changed; checks at most once a second."""
        now = time.monotonic()
        if now - self._looked < 1.0:
            return
        with self._lock:
            try:
                self._kept, self.problem = self._read(), None
            except FileError as error:
                if self.problem is None:
                    log.error("%s; the tokens that were read last stay valid", error)
                self.problem = error
            self._looked = now

    def _read(self) -> dict[str, Token]:
        try:
            about = self.path.stat()
            stamp = (about.st_mtime_ns, about.st_size, about.st_ino)
            if stamp == self._stamp:
                return self._kept
            found = json.loads(self.path.read_text(encoding="utf-8"))
            kept = {each["id"]: _token(each) for each in found["tokens"]}
        except FileNotFoundError as error:
            if not self._kept:
                return {}
            raise self._unreadable(error) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._unreadable(error) from None
        self._stamp = stamp
        self._kept = kept
        return dict(kept)

    def _unreadable(self, error: Exception) -> FileError:
        where = str(self.path)
        return FileError(f"the tokens in {where!r} can't be read", repr(error), where=where)

    def _write(self, kept: dict[str, Token]) -> None:
        document = {"tokens": [dataclasses.asdict(token) for token in kept.values()]}
        with atomic.whole_file(self.path) as temporary:
            temporary.chmod(0o600)
            temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        self._kept, self._stamp, self._looked = kept, None, -1.0


def _token(fields: dict[str, Any]) -> Token:
    known = {field.name for field in dataclasses.fields(Token)}
    given = {name: value for name, value in fields.items() if name in known}
    for name in ("studies", "origins"):
        if given.get(name) is not None:
            given[name] = tuple(given[name])
    token = Token(**given)
    checks.one_of("role", token.role, ROLES)
    return token
