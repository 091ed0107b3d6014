"""Tokens: who may read, write or administer which studies. The file holds digests only."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import os
import secrets
import threading
import time
from pathlib import Path
from typing import Any

from rank1 import atomic, checks
from rank1.errors import FileError, InputError
from rank1.studies.events import check_text

__all__ = ["ROLES", "Token", "Tokens", "new_token"]

#: Each may do what those before it may.
ROLES = ("reader", "writer", "admin")
#: A token is r1_ID_SECRET.
_PREFIX = "r1"
_SECRET = 32


@dataclasses.dataclass(frozen=True)
class Token:
    """What is kept of a token."""

    id: str
    role: str
    #: The studies it is for; None for all.
    studies: tuple[str, ...] | None
    #: SHA-256 of its secret, which is random and long: no slow hash is needed.
    digest: str
    created: float
    note: str = ""

    def allows(self, role: str, study: str | None = None) -> bool:
        """Whether it allows what this role may do, on a study or on all of them.

        >>> token, text = new_token("writer", ["spring"])
        >>> token.allows("writer", "spring"), token.allows("reader", "autumn")
        (True, False)
        """
        enough = ROLES.index(self.role) >= ROLES.index(role)
        return enough and (self.studies is None or (study is not None and study in self.studies))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def new_token(role: str, studies: list[str] | None = None, note: str = "") -> tuple[Token, str]:
    """A token, and the text that requests carry, which isn't stored anywhere."""
    checks.one_of("role", role, ROLES)
    for name in studies or ():
        check_text("study", name)
    mark, secret = secrets.token_hex(4), secrets.token_urlsafe(_SECRET)
    kept = None if studies is None else tuple(studies)
    token = Token(mark, role, kept, _digest(secret), time.time(), note)
    return token, f"{_PREFIX}_{mark}_{secret}"


class Tokens:
    """The tokens of a file, which may change while the service runs.

    Examples
    --------
    >>> import tempfile
    >>> tokens = Tokens(Path(tempfile.mkdtemp(), "tokens.json"))
    >>> text = tokens.create("reader")
    >>> tokens.find(text).role
    'reader'
    >>> tokens.revoke(tokens.find(text).id)
    >>> tokens.find(text) is None
    True
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._looked = -1.0
        self._kept: dict[str, Token] = {}
        #: Tokens of this process alone.
        self._own: dict[str, Token] = {}

    def create(self, role: str, studies: list[str] | None = None, note: str = "") -> str:
        """Create a token; its text, which is shown once."""
        token, text = new_token(role, studies, note)
        with self._lock:
            self._write({**self._read(), token.id: token})
        return text

    def create_temporary(self, role: str = "admin") -> str:
        """Create a token that ends with the process."""
        token, text = new_token(role)
        self._own[token.id] = token
        return text

    def list(self) -> list[Token]:
        """All tokens of the file, the oldest first."""
        with self._lock:
            return sorted(self._read().values(), key=lambda token: token.created)

    def revoke(self, id: str) -> None:
        """Make a token invalid."""
        with self._lock:
            kept = self._read()
            if id not in kept:
                raise InputError("id", id, f"one of {', '.join(kept) or 'none'}")
            del kept[id]
            self._write(kept)

    def find(self, text: str) -> Token | None:
        """The token with this text, or None; both take the same time."""
        prefix, _, rest = text.partition("_")
        mark, _, secret = rest.partition("_")
        self._look()
        token = self._kept.get(mark) or self._own.get(mark)
        expected = token.digest if token else _digest("")
        same = hmac.compare_digest(_digest(secret), expected)
        return token if same and token and prefix == _PREFIX else None

    def _look(self) -> None:
        """Read the file again if it has changed, once a second at most."""
        now = time.monotonic()
        if now - self._looked < 1.0:
            return
        with self._lock:
            self._kept = self._read()
            self._looked = now

    def _read(self) -> dict[str, Token]:
        try:
            about = self.path.stat()
            stamp = (about.st_mtime_ns, about.st_size, about.st_ino)
            if stamp == self._stamp:
                return self._kept
            found = json.loads(self.path.read_text(encoding="utf-8"))
            kept = {each["id"]: _token(each) for each in found["tokens"]}
        except FileNotFoundError:
            self._stamp = None
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileError(
                f"the tokens in {str(self.path)!r} can't be read", repr(error), where=str(self.path)
            ) from None
        self._stamp = stamp
        self._kept = kept
        return dict(kept)

    def _write(self, kept: dict[str, Token]) -> None:
        document = {"tokens": [dataclasses.asdict(token) for token in kept.values()]}
        with atomic.whole_file(self.path) as temporary:
            temporary.chmod(0o600)
            temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        self._kept, self._stamp, self._looked = kept, None, -1.0


def _token(fields: dict[str, Any]) -> Token:
    studies = fields["studies"]
    token = Token(**{**fields, "studies": None if studies is None else tuple(studies)})
    checks.one_of("role", token.role, ROLES)
    return token
